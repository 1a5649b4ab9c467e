/* SPDX-License-Identifier: BSD-2-Clause */
#include "ibt/unreliable_tx.h"

#include <string.h>

#include "ibt/local_wr.h"
#include "util/bits.h"

void unreliable_tx_reset(struct ibt_qp *q)
{
	q->req.wqe = shared_own(&q->qp->sq.completed);
	q->req.packet = 0;
}

void unreliable_tx_drained(struct ibt *t, struct ibt_qp *q)
{
	struct rc_req *r = &q->req;

	if (!r->draining || r->packet || q->direct.awaits_accesses ||
	    r->wqe != shared_own(&q->qp->sq.completed))
		return;
	r->una = r->max;
	if (q->qp->attr.en_sqd_async_notify) {
		q->qp->attr.en_sqd_async_notify = 0;
		ibt_event(t, q, ENGINE_SQ_DRAINED);
	}
}

/* Completes the requests whose packets were all sent.  If the next request has
 * a local error, completes that request with its error, and enters SQE. */
static void finish_requests(struct ibt *t, struct ibt_qp *q)
{
	struct rc_req *r = &q->req;
	struct wq *sq = &q->qp->sq;

	while (q->qp->state != HCA_QP_ERR &&
	       shared_own(&sq->completed) != r->wqe)
		ibt_request_done(t, q, HCA_SUCCESS);
	if (q->qp->state != HCA_QP_ERR &&
	    shared_own(&sq->completed) != shared_load(&sq->head)) {
		struct req_note *n = rc_req_note(q, r->wqe);

		if (n->started && n->status) {
			enum hca_status status = (enum hca_status)n->status;

			n->started = false;
			r->wqe++;
			ibt_request_done(t, q, status);
			if (q->qp->state != HCA_QP_ERR)
				ibt_qp_enter(t, q, HCA_QP_SQE);
			return;
		}
	}
	if (!r->packet)
		r->una = r->max;
	/* A thread that posts small requests lets them gather while many
	 * packets of the QP are unacknowledged (is_ahead in host/post.c).  UC
	 * and UD get no ACK, so packets that were sent must not count as
	 * unacknowledged. */
	ibt_qp_note(q);
	unreliable_tx_drained(t, q);
}

void unreliable_tx_sent_all(struct ibt *t)
{
	struct list *n;

	while ((n = list_pop_head(&t->handed))) {
		struct ibt_qp *q = CONTAINER_OF(n, struct ibt_qp, handed);

		if (q->qp->state == HCA_QP_RTS || q->qp->state == HCA_QP_SQD)
			finish_requests(t, q);
	}
}

/* Notes that requests of q complete when the frames made so far are sent. */
static void mark_handed(struct ibt *t, struct ibt_qp *q)
{
	if (!list_is_linked(&q->handed))
		list_push_tail(&t->handed, &q->handed);
}

void unreliable_tx_stop(struct ibt *t, struct ibt_qp *q, const struct wqe *w,
			enum hca_status status, struct explain *x)
{
	q->req.packet = 0;
	ibt_request_failed(t, q, w, status, x);
	mark_handed(t, q);
}

void unreliable_tx_advance(struct ibt *t, struct ibt_qp *q)
{
	struct rc_req *r = &q->req;
	struct req_note *n = rc_req_note(q, r->wqe);

	r->max = serial24_add(r->max, 1);
	if (++r->packet < n->packets)
		return;
	n->started = false;
	r->packet = 0;
	r->wqe++;
	mark_handed(t, q);
}

/* Executes w, a request that sends nothing.  False: w waits or has failed, and
 * the cursor is still at w. */
static bool run_local(struct ibt *t, struct ibt_qp *q, struct wqe *w)
{
	struct explain x = {.cause = EXPLAIN_NONE};
	enum hca_status status;

	if (!local_wr_run(t, q, w, &status, &x))
		return false;
	if (status) {
		unreliable_tx_stop(t, q, w, status, &x);
		return false;
	}
	q->req.wqe++;
	mark_handed(t, q);
	return true;
}

struct wqe *unreliable_tx_next(struct ibt *t, struct ibt_qp *q)
{
	struct rc_req *r = &q->req;
	uint32_t state = q->qp->state;

	if (state != HCA_QP_RTS && state != HCA_QP_SQD)
		return NULL;
	while (r->wqe != shared_load(&q->qp->sq.head)) {
		struct wqe *w = wq_at(t->hca, &q->qp->sq, r->wqe);
		struct req_note *n = rc_req_note(q, r->wqe);

		if (r->packet)
			return w;
		if ((r->draining && !q->direct.awaits_accesses) ||
		    (n->started && n->status))
			return NULL;
		memset(n, 0, sizeof(*n));
		if (!local_wr_is(w))
			return w;
		if (!run_local(t, q, w))
			return NULL;
	}
	return NULL;
}
