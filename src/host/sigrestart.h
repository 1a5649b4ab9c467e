/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Does a signal end a system call that it interrupts?  The kernel decides by
 * SA_RESTART of the signal's handler, but after a handler it never restarts
 * epoll_wait(2) or poll(2).  For these two, this module decides by the
 * program's handlers, which it reads now and then.  In most programs all
 * handlers have SA_RESTART or none has it, so it does not matter which handler
 * ran.
 *
 * Owner and lock: the caller's.
 */
#ifndef HOST_SIGRESTART_H
#define HOST_SIGRESTART_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

/* The program's handlers when they were last read, except those of faults and
 * of abort(3).  Starts as {0}. */
struct sigrestart {
	uint64_t looked_ns;  /* when they were read (monotonic_ns); 0: never */
	sigset_t restarting; /* signals whose handlers have SA_RESTART */
	sigset_t ending;     /* signals whose handlers have no SA_RESTART */
};

/* Do some handlers have SA_RESTART and others not?  If so, after a wait was
 * interrupted, no code can tell whether the handler that ran has SA_RESTART.
 * Reads the handlers if they were never read, or last read more than 100 ms
 * ago. */
bool sigrestart_differ(struct sigrestart *h);
/* Called when a handler has just interrupted a wait: reads the handlers again.
 * True: one of them has no SA_RESTART, or one without SA_RESTART is gone since
 * the last read (a handler may remove itself); the caller ends the wait. */
bool sigrestart_end(struct sigrestart *h);
/*
 * For a caller that works between two waits: blocks the signals whose handlers
 * have no SA_RESTART, and stores the previous mask in *before.  The caller
 * waits with the mask *before, so a signal that arrived between two waits ends
 * the next wait.  False: there are no such signals, and nothing was blocked.
 */
bool sigrestart_block(const struct sigrestart *h, sigset_t *before);
/* Is a signal pending that sigrestart_block has blocked?  @before: the mask
 * that sigrestart_block has stored. */
bool sigrestart_is_pending(const struct sigrestart *h, const sigset_t *before);

#endif
