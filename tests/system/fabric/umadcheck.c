/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * umadcheck: uses libibumad in unusual ways, at port 1 of a fabric's host.
 *
 * Without arguments nine cases run in one process:
 * - Threads are cancelled in umad_recv with timeout 0 and in umad_register.
 *   Other threads must then not wait for a lock of libibumad.
 * - A thread that opens a port, and a thread that closes the port, are
 *   cancelled.  No descriptor may be left.
 * - The program has closed its standard input before it opens a port.
 * - The kernel has no memory for a datagram.
 * - While a call waits at a port, the program closes the port, and opens a port
 *   that gets the same handle.
 * - The program has no free descriptors.
 * - The program registers agents that handle RMPP themselves, and agents for
 *   requests that another agent takes.
 * - The program opens a port, closes all descriptors but the first three, as
 *   daemons do, and opens sockets, which get the numbers of the closed
 *   descriptors.  libibumad must not send by these sockets, receive from them
 *   or close them.
 *
 * umadcheck dead: receives at a port until the fabric ends, and then again.
 * umadcheck route LID PORT...: asks for the NodeDescription of the node with
 * the LID, by a directed route through these ports, and from the end of that
 * route by LID; prints the description.
 * umadcheck no-route LID PORT...: asks in the same way, once, where no answer
 * can come.
 * umadcheck qkey LID: sends a MAD with a wrong Q_Key to QP1 of the port that
 * has the LID.
 */
#include "check.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <infiniband/umad.h>

enum { FIRST = 3, LAST = 1024, MOST = 16 };

static int pairs[MOST][2];
static struct stat before[MOST][2];

static void open_sockets(void)
{
	for (int fd = FIRST; fd < LAST; fd++)
		close(fd);
	for (int i = 0; i < MOST; i++) {
		NEED(!socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pairs[i]));
		for (int k = 0; k < 2; k++)
			NEED(!fstat(pairs[i][k], &before[i][k]));
	}
}

/* Returns how many sockets were closed or have received something. */
static int sockets_changed(void)
{
	int changed = 0;

	for (int i = 0; i < MOST; i++)
		for (int k = 0; k < 2; k++) {
			struct stat now;
			char byte;

			changed +=
				fstat(pairs[i][k], &now) ||
				now.st_ino != before[i][k].st_ino ||
				recv(pairs[i][k], &byte, 1, MSG_DONTWAIT) >= 0;
		}
	return changed;
}

static void a_daemon_keeps_its_sockets(void)
{
	long methods[16 / sizeof(long)] = {0};
	int port;

	NEED(!umad_init());
	port = umad_open_port("advib0", 1);
	NEED(port > 0);
	NEED(umad_register(port, 3, 2, 0, methods) >= 0);
	open_sockets();
	EXPECT(umad_register(port, 4, 1, 0, methods) < 0);
	EXPECT(umad_unregister(port, 0) < 0);
	EXPECT(!umad_close_port(port));
	EXPECT(!sockets_changed());
	/* the port can be opened anew */
	port = umad_open_port("advib0", 1);
	EXPECT(port > 0 && umad_register(port, 3, 2, 0, methods) >= 0);
	EXPECT(!umad_close_port(port));
	EXPECT(!sockets_changed());
}

/* The program closes its standard input before it opens a port, and opens a
 * file with the descriptor 0 while the port is open. */
static void a_port_gets_no_standard_descriptor(void)
{
	long methods[16 / sizeof(long)] = {0};
	int port;

	close(0);
	port = umad_open_port("advib0", 1);
	NEED(port > 2);
	NEED(open("/dev/null", O_RDONLY) == 0);
	EXPECT(umad_get_fd(0) < 0 && umad_get_fd(port) == port);
	EXPECT(umad_register(port, 3, 2, 0, methods) >= 0);
	EXPECT(!umad_close_port(port));
	EXPECT(umad_get_fd(port) < 0 && umad_close_port(port) < 0);
	EXPECT(fcntl(0, F_GETFD) >= 0);
}

/* umad_register2 accepts UMAD_USER_RMPP as the kernel does. */
static void an_agent_handles_rmpp_itself(void)
{
	static const struct {
		uint8_t mgmt_class, rmpp_version;
		int err;
	} cases[] = {{0x03, 1, 0},	{0x06, 1, 0},	   {0x04, 0, 0},
		     {0x04, 1, EINVAL}, {0x03, 2, EINVAL}, {0, 1, EINVAL}};
	int port = umad_open_port("advib0", 1);
	uint32_t id;

	NEED(port >= 0);
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct umad_reg_attr attr = {
			.mgmt_class = cases[i].mgmt_class,
			.mgmt_class_version = 1,
			.flags = UMAD_USER_RMPP,
			.rmpp_version = cases[i].rmpp_version,
		};

		EXPECT(umad_register2(port, &attr, &id) == cases[i].err);
	}
	EXPECT(!umad_close_port(port));
}

/* An agent for requests that another agent takes is refused.  As in rdma-core,
 * umad_register2 returns the kernel's error, EINVAL, and the other two calls
 * return -EPERM.  At a closed port these two calls return -EINVAL. */
static void agents_do_not_overlap(void)
{
	struct umad_reg_attr attr = {.mgmt_class = 0x32,
				     .mgmt_class_version = 1,
				     .method_mask = {1 << 1},
				     .oui = 0x001405};
	long methods[16 / sizeof(long)] = {1 << 1};
	uint8_t oui[3] = {0x00, 0x14, 0x05};
	int port = umad_open_port("advib0", 1);
	uint32_t id;

	NEED(port >= 0);
	NEED(!umad_register2(port, &attr, &id));
	EXPECT(umad_register2(port, &attr, &id) == EINVAL);
	EXPECT(umad_register(port, 0x32, 1, 0, methods) == -EPERM);
	EXPECT(errno == EINVAL);
	EXPECT(umad_register_oui(port, 0x32, 0, oui, methods) == -EPERM);
	EXPECT(errno == EINVAL);
	EXPECT(!umad_close_port(port));
	EXPECT(umad_register(port, 0x32, 1, 0, methods) == -EINVAL);
	EXPECT(umad_register_oui(port, 0x32, 0, oui, methods) == -EINVAL);
}

static bool is_through; /* the call of a cancelled thread has returned */

static void *receive_nothing(void *arg)
{
	static struct {
		struct ib_user_mad header;
		uint8_t mad[256];
	} buffer;
	int length = sizeof(buffer.mad);

	pthread_cancel(pthread_self());
	umad_recv(*(int *)arg, &buffer, &length, 0);
	is_through = true;
	pthread_testcancel();
	return NULL;
}

static void *register_agent(void *arg)
{
	long methods[16 / sizeof(long)] = {0};

	pthread_cancel(pthread_self());
	umad_register(*(int *)arg, 3, 2, 0, methods);
	is_through = true;
	pthread_testcancel();
	return NULL;
}

static int opened; /* the result of open_port */

static void *open_port(void *arg)
{
	pthread_cancel(pthread_self());
	opened = umad_open_port("advib0", 1);
	is_through = true;
	pthread_testcancel();
	return arg;
}

static void *close_port(void *arg)
{
	pthread_cancel(pthread_self());
	umad_close_port(*(int *)arg);
	is_through = true;
	pthread_testcancel();
	return NULL;
}

/* Runs `call` in a thread that cancels itself before it calls libibumad, and
 * expects that the call of libibumad returns nevertheless. */
static void run_cancelled(void *(*call)(void *), int port)
{
	pthread_t thread;

	is_through = false;
	NEED(!pthread_create(&thread, NULL, call, &port));
	NEED(!pthread_join(thread, NULL));
	NEED(is_through);
}

static void a_cancelled_thread_keeps_no_lock(void)
{
	long methods[16 / sizeof(long)] = {0};
	int port;

	NEED(!umad_init());
	port = umad_open_port("advib0", 1);
	NEED(port > 0);
	run_cancelled(receive_nothing, port);
	run_cancelled(register_agent, port);
	EXPECT(umad_register(port, 4, 1, 0, methods) >= 0);
	EXPECT(!umad_close_port(port));
}

static int lowest_free(void)
{
	int fd = dup(STDIN_FILENO);

	close(fd);
	return fd;
}

static void a_cancelled_thread_leaves_no_port_open(void)
{
	int free_before;

	NEED(!umad_init());
	free_before = lowest_free();
	run_cancelled(open_port, 0);
	EXPECT(opened > 0);
	run_cancelled(close_port, opened);
	EXPECT(lowest_free() == free_before);
	EXPECT(umad_get_fd(opened) < 0);
}

static uint64_t now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

/* Returns after how many ms a receive has failed with EIO. */
static uint64_t fails_after(int port, int timeout_ms)
{
	static struct {
		struct ib_user_mad header;
		uint8_t mad[256];
	} buffer;
	int length = sizeof(buffer.mad);
	uint64_t begin = now_ms();

	EXPECT(umad_recv(port, &buffer, &length, timeout_ms) == -EIO);
	EXPECT(errno == EIO);
	return now_ms() - begin;
}

static void a_port_of_a_dead_fabric_fails_slowly(void)
{
	int port;
	uint64_t begin;

	NEED(!umad_init());
	port = umad_open_port("advib0", 1);
	NEED(port > 0);
	puts("open");
	fflush(stdout);
	fails_after(port, -1);
	EXPECT(fails_after(port, -1) >= 1000);
	EXPECT(fails_after(port, 2000) >= 1000);
	EXPECT(fails_after(port, 300) >= 300);
	fails_after(port, 0);
	begin = now_ms();
	EXPECT(!umad_poll(port, 400));
	EXPECT(now_ms() - begin >= 400);
	EXPECT(!umad_close_port(port));
}

enum {
	QUIET_MS = 200, /* much longer than an answer takes */
	/* All tries for an answer that must come take 400 s.  A program that
	 * runs longer counts as one that hangs (HANG of lib/system.py). */
	TRY_MS = 10000,
	RETRIES = 39,
};

/* A message: the umad_size() bytes of its header, then the MAD. */
struct message {
	uint8_t bytes[512];
	uint8_t *mad; /* in bytes, behind the header */
};

static void begin_message(struct message *m, uint8_t mgmt_class,
			  uint16_t attribute)
{
	memset(m, 0, sizeof(*m));
	m->mad = umad_get_mad(m->bytes);
	m->mad[0] = m->mad[2] = m->mad[3] = 1; /* versions, Get */
	m->mad[1] = mgmt_class;
	m->mad[15] = 7; /* the last byte of the transaction ID */
	m->mad[17] = (uint8_t)attribute;
}

/* Sends a request, and sends it again `retries` times if no answer comes within
 * try_ms.  Writes the answer to *m.  Returns umad_status of the answer: 0, or
 * ETIMEDOUT if no answer has come. */
static int exchange_message(struct message *m, int try_ms, int retries)
{
	long methods[16 / sizeof(long)] = {0};
	int length = 256, port, agent;

	NEED(!umad_init());
	port = umad_open_port("advib0", 1);
	NEED(port > 0);
	agent = umad_register(port, m->mad[1], 1, 0, methods);
	NEED(agent >= 0);
	NEED(!umad_send(port, agent, m->bytes, length, try_ms, retries));
	NEED(umad_recv(port, m->bytes, &length, -1) == agent);
	NEED(!umad_close_port(port));
	return umad_status(m->bytes);
}

static int send_err; /* the errno of the next call of send; 0: it succeeds */

/* libibumad calls this function in place of that of the C library. */
ssize_t send(int fd, const void *bytes, size_t n, int flags)
{
	int err = send_err;

	send_err = 0;
	if (!err)
		return sendto(fd, bytes, n, flags, NULL, 0);
	errno = err;
	return -1;
}

/* The next wait of libibumad calls this function; NULL: none. */
static void (*in_wait)(void);

/* libibumad calls this function in place of that of the C library. */
int poll(struct pollfd *p, nfds_t n, int timeout_ms)
{
	struct timespec most = {timeout_ms / 1000,
				timeout_ms % 1000 * 1000000L};
	void (*then)(void) = in_wait;

	in_wait = NULL;
	if (then)
		then();
	return ppoll(p, n, timeout_ms < 0 ? NULL : &most, NULL);
}

static int renewed; /* the handle of renew_port */

/* Closes the port, opens one that gets the same handle, sends a request, and
 * waits until umad_recv has something to return: the answer, or the request if
 * no answer has come. */
static void renew_port(void)
{
	struct pollfd p = {.fd = renewed, .events = POLLIN};
	long methods[16 / sizeof(long)] = {0};
	struct message m;

	EXPECT(!umad_close_port(renewed));
	NEED(umad_open_port("advib0", 1) == renewed);
	NEED(umad_register(renewed, 0x04, 1, 0, methods) == 0);
	begin_message(&m, 0x04, 0x12); /* PortCounters */
	NEED(!umad_send(renewed, 0, m.bytes, 256, 200, 0));
	NEED(poll(&p, 1, -1) == 1);
}

/* While a call waits at a port, the program closes the port and opens another
 * one with the same handle.  The call does not use the new port. */
static void a_wait_ends_with_its_port(void)
{
	int length = 256;
	struct message m;

	NEED(!umad_init());
	renewed = umad_open_port("advib0", 1);
	NEED(renewed > 0);
	in_wait = renew_port;
	EXPECT(umad_recv(renewed, m.bytes, &length, -1) == -EINVAL);
	EXPECT(errno == EINVAL);
	begin_message(&m, 0x04, 0x12);
	send_err = EAGAIN;
	in_wait = renew_port;
	EXPECT(umad_send(renewed, 0, m.bytes, 256, 200, 0) == -EINVAL);
	EXPECT(umad_recv(renewed, m.bytes, &length, -1) == 0);
	EXPECT(!umad_close_port(renewed));
}

/* Calls fail with EMFILE, and not as if there were no adapter. */
static void no_descriptor_is_free(void)
{
	char names[4][UMAD_CA_NAME_LEN], path[32];
	struct rlimit limit, few;
	umad_port_t port;
	umad_ca_t ca;

	NEED(!umad_init());
	NEED(!getrlimit(RLIMIT_NOFILE, &limit));
	few = limit;
	few.rlim_cur = (rlim_t)lowest_free();
	NEED(!setrlimit(RLIMIT_NOFILE, &few));
	EXPECT(umad_get_ca("advib0", &ca) == -EMFILE && errno == EMFILE);
	EXPECT(umad_get_port("advib0", 1, &port) == -EMFILE);
	EXPECT(umad_get_issm_path("advib0", 1, path, sizeof(path)) == -EMFILE);
	EXPECT(umad_get_cas_names(names, 4) == -EMFILE && errno == EMFILE);
	EXPECT(!umad_get_ca_device_list() && errno == EMFILE);
	NEED(!setrlimit(RLIMIT_NOFILE, &limit));
	EXPECT(umad_get_cas_names(names, 4) > 0);
	EXPECT(!umad_get_ca("advib0", &ca) && !umad_release_ca(&ca));
}

/* umad_send fails once, and the port can be used again. */
static void a_datagram_without_memory_is_not_sent(void)
{
	struct message m;
	int port;

	NEED(!umad_init());
	port = umad_open_port("advib0", 1);
	NEED(port > 0);
	begin_message(&m, 0x04, 0x12); /* PortCounters */
	send_err = ENOBUFS;
	EXPECT(umad_send(port, 0, m.bytes, 256, 200, 0) == -EIO);
	EXPECT(!umad_send(port, 0, m.bytes, 256, 200, 0));
	EXPECT(!umad_close_port(port));
}

/* Asks for the description of the node with the LID, by a directed route from
 * this host through the ports, and from the end of that route by LID (DrDLID).
 * Prints the description, or that no answer comes.  Returns the exit status. */
static int print_node(int lid, int hops, char **ports, int try_ms, int retries)
{
	struct message m;

	begin_message(&m, 0x81, 0x10); /* NodeDescription */
	umad_set_addr(m.bytes, 0xffff, 0, 0, 0);
	m.mad[7] = (uint8_t)hops;
	m.mad[32] = m.mad[33] = 0xff; /* DrSLID */
	m.mad[34] = (uint8_t)(lid >> 8);
	m.mad[35] = (uint8_t)lid;
	for (int i = 0; i < hops; i++)
		m.mad[128 + 1 + i] = (uint8_t)atoi(ports[i]);
	if (exchange_message(&m, try_ms, retries)) {
		puts("no answer");
		return 1;
	}
	printf("%.64s\n", (char *)m.mad + 64);
	return 0;
}

/* Sends a MAD with a wrong Q_Key to QP1 of the port that has the LID.  That
 * port must drop the MAD.  Returns 0 if no answer comes, otherwise 1. */
static int send_wrong_qkey(int lid)
{
	struct message m;

	begin_message(&m, 0x04, 0x12); /* PortCounters */
	umad_set_addr(m.bytes, lid, 1, 0, 0x12345678);
	return exchange_message(&m, QUIET_MS, 0) != ETIMEDOUT;
}

int main(int argc, char **argv)
{
	if (argc == 3 && !strcmp(argv[1], "qkey"))
		return send_wrong_qkey(atoi(argv[2]));
	if (argc > 2 && !strcmp(argv[1], "route"))
		return print_node(atoi(argv[2]), argc - 3, argv + 3, TRY_MS,
				  RETRIES);
	if (argc > 2 && !strcmp(argv[1], "no-route"))
		return print_node(atoi(argv[2]), argc - 3, argv + 3, QUIET_MS,
				  0);
	if (argc > 1 && !strcmp(argv[1], "dead")) {
		check_run("a port of a dead fabric fails slowly",
			  a_port_of_a_dead_fabric_fails_slowly);
		return check_end();
	}
	check_run("a cancelled thread keeps no lock",
		  a_cancelled_thread_keeps_no_lock);
	check_run("a cancelled thread leaves no port open",
		  a_cancelled_thread_leaves_no_port_open);
	check_run("a port gets no number of a standard descriptor",
		  a_port_gets_no_standard_descriptor);
	check_run("an agent handles RMPP itself", an_agent_handles_rmpp_itself);
	check_run("agents do not overlap", agents_do_not_overlap);
	check_run("a wait ends with its port", a_wait_ends_with_its_port);
	check_run("no descriptor is free", no_descriptor_is_free);
	check_run("a datagram for which there is no memory is not sent",
		  a_datagram_without_memory_is_not_sent);
	check_run("a daemon keeps its sockets", a_daemon_keeps_its_sockets);
	return check_end();
}
