/* SPDX-License-Identifier: BSD-2-Clause */
#include "hca/hca.h"

#include "util/check.h"

struct wqe *rq_take(struct hca *h, struct qp *qp)
{
	struct wq *rq = &qp->rq;
	uint32_t i = ring_own(&rq->done);

	if (!qp->rq_held && i == ring_load(&rq->head))
		return NULL;
	qp->rq_held = 1;
	return wq_at(h, rq, i);
}

struct wqe *rq_held(struct hca *h, const struct qp *qp)
{
	return qp->rq_held ? wq_at(h, &qp->rq, ring_own(&qp->rq.done)) : NULL;
}

void rq_done(struct hca *h, struct qp *qp, struct cqe *c)
{
	struct wq *rq = &qp->rq;
	uint32_t i = ring_own(&rq->done);

	CHECK(qp->rq_held);
	c->wr_id = wq_at(h, rq, i)->wr_id;
	c->wq = hca_off(h, rq);
	c->wq_index = i;
	qp->rq_held = 0;
	ring_store(&rq->done, i + 1);
}
