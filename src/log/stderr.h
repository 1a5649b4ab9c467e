/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Writes a message to stderr if descriptor 2 is stderr.  In a program that has
 * closed stderr, for example a daemon, descriptor 2 may be another file, even
 * one of adverb's.  A message written there would be a false event of an
 * eventfd, or would overwrite the arena.  Descriptor 2 counts as stderr if it
 * lacks FD_CLOEXEC, which all of adverb's descriptors have.  No lock; leaves
 * errno unchanged.
 */
#ifndef LOG_STDERR_H
#define LOG_STDERR_H

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "util/write_signals.h"

/* Returns whether the user wants no messages: ADVERB_EXPLAIN=0.  Does not call
 * env_is_off, since the shim has this header without the rest of log. */
static inline bool stderr_is_silent(void)
{
	const char *value = secure_getenv("ADVERB_EXPLAIN");

	return value && !strcmp(value, "0");
}

/* Writes `bytes` bytes of text by one write(2), if descriptor 2 is stderr.
 * stdio is not used, since its buffers belong to the program.  Callers hold
 * locks, so the thread is not cancelled here.  If the write fails, the message
 * is lost, and the thread gets no signal: a program that writes nothing to its
 * stderr need not expect that a pipe there has no reader any more. */
static inline void stderr_write(const char *text, size_t bytes)
{
	int saved = errno, flags = fcntl(STDERR_FILENO, F_GETFD), cancel;
	struct write_signals held;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
	write_signals_hold(&held);
	if (flags >= 0 && !(flags & FD_CLOEXEC) &&
	    write(STDERR_FILENO, text, bytes) < 0)
		errno = saved; /* the message is lost */
	write_signals_give(&held);
	pthread_setcancelstate(cancel, NULL);
	errno = saved;
}

#endif
