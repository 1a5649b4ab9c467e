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
