/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The broker's whole server side, in a network namespace of its own.  There are
 * a few clients, of several users.  The input chooses what they do: a client
 * connects, sends a message with descriptors, reads, or closes its connection.
 * The input also chooses how time passes, and when the broker is killed and a
 * successor begins.  Whatever the input, no signal ends the broker, and the
 * broker has no more connections than there are clients.  When the clients have
 * gone, the broker ends every conversation and leaves no descriptor open.
 */
#include "fuzz_socket.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stddef.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "broker/cmproto.h"
#include "broker/inside.h"
#include "broker/proto.h"
#include "broker/server.h"
#include "util/scm_rights.h"

#define CLIENTS 6
#define KNOWN	8     /* values of a kind that the harness remembers */
#define IDLE_MS 10000 /* the broker's idle time */
#define LASTS	4000  /* turns after which no conversation may be left */

/* The descriptors that clients send.  PROTO_WELCOME brings the first three. */
enum lent {
	LENT_SOCKET,
	LENT_PAGE,
	LENT_STORE,
	LENT_FOLDER,
	LENT_WAKE,
	LENT_PAIR,
	LENT_MEMORY,
	LENT_KINDS
};

/* The last values of a kind that the broker has named. */
struct known {
	uint32_t value[KNOWN], count;
};

struct script {
	struct input_bytes in;
	struct server *server;
	struct sockaddr_un address;
	socklen_t address_bytes;
	int client[CLIENTS];	     /* the clients' sockets; -1: closed */
	bool reads_nothing[CLIENTS]; /* the client reads no messages */
	struct known classes, ports, objects[CLIENTS];
	uint8_t note[CMPROTO_NOTE]; /* the latest note from the broker */
	uint64_t token;		    /* the latest token of a PROTO_WELCOME */
};

static int waits_ms;	     /* the timeout of the broker's last poll */
static uid_t next_user;	     /* the user of the next client */
static int lent[LENT_KINDS]; /* the descriptors that clients send */
static char folder[] = "/tmp/adverb-fuzz-broker-XXXXXX";

/* Replaces the function of libc in the whole program, and never waits. */
int poll(struct pollfd *fds, nfds_t count, int ms)
{
	waits_ms = ms;
	return ppoll(fds, count, &(struct timespec){0}, NULL);
}

/* Replaces the function of libc, and changes the user in SO_PEERCRED, because
 * one process cannot connect as several users. */
int getsockopt(int fd, int level, int name, void *value, socklen_t *bytes)
{
	int err = (int)syscall(SYS_getsockopt, fd, level, name, value, bytes);

	if (!err && level == SOL_SOCKET && name == SO_PEERCRED)
		((struct ucred *)value)->uid = next_user;
	return err;
}

/* Replaces the function of libc, and acts as a kernel before Linux 6.16, in
 * which a socket cannot refuse descriptors: so clients of all users can send
 * descriptors. */
int setsockopt(int fd, int level, int name, const void *value, socklen_t bytes)
{
	if (level == SOL_SOCKET && name == SO_PASSRIGHTS) {
		errno = ENOPROTOOPT;
		return -1;
	}
	return (int)syscall(SYS_setsockopt, fd, level, name, value, bytes);
}

static void make_folder(void)
{
	static bool is_there;

	FUZZ_REQUIRE(is_there || mkdtemp(folder));
	is_there = true;
}

__attribute__((destructor)) static void remove_folder(void)
{
	rmdir(folder);
}

static void take_bytes(struct script *s, void *to, size_t bytes)
{
	for (size_t i = 0; i < bytes; i++)
		((uint8_t *)to)[i] = input_u8(&s->in);
}

static void learn_value(struct known *k, uint32_t value)
{
	k->value[k->count++ % KNOWN] = value;
}

/* Returns a value, mostly one that the broker has named. */
static uint32_t choose_value(struct script *s, const struct known *k)
{
	uint32_t n = k->count < KNOWN ? k->count : KNOWN;
	uint8_t v = input_u8(&s->in);

	if (n && v < 224)
		return k->value[v % n];
	return v < 240 ? v % 3 : input_u32(&s->in);
}

static void keep_lent(enum lent kind, int fd)
{
	if (lent[kind] >= 0)
		close(lent[kind]);
	lent[kind] = fd;
}

static void open_lent(void)
{
	int pair[2];

	FUZZ_REQUIRE(
		!socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair));
	memset(lent, 0xff, sizeof(lent));
	lent[LENT_FOLDER] = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	lent[LENT_WAKE] = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	lent[LENT_PAIR] = pair[0];
	close(pair[1]);
	lent[LENT_MEMORY] = memfd_create("lent", MFD_CLOEXEC);
	FUZZ_REQUIRE(!ftruncate(lent[LENT_MEMORY], 8192));
}

static void learn_cm(struct script *s, uint32_t i, const uint8_t *bytes)
{
	struct cmproto m;

	memcpy(&m, bytes, sizeof(m));
	FUZZ_REQUIRE(m.magic == CMPROTO_MAGIC);
	if (m.new_id)
		learn_value(&s->objects[i], m.new_id);
	if (m.at.local_port && m.kind == CMPROTO_DONE)
		learn_value(&s->ports, m.at.local_port);
	if (m.note[0])
		memcpy(s->note, m.note, sizeof(m.note));
}

static void learn_answer(struct script *s, uint32_t i, const uint8_t *bytes,
			 size_t size)
{
	struct proto m;

	if (size != sizeof(m)) {
		FUZZ_REQUIRE(size == sizeof(struct cmproto));
		learn_cm(s, i, bytes);
		return;
	}
	memcpy(&m, bytes, sizeof(m));
	FUZZ_REQUIRE(m.magic == PROTO_MAGIC);
	if (m.kind == PROTO_WELCOME)
		learn_value(&s->classes, m.value);
	if (m.kind == PROTO_WELCOME && m.token)
		s->token = m.token;
}

/* Keeps the descriptors of PROTO_WELCOME, for clients to send later. */
static void take_lent(const struct msghdr *msg, const uint8_t *bytes)
{
	const struct cmsghdr *h = CMSG_FIRSTHDR(msg);
	int fds[PROTO_FDS + 1];
	struct proto m;
	size_t n;

	if (!h || h->cmsg_type != SCM_RIGHTS)
		return;
	n = (h->cmsg_len - CMSG_LEN(0)) / sizeof(int);
	FUZZ_REQUIRE(n <= PROTO_FDS);
	memcpy(fds, CMSG_DATA(h), n * sizeof(int));
	memcpy(&m, bytes, sizeof(m));
	FUZZ_REQUIRE(n == (size_t)__builtin_popcount(m.brings));
	for (size_t i = 0, bit = 0; i < n; i++, bit++) {
		while (!(m.brings & 1u << bit))
			bit++;
		if (m.kind == PROTO_WELCOME && bit <= LENT_STORE)
			keep_lent((enum lent)bit, fds[i]);
		else
			close(fds[i]);
	}
}

/* Reads a message that the broker has sent to client i; false: there is none.
 */
static bool read_one(struct script *s, uint32_t i)
{
	union {
		struct cmsghdr head;
		char room[CMSG_SPACE((PROTO_FDS + 1) * sizeof(int))];
	} control;
	uint8_t bytes[sizeof(struct cmproto) + 1];
	struct iovec iov = {bytes, sizeof(bytes)};
	struct msghdr msg = {.msg_iov = &iov,
			     .msg_iovlen = 1,
			     .msg_control = &control,
			     .msg_controllen = sizeof(control)};
	ssize_t n =
		recvmsg(s->client[i], &msg, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);

	if (n <= 0)
		return false;
	take_lent(&msg, bytes);
	learn_answer(s, i, bytes, (size_t)n);
	return true;
}

static void serve_turn(struct script *s)
{
	uint32_t open = 0, served = 0;

	server_turn(s->server);
	for (uint32_t i = 0; i < CLIENTS; i++) {
		open += s->client[i] >= 0;
		while (s->client[i] >= 0 && !s->reads_nothing[i] &&
		       read_one(s, i))
			;
	}
	for (uint32_t i = 0; i < s->server->conns; i++)
		served += s->server->conn[i].fd >= 0 &&
			  !s->server->conn[i].is_ending;
	FUZZ_REQUIRE(served <= open);
	FUZZ_REQUIRE(s->server->conns <= CONN_MAX);
}

static void begin_broker(struct script *s, bool may_steer)
{
	const struct server_config config = {
		.idle_ms = IDLE_MS, .no_bpf = !may_steer, .no_threads = true};
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	s->address.sun_family = AF_UNIX;
	s->address_bytes = sizeof(s->address);
	/* the kernel chooses the name */
	FUZZ_REQUIRE(fd >= 0 && !bind(fd, (struct sockaddr *)&s->address,
				      sizeof(sa_family_t)));
	FUZZ_REQUIRE(!getsockname(fd, (struct sockaddr *)&s->address,
				  &s->address_bytes));
	s->server = server_new(fd, &config);
	FUZZ_REQUIRE(s->server);
	server_listen(s->server);
}

static void close_client(struct script *s, uint32_t i)
{
	if (s->client[i] >= 0)
		close(s->client[i]);
	s->client[i] = -1;
}

static void open_client(struct script *s, uint32_t i)
{
	uint8_t how = input_u8(&s->in);

	close_client(s, i);
	/* 65534: a user without a number in this user namespace */
	next_user =
		how % 4 ? (uid_t[]){1001, 1002, 65534}[how % 4 - 1] : geteuid();
	s->reads_nothing[i] = how >= 224;
	s->client[i] = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	FUZZ_REQUIRE(s->client[i] >= 0 &&
		     !connect(s->client[i], (struct sockaddr *)&s->address,
			      s->address_bytes));
	serve_turn(s);
}

/* Ends the broker as SIGKILL does: peers are not informed, and the descriptors
 * and notes in the fd store stay. */
static void kill_broker(struct server *b)
{
	if (b->gsi.is_open)
		udp_fini(&b->gsi.wire);
	b->gsi.is_open = false;
	fd_store_close(&b->group.fd_store);
	for (uint32_t i = 0; i < b->conns; i++) {
		if (b->conn[i].cm)
			cmserver_client_free(b->cm, b->conn[i].cm, 0);
		b->conn[i].cm = NULL;
	}
	server_free(b);
}

/* Kills the broker and begins another.  The connections of the clients end, but
 * the descriptors that the broker has sent stay in lent[]. */
static void replace_broker(struct script *s)
{
	uint8_t how = input_u8(&s->in);

	kill_broker(s->server);
	for (uint32_t i = 0; i < CLIENTS; i++)
		close_client(s, i);
	begin_broker(s, how & 1);
}

/* Puts descriptors for a message into fds, mostly of the kinds that `brings`
 * names.  Returns their number. */
static size_t choose_lent(struct script *s, uint32_t brings, int fds[])
{
	uint8_t how = input_u8(&s->in);
	size_t n = 0;

	for (uint32_t bit = 0; bit < PROTO_FDS; bit++) {
		enum lent kind = (enum lent)(
			how < 192 ? bit : input_u8(&s->in) % LENT_KINDS);

		if (brings & 1u << bit && lent[kind] >= 0)
			fds[n++] = lent[kind];
	}
	if (how % 16 == 15) /* one more than `brings` names */
		fds[n++] = lent[LENT_WAKE];
	return n;
}

/* Returns bits PROTO_FD_*, mostly those that a message of m's kind has. */
static uint32_t choose_brings(struct script *s, const struct proto *m)
{
	uint8_t v = input_u8(&s->in);

	if (v >= 192)
		return v % (1u << PROTO_FDS);
	if (m->kind == PROTO_TREE)
		return PROTO_FD_TREE;
	if (m->kind != PROTO_HELLO)
		return 0;
	return PROTO_FD_WAKE |
	       (m->value ? PROTO_FD_SOCKET | PROTO_FD_STORE : 0);
}

static void say_proto(struct script *s, uint32_t i)
{
	struct proto m = {.magic = PROTO_MAGIC, .version = PROTO_VERSION};
	uint8_t kind = input_u8(&s->in), change = input_u8(&s->in);
	int fds[LENT_KINDS];
	size_t n;

	m.kind = kind < 64 ? PROTO_HELLO : kind % 18;
	m.serial = 1;
	m.value = kind < 32 ? 0 : choose_value(s, &s->classes);
	if (m.kind == PROTO_ASK || m.kind == PROTO_ASK_REMOTE)
		m.value = steer_qpn(m.value, input_u8(&s->in));
	m.brings = choose_brings(s, &m);
	m.about = input_u8(&s->in) & 1 ? 4791 : choose_value(s, &s->ports);
	m.local[10] = m.local[11] = m.peer[10] = m.peer[11] = 0xff;
	m.local[12] = m.peer[12] = 127;
	m.local[15] = m.peer[15] = 1;
	if (m.kind == PROTO_HELLO)
		m.token = s->token;
	m.arena = (struct proto_at){proto_pid_space(), (uint32_t)getpid(), 3};
	for (; change % 4 == 3; change /= 4)
		((uint8_t *)&m)[input_u8(&s->in) % sizeof(m)] =
			input_u8(&s->in);
	n = choose_lent(s, m.brings, fds);
	send_with(s->client[i], &m, sizeof(m), fds, n);
}

/* Chooses the kind of a message of connection management by v, a byte of the
 * input.  A few messages have an unknown kind. */
static uint16_t choose_kind(const struct script *s, uint32_t i, uint8_t v)
{
	if (!s->objects[i].count && v < 128)
		return CMPROTO_BIND;
	return v < 250 ? CMPROTO_BIND + v % CMPROTO_ROUTE : v;
}

static void fill_cm(struct script *s, uint32_t i, struct cmproto *m)
{
	uint8_t how = input_u8(&s->in);

	m->magic = CMPROTO_MAGIC;
	m->version = CMPROTO_VERSION;
	m->serial = 1;
	m->at.space = how & 1 ? 0x111 : 0x106;
	m->is_datagram = how & 1;
	m->any_v4 = m->any_v6 = how >> 1 & 1;
	m->may_share = how >> 2 & 1;
	m->is_strict = how >> 3 & 1;
	if (how >> 4 & 1)
		m->at.local_port = (uint16_t)choose_value(s, &s->ports);
	if (how >> 5 & 1)
		m->private_bytes = input_u8(&s->in);
	m->is_ib = how >> 6 == 2;
	if (how >> 6 == 3)
		m->call_id = input_u8(&s->in);
	m->at.local[10] = m->at.local[11] = m->at.peer[10] = m->at.peer[11] =
		0xff;
	m->at.local[12] = m->at.peer[12] = 127;
	m->at.local[15] = m->at.peer[15] = 1;
	if (m->any_v4)
		memset(m->at.local, 0, sizeof(m->at.local));
	m->id = choose_value(s, &s->objects[i]);
	m->at.peer_port = (uint16_t)choose_value(s, &s->ports);
	m->backlog = m->max_retries = m->timeout = input_u8(&s->in);
	m->qp.qpn = input_u8(&s->in);
}

static void say_cm(struct script *s, uint32_t i)
{
	struct cmproto m = {.kind = choose_kind(s, i, input_u8(&s->in))};
	uint8_t change = input_u8(&s->in);

	fill_cm(s, i, &m);
	if (m.kind == CMPROTO_RESUME || m.kind == CMPROTO_RELEASE)
		memcpy(m.note, s->note, sizeof(m.note));
	if (m.kind == CMPROTO_RELEASE && change & 4)
		m.id = 0;
	for (; change % 4 == 3; change /= 4) {
		size_t at = input_u8(&s->in) | (size_t)input_u8(&s->in) << 8;

		((uint8_t *)&m)[at % sizeof(m)] = input_u8(&s->in);
	}
	send_with(s->client[i], &m, sizeof(m), NULL, 0);
}

/* Sends a message of 0 to sizeof(bytes) bytes.  The input gives the first 64
 * bytes, and the value that all later bytes have. */
static void say_noise(struct script *s, uint32_t i)
{
	uint8_t bytes[sizeof(struct cmproto) + 64];
	size_t size = (input_u8(&s->in) | (size_t)input_u8(&s->in) << 8) %
		      (sizeof(bytes) + 1);
	int fds[LENT_KINDS];
	size_t n;

	take_bytes(s, bytes, size < 64 ? size : 64);
	memset(bytes + 64, input_u8(&s->in), sizeof(bytes) - 64);
	n = choose_lent(s, input_u8(&s->in) % (1u << PROTO_FDS), fds);
	send_with(s->client[i], bytes, size, fds, n);
}

/* The first half of the clients send mostly messages of proto.h, the others
 * mostly messages of cmproto.h. */
static void say_something(struct script *s, uint32_t i, uint8_t what)
{
	if (s->client[i] < 0)
		open_client(s, i);
	if (what == 11)
		say_noise(s, i);
	else if (what == 10 || i < CLIENTS / 2)
		say_proto(s, i);
	else
		say_cm(s, i);
}

static void pass_time(struct script *s)
{
	static const uint32_t steps[] = {1, 60, 1100, 3000, 11000, 70000};
	uint8_t v = input_u8(&s->in);

	skipped_ms += v < 192 ? steps[v % 6] : (uint64_t)v * 10000;
}

/* Sends a datagram to port 4791, as any host may, mostly for a queue pair of a
 * class that is in use. */
static void send_datagram(struct script *s)
{
	struct sockaddr_in to = {.sin_family = AF_INET,
				 .sin_port = htons(4791),
				 .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	uint8_t bytes[64];
	uint32_t qpn =
		steer_qpn(choose_value(s, &s->classes), input_u8(&s->in));
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	take_bytes(s, bytes, sizeof(bytes));
	bytes[5] = (uint8_t)(qpn >> 16);
	bytes[6] = (uint8_t)(qpn >> 8);
	bytes[7] = (uint8_t)qpn;
	FUZZ_REQUIRE(fd >= 0);
	sendto(fd, bytes, sizeof(bytes), MSG_DONTWAIT,
	       (const struct sockaddr *)&to, sizeof(to));
	close(fd);
}

static void run_command(struct script *s)
{
	uint8_t what = input_u8(&s->in) % 16;
	uint32_t i = input_u8(&s->in) % CLIENTS;

	if (what < 12)
		say_something(s, i, what);
	else if (what == 12)
		pass_time(s);
	else if (what == 13)
		close_client(s, i);
	else if (what == 14)
		open_client(s, i);
	else if (input_u8(&s->in) < 64)
		replace_broker(s);
	else
		send_datagram(s);
	/* one time in 8 the broker has no turn, and so later finds several
	 * messages */
	if (input_u8(&s->in) % 8)
		serve_turn(s);
}

static void ask_cm(struct script *s, uint32_t i, enum cmproto_kind kind,
		   uint32_t id, uint16_t port)
{
	struct cmproto m = {.magic = CMPROTO_MAGIC,
			    .version = CMPROTO_VERSION,
			    .kind = (uint16_t)kind,
			    .id = id,
			    .at.space = 0x106,
			    .at.peer_port = port,
			    .timeout = 18,
			    .max_retries = 3,
			    .qp.qpn = 7};

	m.at.local[10] = m.at.local[11] = m.at.peer[10] = m.at.peer[11] = 0xff;
	m.at.local[12] = m.at.peer[12] = 127;
	m.at.local[15] = m.at.peer[15] = 1;
	send_with(s->client[i], &m, sizeof(m), NULL, 0);
	serve_turn(s);
}

/* Makes three clients at the beginning: one has a class, so that there is a
 * QP1, one listens, and one has sent a REQ to the listener.  The input says
 * whether the listener sends CMPROTO_ACCEPT, and whether the caller sends
 * CMPROTO_ESTABLISH. */
static void make_clients(struct script *s)
{
	const struct proto hello = {.magic = PROTO_MAGIC,
				    .version = PROTO_VERSION,
				    .kind = PROTO_HELLO};
	uint32_t called = CLIENTS / 2, calls = called + 1;
	uint8_t how = input_u8(&s->in);

	for (uint32_t i = 0; i <= calls; i += i ? 1 : called)
		open_client(s, i);
	send_with(s->client[0], &hello, sizeof(hello), NULL, 0);
	serve_turn(s);
	ask_cm(s, called, CMPROTO_BIND, 0, 0);
	ask_cm(s, called, CMPROTO_LISTEN, s->objects[called].value[0], 0);
	ask_cm(s, calls, CMPROTO_BIND, 0, 0);
	ask_cm(s, calls, CMPROTO_CONNECT, s->objects[calls].value[0],
	       (uint16_t)s->ports.value[0]);
	if (how & 1) /* otherwise the REQ has no answer yet */
		ask_cm(s, called, CMPROTO_ACCEPT, s->objects[called].value[1],
		       0);
	if (how & 2)
		ask_cm(s, calls, CMPROTO_ESTABLISH, s->objects[calls].value[0],
		       0);
}

/*
 * Closes all clients, and lets time pass.  Each conversation ends, and then the
 * broker ends, too.  But a broker that has succeeded another broker may stay: a
 * successor keeps each class that its predecessor gave as long as the process
 * of the class lives.  Here this process is the process of every class.
 */
static void end_all(struct script *s)
{
	bool is_wanted = true;

	for (uint32_t i = 0; i < CLIENTS; i++)
		close_client(s, i);
	for (int i = 0; is_wanted && i < LASTS; i++) {
		is_wanted = server_turn(s->server);
		if (s->server->counter_files.is_successor &&
		    !cmserver_is_busy(s->server->cm))
			break;
		skipped_ms += waits_ms > 0 ? (uint64_t)waits_ms : 0;
	}
	FUZZ_REQUIRE(!cmserver_is_busy(s->server->cm));
	FUZZ_REQUIRE(!is_wanted || s->server->counter_files.is_successor);
	for (uint32_t i = 0; i < s->server->conns; i++)
		FUZZ_REQUIRE(s->server->conn[i].fd < 0);
	server_free(s->server);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct script s = {.in = {data, data + size}};
	uint32_t before = count_descriptors();

	memset(s.client, 0xff, sizeof(s.client));
	make_folder();
	open_lent();
	begin_broker(&s, input_u8(&s.in) & 1);
	if (input_u8(&s.in) % 8)
		make_clients(&s);
	while (s.in.at < s.in.end)
		run_command(&s);
	end_all(&s);
	for (enum lent kind = 0; kind < LENT_KINDS; kind++)
		keep_lent(kind, -1);
	FUZZ_REQUIRE(count_descriptors() == before);
	return 0;
}
