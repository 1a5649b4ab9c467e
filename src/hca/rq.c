/* SPDX-License-Identifier: BSD-2-Clause */
#include "hca/guest.h"

#include "util/check.h"
#include "util/step.h"

/* With a shared queue the one slot of its own holds the receive taken. */
static struct wqe *slot(const struct hca *h, const struct qp *qp)
{
	return wq_at(h, &qp->rq, ring_own(&qp->rq.done));
}

struct wqe *rq_take(struct hca *h, struct qp *qp, bool *low)
{
	struct srq *s = arena_at(&h->arena, qp->srq);
	struct wq *rq = &qp->rq;

	*low = false;
	if (qp->rq_held)
		return slot(h, qp);
	if (s)
		return srq_take(h, s, qp, low) ? slot(h, qp) : NULL;
	if (ring_own(&rq->done) == ring_load(&rq->head))
		return NULL;
	qp->rq_held = 1;
	STEP("a receive is held");
	return slot(h, qp);
}

bool rq_has(struct hca *h, const struct qp *qp)
{
	const struct srq *s = arena_at(&h->arena, qp->srq);
	const struct wq *rq = &qp->rq;

	if (qp->rq_held)
		return true;
	/* of a shared queue another QP may be faster */
	return s ? ring_load(&s->wq.head) != ring_load(&s->wq.tail)
		 : ring_own(&rq->done) != ring_load(&rq->head);
}

struct wqe *rq_held(struct hca *h, const struct qp *qp)
{
	return qp->rq_held ? slot(h, qp) : NULL;
}

/*
 * A peer died here.  What it had begun in the queues beside is put right by
 * whoever has them next; here it has to be now.  A receive whose completion
 * was not pushed is held again.
 */
static void mend(struct hca *h, struct qp *qp)
{
	struct cq *cq = arena_at(&h->arena, qp->recv_cq);
	struct srq *s = arena_at(&h->arena, qp->srq);

	if (s && arena_has(&h->arena, qp->srq, sizeof *s))
		srq_settle(h, s);
	if (cq && arena_has(&h->arena, qp->recv_cq, sizeof *cq))
		cq_settle(h, cq);
	if (!qp->far.completing)
		return;
	if (!s)
		ring_store(&qp->rq.done, (uint32_t)(qp->far.completing - 1));
	qp->rq_held = 1;
	qp->far.completing = 0;
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

	if (!alock_holder(&qp->far.lock))
		return true;
	if (!alock_try(&qp->far.lock, &inherited))
		return false;
	if (inherited)
		mend(h, qp);
	alock_give(&qp->far.lock);
	return true;
}

enum cq_push rq_complete(struct hca *h, struct qp *qp, struct cq *cq,
			 struct cqe *c, bool solicited)
{
	uint64_t index = ring_own(&qp->rq.done);
	enum cq_push answer;

	__atomic_store_n(&qp->far.completing, index + 1, __ATOMIC_RELEASE);
	STEP("a receive is about to complete");
	rq_done(h, qp, c);
	STEP("a receive is given up");
	answer = cq_complete(h, cq, c, solicited, qp);
	/* an overflow took it */
	__atomic_store_n(&qp->far.completing, 0, __ATOMIC_RELEASE);
	return answer;
}

void rq_done(struct hca *h, struct qp *qp, struct cqe *c)
{
	struct wq *rq = &qp->rq;
	uint32_t i = ring_own(&rq->done);

	CHECK(qp->rq_held);
	c->wr_id = slot(h, qp)->wr_id;
	qp->rq_held = 0;
	if (qp->srq)
		return;
	c->wq = hca_off(h, rq);
	c->wq_index = i;
	ring_store(&rq->done, i + 1);
}
