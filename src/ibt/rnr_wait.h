/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The wait of an RC requester for a receive of its peer, after an RNR NAK.  The
 * wait ends when the RNR timer expires or, without packets, when the peer has a
 * receive again.
 *
 * Without packets a thread may also end a wait, and begin the next one, under
 * the QP's post lock alone.  That lock covers neither the wheel nor the list
 * direct_queues.waiting, so the thread leaves the timer and the list as they
 * are, and notes in direct_state.rnr that they are old.  While they are old,
 * the timer is set for a time that is not later than the end of the wait.  The
 * holders of all locks call rnr_wait_settle before they use either.
 *
 *	              post lock            all locks
 *	the wait	rnr_wait_resume	     rnr_wait_end
 *	  ends
 *	the next	rnr_wait_again	     rnr_wait_begin
 *	  begins
 *	the timer	(none)		     rnr_wait_is_over
 *	  expires
 *
 * Owner: the engine.  Lock: the progress lock and all post locks, unless a
 * function's comment names the QP's post lock.  Sans-IO.
 */
#ifndef IBT_RNR_WAIT_H
#define IBT_RNR_WAIT_H

#include "ibt/ibt.h"

/* Begins a wait, for as long as `timer`, the peer's min_rnr_timer, says. */
void rnr_wait_begin(struct ibt *t, struct ibt_qp *q, uint8_t timer,
		    uint64_t now_ns);
/*
 * Called when the peer has no receive for a direct request.  If a wait for this
 * request has ended early, because the peer had a receive that another QP then
 * took from the peer's SRQ, continues the wait, and counts no further RNR NAK.
 * False: q has not waited for this request, or the time of the wait has passed;
 * the caller calls rc_comp_rnr.
 */
bool rnr_wait_goes_on(struct ibt *t, struct ibt_qp *q, uint64_t now_ns);
/* Ends the wait and disarms the timer, if q waits. */
void rnr_wait_end(struct ibt *t, struct ibt_qp *q);
/* Brings the timer and the list of q to the state that they would have if all
 * waits had begun and ended under all locks, and counts these waits. */
void rnr_wait_settle(struct ibt *t, struct ibt_qp *q);
/* Adds the waits that began under the post lock to engine_counters. */
void rnr_wait_count(struct ibt_qp *q);
/* Called for q on direct_queues.waiting.  True: the holder of all locks need
 * not look whether q's wait can end, since the wait has ended under the post
 * lock, or since a poll of the program has looked a short time ago. */
bool rnr_wait_is_minded(const struct ibt_qp *q, uint64_t now_ns);
/* For q with rnr_wait_is_minded: returns the time from which on the holder of
 * all locks looks itself.  A poll that looks at q makes this time later, but
 * the program may have stopped polling.  UINT64_MAX: q's wait has ended. */
uint64_t rnr_wait_look_ns(const struct ibt_qp *q);
/* Called when q's timer has expired.  True: the wait is over, and the caller
 * calls rnr_wait_end.  False: q does not wait any more, or waits for longer. */
bool rnr_wait_is_over(struct ibt *t, struct ibt_qp *q, uint64_t now_ns);
/* Ends the wait, because the peer has a receive.  Lock: q's post lock. */
void rnr_wait_resume(struct ibt *t, struct ibt_qp *q);
/*
 * Called after rnr_wait_resume has ended a wait, if the peer again has no
 * receive.  Continues the wait that was ended, as rnr_wait_goes_on does, or
 * begins a wait, for as long as `timer`, the peer's min_rnr_timer, says.
 * False: the timer expires too late or not at all, or rnr_retry is used up;
 * nothing was changed.  Lock: q's post lock.
 */
bool rnr_wait_again(struct ibt *t, struct ibt_qp *q, uint8_t timer,
		    uint64_t now_ns);
/* Looks at the QPs with post lock `number` that wait, without packets, for a
 * receive of the peer.  Returns the one that was returned longest ago; NULL:
 * none waits.  Lock: that post lock. */
struct ibt_qp *rnr_wait_next(struct ibt *t, uint32_t number);

#endif
