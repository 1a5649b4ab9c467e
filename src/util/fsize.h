/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * RLIMIT_FSIZE without its signal.  The limit holds for memory files (memfd)
 * too, and the kernel sends SIGXFSZ, which by default ends the program, to a
 * thread that makes a file larger than the limit.  Between fsize_hold and
 * fsize_give such a call only fails with EFBIG.
 */
#ifndef UTIL_FSIZE_H
#define UTIL_FSIZE_H

#include <signal.h>

struct fsize {
	sigset_t before; /* the thread's signal mask before fsize_hold */
};

/* Blocks SIGXFSZ for the calling thread. */
void fsize_hold(struct fsize *f);
/* Discards a pending SIGXFSZ, unless the program had blocked that signal
 * itself, and restores the thread's signal mask; leaves errno unchanged. */
void fsize_give(const struct fsize *f);

#endif
