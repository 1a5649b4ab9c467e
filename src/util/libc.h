/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Functions and variables of glibc 2.35, which adverb uses if the C library has
 * them.  adverb's libraries require no symbol newer than glibc 2.34, so that
 * they load with every glibc from 2.34 on.
 *
 * A constructor looks the symbols up once.  The variables below are only read
 * from then on.
 */
#ifndef UTIL_LIBC_H
#define UTIL_LIBC_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/epoll.h>
#include <time.h>

/* The C library's epoll_pwait2(2), which is a cancellation point; NULL: the C
 * library does not have this function. */
extern int (*libc_epoll_pwait2)(int fd, struct epoll_event *events, int most,
				const struct timespec *timeout,
				const sigset_t *mask);

/* The struct rseq (rseq(2)) that glibc registers for each thread. */
extern struct libc_rseq {
	bool is_registered; /* false: glibc has registered none */
	ptrdiff_t offset;   /* bytes from the thread pointer to struct rseq */
} libc_rseq;

#endif
