/* SPDX-License-Identifier: BSD-2-Clause */
/* A descriptor whose last close waits. */
#ifndef TESTS_UNIT_SLOW_CLOSE_H
#define TESTS_UNIT_SLOW_CLOSE_H

#include "test.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

/*
 * Returns a TCP socket with unsent bytes, whose last close waits for nine hours
 * unless a signal comes (SO_LINGER).  The peer's socket stays open, and nothing
 * is read from it.
 */
static inline int slow_to_close(void)
{
	const struct linger linger = {1, 32767};
	int listener = socket(AF_INET, SOCK_STREAM, 0);
	struct sockaddr_in a = {.sin_family = AF_INET,
				.sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	socklen_t length = sizeof(a);
	static char bytes[65536];

	assert_int_equal(bind(listener, (struct sockaddr *)&a, sizeof(a)), 0);
	assert_int_equal(listen(listener, 1), 0);
	getsockname(listener, (struct sockaddr *)&a, &length);
	assert_int_equal(connect(fd, (struct sockaddr *)&a, sizeof(a)), 0);
	assert_true(accept(listener, NULL, NULL) >= 0);
	close(listener);
	assert_int_equal(
		setsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger)),
		0);
	while (send(fd, bytes, sizeof(bytes), MSG_DONTWAIT) > 0)
		;
	return fd;
}

#endif
