/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Parts of glibc 2.35 that are used where they are: our libraries ask the
 * loader for nothing newer than 2.34, so that they load everywhere from there
 * on.
 *
 * Looked up once, by a constructor; read only from then on.
 */
#ifndef UTIL_LIBC_H
#define UTIL_LIBC_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/epoll.h>
#include <time.h>

/* epoll_pwait2(2), which a cancelled thread leaves; or NULL. */
extern int (*libc_epoll_pwait2)(int fd, struct epoll_event *events, int most,
				const struct timespec *timeout,
				const sigset_t *mask);

/* glibc registers a struct rseq for each thread (rseq(2)), or does not. */
extern struct libc_rseq {
	bool is_registered;
	ptrdiff_t offset; /* of its struct rseq from its thread pointer */
} libc_rseq;

#endif
