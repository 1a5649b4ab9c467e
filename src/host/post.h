/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Posts: what happens to work that a program has put into a send queue.
 *
 *	the QP is direct               the thread that posts executes it
 *	the progress lock is free      the thread that posts sends it
 *	another thread has the lock    that thread serves the doorbell
 *	more posts will soon follow    the work waits (post_gather.h,
 *	                               poll_policy.h)
 *
 * For a direct QP the thread that posts takes the post lock (post_lock.h).  If
 * some work then remains, the thread releases that lock and takes the progress
 * lock.  For another QP the thread takes only the progress lock.  The thread
 * waits for neither lock for long, except that a thread with a real-time
 * scheduling policy waits until the progress lock is free.
 */
#ifndef HOST_POST_H
#define HOST_POST_H

#include "host/progress.h"

/* Called when work of about @bytes bytes, headers included, was posted to q:
 * executes or sends the work, leaves it to another thread, or lets it wait. */
void post_doorbell(struct progress *p, struct ibt_qp *q, uint32_t bytes);
/*
 * Called when the program polls a CQ whose QPs use the post lock @number:
 * executes the requests that wait under this lock, and those that wait under
 * other locks and were posted by this thread.
 */
void post_polled(struct progress *p, uint32_t number);
/* Called when a poll of a CQ whose QPs use the post lock @number finds nothing:
 * ends the wait of such a QP for a receive of its peer, if the peer has one
 * (engine_resume_apart).  True: the poll may find a completion now. */
bool post_resume(struct progress *p, uint32_t number);
/* Called before the program waits: executes the requests that wait and were
 * posted by this thread. */
void post_serve_own(struct progress *p);

#endif
