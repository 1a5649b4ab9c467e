/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Programs on the hosts of a fabric, for the tests of tools/fabric_cm.  The
 * fabric runs in a child process.  This process plays all programs: clients of
 * connection management, and the subnet administration at the port of a third
 * host.
 *
 *	A port 1 --- S --- B port 1
 *	A port 2 ----+---- M port 1 (SM and SA)
 *	A port 3: no cable
 */
#ifndef TESTS_UNIT_FABRIC_PROGRAMS_H
#define TESTS_UNIT_FABRIC_PROGRAMS_H

#include "test.h"

#include <errno.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "broker/cmproto.h"
#include "fabric/fabric_client.h"
#include "fabric/inside.h"
#include "fabric/net.h"
#include "fabric/port_info.h"
#include "hdr/bytes.h"
#include "hdr/cmmsg.h"
#include "sa_answer.h"
#include "tools/fabric_server.h"

enum {
	SPACE = 0x106,
	SERVICE = 4711,
	TRAFFIC_CLASS = 0x24,
	LID_A1 = 16,
	LID_B = 17,
	LID_SM = 18,
	LID_A2 = 19,
	TIMEOUT = 24,	    /* 69 s, the longest in cm: nothing is sent again */
	SHORT_TIMEOUT = 14, /* about 67 ms */
	AT_LID = 16,	    /* in PortInfo */
	AT_SM_LID = 18,
	AT_HOQ_LIFE = 42,
	LIFE_ENDLESS = 31,			    /* HOQLife */
	AT_PATH = FABRIC_UMAD_BYTES + SA_AT_RECORD, /* the PathRecord in a
						     * message of an agent */
	/* the attributes of the path that answer_query gives */
	SA_SL = 3,
	SA_MTU = 4,
	SA_RATE = 7,
	SA_LIFE_TIME = 12,
	OTHER_GUID = 0x77,    /* the second GUID of B's port */
	UNKNOWN_GUID = 0x999, /* of no port */
	PKEY = 0x8005,	      /* of a partition of A, B and M */
	PKEY_AT_A = 1,	      /* its indexes at the three ports */
	PKEY_AT_B = 2,
	PKEY_AT_M = 3,
	NO_SERVICE = 8,	      /* reason of a REJ (IBTA 12.6.7.2) */
	QPN_OF_PAIR = 0x4001, /* of the active end */
	PRIVATE_REQ = 92,
	PRIVATE_SIDR = 216,
	MANY = 40000, /* requests that a program sends while it reads nothing */
};

/* The socket of the fabric.  start_server makes a folder for it. */
static char path[] = "/tmp/adverb-fabric-cm-XXXXXX/socket";

static const char net_text[] = "Switch 8 \"S\"\n"
			       "[1] \"A\"[1]\n[2] \"B\"[1]\n"
			       "[3] \"M\"[1]\n[4] \"A\"[2]\n\n"
			       "Hca 3 \"A\"\n[1] \"S\"[1]\n[2] \"S\"[4]\n\n"
			       "Hca 1 \"B\"\n[1] \"S\"[2]\n\n"
			       "Hca 1 \"M\"\n[1] \"S\"[3]\n";

/* Makes a port active, with this LID and the LID of the SM. */
static inline void activate_port(struct node *node, uint32_t number,
				 uint16_t lid)
{
	struct port *port = &node->ports[number];

	bytes_put16(port->info + AT_LID, lid);
	bytes_put16(port->info + AT_SM_LID, LID_SM);
	port->state = STATE_ACTIVE;
}

/* Sets the subnet as a subnet manager sets it. */
static inline void configure_subnet(struct fabric *f)
{
	struct node *s = fabric_find(f, "S"), *a = fabric_find(f, "A");
	struct node *b = fabric_find(f, "B");

	activate_port(a, 1, LID_A1);
	activate_port(b, 1, LID_B);
	activate_port(fabric_find(f, "M"), 1, LID_SM);
	activate_port(a, 2, LID_A2);
	b->ports[1].guids[1] = OTHER_GUID;
	a->ports[1].pkeys[PKEY_AT_A] = PKEY;
	b->ports[1].pkeys[PKEY_AT_B] = PKEY & 0x7fff; /* a limited member */
	fabric_find(f, "M")->ports[1].pkeys[PKEY_AT_M] = PKEY;
	bytes_put16(s->switch_info + 6, LID_A2);
	for (uint8_t i = 1; i <= 4; i++) {
		s->ports[i].state = STATE_ACTIVE;
		/* programs of the tests read late: no packet may be discarded
		 * meanwhile */
		s->ports[i].info[AT_HOQ_LIFE] = LIFE_ENDLESS;
		s->lft[LID_A1 + i - 1] = i;
	}
}

/* Returns the configured subnet, or NULL. */
static inline struct fabric *new_subnet(void)
{
	struct net_error error;
	struct fabric *f;
	struct net net;

	if (net_parse(net_text, sizeof(net_text) - 1, &net, &error))
		return NULL;
	f = fabric_new(&net);
	net_free(&net);
	if (f)
		configure_subnet(f);
	return f;
}

static bool is_direct; /* whether the next fabric runs with --direct */

/* In the child process: runs the fabric until it is stopped.  Exit status 0: no
 * error. */
static inline _Noreturn void serve_fabric(int listener)
{
	struct fabric_capture capture = {0};
	struct fabric *f = new_subnet();
	int err;

	if (!f)
		_exit(3);
	err = fabric_server_run(f, listener, path, &capture, is_direct, NULL);
	fabric_free(f);
	_exit(err ? 4 : 0);
}

/* the fabric's process; 0 in that process */
static pid_t server;

/* The setup of a test: starts the fabric. */
static inline int start_server(void **state)
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
	assert_true(server >= 0);
	if (!server) {
		test_begin_child(parent);
		serve_fabric(fd);
	}
	close(fd);
	return 0;
}

static inline int join_fabric(void)
{
	int fd = fabric_client_connect(path, 60000);

	assert_true(fd >= 0);
	return fd;
}

static inline int ask_fabric(int fd, struct fabric_proto *m, int *given)
{
	return fabric_client_ask(fd, m, given);
}

/* Ends the server.  Returns 0 if the server lived until now and ended without
 * an error. */
static inline int stop_server(void **state)
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

static inline struct fabric_port port_of(int fd, const char *host,
					 uint32_t number)
{
	struct fabric_proto m = {.kind = FABRIC_PROTO_PORT, .number = number};

	strcpy(m.host, host);
	assert_int_equal(ask_fabric(fd, &m, NULL), 0);
	return m.port;
}

/* Stores the GID that stands at this index of the port's GID table. */
static inline void read_gid(int fd, const char *host, uint32_t number,
			    uint32_t index, uint8_t gid[16])
{
	struct fabric_port port = port_of(fd, host, number);

	bytes_put64(gid, port.gid_prefix);
	bytes_put64(gid + 8, port.guids[index]);
}

/* A program on a host. */
struct program {
	/* the program's connections: to the fabric, and to its CM */
	int fabric, cm;
	uint8_t gid[16];
	uint32_t object; /* made by the latest bind_port */
	uint16_t port;	 /* the port of `object` */
};

/* Runs a program on a host.  The program's GID is that at `index` in the GID
 * table of port `number`. */
static inline struct program run_program(const char *host, uint32_t number,
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

static inline void close_both(int a, int b)
{
	close(a);
	close(b);
}

static inline void end_program(struct program *p)
{
	close_both(p->cm, p->fabric);
}

/* Waits for the next message of the CM to the program. */
static inline struct cmproto take_message(const struct program *p)
{
	struct pollfd wait = {.fd = p->cm, .events = POLLIN};
	struct cmproto m;

	assert_int_equal(poll(&wait, 1, TEST_WAIT_MS), 1);
	assert_int_equal(recv(p->cm, &m, sizeof(m), 0), sizeof(m));
	assert_int_equal(m.magic, CMPROTO_MAGIC);
	return m;
}

static inline struct cmproto take_event(const struct program *p,
					enum cmproto_event event)
{
	struct cmproto m = take_message(p);

	assert_int_equal(m.kind, CMPROTO_EVENT);
	assert_int_equal(m.event, event);
	return m;
}

/* Returns a request from the program to the peer's GID, or, if peer is NULL,
 * without a peer. */
static inline struct cmproto request_of(const struct program *p,
					const uint8_t peer[16])
{
	struct cmproto m = {.is_ib = true,
			    .timeout = TIMEOUT,
			    .max_retries = 3,
			    .at.space = SPACE,
			    .at.peer_port = SERVICE};

	memcpy(m.at.local, p->gid, 16);
	if (peer)
		memcpy(m.at.peer, peer, 16);
	return m;
}

static inline void post_message(const struct program *p, struct cmproto m,
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

/* Sends a request to the CM, and returns the next message, which must be an
 * answer. */
static inline struct cmproto call_cm(const struct program *p, struct cmproto m,
				     enum cmproto_kind kind, uint32_t id)
{
	post_message(p, m, kind, id);
	m = take_message(p);
	assert_int_equal(m.kind, CMPROTO_DONE);
	return m;
}

static inline void call_ok(const struct program *p, struct cmproto m,
			   enum cmproto_kind kind, uint32_t id)
{
	assert_int_equal(call_cm(p, m, kind, id).err, 0);
}

/* Binds a new object of the program to a port that the CM chooses. */
static inline void bind_port(struct program *p, bool is_datagram)
{
	struct cmproto m = request_of(p, NULL);

	m.is_datagram = is_datagram;
	m = call_cm(p, m, CMPROTO_BIND, 0);
	assert_int_equal(m.err, 0);
	p->object = m.new_id;
	p->port = m.at.local_port;
}

static inline void listen_at(struct program *p, bool is_datagram)
{
	bind_port(p, is_datagram);
	call_ok(p, request_of(p, NULL), CMPROTO_LISTEN, p->object);
}

/* A program of libibumad that has port 1 of a host open. */
struct umad_program {
	int fabric, umad;
};

/* Runs a program of libibumad with port 1 of the host open and an agent for
 * requests of a class and a method. */
static inline struct umad_program run_agent(const char *host,
					    uint8_t mgmt_class, uint8_t method)
{
	struct fabric_proto m = {.kind = FABRIC_PROTO_OPEN, .number = 1};
	struct umad_program p = {.fabric = join_fabric()};

	strcpy(m.host, host);
	assert_int_equal(ask_fabric(p.fabric, &m, &p.umad), 0);
	m = (struct fabric_proto){.kind = FABRIC_PROTO_REGISTER,
				  .agent = {.mgmt_class = mgmt_class,
					    .class_version = 2,
					    .methods = {1ull << method}}};
	assert_int_equal(ask_fabric(p.fabric, &m, NULL), 0);
	return p;
}

/* Runs the subnet administration. */
static inline struct umad_program run_sa(void)
{
	return run_agent("M", CLASS_SA, METHOD_GET);
}

static inline void end_agent(struct umad_program *p)
{
	close_both(p->umad, p->fabric);
}

/* Returns the LID of the port of A or B that has this GID; 0: none has it. */
static inline uint16_t lid_of(int fd, const uint8_t gid[16])
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

/* Answers one query for a path, as a subnet administration does.  The test
 * fails if another question comes, or if a component is missing. */
static inline void answer_query(const struct umad_program *sa)
{
	uint8_t m[FABRIC_UMAD_BYTES + MAD_BYTES];
	uint8_t *mad = m + FABRIC_UMAD_BYTES, *record = m + AT_PATH;
	uint16_t slid, dlid;

	assert_int_equal(recv(sa->umad, m, sizeof(m), 0), sizeof(m));
	assert_int_equal(mad[1], CLASS_SA);
	assert_true(sa_asks_path(mad));
	/* ServiceID, DGID, SGID, TClass, Reversible, NumbPath and P_Key */
	assert_int_equal(bytes_get64(mad + SA_AT_MASK), 0x3c0f);
	assert_int_equal(bytes_get64(record), cmmsg_service_id(SPACE, SERVICE));
	assert_int_equal(record[48], TRAFFIC_CLASS);
	assert_int_equal(record[49], 0x81);
	dlid = lid_of(sa->fabric, record + 8);
	slid = lid_of(sa->fabric, record + 24);
	sa_answer(mad, slid && dlid ? 0 : SA_NO_RECORDS);
	if (slid && dlid) {
		sa_answer_path(mad, dlid, slid, SA_MTU);
		record[53] = SA_SL;
		record[55] = SA_EXACTLY | SA_RATE;
		record[56] = SA_EXACTLY | SA_LIFE_TIME;
	}
	bytes_put32(m + 24, 0x80010000); /* the Q_Key of QP1 */
	assert_int_equal(send(sa->umad, m, sizeof(m), 0), sizeof(m));
}

/* Asks the CM of p for a route to the peer's GID, and, as the subnet
 * administration, answers the CM's query.  Returns the CM's answer. */
static inline struct cmproto ask_route(const struct program *p,
				       const struct umad_program *sa,
				       const uint8_t peer[16])
{
	struct cmproto m = request_of(p, peer);

	m.path.pkey = 0xffff;
	m.path.traffic_class = TRAFFIC_CLASS;
	post_message(p, m, CMPROTO_ROUTE, 0);
	answer_query(sa);
	m = take_message(p);
	assert_int_equal(m.kind, CMPROTO_DONE);
	return m;
}

/* Sends a REQ from p to the port of the peer, by the path `by` and with as much
 * private data as a REQ holds. */
static inline void connect_to(const struct program *p,
			      const struct program *peer,
			      const struct cmproto_path *by)
{
	struct cmproto m = request_of(p, peer->gid);

	m.at.peer_port = peer->port;
	m.path = *by;
	m.qp.qpn = QPN_OF_PAIR;
	m.qp.mtu = by->mtu;
	m.qp.ack_timeout = SA_LIFE_TIME + 1;
	m.private_bytes = PRIVATE_REQ;
	memset(m.private_data, 0x5a, PRIVATE_REQ);
	call_ok(p, m, CMPROTO_CONNECT, p->object);
}

static inline void assert_path(const struct cmproto_path *by, uint16_t local,
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

/* Connects a with the listener of b, up to the RTU.  `from` and `to` are the
 * LIDs of the path that the subnet administration must give to a.  Returns the
 * object of b's end. */
static inline uint32_t begin_pair(struct program *a, const struct program *b,
				  const struct umad_program *sa, uint16_t from,
				  uint16_t to)
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

/* Disconnects the pair of begin_pair, first at a. */
static inline void end_pair(const struct program *a, const struct program *b,
			    uint32_t accepted)
{
	call_ok(a, (struct cmproto){0}, CMPROTO_DISCONNECT, a->object);
	take_event(b, CMPROTO_DISCONNECTED);
	call_ok(b, (struct cmproto){0}, CMPROTO_DISCONNECT, accepted);
	assert_int_equal(take_event(a, CMPROTO_DISCONNECTED).status, 0);
}

#define FABRIC_TEST(f)                                                         \
	cmocka_unit_test_setup_teardown(f, start_server, stop_server)

#endif
