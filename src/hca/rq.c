/* SPDX-License-Identifier: BSD-2-Clause */
#include "hca/guest.h"

#include "util/check.h"
#include "util/prefetch.h"
#include "util/step.h"

/*
 * A receive that a peer completes stays in its slot, with what became of it,
 * until the owner has collected it:
 *
 *	     tail	     rq_told	     cursor	     head
 *	       v		v		v		v
 *	       to be polled	left by peers	posted
 *
 * The receive at the cursor is held when rq_held says just that; so moving the
 * cursor, one store, completes it and gives it up.  With a shared queue the
 * slots are for the receives taken from there, the cursor is far.left, and the
 * queue's own indices stay as they are.
 */
static ring_index *cursor(struct qp *qp)
{
	return qp->srq ? &qp->far.left : &qp->rq.done;
}

struct wqe *rq_slot(const struct hca *h, const struct qp *qp)
{
	return wq_at(h, &qp->rq, rq_cursor(qp));
}

static bool is_held(const struct qp *qp)
{
	return qp->rq_held == (uint64_t)rq_cursor(qp) + 1;
}

void rq_hold(struct qp *qp)
{
	qp->rq_held = (uint64_t)rq_cursor(qp) + 1;
}

struct wqe *rq_take(struct hca *h, struct qp *qp, bool *low)
{
	struct srq *s = arena_at(&h->arena, qp->srq);
	struct wq *rq = &qp->rq;

	*low = false;
	if (is_held(qp))
		return rq_slot(h, qp);
	if (rq_is_full(h, qp))
		return NULL;
	if (s)
		return srq_take(h, s, qp, low) ? rq_slot(h, qp) : NULL;
	if (ring_own(&rq->done) == ring_load(&rq->head))
		return NULL;
	rq_hold(qp);
	STEP("a receive is held");
	return rq_slot(h, qp);
}

bool rq_is_full(const struct hca *h, const struct qp *qp)
{
	const struct srq *s = arena_at(&h->arena, qp->srq);

	/* a slot of its own is free when it has been polled */
	return s && (rq_cursor(qp) - ring_load(&qp->rq_told) >= qp->rq.size ||
		     srq_is_shut(s));
}

bool rq_has(struct hca *h, const struct qp *qp)
{
	const struct srq *s = arena_at(&h->arena, qp->srq);
	const struct wq *rq = &qp->rq;

	if (is_held(qp))
		return true;
	/* of a shared queue another QP may be faster */
	return s ? srq_has(s) : ring_own(&rq->done) != ring_load(&rq->head);
}

struct wqe *rq_held(struct hca *h, const struct qp *qp)
{
	return is_held(qp) ? rq_slot(h, qp) : NULL;
}

/*
 * A peer died here.  A receive that it had not completed is held still, and so
 * is one that it had just taken from a shared queue; what it left and did not
 * say is for the owner to find, and this may be another peer.
 */
static void mend(struct hca *h, struct qp *qp)
{
	struct srq *s = arena_at(&h->arena, qp->srq);

	if (s && arena_has(&h->arena, qp->srq, sizeof *s))
		srq_settle(h, s, qp);
	qp->far.is_torn = 1;
}

bool rq_enter(struct hca *h, struct qp *qp) NO_LOCK_ANALYSIS
{
	bool inherited;

	if (!alock_take_soon(&qp->far.lock, &inherited))
		return false;
	if (inherited)
		mend(h, qp);
	STEP("the responder is locked");
	return true;
}

bool rq_enter_own(struct hca *h, struct qp *qp) NO_LOCK_ANALYSIS
{
	alock_owner who;

	if (rq_enter(h, qp))
		return true;
	who = alock_holder(&qp->far.lock);
	if (!who || !guest_seize(h, who) || !alock_inherit(&qp->far.lock, who))
		return false;
	mend(h, qp);
	return true;
}

void rq_leave(struct qp *qp)
{
	STEP("the responder is about to be unlocked");
	alock_give(&qp->far.lock);
	STEP("the responder is unlocked");
}

bool rq_settle(struct hca *h, struct qp *qp) NO_LOCK_ANALYSIS
{
	bool inherited;

	if (!alock_holder(&qp->far.lock) && !qp->far.is_torn)
		return true;
	if (!alock_try(&qp->far.lock, &inherited))
		return false;
	if (inherited)
		mend(h, qp);
	if (qp->far.is_torn && qp->recv_cq)
		cq_settle(h, arena_at(&h->arena, qp->recv_cq), qp);
	qp->far.is_torn = 0;
	alock_give(&qp->far.lock);
	return true;
}

enum cq_push rq_leave_done(struct hca *h, struct qp *qp, struct cq *cq,
			   const struct cqe *c, bool solicited, uint64_t at)
{
	struct wqe *w = rq_slot(h, qp);

	CHECK(is_held(qp));
	w->opcode = (uint8_t)c->opcode;
	w->bytes = c->byte_len;
	w->imm_be = c->imm_be;
	w->rkey = c->src_qpn;
	w->va = c->at_ns;
	w->swap_add = c->status | (uint64_t)c->sl << 32;
	w->compare = c->wc_flags;
	carry_leave(h, qp, w, at);
	STEP("a receive is about to complete");
	/* cq_announce looks, after it, whether the owner sleeps */
	ring_store(cursor(qp), rq_cursor(qp) + 1);
	STEP("a receive is complete");
	return cq_announce(h, cq, qp, solicited, c->status != HCA_SUCCESS);
}

/* The owner may be ahead of itself, see rq_pass. */
bool rq_is_behind(struct qp *qp)
{
	return (int32_t)(ring_load(cursor(qp)) - ring_own(&qp->rq_told)) > 0;
}

bool rq_collect(struct hca *h, struct qp *qp, struct cqe *c)
{
	uint32_t i = ring_own(&qp->rq_told);
	struct wqe *w;

	if (!rq_is_behind(qp))
		return false;
	w = wq_at(h, &qp->rq, i);
	prefetch(w, qp->rq.stride);
	*c = (struct cqe){
		.wr_id = w->wr_id,
		.status = (uint32_t)w->swap_add,
		.vendor_err = (uint32_t)w->swap_add,
		.opcode = w->opcode,
		.wc_flags = (uint32_t)w->compare,
		.byte_len = w->bytes,
		.imm_be = w->imm_be,
		.qpn = qp->qpn,
		.src_qpn = w->rkey,
		.sl = (uint32_t)(w->swap_add >> 32),
		.at_ns = w->va,
	};
	if (!qp->srq) {
		c->wq = hca_off(h, &qp->rq);
		c->wq_index = i;
	}
	STEP("a completion is about to be collected");
	if (w->at && carry_place(h, qp, w)) {
		c->status = c->vendor_err = HCA_LOC_PROT_ERR;
		qp->rq_lost = w->at;
		mail_post(h, qp, QP_MAIL_LOST);
	}
	ring_store(&qp->rq_told, i + 1);
	return true;
}

/* What is collected is first ahead, so that nobody takes this for it. */
void rq_pass(struct qp *qp)
{
	uint32_t next = rq_cursor(qp) + 1;

	ring_store(&qp->rq_told, next);
	ring_store(cursor(qp), next);
}

void rq_done(struct hca *h, struct qp *qp, struct cqe *c)
{
	CHECK(is_held(qp));
	if (rq_is_behind(qp))
		cq_collect(h, arena_at(&h->arena, qp->recv_cq), qp);
	c->wr_id = rq_slot(h, qp)->wr_id;
	if (!qp->srq) {
		c->wq = hca_off(h, &qp->rq);
		c->wq_index = ring_own(&qp->rq.done);
	}
	rq_pass(qp);
}

void rq_reset(struct qp *qp)
{
	uint32_t head = ring_own(&qp->rq.head);

	ring_store(&qp->rq.done, head);
	ring_store(&qp->rq.tail, head);
	ring_store(&qp->rq_told, rq_cursor(qp));
	qp->rq_held = 0;
}
