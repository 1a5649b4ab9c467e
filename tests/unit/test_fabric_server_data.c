/* SPDX-License-Identifier: BSD-2-Clause */
/* tools/fabric_server, tools/fabric_data: the packets and MADs of a program
 * arrive, also if the program ends, or if a socket takes no message for a
 * while. */
#include "program_packets.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>

#include "fabric/data_end.h"
#include "fabric/umad_header.h"
#include "tools/fabric_data.h"
#include "util/monotonic.h"

enum {
	/* more than the fabric reads in one turn while the program runs */
	COUNT = DATA_UNSENT,
	MADS = 100,
	CLASS = 0x0a,  /* of no agent of the fabric */
	FULL_MS = 300, /* a socket without room for this time is full */
};

static int send_error; /* errno value; 0: sendmsg succeeds */

ssize_t sendmsg(int fd, const struct msghdr *message, int flags)
{
	if (!send_error)
		return syscall(SYS_sendmsg, fd, message, flags);
	errno = send_error;
	return -1;
}

/* A program with a data end at port 1 of a host. */
struct sender {
	int fabric, data;
	uint32_t number;
};

static struct sender attach_to(const char *host)
{
	struct fabric_proto m = {.kind = FABRIC_PROTO_DATA, .number = 1};
	struct sender s = {.fabric = join_fabric()};

	strcpy(m.host, host);
	assert_int_equal(ask_fabric(s.fabric, &m, &s.data), 0);
	s.number = m.number;
	return s;
}

/* Sends a packet from A to B.  False: A's socket is full. */
static bool send_packet(const struct sender *a, const struct sender *b)
{
	uint8_t p[BYTES];
	ssize_t n;

	make_packet(p, b->number, 0);
	n = send(a->data, p, BYTES, MSG_NOSIGNAL | MSG_DONTWAIT);
	if (n < 0 && errno == EAGAIN)
		return false;
	assert_int_equal(n, BYTES);
	return true;
}

/* Counts the packets that come, up to `most`. */
static int count_packets(const struct sender *b, int most)
{
	struct pollfd wait = {.fd = b->data, .events = POLLIN};
	static uint8_t p[FABRIC_PROTO_BURST_BYTES];
	int count = 0;

	while (count < most && poll(&wait, 1, TEST_WAIT_MS) == 1) {
		ssize_t n = recv(b->data, p, sizeof(p), 0);

		assert_int_equal(n % BYTES, 0);
		count += (int)(n / BYTES);
	}
	return count;
}

/* Sends the n bytes at p as one message from A, after filling them with as many
 * packets to B as fit. */
static void send_message(const struct sender *a, const struct sender *b,
			 uint8_t *p, size_t n)
{
	for (size_t at = 0; at + BYTES <= n; at += BYTES)
		make_packet(p + at, b->number, 0);
	assert_int_equal(send(a->data, p, n, MSG_NOSIGNAL), n);
}

/* The fabric drops bytes that are no packet, and a message of more than
 * 64 KiB. */
static void a_message_may_have_several_packets(void **state)
{
	struct sender a = attach_to("A"), b = attach_to("B");
	static uint8_t p[2 * FABRIC_PROTO_BURST_BYTES];
	const int most = FABRIC_PROTO_BURST_BYTES / BYTES;

	send_message(&a, &b, p, 3 * BYTES);
	send_message(&a, &b, p, 2 * BYTES + 20);
	send_message(&a, &b, p, FABRIC_PROTO_BURST_BYTES + 1);
	send_message(&a, &b, p, (size_t)most * BYTES);
	assert_int_equal(count_packets(&b, 5 + most), 5 + most);
	close_both(a.fabric, a.data);
	close_both(b.fabric, b.data);
}

/* For an empty message recv returns 0, as for the end of the program. */
static void an_empty_message_closes_no_socket(void **state)
{
	struct sender a = attach_to("A"), b = attach_to("B");

	assert_int_equal(send(a.data, "", 0, MSG_NOSIGNAL), 0);
	assert_true(send_packet(&a, &b));
	assert_int_equal(count_packets(&b, 1), 1);
	assert_true(send_packet(&a, &b));
	assert_int_equal(count_packets(&b, 1), 1);
	close_both(a.fabric, a.data);
	close_both(b.fabric, b.data);
}

static void packets_behind_an_empty_message_arrive_after_the_end(void **state)
{
	struct sender a = attach_to("A"), b = attach_to("B");

	assert_int_equal(kill(server, SIGSTOP), 0);
	assert_int_equal(send(a.data, "", 0, MSG_NOSIGNAL), 0);
	assert_true(send_packet(&a, &b));
	assert_int_equal(send(a.data, "", 0, MSG_NOSIGNAL), 0);
	close_both(a.fabric, a.data);
	assert_int_equal(kill(server, SIGCONT), 0);
	assert_int_equal(count_packets(&b, 1), 1);
	close_both(b.fabric, b.data);
}

/* The fabric finds the packets and the end of the program at one time. */
static void the_last_packets_of_a_program_that_ends_arrive(void **state)
{
	struct sender a = attach_to("A"), b = attach_to("B");
	int count = 0;

	assert_int_equal(kill(server, SIGSTOP), 0);
	while (count < COUNT && send_packet(&a, &b))
		count++;
	close_both(a.fabric, a.data);
	assert_int_equal(kill(server, SIGCONT), 0);
	assert_int_equal(count_packets(&b, count), count);
	close_both(b.fabric, b.data);
}

/* B does not read, so the fabric reads no more of A's packets. */
static void packets_that_had_to_wait_arrive_after_their_program(void **state)
{
	struct sender a = attach_to("A"), b = attach_to("B");
	struct pollfd room = {.fd = a.data, .events = POLLOUT};
	struct fabric_proto m = {.kind = FABRIC_PROTO_CA};
	int count = 0;

	while (poll(&room, 1, FULL_MS) == 1)
		count += send_packet(&a, &b);
	close_both(a.fabric, a.data);
	/* after this answer the fabric knows that A has ended */
	strcpy(m.host, "B");
	assert_int_equal(ask_fabric(b.fabric, &m, NULL), 0);
	assert_int_equal(count_packets(&b, count), count);
	close_both(b.fabric, b.data);
}

/* The program of a data end at A has ended, and its packets cannot be sent,
 * because the data end at B never reads. */
static void packets_that_cannot_be_sent_are_given_up_at_last(void **state)
{
	struct fabric_data_socket d;
	struct fabric_data f = {.epoll = epoll_create1(0)};
	struct data_end *a, *b;
	uint8_t p[BYTES], buffer[BYTES];
	int ends[2], err;

	f.fabric = new_subnet();
	f.buffer = buffer;
	f.size = sizeof(buffer);
	fabric_data_init_all(&f);
	fabric_data_init(&d, NULL);
	a = data_open(fabric_find(f.fabric, "A"), 1, &d, &err);
	b = data_open(fabric_find(f.fabric, "B"), 1, NULL, &err);
	data_pause(b);
	make_packet(p, data_number(b), 0);
	while (data_may_send(a))
		assert_int_equal(data_send(a, p, BYTES), 0);
	assert_int_equal(
		socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK, 0, ends),
		0);
	assert_int_equal(fabric_data_open(&f, &d, ends[0], a), 0);
	assert_int_equal(send(ends[1], p, BYTES, 0), BYTES);
	close(ends[1]);
	assert_int_equal(fabric_data_deadline(&f), FABRIC_NEVER);
	fabric_data_leave(&f, &d);
	fabric_data_turn(&f, monotonic_ms());
	assert_ptr_equal(d.end, a);
	fabric_data_turn(&f, fabric_data_deadline(&f));
	assert_null(d.end);
	assert_true(f.has_closed);
	assert_int_equal(fabric_data_deadline(&f), FABRIC_NEVER);
	assert_int_equal(fcntl(ends[0], F_GETFD), -1);
	fabric_free(f.fabric);
	close(f.epoll);
}

/* Two data ends in this process: A's, and B's with a socket. */
struct pair_of_ends {
	struct fabric_data f;
	struct fabric_data_socket d;
	struct data_end *a, *b;
	uint8_t buffer[BYTES];
	int program; /* the other end of B's socket */
};

static void open_ends(struct pair_of_ends *w)
{
	int ends[2], err;

	*w = (struct pair_of_ends){.f = {.epoll = epoll_create1(0),
					 .fabric = new_subnet(),
					 .buffer = w->buffer,
					 .size = sizeof(w->buffer)}};
	fabric_data_init_all(&w->f);
	fabric_data_init(&w->d, NULL);
	w->a = data_open(fabric_find(w->f.fabric, "A"), 1, NULL, &err);
	w->b = data_open(fabric_find(w->f.fabric, "B"), 1, &w->d, &err);
	assert_int_equal(
		socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK, 0, ends),
		0);
	assert_int_equal(fabric_data_open(&w->f, &w->d, ends[0], w->b), 0);
	w->program = ends[1];
}

static void close_ends(struct pair_of_ends *w)
{
	fabric_data_close(&w->f, &w->d);
	data_close(w->a);
	fabric_free(w->f.fabric);
	close(w->program);
	close(w->f.epoll);
}

/* Sends a packet from A to B.  The send at B's socket fails with errno `err`;
 * 0: it succeeds. */
static void pass_packet(struct pair_of_ends *w, int err)
{
	uint8_t p[BYTES];

	make_packet(p, data_number(w->b), 0);
	assert_int_equal(data_send(w->a, p, BYTES), 0);
	fabric_turn(w->f.fabric, 0);
	send_error = err;
	fabric_data_turn(&w->f, 0);
	send_error = 0;
}

static void a_packet_waits_while_the_kernel_has_no_memory(void **state)
{
	static const int errors[] = {ENOBUFS, ENOMEM};
	struct pair_of_ends w;
	uint8_t p[BYTES];

	open_ends(&w);
	for (size_t i = 0; i < TEST_COUNT(errors); i++) {
		pass_packet(&w, errors[i]);
		fabric_data_serve(&w.f, &w.d, EPOLLOUT);
		fabric_data_turn(&w.f, 0);
		assert_int_equal(recv(w.program, p, sizeof(p), 0), BYTES);
	}
	close_ends(&w);
}

/* The program at B says that it uses its ring, or that it has made room there.
 * Then the fabric gives the program the packets and the news that wait.  A send
 * at B's socket fails with errno `err`; 0: it succeeds. */
static void wake_fabric(struct pair_of_ends *w, int err)
{
	const struct fabric_proto_news news = {.changes = DATA_RING};

	assert_int_equal(send(w->program, &news, sizeof(news), 0),
			 sizeof(news));
	fabric_data_serve(&w->f, &w->d, EPOLLIN);
	send_error = err;
	fabric_data_turn(&w->f, 0);
	send_error = 0;
}

/* Serves the events of B's socket until epoll reports none, or `most` of them.
 * Returns how many were served. */
static int serve_events(struct pair_of_ends *w, int most)
{
	struct epoll_event e;
	int count = 0;

	while (count < most && epoll_wait(w->f.epoll, &e, 1, 0) == 1) {
		fabric_data_serve(&w->f, &w->d, e.events);
		fabric_data_turn(&w->f, 0);
		count++;
	}
	return count;
}

/* While the full socket has not taken the news of a change yet, the program
 * says that it has made room in its full ring. */
static void a_full_ring_and_a_full_socket_wake_the_fabric_once(void **state)
{
	int room_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK), file;
	struct fabric_proto_news news;
	uint32_t changes = 0;
	struct pair_of_ends w;

	open_ends(&w);
	file = fabric_data_ring(&w.f, &w.d, getpid(), room_fd);
	if (file == -EOPNOTSUPP) {
		close(room_fd);
		close_ends(&w);
		SKIP_FOR("the kernel is older than Linux 5.8");
	}
	assert_true(file >= 0);
	wake_fabric(&w, 0);
	while (!w.d.is_ring_full)
		pass_packet(&w, 0);
	data_wake_port(&fabric_find(w.f.fabric, "B")->ports[1], DATA_LID);
	wake_fabric(&w, EAGAIN);
	assert_true(w.d.is_full && w.d.is_ring_full);
	wake_fabric(&w, 0);
	assert_true(serve_events(&w, 9) < 9);
	while (recv(w.program, &news, sizeof(news), 0) == sizeof(news))
		changes |= news.changes;
	assert_true(changes & DATA_LID);
	close(file);
	close_ends(&w);
}

static void a_packet_that_no_message_can_have_is_counted(void **state)
{
	struct pair_of_ends w;
	const struct port *last;
	uint8_t p[BYTES];

	open_ends(&w);
	last = &fabric_find(w.f.fabric, "S")->ports[2];
	pass_packet(&w, EMSGSIZE);
	assert_int_equal(last->counters.tx_discards, 1);
	pass_packet(&w, 0);
	assert_int_equal(recv(w.program, p, sizeof(p), 0), BYTES);
	assert_true(recv(w.program, p, sizeof(p), 0) < 0);
	pass_packet(&w, EPIPE); /* the program has ended */
	assert_int_equal(last->counters.tx_discards, 1);
	close_ends(&w);
}

/* The fabric finds the end of the program before its MADs. */
static void the_last_mads_of_a_program_that_ends_arrive(void **state)
{
	struct umad_program a = run_agent("A", CLASS, METHOD_SET);
	struct umad_program b = run_agent("B", CLASS, METHOD_GET);
	const struct umad to = {.qpn = 1, .qkey = 0x80010000u, .lid = LID_B};
	struct pollfd wait = {.fd = b.umad, .events = POLLIN};
	uint8_t m[FABRIC_UMAD_BYTES + MAD_BYTES] = {0};

	umad_header_write(&to, MAD_BYTES, m);
	mad_write(m + FABRIC_UMAD_BYTES, &(struct mad){.base_version = 1,
						       .mgmt_class = CLASS,
						       .class_version = 2,
						       .method = METHOD_GET});
	assert_int_equal(kill(server, SIGSTOP), 0);
	close(a.fabric);
	for (int i = 0; i < MADS; i++)
		assert_int_equal(send(a.umad, m, sizeof(m), 0), sizeof(m));
	close(a.umad);
	assert_int_equal(kill(server, SIGCONT), 0);
	for (int i = 0; i < MADS; i++) {
		assert_int_equal(poll(&wait, 1, TEST_WAIT_MS), 1);
		assert_int_equal(recv(b.umad, m, sizeof(m), 0), sizeof(m));
	}
	end_agent(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		FABRIC_TEST(a_message_may_have_several_packets),
		FABRIC_TEST(an_empty_message_closes_no_socket),
		FABRIC_TEST(
			packets_behind_an_empty_message_arrive_after_the_end),
		FABRIC_TEST(the_last_packets_of_a_program_that_ends_arrive),
		FABRIC_TEST(
			packets_that_had_to_wait_arrive_after_their_program),
		cmocka_unit_test(
			packets_that_cannot_be_sent_are_given_up_at_last),
		cmocka_unit_test(a_packet_waits_while_the_kernel_has_no_memory),
		cmocka_unit_test(
			a_full_ring_and_a_full_socket_wake_the_fabric_once),
		cmocka_unit_test(a_packet_that_no_message_can_have_is_counted),
		FABRIC_TEST(the_last_mads_of_a_program_that_ends_arrive),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
