/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Writes a message to stderr if descriptor 2 is stderr.  In a program that has
 * closed stderr, as daemons do, descriptor 2 may be another file, also one of
 * adverb's: a message written there would be a false event of an eventfd, or
 * overwrite the arena.  All descriptors of adverb's close on exec, and stderr
 * does not.  No lock; leaves errno unchanged.
 */
#ifndef LOG_STDERR_H
#define LOG_STDERR_H

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <unistd.h>

/* Makes one write(2), without stdio, whose buffers belong to the program. */
static inline void stderr_write(const char *text, size_t bytes)
{
	int saved = errno, flags = fcntl(STDERR_FILENO, F_GETFD);

	if (flags >= 0 && !(flags & FD_CLOEXEC) &&
	    write(STDERR_FILENO, text, bytes) < 0)
		errno = saved; /* the message is lost */
	errno = saved;
}

#endif
