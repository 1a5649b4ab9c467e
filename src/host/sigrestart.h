/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Does a signal end the system call that it interrupts?  The kernel knows by
 * the handler (SA_RESTART), but restarts only calls that wait for one thing;
 * for the others the program's handlers are asked, which are all of one kind
 * in most programs.  They are looked at again now and then.
 *
 * Owner and lock: the caller's.
 */
#ifndef HOST_SIGRESTART_H
#define HOST_SIGRESTART_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

/* Starts as {0}. */
struct sigrestart {
	uint64_t looked_ns;
	unsigned kinds;
	sigset_t ending; /* signals whose handlers end a call */
};

/* Are there handlers of both kinds?  Then nobody can tell which it was. */
bool sigrestart_differ(struct sigrestart *h);
/* One has just interrupted: may it have been one that ends the call? */
bool sigrestart_end(struct sigrestart *h);
/*
 * Who does other things between his waits blocks those that end it, and waits
 * with the mask as it was, which is *before: or one that comes in between would
 * not end anything.  False: there are none.
 */
bool sigrestart_block(const struct sigrestart *h, sigset_t *before);
/* Has one that was blocked so come? */
bool sigrestart_wait(const struct sigrestart *h, const sigset_t *before);

#endif
