/* SPDX-License-Identifier: BSD-2-Clause */
#include "hca/rq.h"

#include "hca/access.h"
#include "util/prefetch.h"
#include "util/step.h"

/*
 * A receive that a peer completes stays in its slot, together with its
 * completion, until the owner has collected the completion:
 *
 *	     tail	     collected	     completed	     head
 *	       v		v		v		v
 *	       in the CQ	left by peers	posted
 *
 * The receive at the cursor, qp_target.completed, is held if qp_target.held is
 * the cursor plus 1.  So one store that moves the cursor both completes the
 * receive and ends the hold.  With a shared queue the slots hold copies of
 * receives that were taken from the shared queue, and the head and tail of the
 * QP's own queue do not change.
 *
 * Peers write the cursor's cache line with every request.  So a poll of a QP
 * with its own queue reads, instead of the cursor, the mark wqe.left of the
 * slot at `collected`.  A peer writes the mark last, in the cache line of the
 * completion.  A slow peer may write its mark when the slot is already used
 * again, so the mark differs from one round of the queue to the next.
 */
static uint8_t mark_of(const struct qp *qp, uint32_t index)
{
	uint32_t round = index >> __builtin_ctz(qp->rq.size);

	return (uint8_t)(1 + round % 128);
}

static bool is_held(const struct qp *qp)
{
	return qp_target(qp)->held == (uint64_t)rq_cursor(qp) + 1;
}

/* Is a receive posted?  The program's index rq.head is in another cache line
 * than qp_target, so rq.head is read only when all receives that were posted
 * at the last read are used up. */
static bool is_posted(struct qp *qp)
{
	if (qp_target(qp)->posted == rq_cursor(qp))
		qp_target(qp)->posted = shared_load(&qp->rq.head);
	return qp_target(qp)->posted != rq_cursor(qp);
}

struct wqe *rq_take(struct hca *h, struct qp *qp, bool *low)
{
	struct srq *s = arena_at(&h->arena, qp->srq);

	*low = false;
	if (is_held(qp))
		return rq_slot(h, qp);
	if (rq_is_full(h, qp))
		return NULL;
	if (s)
		return srq_take(h, s, qp, low) ? rq_slot(h, qp) : NULL;
	if (!is_posted(qp))
		return NULL;
	rq_hold(qp);
	STEP("a receive is held");
	return rq_slot(h, qp);
}

bool rq_is_full(const struct hca *h, const struct qp *qp)
{
	const struct srq *s = arena_at(&h->arena, qp->srq);

	/* A QP with its own queue always has a slot: a receive can only be
	 * posted into a slot whose last completion was polled. */
	return s &&
	       (rq_cursor(qp) - shared_load(&qp->rq.collected) >= qp->rq.size ||
		srq_is_resizing(h, s));
}

bool rq_has(struct hca *h, const struct qp *qp)
{
	const struct srq *s = arena_at(&h->arena, qp->srq);

	if (is_held(qp))
		return true;
	/* Another QP may take the shared receive before this QP does. */
	return s ? srq_has(h, s) : rq_cursor(qp) != shared_load(&qp->rq.head);
}

struct wqe *rq_held(struct hca *h, const struct qp *qp)
{
	return is_held(qp) ? rq_slot(h, qp) : NULL;
}

/*
 * Repairs the receive queue after a process died, or was stopped and lost its
 * access (access_revoke), while it held the responder lock.  A receive that
 * the process had not completed stays held, and a receive that the process had
 * just taken from a shared queue becomes held.  The process may have left a
 * completion without announcing it.  This function does not collect that
 * completion, since the caller may be a peer: the owner collects it later
 * (is_torn, rq_settle).
 */
static void repair_receive(struct hca *h, struct qp *qp)
{
	struct srq *s = arena_at(&h->arena, qp->srq);

	if (s && arena_has(&h->arena, qp->srq, sizeof(*s)))
		srq_settle(h, s, qp);
	qp_target(qp)->is_torn = 1;
}

bool rq_enter(struct hca *h, struct qp *qp) NO_LOCK_ANALYSIS
{
	bool inherited;

	if (!alock_take_soon(&qp_target(qp)->lock, &inherited))
		return false;
	if (inherited)
		repair_receive(h, qp);
	STEP("the responder is locked");
	return true;
}

bool rq_enter_own(struct hca *h, struct qp *qp) NO_LOCK_ANALYSIS
{
	alock_owner who;

	if (rq_enter(h, qp))
		return true;
	who = alock_holder(&qp_target(qp)->lock);
	if (!who || !access_revoke(h, who) ||
	    !alock_inherit(&qp_target(qp)->lock, who))
		return false;
	repair_receive(h, qp);
	return true;
}

void rq_leave(struct qp *qp)
{
	STEP("the responder is about to be unlocked");
	alock_give(&qp_target(qp)->lock);
	STEP("the responder is unlocked");
}

bool rq_settle(struct hca *h, struct qp *qp) NO_LOCK_ANALYSIS
{
	bool inherited;

	if (!alock_holder(&qp_target(qp)->lock) && !qp_target(qp)->is_torn)
		return true;
	if (!alock_try(&qp_target(qp)->lock, &inherited))
		return false;
	if (inherited)
		repair_receive(h, qp);
	if (qp_target(qp)->is_torn && qp->recv_cq)
		cq_settle(h, arena_at(&h->arena, qp->recv_cq), qp);
	qp_target(qp)->is_torn = 0;
	alock_give(&qp_target(qp)->lock);
	return true;
}

void rq_complete(struct hca *h, struct qp *qp, const struct cqe *c,
		 const struct eager *eager)
{
	uint32_t i = rq_cursor(qp);
	struct wqe *w = wq_at(h, &qp->rq, i);

	w->opcode = (uint8_t)c->opcode;
	w->flags = (uint8_t)c->status;
	w->bytes = c->byte_len;
	w->imm_be = c->imm_be;
	w->rkey = c->src_qpn | c->wc_flags << 24 | (uint32_t)c->sl << 28;
	w->va = c->at_ns;
	eager_leave(h, qp, w, c->byte_len, eager);
	STEP("a receive is about to complete");
	shared_store(&qp_target(qp)->completed, i + 1);
	STEP("a receive is complete");
	/* Orders the stores of the completion and the message before the store
	 * of the mark, for the acquire in rq_has_left.  Otherwise the owner
	 * could collect a completion that is half written.  For a QP with a
	 * shared queue the release store of `completed` gives the same order,
	 * for the acquire in rq_is_behind.  (cq_announce has the fence between
	 * this store and its load of cq_shared.arm.) */
	atomic_store_explicit(&w->left, mark_of(qp, i), memory_order_release);
	STEP("a completion is left");
}

enum cq_push rq_leave_done(struct hca *h, struct qp *qp, struct cq *cq,
			   const struct cqe *c, bool solicited,
			   const struct eager *eager)
{
	rq_complete(h, qp, c, eager);
	return cq_announce(h, cq, qp, solicited, c->status != HCA_SUCCESS, 1);
}

/* The difference is signed, because rq_pass may have moved `collected` one
 * ahead of the cursor.  A peer can write any value to the cursor, so this
 * function also checks rq.head: a receive that was not posted cannot have
 * completed.  The acquire in rq_cursor orders the load of the cursor before
 * that of `collected`.  rq_pass stores `collected` first.  If `collected` were
 * loaded first, both stores could happen between the two loads, and this
 * function would find a completion that is not there. */
bool rq_is_behind(const struct qp *qp)
{
	uint32_t cursor = rq_cursor(qp);
	uint32_t collected = shared_own(&qp->rq.collected);

	return (int32_t)(cursor - collected) > 0 &&
	       (qp->srq || collected != shared_load(&qp->rq.head));
}

/* Returns the wr_id of a receive.  For the QP's own queue it is in wq.ids,
 * which only the owner writes.  For a shared queue it is in the slot, to which
 * the process that took the receive has copied it. */
static uint64_t id_of(const struct hca *h, const struct qp *qp, uint32_t index)
{
	const uint64_t *ids = arena_at(&h->arena, qp->rq.ids);

	return qp->srq ? wq_at(h, &qp->rq, index)->wr_id
		       : ids[index & (qp->rq.size - 1)];
}

bool rq_has_left(const struct hca *h, const struct qp *qp)
{
	uint32_t i = shared_own(&qp->rq.collected);
	const struct wqe *w;

	/* The marks of a QP with a shared queue cannot be used: a thread that
	 * takes a receive overwrites the whole slot, including the mark. */
	if (qp->srq)
		return rq_is_behind(qp);
	if (i == shared_load(&qp->rq.head))
		return false;
	w = wq_at(h, &qp->rq, i);
	return atomic_load_explicit(&w->left, memory_order_acquire) ==
	       mark_of(qp, i);
}

/* Checks the values of a completion of a receive, since a peer has written them
 * and may write any.  An impossible status or length becomes the status
 * HCA_LOC_QP_OP_ERR. */
static void check_left(struct cqe *c)
{
	if (c->opcode != HCA_WC_RECV_RDMA_WITH_IMM)
		c->opcode = HCA_WC_RECV;
	if (c->status > HCA_RNR_RETRY_EXC_ERR || c->byte_len > HCA_MAX_MESSAGE)
		c->status = HCA_LOC_QP_OP_ERR;
	c->vendor_err = c->status;
}

/*
 * Notes the eager message of the receive in w, which could not be copied,
 * unless the handler of QP_NOTIFY_LOST has not read the note of an earlier
 * message: one of them is enough to fail the QP.  c: the completion of the
 * receive.
 *
 * The acquire load pairs with the release store of 0 in note_lost
 * (direct/initiator.c), which comes after the handler's loads: without this
 * order a store here could change the note that the handler still reads.  The
 * release store comes after the stores of rq_lost_id and rq_lost_key, and pairs
 * with the acquire load in note_lost: otherwise the handler could find the new
 * rq_lost with the id or the key of an earlier note.
 */
static void note_uncopied(struct qp *qp, struct wqe *w, const struct cqe *c)
{
	if (__atomic_load_n(&qp->rq_lost, __ATOMIC_ACQUIRE))
		return;
	qp->rq_lost_id = c->wr_id;
	qp->rq_lost_key = wqe_sges(w)->lkey;
	__atomic_store_n(&qp->rq_lost, w->at, __ATOMIC_RELEASE);
}

void rq_collect(struct hca *h, struct qp *qp, struct cqe *c)
{
	uint32_t i = shared_own(&qp->rq.collected);
	struct wqe *w = wq_at(h, &qp->rq, i);

	prefetch(w, wq_used(&qp->rq, w->bytes));
	*c = (struct cqe){
		.wr_id = id_of(h, qp, i),
		.status = w->flags,
		.opcode = w->opcode,
		.wc_flags = w->rkey >> 24 & 15,
		.byte_len = w->bytes,
		.imm_be = w->imm_be,
		.qpn = qp->qpn,
		.src_qpn = w->rkey & 0xffffff,
		.sl = (uint8_t)(w->rkey >> 28),
		.at_ns = w->va,
	};
	check_left(c);
	if (!qp->srq) {
		c->wq = hca_off(h, &qp->rq);
		c->wq_index = i;
	}
	STEP("a completion is about to be collected");
	if (w->at && eager_place(h, qp, w, i)) {
		c->status = c->vendor_err = HCA_LOC_PROT_ERR;
		note_uncopied(qp, w, c);
		notify_post(h, qp, QP_NOTIFY_LOST);
	}
	comp_receive(qp, c);
	shared_store(&qp->rq.collected, i + 1);
}

/* Stores `collected` before it stores the cursor.  In the other order another
 * thread could find a completion to collect between the two stores. */
void rq_pass(struct qp *qp)
{
	uint32_t next = shared_own(&qp->rq.collected) + 1;

	shared_store(&qp->rq.collected, next);
	shared_store(&qp_target(qp)->completed, next);
}

bool rq_done(struct hca *h, struct qp *qp, struct cqe *c)
{
	if (rq_is_behind(qp))
		cq_collect(h, arena_at(&h->arena, qp->recv_cq), qp);
	/* A peer can write the words that rq_take reads, so rq_take may find a
	 * receive that was not posted. */
	if (!qp->srq &&
	    shared_own(&qp->rq.collected) == shared_load(&qp->rq.head))
		return false;
	c->wr_id = id_of(h, qp, shared_own(&qp->rq.collected));
	if (!qp->srq) {
		c->wq = hca_off(h, &qp->rq);
		c->wq_index = shared_own(&qp->rq.collected);
	}
	comp_receive(qp, c);
	rq_pass(qp);
	return true;
}

void rq_reset(struct qp *qp)
{
	uint32_t head = shared_own(&qp->rq.head);

	if (!qp->srq)
		shared_store(&qp_target(qp)->completed, head);
	shared_store(&qp->rq.tail, head);
	shared_store(&qp->rq.collected, rq_cursor(qp));
	qp_target(qp)->posted = head;
	qp_target(qp)->held = 0;
}
