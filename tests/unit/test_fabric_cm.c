/* SPDX-License-Identifier: BSD-2-Clause */
/* tools/fabric_cm: programs on the hosts of a fabric connect by GIDs, and get
 * paths from the subnet administration. */
#include "fabric_programs.h"

#include <linux/sockios.h>
#include <stdatomic.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include "broker/cm_inbox.h"
#include "broker/cmserver.h"
#include "tools/fabric_cm.h"
#include "util/monotonic.h"
#include "util/rlimit.h"

/* ---- a server without memory for its messages ---- */

enum { SENDS = 4 };

/* Memory that the test shares with the process of the fabric. */
static struct {
	atomic_bool is_refused;
	atomic_uint calls;     /* refused calls of sendmmsg */
	uint64_t at_ns[SENDS]; /* when the first of them came */
} * sends;

int __wrap_sendmmsg(int fd, struct mmsghdr *h, unsigned n, int flags);
int __real_sendmmsg(int fd, struct mmsghdr *h, unsigned n, int flags);

int __wrap_sendmmsg(int fd, struct mmsghdr *h, unsigned n, int flags)
{
	unsigned calls;

	if (!atomic_load(&sends->is_refused))
		return __real_sendmmsg(fd, h, n, flags);
	calls = atomic_load(&sends->calls);
	if (calls < SENDS)
		sends->at_ns[calls] = monotonic_ns();
	atomic_store(&sends->calls, calls + 1);
	errno = ENOBUFS;
	return -1;
}

static void a_server_without_memory_pauses(void **state)
{
	struct program a = run_program("A", 1, 0);

	atomic_store(&sends->is_refused, true);
	post_message(&a, request_of(&a, NULL), CMPROTO_BIND, 0);
	while (atomic_load(&sends->calls) < SENDS)
		usleep(1000);
	atomic_store(&sends->is_refused, false);
	assert_int_equal(take_message(&a).err, 0);
	for (size_t i = 1; i < SENDS; i++)
		assert_true(sends->at_ns[i] - sends->at_ns[i - 1] >=
			    (CMSERVER_MEMORY_MS - 1) * UINT64_C(1000000));
	end_program(&a);
}

static void programs_of_two_hosts_connect(void **state)
{
	struct program a = run_program("A", 1, 0), b = run_program("B", 1, 0);
	struct umad_program sa = run_sa();

	listen_at(&b, false);
	for (int i = 0; i < 3; i++)
		end_pair(&a, &b, begin_pair(&a, &b, &sa, LID_A1, LID_B));
	end_program(&a);
	end_program(&b);
	end_agent(&sa);
}

/* Binds an object of the program to a whole service ID. */
static struct cmproto bind_service(const struct program *p, uint64_t service_id)
{
	struct cmproto m = request_of(p, NULL);

	m.at.service_id = service_id;
	return call_cm(p, m, CMPROTO_BIND, 0);
}

static void ask_service(const struct program *a, const struct program *b,
			uint32_t object, uint64_t service_id)
{
	struct cmproto m = request_of(a, b->gid);

	m.at.service_id = service_id;
	m.qp.qpn = QPN_OF_PAIR;
	call_ok(a, m, CMPROTO_CONNECT, object);
}

static void a_service_id_of_64_bits_has_one_listener(void **state)
{
	const uint64_t service = 0x1000000000000123;
	struct program a = run_program("A", 1, 0), b = run_program("B", 1, 0);
	struct cmproto first = bind_service(&b, service),
		       second = bind_service(&b, service);

	assert_int_equal(first.err, 0);
	assert_int_equal(second.err, 0);
	call_ok(&b, request_of(&b, NULL), CMPROTO_LISTEN, first.new_id);
	assert_int_equal(
		call_cm(&b, request_of(&b, NULL), CMPROTO_LISTEN, second.new_id)
			.err,
		-EADDRINUSE);
	/* the service ID of a port cannot be bound as a whole service ID */
	assert_int_equal(bind_service(&b, cmmsg_service_id(SPACE, 9)).err,
			 -EINVAL);
	bind_port(&a, false);
	ask_service(&a, &b, a.object, service);
	assert_int_equal(take_event(&b, CMPROTO_REQUEST).id, first.new_id);
	ask_service(&a, &b, bind_service(&a, service).new_id,
		    service | 1ull << 32);
	assert_int_equal(take_event(&a, CMPROTO_REJECTED).status, NO_SERVICE);
	/* another object may listen when the first is released */
	post_message(&b, (struct cmproto){0}, CMPROTO_RELEASE, first.new_id);
	call_ok(&b, request_of(&b, NULL), CMPROTO_LISTEN, second.new_id);
	end_program(&a);
	end_program(&b);
}

static void two_ports_of_a_host_connect(void **state)
{
	struct program a = run_program("A", 1, 0), b = run_program("A", 2, 0);
	struct umad_program sa = run_sa();

	listen_at(&b, false);
	end_pair(&a, &b, begin_pair(&a, &b, &sa, LID_A1, LID_A2));
	end_program(&a);
	end_program(&b);
	end_agent(&sa);
}

static void a_port_connects_to_itself(void **state)
{
	struct program a = run_program("A", 1, 0), b = run_program("A", 1, 0);
	struct umad_program sa = run_sa();

	listen_at(&b, false);
	end_pair(&a, &b, begin_pair(&a, &b, &sa, LID_A1, LID_A1));
	end_program(&a);
	end_program(&b);
	end_agent(&sa);
}

static void a_listener_is_found_by_its_second_gid(void **state)
{
	struct program a = run_program("A", 1, 0), b = run_program("B", 1, 1);
	struct umad_program sa = run_sa();

	listen_at(&b, false);
	end_pair(&a, &b, begin_pair(&a, &b, &sa, LID_A1, LID_B));
	/* and b connects from that GID */
	listen_at(&a, false);
	end_pair(&b, &a, begin_pair(&b, &a, &sa, LID_B, LID_A1));
	end_program(&a);
	end_program(&b);
	end_agent(&sa);
}

static void the_peer_of_a_program_that_ends_is_disconnected(void **state)
{
	struct program b = run_program("B", 1, 0);
	struct umad_program sa = run_sa();

	listen_at(&b, false);
	for (int i = 0; i < 2; i++) {
		struct program a = run_program("A", 1, 0);

		begin_pair(&a, &b, &sa, LID_A1, LID_B);
		/* the end of either socket ends the program's conversations */
		close(i ? a.fabric : a.cm);
		take_event(&b, CMPROTO_DISCONNECTED);
		close(i ? a.cm : a.fabric);
	}
	end_program(&b);
	end_agent(&sa);
}

/* The program has sent more messages than the fabric reads at once, and closes
 * its connection before it has read an answer that waits. */
static void the_last_messages_of_a_program_that_ends_count(void **state)
{
	struct program a = run_program("A", 1, 0), b = run_program("B", 1, 0);
	const struct cmproto_path by = {
		.local_lid = LID_A1, .remote_lid = LID_B, .pkey = 0xffff};
	const struct cmproto rep = {.qp.qpn = 0x8001};
	uint32_t accepted;

	listen_at(&b, false);
	bind_port(&a, false);
	connect_to(&a, &b, &by);
	accepted = take_event(&b, CMPROTO_REQUEST).new_id;
	post_message(&b, request_of(&b, NULL), CMPROTO_BIND, 0);
	for (int i = 0; i < 3 * CM_INBOX_MESSAGES; i++)
		post_message(&b, rep, CMPROTO_TAKEN, accepted);
	post_message(&b, rep, CMPROTO_ACCEPT, accepted);
	close_both(b.fabric, b.cm);
	take_event(&a, CMPROTO_RESPONSE);
	end_program(&a);
}

/* A program gives its notes of an earlier server to the successor.  The server
 * of a fabric is no successor. */
static void a_note_of_a_program_is_refused(void **state)
{
	struct program a = run_program("A", 1, 0);
	struct cmproto m = request_of(&a, a.gid);

	memset(m.note, 1, sizeof(m.note));
	assert_int_equal(call_cm(&a, m, CMPROTO_RESUME, 0).err, -EOPNOTSUPP);
	assert_int_equal(call_cm(&a, m, CMPROTO_RELEASE, 0).err, -EOPNOTSUPP);
	end_program(&a);
}

static void a_request_without_a_listener_is_rejected(void **state)
{
	struct program a = run_program("A", 1, 0), b = run_program("B", 1, 0);
	const struct cmproto_path by = {
		.local_lid = LID_A1, .remote_lid = LID_B, .pkey = 0xffff};
	struct cmproto m;

	bind_port(&a, false);
	b.port = 4242;
	connect_to(&a, &b, &by);
	m = take_event(&a, CMPROTO_REJECTED);
	assert_int_equal(m.status, NO_SERVICE);
	end_program(&a);
	end_program(&b);
}

/* No program is on B, so no agent is there for MADs of the CM. */
static void a_host_without_programs_does_not_answer(void **state)
{
	struct program a = run_program("A", 1, 0);
	struct cmproto m = request_of(&a, NULL);

	bind_port(&a, false);
	read_gid(a.fabric, "B", 1, 0, m.at.peer);
	m.at.peer_port = 1;
	m.timeout = SHORT_TIMEOUT;
	m.max_retries = 1;
	call_ok(&a, m, CMPROTO_CONNECT, a.object);
	m = take_event(&a, CMPROTO_UNREACHABLE);
	assert_int_equal(m.status, -ETIMEDOUT);
	end_program(&a);
}

static void a_datagram_service_is_resolved(void **state)
{
	struct program a = run_program("A", 1, 0), b = run_program("B", 1, 0);
	struct cmproto m = request_of(&a, b.gid);

	listen_at(&b, true);
	bind_port(&a, true);
	m.is_datagram = true;
	m.at.peer_port = b.port;
	m.path.pkey = 0xffff;
	m.private_bytes = PRIVATE_SIDR;
	memset(m.private_data, 0xa5, PRIVATE_SIDR);
	call_ok(&a, m, CMPROTO_CONNECT, a.object);
	m = take_event(&b, CMPROTO_REQUEST);
	assert_int_equal(m.private_bytes, PRIVATE_SIDR);
	assert_int_equal(m.private_data[PRIVATE_SIDR - 1], 0xa5);
	m.qp = (struct cmproto_qp){.qpn = 77, .qkey = 88};
	m.private_bytes = 0;
	call_ok(&b, m, CMPROTO_ACCEPT, m.new_id);
	m = take_event(&a, CMPROTO_RESOLVED);
	assert_int_equal(m.qp.qpn, 77);
	assert_int_equal(m.qp.qkey, 88);
	end_program(&a);
	end_program(&b);
}

static int route_error(const struct program *p, const uint8_t peer[16])
{
	struct cmproto m = request_of(p, peer);

	m.timeout = SHORT_TIMEOUT;
	return call_cm(p, m, CMPROTO_ROUTE, 0).err;
}

static void a_route_fails_for_the_reason_that_the_error_says(void **state)
{
	struct program a = run_program("A", 1, 0);
	struct umad_program sa = run_sa();
	uint8_t peer[16], down[16];

	read_gid(a.fabric, "A", 3, 0, down);
	memcpy(peer, a.gid, 16);
	bytes_put64(peer + 8, UNKNOWN_GUID);
	assert_int_equal(ask_route(&a, &sa, peer).err, -ENETUNREACH);
	/* the administration does not answer */
	assert_int_equal(route_error(&a, a.gid), -ETIMEDOUT);
	end_agent(&sa);
	/* no program takes queries at the SM's port */
	assert_int_equal(route_error(&a, a.gid), -EREMOTEIO);
	memcpy(peer, a.gid, 16);
	memcpy(a.gid, down, 16);
	assert_int_equal(route_error(&a, peer), -ENETDOWN);
	memset(a.gid, 0, 16);
	assert_int_equal(route_error(&a, peer), -ENETDOWN);
	end_program(&a);
}

/* Both answers come after the first program has ended. */
static void the_answer_for_a_program_that_has_ended_is_lost(void **state)
{
	struct program a = run_program("A", 1, 0), b = run_program("A", 1, 0);
	struct umad_program sa = run_sa();
	struct cmproto m = request_of(&a, a.gid);

	m.path.pkey = 0xffff;
	m.path.traffic_class = TRAFFIC_CLASS;
	post_message(&a, m, CMPROTO_ROUTE, 0);
	post_message(&b, m, CMPROTO_ROUTE, 0);
	/* the fabric has read both messages when it answers the next ones */
	assert_int_equal(call_cm(&a, m, CMPROTO_LISTEN, 0).err, -ENOENT);
	assert_int_equal(call_cm(&b, m, CMPROTO_LISTEN, 0).err, -ENOENT);
	end_program(&a);
	for (int i = 0; i < 2; i++)
		answer_query(&sa);
	assert_int_equal(take_message(&b).err, 0);
	end_program(&b);
	end_agent(&sa);
}

/* The administration answers one query only, which makes room for one more. */
static void the_open_queries_of_a_program_are_bounded(void **state)
{
	struct program a = run_program("A", 1, 0);
	struct umad_program sa = run_sa();
	struct cmproto m = request_of(&a, a.gid);

	m.path.pkey = 0xffff;
	m.path.traffic_class = TRAFFIC_CLASS;
	for (int i = 0; i < FABRIC_CM_QUERIES; i++)
		post_message(&a, m, CMPROTO_ROUTE, 0);
	assert_int_equal(call_cm(&a, m, CMPROTO_ROUTE, 0).err, -ENOBUFS);
	answer_query(&sa);
	assert_int_equal(take_message(&a).err, 0);
	post_message(&a, m, CMPROTO_ROUTE, 0);
	assert_int_equal(call_cm(&a, m, CMPROTO_ROUTE, 0).err, -ENOBUFS);
	end_program(&a);
	end_agent(&sa);
}

/* Waits until the fabric has closed the connection of the program. */
static void assert_dropped(const struct program *p)
{
	struct cmproto m;

	while (recv(p->cm, &m, sizeof(m), 0) > 0)
		;
}

static void messages_that_are_garbage_end_only_their_program(void **state)
{
	struct program a = run_program("A", 1, 0), b = run_program("A", 1, 0);
	struct program c = run_program("A", 1, 0);
	struct cmproto m = request_of(&b, b.gid);

	send(a.cm, "garbage", 7, MSG_NOSIGNAL);
	assert_dropped(&a);
	m.version = CMPROTO_VERSION + 1;
	m.kind = CMPROTO_ROUTE;
	send(b.cm, &m, sizeof(m), MSG_NOSIGNAL);
	assert_dropped(&b);
	memset(&m, 0xff, sizeof(m));
	m.version = CMPROTO_VERSION;
	m.private_bytes = 0;
	for (uint16_t kind = 0; kind <= CMPROTO_EVENT + 1; kind++) {
		m.kind = kind;
		send(c.cm, &m, sizeof(m), MSG_NOSIGNAL);
	}
	/* the addresses of a host of a fabric are GIDs */
	m = request_of(&c, NULL);
	m.is_ib = false;
	post_message(&c, m, CMPROTO_BIND, 0);
	m = take_message(&c);
	while (m.serial == UINT32_MAX) /* answers a message of the loop */
		m = take_message(&c);
	assert_int_equal(m.err, -EINVAL);
	bind_port(&c, false);
	end_program(&a);
	end_program(&b);
	end_program(&c);
}

/* Waits until the peer of a socket has read all messages. */
static void await_readers(int fd)
{
	int bytes = 1;

	while (!ioctl(fd, SIOCOUTQ, &bytes) && bytes)
		usleep(1000);
}

static void a_program_that_does_not_read_is_dropped(void **state)
{
	struct program a = run_program("A", 1, 0);
	struct cmproto m = request_of(&a, NULL), last = {0};
	ssize_t n;

	m.magic = CMPROTO_MAGIC;
	m.version = CMPROTO_VERSION;
	m.kind = CMPROTO_LISTEN;
	for (int i = 0; i < MANY; i++)
		if (send(a.cm, &m, sizeof(m), MSG_NOSIGNAL) < 0)
			break;
	await_readers(a.cm);
	while ((n = recv(a.cm, &m, sizeof(m), 0)) > 0)
		last = m;
	assert_int_equal(last.kind, CMPROTO_EVENT);
	assert_int_equal(last.event, CMPROTO_DROPPED);
	end_program(&a);
}

static void a_connection_has_one_client_at_a_host_that_exists(void **state)
{
	struct program a = run_program("A", 1, 0);
	struct fabric_proto m = {.kind = FABRIC_PROTO_CM};
	int other = -1;

	memcpy(m.gid, a.gid, 16);
	assert_int_equal(ask_fabric(a.fabric, &m, &other), -EBUSY);
	close(a.fabric);
	a.fabric = join_fabric();
	bytes_put64(m.gid + 8, UNKNOWN_GUID);
	assert_int_equal(ask_fabric(a.fabric, &m, &other), -ENODEV);
	memset(m.gid, 0, 16);
	assert_int_equal(ask_fabric(a.fabric, &m, &other), -ENODEV);
	end_program(&a);
}

static void the_programs_of_a_host_are_bounded(void **state)
{
	static struct program others[FABRIC_CM_CLIENTS];
	struct fabric_proto m = {.kind = FABRIC_PROTO_CM};
	struct rlimit files;
	int fd, cm = -1;

	rlimit_raise(RLIMIT_NOFILE);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &files), 0);
	if (files.rlim_cur < 2 * FABRIC_CM_CLIENTS + 64)
		SKIP_FOR("the limit on open files (ulimit -Hn) is too low");
	for (int i = 0; i < FABRIC_CM_CLIENTS; i++)
		others[i] = run_program("B", 1, 0);
	fd = join_fabric();
	memcpy(m.gid, others[0].gid, 16);
	assert_int_equal(ask_fabric(fd, &m, &cm), -EMFILE);
	end_program(&others[0]);
	/* the server may answer this connection before it has seen the end of
	 * others[0] */
	do {
		m.kind = FABRIC_PROTO_CM;
		memcpy(m.gid, others[1].gid, 16);
	} while (ask_fabric(fd, &m, &cm) == -EMFILE);
	assert_true(cm >= 0);
	close_both(fd, cm);
	for (int i = 1; i < FABRIC_CM_CLIENTS; i++)
		end_program(&others[i]);
}

static void a_program_may_take_the_class_of_the_cm(void **state)
{
	struct umad_program other =
		run_agent("A", CMMSG_CLASS, CMMSG_METHOD_SEND);
	struct program a = run_program("A", 1, 0);

	bind_port(&a, false);
	end_program(&a);
	end_agent(&other);
	/* the next program finds the class free */
	programs_of_two_hosts_connect(state);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		FABRIC_TEST(programs_of_two_hosts_connect),
		FABRIC_TEST(a_server_without_memory_pauses),
		FABRIC_TEST(a_service_id_of_64_bits_has_one_listener),
		FABRIC_TEST(two_ports_of_a_host_connect),
		FABRIC_TEST(a_port_connects_to_itself),
		FABRIC_TEST(a_listener_is_found_by_its_second_gid),
		FABRIC_TEST(the_peer_of_a_program_that_ends_is_disconnected),
		FABRIC_TEST(the_last_messages_of_a_program_that_ends_count),
		FABRIC_TEST(a_note_of_a_program_is_refused),
		FABRIC_TEST(a_request_without_a_listener_is_rejected),
		FABRIC_TEST(a_host_without_programs_does_not_answer),
		FABRIC_TEST(a_datagram_service_is_resolved),
		FABRIC_TEST(a_route_fails_for_the_reason_that_the_error_says),
		FABRIC_TEST(the_answer_for_a_program_that_has_ended_is_lost),
		FABRIC_TEST(the_open_queries_of_a_program_are_bounded),
		FABRIC_TEST(messages_that_are_garbage_end_only_their_program),
		FABRIC_TEST(a_program_that_does_not_read_is_dropped),
		FABRIC_TEST(a_connection_has_one_client_at_a_host_that_exists),
		FABRIC_TEST(the_programs_of_a_host_are_bounded),
		FABRIC_TEST(a_program_may_take_the_class_of_the_cm),
	};

	sends = mmap(NULL, sizeof(*sends), PROT_READ | PROT_WRITE,
		     MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (sends == MAP_FAILED)
		return 1;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
