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

/* Before the progress thread starts, which begins by leading. */
void leader_open(struct progress *l);
/* No thread of the program begins to lead any more; one that leads stops. */
void leader_close(struct progress *l);
/* After the progress thread has ended: no thread leads. */
void leader_closed(void);
/* In a forked child, where no thread leads. */
void leader_forget(void);

/* The progress thread begins to lead, waiting for its turn; and stops. */
void leader_take(void);
void leader_give(void);
/* The progress thread, leading: makes progress once, then waits, looks again
 * soon, or follows a thread of the program. */
void leader_turn(struct progress *l);
/* The progress thread, leading: waits @ns without a look at the socket. */
void leader_nap(struct progress *l, uint64_t ns);

/* See host_sleep and host_slept. */
int leader_sleep(struct progress *l, const struct host_sleep *s);
void leader_slept(void);

#endif
