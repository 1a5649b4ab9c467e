/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * tools/fabric_cm: programs on the hosts of a fabric connect by GIDs, and get
 * paths from the subnet administration.  The fabric runs in a child process,
 * and this process is all programs: two clients, and the administration, which
 * is a port on a third host.
 *
 *	A port 1 --- S --- B port 1
 *	A port 2 ----+---- M port 1 (SM and SA)
 *	A port 3: no cable
 */
#include "test.h"

#include <errno.h>
#include <linux/sockios.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "broker/cm_inbox.h"
#include "fabric/fabric_client.h"
#include "fabric/inside.h"
#include "fabric/net.h"
#include "fabric/port_info.h"
#include "hdr/bytes.h"
#include "hdr/cmmsg.h"
#include "tools/fabric_cm.h"
#include "tools/fabric_server.h"
#include "util/rlimit.h"

enum {
	SPACE = 0x106,
	LID_A1 = 16,
	LID_B = 17,
	LID_SM = 18,
	LID_A2 = 19,
	TIMEOUT = 18,	    /* about a second */
	SHORT_TIMEOUT = 14, /* about 67 ms */
	AT_LID = 16,	    /* in PortInfo */
	AT_SM_LID = 18,
	AT_PATH = FABRIC_UMAD_BYTES + 56, /* a PathRecord */
	SA_SL = 3,
	SA_MTU = 4,
	SA_RATE = 7,
	SA_LIFE_TIME = 12,
	OTHER_GUID = 0x77,    /* the second GUID of B's port */
	UNKNOWN_GUID = 0x999, /* of no port */
	NO_SERVICE = 8,	      /* reason of a REJ (IBTA 12.6.7.2) */
	PRIVATE_REQ = 92,
	PRIVATE_SIDR = 216,
	MANY = 40000, /* requests without a read */
};

static char path[] = "/tmp/adverb-fabric-cm-XXXXXX/socket";

static const char net_text[] = "Switch 8 \"S\"\n"
			       "[1] \"A\"[1]\n[2] \"B\"[1]\n"
			       "[3] \"M\"[1]\n[4] \"A\"[2]\n\n"
			       "Hca 3 \"A\"\n[1] \"S\"[1]\n[2] \"S\"[4]\n\n"
			       "Hca 1 \"B\"\n[1] \"S\"[2]\n\n"
			       "Hca 1 \"M\"\n[1] \"S\"[3]\n";

static void activate_port(struct node *node, uint32_t number, uint16_t lid)
{
	struct port *port = &node->ports[number];

	bytes_put16(port->info + AT_LID, lid);
	bytes_put16(port->info + AT_SM_LID, LID_SM);
	port->state = STATE_ACTIVE;
}

/* Sets the subnet as a subnet manager sets it. */
static void configure_subnet(struct fabric *f)
{
	struct node *s = fabric_find(f, "S"), *a = fabric_find(f, "A");
	struct node *b = fabric_find(f, "B");

	activate_port(a, 1, LID_A1);
	activate_port(b, 1, LID_B);
	activate_port(fabric_find(f, "M"), 1, LID_SM);
	activate_port(a, 2, LID_A2);
	b->ports[1].guids[1] = OTHER_GUID;
	bytes_put16(s->switch_info + 6, LID_A2);
	for (uint8_t i = 1; i <= 4; i++) {
		s->ports[i].state = STATE_ACTIVE;
		s->lft[LID_A1 + i - 1] = i;
	}
}

static _Noreturn void serve_fabric(int listener)
{
	struct fabric_capture capture = {0};
	struct net_error error;
	struct fabric *f;
	struct net net;
	int err;

	if (net_parse(net_text, sizeof(net_text) - 1, &net, &error))
		_exit(3);
	f = fabric_new(&net);
	net_free(&net);
	configure_subnet(f);
	err = fabric_server_run(f, listener, path, &capture);
	fabric_free(f);
	_exit(err ? 4 : 0);
}

static pid_t server;

static int start_server(void **state)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	char *slash = strrchr(path, '/');
	pid_t parent = getpid();
	int fd;

	*slash = '\0';
	memcpy(slash - 6, "XXXXXX", 6);
	if (!mkdtemp(path))
		return -1;
	*slash = '/';
	memcpy(a.sun_path, path, sizeof(path));
	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (bind(fd, (struct sockaddr *)&a, sizeof(a)) || listen(fd, 64))
		return -1;
	server = fork();
	if (!server) {
		test_begin_child(parent);
		serve_fabric(fd);
	}
	close(fd);
	return 0;
}

static int join_fabric(void)
{
	int fd = fabric_client_connect(path, 60000);

	assert_true(fd >= 0);
	return fd;
}

static int ask_fabric(int fd, struct fabric_proto *m, int *given)
{
	return fabric_client_ask(fd, m, given);
}

/* Ends the server, which must have lived until now. */
static int stop_server(void **state)
{
	struct fabric_proto m = {.kind = FABRIC_PROTO_STOP};
	int fd = join_fabric(), status = -1;

	ask_fabric(fd, &m, NULL);
	close(fd);
	waitpid(server, &status, 0);
	*strrchr(path, '/') = '\0';
	rmdir(path);
	path[strlen(path)] = '/';
	return status;
}

static struct fabric_port port_of(int fd, const char *host, uint32_t number)
{
	struct fabric_proto m = {.kind = FABRIC_PROTO_PORT, .number = number};

	strcpy(m.host, host);
	assert_int_equal(ask_fabric(fd, &m, NULL), 0);
	return m.port;
}

/* Writes the GID at an index of a port's table. */
static void read_gid(int fd, const char *host, uint32_t number, uint32_t index,
		     uint8_t gid[16])
{
	struct fabric_port port = port_of(fd, host, number);

	bytes_put64(gid, port.gid_prefix);
	bytes_put64(gid + 8, port.guids[index]);
}

/* A program on a host. */
struct program {
	int fabric, cm;
	uint8_t gid[16];
	uint32_t object; /* the latest */
	uint16_t port;	 /* of the object */
};

static struct program run_program(const char *host, uint32_t number,
				  uint32_t index)
{
	struct fabric_proto m = {.kind = FABRIC_PROTO_CM};
	struct program p = {.fabric = join_fabric()};

	read_gid(p.fabric, host, number, index, p.gid);
	memcpy(m.gid, p.gid, 16);
	assert_int_equal(ask_fabric(p.fabric, &m, &p.cm), 0);
	assert_true(p.cm >= 0);
	return p;
}

static void close_both(int a, int b)
{
	close(a);
	close(b);
}

static void end_program(struct program *p)
{
	close_both(p->cm, p->fabric);
}

static struct cmproto take_message(const struct program *p)
{
	struct pollfd wait = {.fd = p->cm, .events = POLLIN};
	struct cmproto m;

	assert_int_equal(poll(&wait, 1, 20000), 1);
	assert_int_equal(recv(p->cm, &m, sizeof(m), 0), sizeof(m));
	assert_int_equal(m.magic, CMPROTO_MAGIC);
	return m;
}

static struct cmproto take_event(const struct program *p,
				 enum cmproto_event event)
{
	struct cmproto m = take_message(p);

	assert_int_equal(m.kind, CMPROTO_EVENT);
	assert_int_equal(m.event, event);
	return m;
}

/* A request from the program to the peer's GID. */
static struct cmproto request_of(const struct program *p,
				 const uint8_t peer[16])
{
	struct cmproto m = {.is_ib = true,
			    .timeout = TIMEOUT,
			    .max_retries = 3,
			    .at.space = SPACE};

	memcpy(m.at.local, p->gid, 16);
	if (peer)
		memcpy(m.at.peer, peer, 16);
	return m;
}

static void post_message(const struct program *p, struct cmproto m,
			 enum cmproto_kind kind, uint32_t id)
{
	static uint32_t serial;

	m.magic = CMPROTO_MAGIC;
	m.version = CMPROTO_VERSION;
	m.kind = (uint16_t)kind;
	m.id = id;
	m.serial = ++serial;
	assert_int_equal(send(p->cm, &m, sizeof(m), MSG_NOSIGNAL), sizeof(m));
}

static struct cmproto call_cm(const struct program *p, struct cmproto m,
			      enum cmproto_kind kind, uint32_t id)
{
	post_message(p, m, kind, id);
	m = take_message(p);
	assert_int_equal(m.kind, CMPROTO_DONE);
	return m;
}

static void call_ok(const struct program *p, struct cmproto m,
		    enum cmproto_kind kind, uint32_t id)
{
	assert_int_equal(call_cm(p, m, kind, id).err, 0);
}

static void bind_port(struct program *p, bool is_datagram)
{
	struct cmproto m = request_of(p, NULL);

	m.is_datagram = is_datagram;
	m = call_cm(p, m, CMPROTO_BIND, 0);
	assert_int_equal(m.err, 0);
	p->object = m.new_id;
	p->port = m.at.local_port;
}

static void listen_at(struct program *p, bool is_datagram)
{
	bind_port(p, is_datagram);
	call_ok(p, request_of(p, NULL), CMPROTO_LISTEN, p->object);
}

/* The subnet administration: a program on M. */
struct sa {
	int fabric, umad;
};

static struct sa run_sa(void)
{
	struct fabric_proto m = {
		.kind = FABRIC_PROTO_OPEN, .number = 1, .host = "M"};
	struct sa sa = {.fabric = join_fabric()};

	assert_int_equal(ask_fabric(sa.fabric, &m, &sa.umad), 0);
	m = (struct fabric_proto){.kind = FABRIC_PROTO_REGISTER,
				  .agent = {.mgmt_class = CLASS_SA,
					    .class_version = 2,
					    .methods = {1 << METHOD_GET}}};
	assert_int_equal(ask_fabric(sa.fabric, &m, NULL), 0);
	return sa;
}

static void end_sa(struct sa *sa)
{
	close_both(sa->umad, sa->fabric);
}

static uint16_t lid_of(int fd, const uint8_t gid[16])
{
	static const struct {
		const char *host;
		uint32_t port, index;
		uint16_t lid;
	} at[] = {{"A", 1, 0, LID_A1},
		  {"A", 2, 0, LID_A2},
		  {"B", 1, 0, LID_B},
		  {"B", 1, 1, LID_B}};
	uint8_t own[16];

	for (size_t i = 0; i < TEST_COUNT(at); i++) {
		read_gid(fd, at[i].host, at[i].port, at[i].index, own);
		if (!memcmp(own, gid, 16))
			return at[i].lid;
	}
	return 0;
}

/* Answers one query, as a subnet administration does. */
static void answer_query(const struct sa *sa)
{
	uint8_t m[FABRIC_UMAD_BYTES + MAD_BYTES];
	uint8_t *mad = m + FABRIC_UMAD_BYTES, *record = m + AT_PATH;
	uint16_t slid, dlid;

	assert_int_equal(recv(sa->umad, m, sizeof(m), 0), sizeof(m));
	assert_int_equal(mad[1], CLASS_SA);
	assert_int_equal(bytes_get16(mad + 16), 0x35); /* PathRecord */
	/* DGID, SGID, Reversible, NumbPath and P_Key */
	assert_int_equal(bytes_get64(mad + 48), 0x380c);
	assert_int_equal(record[49], 0x81);
	dlid = lid_of(sa->fabric, record + 8);
	slid = lid_of(sa->fabric, record + 24);
	mad[3] |= MAD_METHOD_RESPONSE;
	if (!slid || !dlid) {
		bytes_put16(mad + 4, 0x0300); /* no records */
	} else {
		bytes_put16(record + 40, dlid);
		bytes_put16(record + 42, slid);
		record[53] = SA_SL;
		record[54] = 2 << 6 | SA_MTU;
		record[55] = 2 << 6 | SA_RATE;
		record[56] = 2 << 6 | SA_LIFE_TIME;
	}
	bytes_put32(m + 24, 0x80010000); /* the Q_Key of QP1 */
	assert_int_equal(send(sa->umad, m, sizeof(m), 0), sizeof(m));
}

static struct cmproto ask_route(const struct program *p, const struct sa *sa,
				const uint8_t peer[16])
{
	struct cmproto m = request_of(p, peer);

	m.path.pkey = 0xffff;
	post_message(p, m, CMPROTO_ROUTE, 0);
	answer_query(sa);
	m = take_message(p);
	assert_int_equal(m.kind, CMPROTO_DONE);
	return m;
}

/* Sends a REQ from p to the port of the peer, with full private data. */
static void connect_to(const struct program *p, const struct program *peer,
		       const struct cmproto_path *by)
{
	struct cmproto m = request_of(p, peer->gid);

	m.at.peer_port = peer->port;
	m.path = *by;
	m.qp.qpn = 0x4001;
	m.qp.mtu = by->mtu;
	m.qp.ack_timeout = SA_LIFE_TIME + 1;
	m.private_bytes = PRIVATE_REQ;
	memset(m.private_data, 0x5a, PRIVATE_REQ);
	call_ok(p, m, CMPROTO_CONNECT, p->object);
}

static void assert_path(const struct cmproto_path *by, uint16_t local,
			uint16_t remote)
{
	assert_int_equal(by->local_lid, local);
	assert_int_equal(by->remote_lid, remote);
	assert_int_equal(by->pkey, 0xffff);
	assert_int_equal(by->sl, SA_SL);
	assert_int_equal(by->mtu, SA_MTU);
	assert_int_equal(by->rate, SA_RATE);
	assert_int_equal(by->life_time, SA_LIFE_TIME);
	assert_false(by->is_global);
}

/* Connects a with the listener of b, up to the RTU.  Returns the object of b's
 * end. */
static uint32_t begin_pair(struct program *a, const struct program *b,
			   const struct sa *sa, uint16_t from, uint16_t to)
{
	struct cmproto m = ask_route(a, sa, b->gid);
	uint32_t accepted;

	assert_int_equal(m.err, 0);
	assert_path(&m.path, from, to);
	bind_port(a, false);
	connect_to(a, b, &m.path);
	m = take_event(b, CMPROTO_REQUEST);
	assert_true(m.is_ib);
	assert_path(&m.path, to, from);
	assert_memory_equal(m.at.local, b->gid, 16);
	assert_memory_equal(m.at.peer, a->gid, 16);
	assert_int_equal(m.at.local_port, b->port);
	assert_int_equal(m.private_bytes, PRIVATE_REQ);
	assert_int_equal(m.private_data[0], 0x5a);
	assert_int_equal(m.private_data[PRIVATE_REQ - 1], 0x5a);
	accepted = m.new_id;
	post_message(b, m, CMPROTO_TAKEN, accepted);
	m = (struct cmproto){.qp.qpn = 0x8001};
	call_ok(b, m, CMPROTO_ACCEPT, accepted);
	m = take_event(a, CMPROTO_RESPONSE);
	assert_int_equal(m.qp.qpn, 0x8001);
	call_ok(a, (struct cmproto){0}, CMPROTO_ESTABLISH, a->object);
	take_event(b, CMPROTO_ESTABLISHED);
	return accepted;
}

static void end_pair(const struct program *a, const struct program *b,
		     uint32_t accepted)
{
	call_ok(a, (struct cmproto){0}, CMPROTO_DISCONNECT, a->object);
	take_event(b, CMPROTO_DISCONNECTED);
	call_ok(b, (struct cmproto){0}, CMPROTO_DISCONNECT, accepted);
	assert_int_equal(take_event(a, CMPROTO_DISCONNECTED).status, 0);
}

static void programs_of_two_hosts_connect(void **state)
{
	struct program a = run_program("A", 1, 0), b = run_program("B", 1, 0);
	struct sa sa = run_sa();

	listen_at(&b, false);
	for (int i = 0; i < 3; i++)
		end_pair(&a, &b, begin_pair(&a, &b, &sa, LID_A1, LID_B));
	end_program(&a);
	end_program(&b);
	end_sa(&sa);
}

static void two_ports_of_a_host_connect(void **state)
{
	struct program a = run_program("A", 1, 0), b = run_program("A", 2, 0);
	struct sa sa = run_sa();

	listen_at(&b, false);
	end_pair(&a, &b, begin_pair(&a, &b, &sa, LID_A1, LID_A2));
	end_program(&a);
	end_program(&b);
	end_sa(&sa);
}

static void a_port_connects_to_itself(void **state)
{
	struct program a = run_program("A", 1, 0), b = run_program("A", 1, 0);
	struct sa sa = run_sa();

	listen_at(&b, false);
	end_pair(&a, &b, begin_pair(&a, &b, &sa, LID_A1, LID_A1));
	end_program(&a);
	end_program(&b);
	end_sa(&sa);
}

static void a_listener_is_found_by_its_second_gid(void **state)
{
	struct program a = run_program("A", 1, 0), b = run_program("B", 1, 1);
	struct sa sa = run_sa();

	listen_at(&b, false);
	end_pair(&a, &b, begin_pair(&a, &b, &sa, LID_A1, LID_B));
	/* and b connects from that GID */
	listen_at(&a, false);
	end_pair(&b, &a, begin_pair(&b, &a, &sa, LID_B, LID_A1));
	end_program(&a);
	end_program(&b);
	end_sa(&sa);
}

static void the_peer_of_a_program_that_ends_is_disconnected(void **state)
{
	struct program b = run_program("B", 1, 0);
	struct sa sa = run_sa();

	listen_at(&b, false);
	for (int i = 0; i < 2; i++) {
		struct program a = run_program("A", 1, 0);

		begin_pair(&a, &b, &sa, LID_A1, LID_B);
		/* either of the two ends the program's conversations */
		close(i ? a.fabric : a.cm);
		take_event(&b, CMPROTO_DISCONNECTED);
		close(i ? a.cm : a.fabric);
	}
	end_program(&b);
	end_sa(&sa);
}

/* The program has sent more messages than the fabric reads at once, has an
 * unread one, and closes its connection first. */
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

/* A fabric has no earlier server, whose notes a program could have. */
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
	struct sa sa = run_sa();
	uint8_t peer[16], down[16];

	read_gid(a.fabric, "A", 3, 0, down);
	memcpy(peer, a.gid, 16);
	bytes_put64(peer + 8, UNKNOWN_GUID);
	assert_int_equal(ask_route(&a, &sa, peer).err, -ENETUNREACH);
	/* the administration does not answer */
	assert_int_equal(route_error(&a, a.gid), -ETIMEDOUT);
	end_sa(&sa);
	/* no program takes queries at the SM's port */
	assert_int_equal(route_error(&a, a.gid), -ETIMEDOUT);
	memcpy(peer, a.gid, 16);
	memcpy(a.gid, down, 16);
	assert_int_equal(route_error(&a, peer), -ENETDOWN);
	memset(a.gid, 0, 16);
	assert_int_equal(route_error(&a, peer), -ENETDOWN);
	end_program(&a);
}

/* The answer comes after its program has ended, and another program's. */
static void the_answer_for_a_program_that_has_ended_is_lost(void **state)
{
	struct program a = run_program("A", 1, 0), b = run_program("A", 1, 0);
	struct sa sa = run_sa();
	struct cmproto m = request_of(&a, a.gid);

	m.path.pkey = 0xffff;
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
	end_sa(&sa);
}

/* The administration does not answer. */
static void the_open_queries_of_a_program_are_bounded(void **state)
{
	struct program a = run_program("A", 1, 0);
	struct sa sa = run_sa();
	struct cmproto m = request_of(&a, a.gid);

	for (int i = 0; i < FABRIC_CM_QUERIES; i++)
		post_message(&a, m, CMPROTO_ROUTE, 0);
	assert_int_equal(call_cm(&a, m, CMPROTO_ROUTE, 0).err, -ENOBUFS);
	for (int i = 0; i < FABRIC_CM_QUERIES; i++)
		assert_int_equal(take_message(&a).err, -ETIMEDOUT);
	end_program(&a);
	end_sa(&sa);
}

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
	while (m.serial == UINT32_MAX) /* of the messages before */
		m = take_message(&c);
	assert_int_equal(m.err, -EINVAL);
	bind_port(&c, false);
	end_program(&a);
	end_program(&b);
	end_program(&c);
}

/* Waits until the other side of a socket has read all messages. */
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
	/* another connection's answer may come before the server has seen the
	 * end of this one */
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
	struct fabric_proto m = {
		.kind = FABRIC_PROTO_OPEN, .number = 1, .host = "A"};
	int fabric = join_fabric(), umad;
	struct program a;

	assert_int_equal(ask_fabric(fabric, &m, &umad), 0);
	m = (struct fabric_proto){.kind = FABRIC_PROTO_REGISTER,
				  .agent = {.mgmt_class = CMMSG_CLASS,
					    .class_version = 2,
					    .methods = {1 << 3}}};
	assert_int_equal(ask_fabric(fabric, &m, NULL), 0);
	a = run_program("A", 1, 0);
	bind_port(&a, false);
	end_program(&a);
	close(umad);
	close(fabric);
	/* the next program finds the class free */
	programs_of_two_hosts_connect(state);
}

#define FABRIC_TEST(f)                                                         \
	cmocka_unit_test_setup_teardown(f, start_server, stop_server)

int main(void)
{
	const struct CMUnitTest tests[] = {
		FABRIC_TEST(programs_of_two_hosts_connect),
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

	return cmocka_run_group_tests(tests, NULL, NULL);
}
