/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * System calls that write, without their signals.  To a thread that writes to a
 * pipe without a reader the kernel sends SIGPIPE.  To a thread that would make
 * a file, or a memory file (memfd), larger than RLIMIT_FSIZE, the kernel sends
 * SIGXFSZ.  Both signals end the program by default.  Between
 * write_signals_hold and write_signals_give such a system call fails with EPIPE
 * or EFBIG, and the signal has no effect.
 */
#ifndef UTIL_WRITE_SIGNALS_H
#define UTIL_WRITE_SIGNALS_H

#include <signal.h>

struct write_signals {
	sigset_t before; /* the thread's mask before write_signals_hold */
};

/* Blocks SIGPIPE and SIGXFSZ for the calling thread, and keeps its signal mask
 * in s.  The same thread must call write_signals_give. */
void write_signals_hold(struct write_signals *s);
/* Discards pending SIGPIPEs and SIGXFSZs, except those of a signal that the
 * thread had already blocked, and restores the thread's signal mask.  Leaves
 * errno unchanged. */
void write_signals_give(const struct write_signals *s);

#endif
