/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The wait of the thread that waits for work, the leader (leader.h): which
 * events end it, and whether a thread that makes progress meanwhile has to end
 * it.
 *
 * Owner: progress.c.  Lock: the progress lock and all post locks.
 */
#ifndef HOST_WAIT_PLAN_H
#define HOST_WAIT_PLAN_H

#include <stdbool.h>

#include "host/progress.h"

/* Plans the wait: sets r->until, r->events and r->serves, and notes in p->wake
 * for what the leader waits.  Publishes the counters. */
void wait_plan_make(struct progress *p, struct progress_rest *r);
/*
 * Called by a thread that releases the locks.  Returns whether that thread must
 * wake the leader, for one of these reasons:
 *
 *	- there is work to do at once;
 *	- many requests were posted that no packet acknowledges, so the leader
 *	  has to begin its looks at posts that wait;
 *	- the leader's wait ends later than the engine, a stream or a question
 *	  about a local peer now allows;
 *	- packets do not end the wait, although the engine can take packets
 *	  again;
 *	- the wait is for room in another socket or ring than the one that is
 *	  full now;
 *	- the wait is on a descriptor of the connection to the broker that may
 *	  be closed by now;
 *	- the wait is without the epoll set of the streams, which the first
 *	  stream has made meanwhile.
 */
bool wait_plan_is_over(struct progress *p);

#endif
