/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Requests that a thread executes without the progress lock
 * (docs/decisions/026).
 *
 * Owner: the engine.  Lock: the QP's post lock, except for
 * initiator_apart_tell, whose caller holds the progress lock and all post
 * locks.  Sans-IO.
 */
#ifndef DIRECT_INITIATOR_APART_H
#define DIRECT_INITIATOR_APART_H

#include "ibt/ibt.h"

/*
 * Executes the requests at the cursor of an RC QP that fit into a batch
 * (target_run_batch) and succeed at once.  Besides the memory that they name,
 * such requests change only q, q's completion queue and the target's arena.  So
 * the caller needs no progress lock, but must exclude all other calls that use
 * q or its target_ref.
 *
 * *to_wake is the owner in q's target_ref if the target's process sleeps and
 * has to be woken, or else NULL.  Returns true if no request and no event is
 * left, or if q waits for a receive: then the requests are executed when the
 * wait ends.  Returns false if requests or events are left: the caller then
 * calls initiator_apart_tell and initiator_turn under the progress lock.
 */
bool initiator_apart_post(struct ibt *t, struct ibt_qp *q, uint64_t now_ns,
			  void **to_wake);
/* Does q wait for a receive of its peer, could initiator_apart_post execute the
 * request that needs the receive, and does the peer have a receive now?  True
 * also if the peer's process has ended meanwhile.  Notes now_ns as the time of
 * this look. */
bool initiator_apart_may_resume(struct ibt *t, struct ibt_qp *q,
				uint64_t now_ns);
/* Ends q's wait, after initiator_apart_may_resume has returned true, and then
 * does the work of initiator_apart_post, with the same results. */
bool initiator_apart_resume(struct ibt *t, struct ibt_qp *q, uint64_t now_ns,
			    void **to_wake);
/* Could the requests that initiator_apart_post has yet to execute, and further
 * requests like the last of them, be executed by one system call?  A guess:
 * only the first and the last of these requests are compared. */
bool initiator_apart_gathers(struct ibt *t, const struct ibt_qp *q);
/* Raises the events, finishes the atomic, and settles the waits (rnr_wait.h),
 * that initiator_apart_post and initiator_apart_resume have left.  Called
 * before any other call that executes or flushes requests of q. */
void initiator_apart_tell(struct ibt *t, struct ibt_qp *q);

#endif
