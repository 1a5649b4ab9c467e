/* SPDX-License-Identifier: BSD-2-Clause */
/* Associations of wire/sctp over UDP on loopback, with both ends in this
 * process. */
#ifndef TESTS_UNIT_SCTP_PAIRS_H
#define TESTS_UNIT_SCTP_PAIRS_H

#include "test.h"

#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <sys/socket.h>

#include "wire/sctp.h"

/* The PPID of DDP segments; each message begins with its 4 bytes. */
#define PPID 0x10

/* The process that runs the tests; main sets it. */
static pid_t first_process;

static inline struct sockaddr_in6 loopback_address(uint16_t port)
{
	struct sockaddr_in6 at = {.sin6_family = AF_INET6,
				  .sin6_port = htons(port)};

	inet_pton(AF_INET6, "::ffff:127.0.0.1", &at.sin6_addr);
	return at;
}

/* LeakSanitizer calls this function at the end of a process.  LeakSanitizer is
 * off in a child of fork: sctp_start unloads libusrsctp there, with the
 * variables that pointed to the memory that libusrsctp allocated before the
 * fork. */
__attribute__((visibility("default"))) int __lsan_is_turned_off(void);

int __lsan_is_turned_off(void)
{
	return getpid() != first_process;
}

/* Both ends of an association, and the listener. */
struct pair {
	/* the sockets; `called` is the end that the listener accepted */
	int listener, caller, called;
	/* the listener's address */
	struct sockaddr_in6 at;
	struct sctp_news news[2]; /* of `caller`, of `called` */
};

/* The options of sctp_start.  A test may set them before its first case. */
static struct sctp_options start_options;

/* Starts wire/sctp.  Returns false if libusrsctp is not installed. */
static inline bool has_library(void)
{
	const char *why;
	int err = sctp_start(&start_options, &why);

	if (err == -ELIBACC && strstr(why, "libusrsctp2"))
		return false;
	if (err)
		fprintf(stderr, "sctp_start: %s\n", why);
	assert_int_equal(err, 0);
	return true;
}

#define NEEDS_LIBRARY()                                                        \
	do {                                                                   \
		if (!has_library())                                            \
			SKIP_FOR("libusrsctp2 is not installed");              \
	} while (0)

static inline void await_events(int fd, short events)
{
	struct pollfd p = {.fd = fd, .events = events};

	assert_int_equal(poll(&p, 1, TEST_WAIT_MS), 1);
}

/* Connects from a free port of loopback.  Returns the result of sctp_connect.
 */
static inline int call_address(const struct sockaddr_in6 *to)
{
	struct sockaddr_in6 from = loopback_address(0);
	int fd = sctp_bind(&from, false);

	assert_true(fd >= 0);
	return sctp_connect(fd, &from, to);
}

/* Makes an association, and takes the news of both ends. */
static inline void begin_pair(struct pair *p)
{
	int fd;

	p->at = loopback_address(0);
	fd = sctp_bind(&p->at, false);
	assert_true(fd >= 0);
	assert_true(p->at.sin6_port != 0);
	p->listener = sctp_listen(fd, &p->at, 8);
	assert_true(p->listener >= 0);
	p->caller = call_address(&p->at);
	assert_true(p->caller >= 0);
	await_events(p->caller, POLLIN);
	assert_int_equal(recv(p->caller, &p->news[0], sizeof(p->news[0]), 0),
			 sizeof(p->news[0]));
	await_events(p->listener, POLLIN);
	p->called = sctp_accept(p->listener, &p->news[1]);
	assert_true(p->called >= 0);
}

static inline void end_pair(struct pair *p)
{
	close(p->caller);
	close(p->called);
	close(p->listener);
}

/* Fills m with the PPID and, behind it, bytes that depend on the seed. */
static inline void fill_message(uint8_t *m, uint32_t bytes, uint32_t seed)
{
	for (uint32_t i = 0; i < bytes; i++)
		m[i] = (uint8_t)(seed + i * 7);
	memset(m, 0, 4);
	m[3] = PPID;
}

/* Sends a message, and waits while the socket is full.  Returns the result of
 * send. */
static inline ssize_t send_fully(int fd, const uint8_t *m, size_t bytes)
{
	ssize_t n;

	while ((n = send(fd, m, bytes, MSG_NOSIGNAL)) < 0 && errno == EAGAIN)
		await_events(fd, POLLOUT);
	return n;
}

#endif
