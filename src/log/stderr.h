/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Where a sentence for people goes: stderr, if there is one.  A program that
 * has closed it (a daemon) has another file under its number, as likely as not
 * one of ours: what was written there would be an event that nobody posted, or
 * stand in the middle of the arena.  All of ours close on exec, and no stderr
 * does.  No lock; keeps errno.
 */
#ifndef LOG_STDERR_H
#define LOG_STDERR_H

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <unistd.h>

/* One write, past stdio: a program's own buffers are not ours. */
static inline void stderr_write(const char *text, size_t bytes)
{
	int saved = errno, flags = fcntl(STDERR_FILENO, F_GETFD);

	if (flags >= 0 && !(flags & FD_CLOEXEC) &&
	    write(STDERR_FILENO, text, bytes) < 0)
		errno = saved; /* nobody hears it */
	errno = saved;
}

#endif
