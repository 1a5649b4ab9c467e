/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * RLIMIT_FSIZE without its signal.  The limit also holds for memory files
 * (memfd).  To a thread that would make a file larger than the limit, the
 * kernel sends SIGXFSZ, which ends the program by default.  Between fsize_hold
 * and fsize_give such a system call fails with EFBIG, and the signal has no
 * effect.
 */
#ifndef UTIL_FSIZE_H
#define UTIL_FSIZE_H

#include <signal.h>

struct fsize {
	sigset_t before; /* the thread's signal mask before fsize_hold */
};

/* Blocks SIGXFSZ for the calling thread, and keeps its signal mask in f.  The
 * same thread must call fsize_give. */
void fsize_hold(struct fsize *f);
/* Discards a pending SIGXFSZ, unless the program itself had blocked that
 * signal, and restores the thread's signal mask.  Leaves errno unchanged. */
void fsize_give(const struct fsize *f);

#endif
