/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Leader and followers: one thread at a time, the leader, waits on the
 * adapter's descriptors and makes progress.  The leader is the progress thread,
 * or a thread of the program that is blocked in ibv_get_cq_event: a message
 * then costs one wake-up instead of two.  The leader holds the lock of this
 * file.
 *
 *	progress thread                     thread in ibv_get_cq_event
 *	leads                               waits for its event alone
 *	reports an event of this thread     wakes, works
 *	stops leading, naps                 leads: waits on all descriptors
 *	naps on, while the other leads      wakes, stops leading, works
 *	a nap without a leader: leads again
 *
 * If several threads of the program wait, the progress thread leads: a thread
 * that works for long after its event would let the others wait for a nap.  A
 * thread that waits in poll(2) on a channel's descriptor is not known here; the
 * progress thread leads then, too.
 *
 * A signal ends the wait of a leading thread as it would end the read of a
 * completion channel.  If some of the program's handlers restart system calls
 * and others do not, no code can tell which handler ended the wait, so all such
 * threads wait in that read (sigrestart.h).
 */
#ifndef HOST_LEADER_H
#define HOST_LEADER_H

#include <stdbool.h>
#include <stdint.h>

#include "host/progress.h"

/* Prepares the module before the progress thread starts, which begins by
 * leading. */
void leader_open(struct progress *l);
/* From here on no thread of the program begins to lead; a thread that leads
 * stops. */
void leader_close(struct progress *l);
/* Called after the progress thread has ended: returns when no thread leads, and
 * closes the set of descriptors. */
void leader_closed(void);
/* In a forked child, or after a progress thread that cannot be ended: forgets
 * the leader, whichever thread it was. */
void leader_forget(void);

/* The progress thread begins to lead: waits for the lock of this file. */
void leader_take(void);
/* The progress thread stops leading: gives the lock of this file. */
void leader_give(void);
/* Called by the progress thread while it leads: makes progress once, then
 * waits, looks again soon, or follows a thread of the program. */
void leader_turn(struct progress *l);
/* Called by the progress thread while it leads: waits @ns without a look at the
 * socket. */
void leader_nap(struct progress *l, uint64_t ns);

/*
 * A thread of the program sleeps until s is over, and may lead meanwhile; the
 * caller has no lock.  1: s is over.  0: the caller sleeps by itself, and then
 * calls leader_slept, also if its thread is cancelled.  -EINTR: a signal ended
 * the sleep.
 */
int leader_sleep(struct progress *l, const struct host_sleep *s);
/* Ends a sleep for which leader_sleep returned 0. */
void leader_slept(void);

#endif
