/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How a message takes a receive, from the QP's own queue or a shared one.  A
 * message holds one receive from its first packet on.  If UC gives a message
 * up, the receive stays held for the next message.  Functions are
 * called under the progress lock or, by a peer, under the responder's lock
 * (qp_target.lock); rq_collect and rq_has_left under recv_cq's lock.
 */
#ifndef HCA_RQ_H
#define HCA_RQ_H

#include <stdbool.h>
#include <stdint.h>

#include "hca/qp.h"

struct eager;

/*
 * The receive for the next message, which is held from now on; NULL: none is
 * posted.  *low: a limit event of qp->srq has to be raised.
 */
struct wqe *rq_take(struct hca *h, struct qp *qp, bool *low);
/* Is a receive held or posted? */
bool rq_has(struct hca *h, const struct qp *qp);
/* The receive that is held, or NULL. */
struct wqe *rq_held(struct hca *h, const struct qp *qp);
/* The slot of the receive that is held, or that is held next. */
struct wqe *rq_slot(const struct hca *h, const struct qp *qp);
/* Holds the receive in rq_slot: for srq.c, which has filled the slot. */
void rq_hold(struct qp *qp);
/* The owner, when a message has ended: counts the held receive as completed,
 * and fills in the wr_id and the queue of c, which the caller pushes. */
void rq_done(struct hca *h, struct qp *qp, struct cqe *c);
/*
 * Repairs what a peer left half done when it died in the responder's lock: the
 * peer's receive completes once, by its completion or by the flush.  Waits for
 * no process.  False: a process that lives has the lock.
 */
bool rq_settle(struct hca *h, struct qp *qp);
/* Takes the responder's lock, and repairs what a process left that died in the
 * lock.  False: another process holds the lock for long. */
bool rq_enter(struct hca *h, struct qp *qp)
	TRY_ACQUIRE(true, &qp_target(qp)->lock);
/*
 * The owner: takes the responder's lock as rq_enter does, and also from a peer
 * that was stopped while it copied (access_revoke).  False: another process
 * holds the lock for long.
 */
bool rq_enter_own(struct hca *h, struct qp *qp)
	TRY_ACQUIRE(true, &qp_target(qp)->lock);
/* Gives the responder's lock back. */
void rq_leave(struct qp *qp) RELEASE(&qp_target(qp)->lock);
/* How many receives have been completed: the index of the next. */
static inline uint32_t rq_cursor(const struct qp *qp)
{
	return shared_load(&qp_target(qp)->completed);
}
/*
 * A peer, under the responder's lock: leaves the completion c in the slot of
 * the receive that is held; cq_announce is due then.  @eager: the message to
 * leave there too, or NULL.
 */
void rq_complete(struct hca *h, struct qp *qp, const struct cqe *c,
		 const struct eager *eager);
/* Does the work of rq_complete and cq_announce for a peer.  On CQ_NOTIFY and
 * CQ_LATER the peer sets QP_NOTIFY_CQ or QP_NOTIFY_LATER. */
enum cq_push rq_leave_done(struct hca *h, struct qp *qp, struct cq *cq,
			   const struct cqe *c, bool solicited,
			   const struct eager *eager);
/* Is there no slot until the owner has collected completions? */
bool rq_is_full(const struct hca *h, const struct qp *qp);
/* Is a completion left that the owner has not collected? */
bool rq_is_behind(const struct qp *qp);
/*
 * Is a completion left that the owner can collect?  For each poll: without a
 * load of the cache line that peers write.  A completion that a peer is just
 * leaving, or did not finish because it died, counts for rq_is_behind and not
 * here.
 */
bool rq_has_left(const struct hca *h, const struct qp *qp);
/* The owner: collects the oldest completion that is left, which must exist,
 * into *c. */
void rq_collect(struct hca *h, struct qp *qp, struct cqe *c);
/* For a QP that enters RESET: no receive is posted, held or left any more. */
void rq_reset(struct qp *qp);
/* The owner: counts the receive at the cursor as completed and collected. */
void rq_pass(struct qp *qp);

/*
 * The owner, under qp's responder lock, after a peer died in the lock: collects
 * qp's completions into cq and raises an event for them.  The peer may have
 * left a completion without announcing it, or have set is_queued and not put qp
 * on the list of cq.
 */
void cq_settle(struct hca *h, struct cq *cq, struct qp *qp)
	REQUIRES(&qp_target(qp)->lock);

#endif
