/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Leader and followers: one thread at a time, the leader, waits on the
 * adapter's descriptors and makes progress.  The leader is the progress thread,
 * or a thread of the program that is blocked in ibv_get_cq_event.  In the
 * second case a message costs one wake-up instead of two.  The leader holds
 * leader_lock, the lock of this file.
 *
 *	progress thread                     thread in ibv_get_cq_event
 *	leads                               waits for its own event only
 *	reports an event to that thread     wakes up, works
 *	stops leading, naps                 leads: waits on all descriptors
 *	goes on napping                     wakes up, stops leading, works
 *	leads again after a nap in which
 *	  no thread of the program led
 *
 * If several threads of the program wait, the progress thread leads.  Otherwise
 * one of them could lead and then work for long after its event, and the others
 * would wait until the progress thread's nap ends.  A thread that waits in
 * poll(2) on a channel's descriptor never leads, because this file does not
 * know that thread.
 *
 * A signal ends the wait of a leading thread as it would end the read of a
 * completion channel.  If some of the program's handlers restart system calls
 * and others do not, no code can tell which kind ended the wait.  Then no
 * thread of the program leads, and all wait in that read (sigrestart.h).
 */
#ifndef HOST_LEADER_H
#define HOST_LEADER_H

#include <stdbool.h>
#include <stdint.h>

#include "host/progress.h"

/* Prepares this file.  Called before the progress thread starts. */
void leader_open(struct progress *p);
/* Wakes the leader and makes it stop leading.  From here on no thread of the
 * program begins to lead. */
void leader_close(struct progress *p);
/* Called after the progress thread has ended: waits until no thread leads, and
 * closes the epoll set. */
void leader_closed(void);
/* Called in the child of a fork, or if the progress thread cannot be ended:
 * forgets which thread leads, and makes leader_lock free. */
void leader_forget(void);

/* Called by the progress thread when it begins to lead: waits for leader_lock,
 * and takes it. */
void leader_take(void);
/* Called by the progress thread when it stops leading: releases leader_lock. */
void leader_give(void);
/* Called by the progress thread while it leads: makes progress once, and then
 * waits for work, unless there is a reason to look again at once.  After that,
 * may let a thread of the program lead, and then returns when the progress
 * thread leads again. */
void leader_turn(struct progress *p);
/* Called by the progress thread while it leads: waits for @ns ns.  An event of
 * the broker or the eventfd ends the wait earlier.  A datagram, the bytes of a
 * stream and a packet of a fabric do not, because a thread of the program polls
 * for them. */
void leader_nap(struct progress *p, uint64_t ns);

/*
 * Called by a thread of the program: sleeps until s->is_over returns true, and
 * may lead meanwhile.  The caller has no lock.  1: s->is_over has returned
 * true.  0: the caller has to sleep by itself and then to call leader_slept,
 * also if its thread is cancelled.  -EINTR: a signal ended the sleep.
 */
int leader_sleep(struct progress *p, const struct host_sleep *s);
/* Ends a sleep for which leader_sleep returned 0. */
void leader_slept(void);

#endif
