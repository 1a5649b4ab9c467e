/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * RLIMIT_FSIZE without its signal.  The kernel counts memory that has a
 * descriptor as a file, and sends SIGXFSZ, which ends a program, to a thread
 * that makes one larger than the limit.  Between hold and give the call fails
 * with EFBIG, and that is all.
 */
#ifndef UTIL_FSIZE_H
#define UTIL_FSIZE_H

#include <signal.h>

struct fsize {
	sigset_t before; /* the thread's mask */
};

void fsize_hold(struct fsize *f);
/* Keeps errno. */
void fsize_give(const struct fsize *f);

#endif
