/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Descriptors for tests of functions that receive descriptors in messages: the
 * test sends copies of the writing end of a pipe.  The reading end shows
 * whether all copies are closed, those of this process and those in messages
 * that are under way.
 */
#ifndef TESTS_UNIT_BROUGHT_H
#define TESTS_UNIT_BROUGHT_H

#include "test.h"

#include "broker/proto.h"
#include "util/scm_rights.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define BROUGHT_MOST 24

struct brought {
	int reads; /* the reading end */
	int lent;  /* the writing end; -1: brought_send has sent it */
};

/* Makes a pipe; brought_free closes the ends that are open then. */
static inline struct brought brought_new(void)
{
	int ends[2];

	assert_int_equal(pipe2(ends, O_CLOEXEC | O_NONBLOCK), 0);
	return (struct brought){ends[0], ends[1]};
}

static inline void brought_free(struct brought *b)
{
	close(b->reads);
	if (b->lent >= 0)
		close(b->lent);
}

/* Sends a message of `size` bytes that brings fd n times, at most BROUGHT_MOST
 * times.  Returns the result of sendmsg. */
static inline ssize_t brought_pass(int socket, const void *bytes, size_t size,
				   int fd, size_t n)
{
	int fds[BROUGHT_MOST];

	for (size_t i = 0; i < n; i++)
		fds[i] = fd;
	return scm_rights_send(socket, bytes, size, fds, n, 0);
}

/* Sends a message of `size` bytes with n descriptors, at most BROUGHT_MOST.
 * From then on only the message has them. */
static inline void brought_send(struct brought *b, int socket,
				const void *bytes, size_t size, size_t n)
{
	assert_int_equal(brought_pass(socket, bytes, size, b->lent, n), size);
	close(b->lent);
	b->lent = -1;
}

/* Returns whether scm_rights_let_bring can make a socket refuse descriptors.
 * The function tries setsockopt(2), not getsockopt(2): under QEMU's user mode
 * setsockopt of SO_PASSRIGHTS fails, but getsockopt may succeed. */
static inline bool brought_can_be_refused(void)
{
	const int on = 0;
	int fd = socket(AF_UNIX, SOCK_SEQPACKET, 0), err;

	err = setsockopt(fd, SOL_SOCKET, SO_PASSRIGHTS, &on, sizeof(on));
	close(fd);
	return !err;
}

/* Returns whether all descriptors that brought_send has sent are closed. */
static inline bool brought_are_closed(const struct brought *b)
{
	char byte;
	ssize_t n = read(b->reads, &byte, 1);

	assert_true(n == 0 || (n < 0 && errno == EAGAIN));
	return n == 0;
}

#endif
