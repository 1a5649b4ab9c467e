/* SPDX-License-Identifier: BSD-2-Clause */
#include "hca/hca.h"

#include "util/check.h"

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
	if (s ? !srq_take(h, s, slot(h, qp), low)
	      : ring_own(&rq->done) == ring_load(&rq->head))
		return NULL;
	qp->rq_held = 1;
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
 * A peer died while it completed the receive `i`.  It left the queue before
 * its completion was there, so without one it is held again.  Polling frees
 * the slot before it gives the completion's place away.
 */
static void mend(struct hca *h, struct qp *qp, uint32_t i)
{
	struct cq *cq = arena_at(&h->arena, qp->recv_cq);
	struct wq *rq = &qp->rq;

	qp->far.completing = 0;
	if (qp->srq) /* whose receives are not flushed: it was the peer's */
		return;
	if (ring_own(&rq->done) != i) {
		if (cq_has(h, cq, hca_off(h, rq), i) ||
		    (int32_t)(ring_load(&rq->tail) - i) > 0)
			return;
		ring_store(&rq->done, i);
	}
	qp->rq_held = 1;
}

void rq_enter(struct hca *h, struct qp *qp)
{
	if (alock_take(&qp->far.lock) && qp->far.completing)
		mend(h, qp, (uint32_t)(qp->far.completing - 1));
}

void rq_leave(struct qp *qp)
{
	alock_give(&qp->far.lock);
}

enum cq_push rq_complete(struct hca *h, struct qp *qp, struct cq *cq,
			 struct cqe *c, bool solicited)
{
	uint64_t index = ring_own(&qp->rq.done);
	enum cq_push answer;

	__atomic_store_n(&qp->far.completing, index + 1, __ATOMIC_RELEASE);
	rq_done(h, qp, c);
	answer = cq_push(h, cq, c, solicited);
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
