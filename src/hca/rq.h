/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Receives: a message takes one from the QP's own queue or from a shared queue,
 * and holds it from the message's first packet on.  If UC or UD drops a
 * message, the receive stays held for the next message.
 *
 * Lock: a peer calls these functions under the responder lock (qp_target.lock),
 * the owner under the progress lock; rq_collect and rq_has_left are called
 * under recv_cq's lock.
 */
#ifndef HCA_RQ_H
#define HCA_RQ_H

#include <stdbool.h>
#include <stdint.h>

#include "hca/qp.h"

struct eager;

/*
 * Takes the receive for the next message, which holds it from now on, and
 * returns its slot; NULL: none is posted, or rq_is_full.  If a receive is held
 * already, returns its slot.  *low is set to true if the caller has to raise a
 * limit event of qp->srq, else to false.
 */
struct wqe *rq_take(struct hca *h, struct qp *qp, bool *low);
/* Is a receive held or posted? */
bool rq_has(struct hca *h, const struct qp *qp);
/* Returns the slot of the receive that is held; NULL: none is. */
struct wqe *rq_held(struct hca *h, const struct qp *qp);
/* For the owner, when a message has ended: counts the held receive as
 * completed, and fills in wr_id of c and, for the QP's own queue, wq and
 * wq_index.  The caller then pushes c.  False: all receives that were posted to
 * the QP's own queue have completed already, so c is unchanged. */
bool rq_done(struct hca *h, struct qp *qp, struct cqe *c);
/*
 * For the owner: repairs what a peer has left half done when it died in the
 * responder lock, or lost the lock while it was stopped (rq_enter_own).
 * Afterwards the receive that the peer held completes exactly once, by the
 * peer's completion or by the flush.  Waits for no peer.  False: a process that
 * lives has the lock.
 */
bool rq_settle(struct hca *h, struct qp *qp);
/* Takes the responder lock.  If a process has died in the lock, repairs what it
 * has left half done.  False: another process holds the lock for long. */
bool rq_enter(struct hca *h, struct qp *qp)
	TRY_ACQUIRE(true, &qp_target(qp)->lock);
/*
 * For the owner: takes the responder lock as rq_enter does.  Also takes it from
 * a peer that was stopped while it copied (access_revoke).  False: another
 * process holds the lock for long.
 */
bool rq_enter_own(struct hca *h, struct qp *qp)
	TRY_ACQUIRE(true, &qp_target(qp)->lock);
/* Releases the responder lock. */
void rq_leave(struct qp *qp) RELEASE(&qp_target(qp)->lock);
/* Returns the cursor: the index of the next receive to complete, which is the
 * number of receives that have completed. */
static inline uint32_t rq_cursor(const struct qp *qp)
{
	return shared_load(&qp_target(qp)->completed);
}
/* Returns the slot of the receive that is held, or that will be held next. */
static inline struct wqe *rq_slot(const struct hca *h, const struct qp *qp)
{
	return wq_at(h, &qp->rq, rq_cursor(qp));
}
/* Marks the receive in rq_slot as held.  For rq.c, and for srq.c, which has
 * filled the slot. */
static inline void rq_hold(struct qp *qp)
{
	qp_target(qp)->held = (uint64_t)rq_cursor(qp) + 1;
}
/*
 * For a peer, under the responder lock: leaves the completion c in the slot of
 * the receive that is held.  The caller then calls cq_announce.  @eager: an
 * eager message to leave in the slot, or NULL.
 */
void rq_complete(struct hca *h, struct qp *qp, const struct cqe *c,
		 const struct eager *eager);
/* Does the work of rq_complete and cq_announce for a peer.  If the result is
 * CQ_NOTIFY or CQ_LATER, the peer sets QP_NOTIFY_CQ or QP_NOTIFY_LATER. */
enum cq_push rq_leave_done(struct hca *h, struct qp *qp, struct cq *cq,
			   const struct cqe *c, bool solicited,
			   const struct eager *eager);
/* Must a take wait until the owner has collected completions, or until it has
 * resized the shared queue? */
bool rq_is_full(const struct hca *h, const struct qp *qp);
/* Has a receive completed whose completion the owner has not collected? */
bool rq_is_behind(const struct qp *qp);
/*
 * Has a peer left a completion that the owner can collect?  Peers write the
 * cursor's cache line with each request, and each poll calls this function.  So
 * for a QP with its own queue the function loads the mark wqe.left instead of
 * the cursor.  A peer stores the cursor first and then the mark.  Between the
 * two stores, and if the peer died there, this function returns false although
 * rq_is_behind returns true.
 */
bool rq_has_left(const struct hca *h, const struct qp *qp);
/* For the owner: collects the oldest completion that was left, which must
 * exist, into *c. */
void rq_collect(struct hca *h, struct qp *qp, struct cqe *c);
/* Called when a QP enters RESET: drops all receives that are posted or held,
 * and all completions that were left. */
void rq_reset(struct qp *qp);
/* For the owner: counts the receive at the cursor as completed and
 * collected. */
void rq_pass(struct qp *qp);

/*
 * For the owner, under qp's responder lock, after a peer died in the lock or
 * lost it (rq_enter_own): collects qp's completions into cq, and raises an
 * event for them.  The peer may have left a completion without announcing it,
 * or may have set is_queued without putting qp on the list of cq.
 */
void cq_settle(struct hca *h, struct cq *cq, struct qp *qp)
	REQUIRES(&qp_target(qp)->lock);

#endif
