/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Does a signal end a system call that it interrupts?  The kernel decides by
 * the handler's SA_RESTART, and restarts only calls that wait on one
 * descriptor.  For epoll and poll this module decides by the program's
 * handlers, which are all of one kind in most programs, and reads them again
 * now and then.
 *
 * Owner and lock: the caller's.
 */
#ifndef HOST_SIGRESTART_H
#define HOST_SIGRESTART_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

/* The handlers at the last look.  Starts as {0}. */
struct sigrestart {
	uint64_t looked_ns;
	unsigned kinds;	 /* bits: restarting handlers, ending handlers */
	sigset_t ending; /* signals whose handlers end a call */
};

/* Are there handlers of both kinds?  Then no code can tell which one ran. */
bool sigrestart_differ(struct sigrestart *h);
/* A handler has just interrupted a wait: may it be of the kind that ends it? */
bool sigrestart_end(struct sigrestart *h);
/*
 * For a caller that works between two waits: blocks the signals whose handlers
 * end a wait, and stores the mask from before, which the waits use.  Without it
 * a signal that arrives between two waits would end neither.  False: there are
 * no such signals, and nothing was blocked.
 */
bool sigrestart_block(const struct sigrestart *h, sigset_t *before);
/* Is a signal pending that sigrestart_block has blocked? */
bool sigrestart_wait(const struct sigrestart *h, const sigset_t *before);

#endif
