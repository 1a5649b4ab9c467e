/* SPDX-License-Identifier: BSD-2-Clause */
#include "ibt/ibt.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int ibt_init(struct ibt *t, uint64_t now_ns)
{
	t->counters = arena_at(&t->hca->arena, t->hca->shared->counters);
	wheel_init(&t->wheel, now_ns);
	list_init(&t->active);
	list_init(&t->pool);
	t->held = calloc(IBT_POOL, sizeof *t->held);
	if (!t->held)
		return -ENOMEM;
	for (int i = 0; i < IBT_POOL; i++)
		list_push_tail(&t->pool, &t->held[i].node);
	return 0;
}

void ibt_fini(struct ibt *t)
{
	free(t->held);
}

void ibt_event(struct ibt *t, const struct ibt_qp *q,
	       enum engine_event_type type)
{
	struct engine_event *e;

	if (t->event_head - t->event_tail == IBT_EVENTS)
		return; /* the lane drains after each call; full is a flood */
	e = &t->events[t->event_head++ % IBT_EVENTS];
	memset(e, 0, sizeof *e);
	e->type = type;
	e->user = q->qp->user;
	e->qpn = q->qp->qpn;
	e->dest_qpn = q->qp->attr.dest_qpn;
	e->peer = q->peer;
}

void ibt_explain(struct ibt *t, const struct ibt_qp *q, struct explain *x)
{
	x->qpn = q->qp->qpn;
	x->dest_qpn = q->qp->attr.dest_qpn;
	if (t->event_head - t->event_tail == IBT_EVENTS)
		return;
	ibt_event(t, q, ENGINE_EXPLAIN);
	t->events[(t->event_head - 1) % IBT_EVENTS].explain = *x;
}

static void event_of(struct ibt *t, const struct ibt_qp *q, uint64_t user,
		     enum engine_event_type type)
{
	if (t->event_head - t->event_tail == IBT_EVENTS)
		return;
	ibt_event(t, q, type);
	t->events[(t->event_head - 1) % IBT_EVENTS].user = user;
}

void ibt_complete(struct ibt *t, struct ibt_qp *q, aoff cq_off,
		  const struct cqe *c, bool solicited)
{
	struct cq *cq = arena_at(&t->hca->arena, cq_off);
	struct cqe stamped = *c;

	stamped.at_ns = t->now_ns;
	switch (cq_push(t->hca, cq, &stamped, solicited || c->status)) {
	case CQ_QUIET:
		break;
	case CQ_NOTIFY:
		event_of(t, q, cq->user, ENGINE_CQ_EVENT);
		break;
	case CQ_OVERRUN: {
		struct explain x = {.cause = EXPLAIN_CQ_OVERRUN};

		ibt_explain(t, q, &x);
		event_of(t, q, cq->user, ENGINE_CQ_ERR);
		if (q->qp->state != HCA_QP_ERR)
			ibt_qp_fail(t, q, ENGINE_QP_FATAL);
		break;
	}
	}
}

struct wqe *ibt_receive_take(struct ibt *t, struct ibt_qp *q)
{
	bool low;
	struct wqe *w = rq_take(t->hca, q->qp, &low);

	if (low) {
		const struct srq *s = arena_at(&t->hca->arena, q->qp->srq);

		event_of(t, q, s->user, ENGINE_SRQ_LIMIT);
	}
	return w;
}

void ibt_receive_done(struct ibt *t, struct ibt_qp *q, struct cqe *c,
		      bool solicited)
{
	rq_done(t->hca, q->qp, c);
	ibt_complete(t, q, q->qp->recv_cq, c, solicited);
}
