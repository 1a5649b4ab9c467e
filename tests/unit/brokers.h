/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Functions that the tests of adverbd and its client share.  Each test program
 * runs in a network namespace of its own, so that port 4791 and the broker's
 * address are free.  ADVERB_BROKER names adverbd.
 */
#ifndef TESTS_UNIT_BROKERS_H
#define TESTS_UNIT_BROKERS_H

#include "test.h"

#include "broker/client.h"
#include "broker/shared_page.h"
#include "broker/proto.h"
#include "broker/steer.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <netinet/in.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* A broker that ran this long does not delay the start of the next broker. */
#define LIFE_MS 2000

static atomic_long
	skipped_ms; /* how far the test's clock is ahead of the kernel's */

/* The time of the kernel's clock at which the test's clock was stopped; 0: the
 * test's clock runs. */
static atomic_long stopped_ms;

/* Replaces libc's clock_gettime for all code that is linked into the test.  The
 * time is the kernel's time plus skipped_ms.  While the test's clock is
 * stopped, the time is stopped_ms plus skipped_ms, the same for every clock
 * `id`. */
int clock_gettime(clockid_t id, struct timespec *t)
{
	int err = (int)syscall(SYS_clock_gettime, id, t);
	long ms = skipped_ms, at = stopped_ms;

	if (at)
		*t = (struct timespec){at / 1000, at % 1000 * 1000000};
	t->tv_nsec += ms % 1000 * 1000000;
	t->tv_sec += ms / 1000 + t->tv_nsec / 1000000000;
	t->tv_nsec %= 1000000000;
	return err;
}

/* Returns a socket that listens at the broker's address. */
static inline int listen_there(void)
{
	struct sockaddr_un a;
	socklen_t length = proto_address(&a);
	int fd = socket(AF_UNIX, SOCK_SEQPACKET, 0);

	assert_int_equal(bind(fd, (struct sockaddr *)&a, length), 0);
	assert_int_equal(listen(fd, 8), 0);
	return fd;
}

/* Accepts connections until a client sends something on one, and returns this
 * connection.  A client first makes another connection, on which the client
 * sends nothing, to find out which process listens (proto_look).  The test
 * fails if no connection comes for TEST_WAIT_MS. */
static inline int accept_client(int listener)
{
	for (;;) {
		struct pollfd p = {listener, POLLIN, 0};
		char byte;
		int fd;

		assert_int_equal(poll(&p, 1, TEST_WAIT_MS), 1);
		fd = accept(listener, NULL, NULL);
		assert_true(fd >= 0);
		p.fd = fd;
		assert_int_equal(poll(&p, 1, TEST_WAIT_MS), 1);
		if (recv(fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 1)
			return fd;
		close(fd);
	}
}

/* The setup of a group of tests: moves this process to a network namespace of
 * its own, and brings lo up there.  Ends the program with status 77 if the
 * kernel makes no namespace. */
static inline int enter_namespace(void **state)
{
	struct ifreq lo = {.ifr_name = "lo", .ifr_flags = IFF_UP};
	int fd;

	if (unshare(CLONE_NEWNET) && unshare(CLONE_NEWUSER | CLONE_NEWNET)) {
		puts("skipped: no network namespace of our own");
		fflush(stdout);
		_exit(77);
	}
	fd = socket(AF_INET, SOCK_DGRAM, 0);
	assert_int_equal(ioctl(fd, SIOCSIFFLAGS, &lo), 0);
	close(fd);
	return 0;
}

/* Opens a client that shares no arena. */
static inline int open_client(struct client *c, const char **why)
{
	const struct client_want none = {-1, -1, 60000, NULL};

	return client_open(c, &none, why);
}

/* Opens a client that shares no arena; the test fails if that fails. */
static inline void open_or_fail(struct client *c)
{
	const char *why = "";
	int err = open_client(c, &why);

	if (err)
		fail_msg("%d: %s", err, why);
}

/* Returns the pid of the broker of an open client. */
static inline pid_t broker_of(const struct client *c)
{
	return c->broker.pid;
}

/* The result that open_and_report writes. */
struct open_report {
	int err;	/* 0 or a negative errno */
	uint32_t class; /* valid if err is 0 */
	pid_t broker;	/* its pid; 0 if err is not 0 */
};

/* In a child process: when `go` closes, opens a client and writes a struct
 * open_report to `out`.  The function ends the process when `hold` closes. */
static inline void open_and_report(int go, int out, int hold)
{
	struct open_report r = {0};
	struct client c;
	const char *why;
	char byte;

	if (read(go, &byte, 1) < 0)
		_exit(1);
	r.err = open_client(&c, &why);
	r.class = c.class;
	if (!r.err)
		r.broker = broker_of(&c);
	else
		fprintf(stderr, "child: %s\n", why);
	if (write(out, &r, sizeof(r)) != sizeof(r) || read(hold, &byte, 1) < 0)
		_exit(1);
	_exit(0);
}

/* Moves the test's clock on by LIFE_MS, kills the broker, and waits until the
 * kernel has closed the broker's descriptors. */
static inline void end_broker(pid_t pid)
{
	int fd = (int)syscall(SYS_pidfd_open, pid, 0);
	struct pollfd p = {fd, POLLIN, 0};

	assert_true(fd >= 0);
	assert_int_not_equal(pid, getpid());
	skipped_ms += LIFE_MS;
	kill(pid, SIGKILL);
	assert_int_equal(poll(&p, 1, TEST_WAIT_MS), 1);
	close(fd);
}

/* Stops the broker, and waits until it has stopped. */
static inline void stop_broker(pid_t pid)
{
	char path[32], stat[512] = "";
	const char *name_end;
	ssize_t n;
	int fd;

	kill(pid, SIGSTOP);
	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	do {
		fd = open(path, O_RDONLY | O_CLOEXEC);
		n = read(fd, stat, sizeof(stat) - 1);
		close(fd);
		assert_true(n > 0);
		stat[n] = 0;
		name_end = strrchr(stat, ')');
		assert_non_null(name_end);
	} while (name_end[2] != 'T');
}

/* Sends a datagram with the BTH of a packet for this QPN to UDP port 4791 of
 * `address`, from a new socket. */
static inline void send_to(uint32_t qpn, int family, const char *address)
{
	struct sockaddr_in four = {.sin_family = AF_INET,
				   .sin_port = htons(4791)};
	struct sockaddr_in6 six = {.sin6_family = AF_INET6,
				   .sin6_port = htons(4791)};
	uint8_t bth[12] = {0,
			   0,
			   0,
			   0,
			   0,
			   (uint8_t)(qpn >> 16),
			   (uint8_t)(qpn >> 8),
			   (uint8_t)qpn};
	int fd = socket(family, SOCK_DGRAM, 0);

	inet_pton(AF_INET, address, &four.sin_addr);
	inet_pton(AF_INET6, address, &six.sin6_addr);
	assert_int_equal(sendto(fd, bth, sizeof(bth), 0,
				family == AF_INET ? (struct sockaddr *)&four
						  : (struct sockaddr *)&six,
				family == AF_INET ? sizeof(four) : sizeof(six)),
			 sizeof(bth));
	close(fd);
}

/* Returns the lowest class that none of these n clients has. */
static inline uint32_t unowned_class(const struct client *c, int n)
{
	uint32_t class = 1;

	for (int i = 0; i < n; i++)
		if (c[i].class == class) {
			class ++;
			i = -1;
		}
	return class;
}

/* Receives all datagrams that wait at the client, and checks that each is of
 * the client's class.  Returns the number of datagrams. */
static inline int take_all(struct client *c)
{
	uint8_t b[64];
	int n = 0;

	while (recv(c->udp_fd, b, sizeof(b), MSG_DONTWAIT) == 12) {
		uint32_t qpn = (uint32_t)(b[5] << 16 | b[6] << 8 | b[7]);

		assert_int_equal(steer_class(qpn), c->class);
		n++;
	}
	return n;
}

/* Waits until client_turn has something to do, and returns the result of
 * client_turn. */
static inline bool wait_turn(struct client *c, struct client_news *news)
{
	struct pollfd p = {client_fd(c), POLLIN, 0};
	struct timespec t;
	uint64_t now;

	clock_gettime(CLOCK_MONOTONIC, &t);
	now = (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
	if (client_due_ms(c) == UINT64_MAX)
		assert_int_equal(poll(&p, 1, TEST_WAIT_MS), 1);
	else if (client_due_ms(c) > now)
		poll(&p, 1, (int)(client_due_ms(c) - now));
	return client_turn(c, news);
}

/* Asks the broker about the process that has this QPN, waits for the answer,
 * and returns it: one of CLIENT_PEER_*. */
static inline int peer_state(struct client *c, uint32_t qpn)
{
	struct client_news news = {0};

	assert_true(client_ask(c, qpn));
	while (!wait_turn(c, &news))
		;
	assert_int_equal(news.what, CLIENT_NEWS_PEER);
	assert_int_equal(news.qpn, qpn);
	return (int)news.peer;
}

/* Puts a file of the program in place of descriptor fd. */
static inline void put_own_file(int fd)
{
	int own = memfd_create("program", MFD_CLOEXEC);

	assert_true(own >= 0);
	assert_int_equal(dup3(own, fd, O_CLOEXEC), fd);
	close(own);
}

/* Asks for the arena of a class until the answer is not CLIENT_ARENA_LATER.
 * Returns the answer; the caller closes peer_wake_fd after CLIENT_ARENA_HERE.
 */
static inline struct client_news arena_of(struct client *c, uint32_t class)
{
	struct client_news news = {.arena = CLIENT_ARENA_LATER};

	while (news.arena == CLIENT_ARENA_LATER) {
		assert_true(client_ask_arena(c, class));
		while (!wait_turn(c, &news))
			;
		assert_int_equal(news.what, CLIENT_NEWS_ARENA);
		assert_int_equal(news.class, class);
	}
	return news;
}

/* Asks for the page of a class until the broker's answer has come.  Returns the
 * page; NULL: no client has the class. */
static inline const uint8_t *page_of(struct client *c, uint32_t class)
{
	struct client_news news;
	const void *page = NULL;

	while (!client_page_of(c, class, &page))
		wait_turn(c, &news);
	return page;
}

/* A reason for SKIP_FOR. */
#define FEW_FILES "RLIMIT_NOFILE is too low for all classes and connections"

/* Raises the soft limit on open files to the hard limit.  Returns that limit.
 */
static inline rlim_t raise_limit(void)
{
	struct rlimit files;

	getrlimit(RLIMIT_NOFILE, &files);
	files.rlim_cur = files.rlim_max;
	setrlimit(RLIMIT_NOFILE, &files);
	return files.rlim_cur;
}

#endif
