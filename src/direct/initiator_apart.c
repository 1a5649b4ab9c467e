/* SPDX-License-Identifier: BSD-2-Clause */
#include "direct/initiator_apart.h"

#include "direct/initiator.h"
#include "hca/semantics.h"
#include "ibt/rnr_wait.h"

/* Does q use the direct path, with nothing to do for the holder of the progress
 * lock?  q may wait for a receive of its peer. */
static bool is_open(const struct ibt_qp *q)
{
	const struct target_ref *l = q->direct.link;

	return shared_own(&q->direct.apart.is_worth_it) &&
	       q->direct.path == IBT_PATH_DIRECT &&
	       q->qp->state == HCA_QP_RTS && !l->is_gone && !l->is_asked &&
	       !l->is_busy && !l->waits_for_place && !target_is_stale(l) &&
	       !q->direct.is_asking && !(l->way && q->qp->attr.alt_ah.dlid) &&
	       list_is_empty(&q->pending.packets) &&
	       !wheel_is_set(&q->timers.ack);
}

/* May the requests of q be executed without the progress lock?  They may if
 * they wait for nothing and no timer of q runs, except the timer of a wait that
 * has ended. */
static bool is_plain(const struct ibt_qp *q)
{
	return is_open(q) && !q->req.rnr_waiting &&
	       (q->direct.rnr.is_old || (!list_is_linked(&q->direct.waiting) &&
					 !wheel_is_set(&q->timers.rnr)));
}

/* Does q wait for a receive of its peer, with nothing left for
 * initiator_apart_tell?  Requests that are posted meanwhile are executed when
 * the wait ends. */
static bool awaits_receive(const struct ibt_qp *q)
{
	return is_open(q) && q->req.rnr_waiting &&
	       wheel_is_set(&q->timers.rnr) && !q->direct.apart.has_news &&
	       !q->direct.apart.has_found;
}

/* Executes requests of q, until one cannot be executed here or INITIATOR_PIECE
 * bytes have moved.  Returns true if no request and no event is left, or if q
 * waits for a receive. */
static bool run_requests(struct ibt *t, struct ibt_qp *q, uint64_t now_ns,
			 void **to_wake)
{
	uint32_t moved = 0, bytes = 0;
	struct list asleep;
	struct wqe *w;

	list_init(&asleep);
	q->direct.apart.is_running = true;
	q->direct.apart.now_ns = now_ns;
	do {
		w = rc_req_begin_plain(t, q);
		bytes = w ? initiator_run_batch(t, q, w, &asleep, now_ns) : 0;
		moved += bytes;
		if (bytes)
			q->direct.may_execute = false;
	} while (bytes && moved < INITIATOR_PIECE &&
		 !target_is_stale(q->direct.link));
	q->direct.apart.is_running = false;
	if (list_pop_head(&asleep))
		*to_wake = q->direct.link->owner;
	if (q->direct.apart.has_news || q->direct.apart.has_found)
		return false;
	if (q->req.wqe == shared_load(&q->qp->sq.head))
		return true;
	return w && !bytes && q->direct.rnr.is_dry &&
	       rnr_wait_again(t, q, q->direct.rnr.timer, now_ns);
}

bool initiator_apart_post(struct ibt *t, struct ibt_qp *q, uint64_t now_ns,
			  void **to_wake)
{
	*to_wake = NULL;
	return is_plain(q) ? run_requests(t, q, now_ns, to_wake)
			   : awaits_receive(q);
}

bool initiator_apart_may_resume(struct ibt *t, struct ibt_qp *q,
				uint64_t now_ns)
{
	if (!awaits_receive(q) || !rc_req_is_plain(t, q))
		return false;
	q->direct.rnr.looked_ns = now_ns;
	return target_is_ready(q->direct.link, true);
}

bool initiator_apart_resume(struct ibt *t, struct ibt_qp *q, uint64_t now_ns,
			    void **to_wake)
{
	*to_wake = NULL;
	rnr_wait_resume(t, q);
	return run_requests(t, q, now_ns, to_wake);
}

static bool may_gather(const struct ibt *t, const struct wqe *w)
{
	return (w->opcode == HCA_WR_RDMA_WRITE ||
		w->opcode == HCA_WR_RDMA_READ) &&
	       !(w->flags & (HCA_SEND_INLINE | HCA_SEND_FENCE)) &&
	       w->num_sge == 1 && initiator_is_small(t, w);
}

bool initiator_apart_gathers(struct ibt *t, const struct ibt_qp *q)
{
	const struct wq *sq = &q->qp->sq;
	uint32_t head = shared_load(&sq->head);
	const struct wqe *first, *last;

	if (!q->direct.apart.takes_calls || head == q->req.wqe || !is_plain(q))
		return false;
	first = wq_at(t->hca, sq, q->req.wqe);
	last = wq_at(t->hca, sq, head - 1);
	return may_gather(t, last) && last->opcode == first->opcode &&
	       last->rkey == first->rkey;
}

/* Places the value that an executed atomic found, and that place_found could
 * not place.  If the value cannot be placed now either, the request fails. */
static void tell_found(struct ibt *t, struct ibt_qp *q)
{
	struct wqe *w = wq_at(t->hca, &q->qp->sq, q->req.wqe);
	const uint8_t *found = (const uint8_t *)&q->direct.apart.found;
	struct explain x = {0};
	enum hca_status status;

	q->direct.apart.has_found = false;
	if (q->qp->state != HCA_QP_RTS && q->qp->state != HCA_QP_SQD)
		return;
	status = sem_scatter(t->hca, q->qp->pd, w, 0, found, 8, &x);
	if (status)
		rc_req_stop(t, q, w, status, &x);
	else
		initiator_count_moved(t, q, w->opcode, w->bytes);
}

void initiator_apart_tell(struct ibt *t, struct ibt_qp *q)
{
	struct cq *cq = arena_at(&t->hca->arena, q->qp->send_cq);

	rnr_wait_settle(t, q);
	if (q->direct.apart.has_found)
		tell_found(t, q);
	if (!q->direct.apart.has_news)
		return;
	q->direct.apart.has_news = false;
	ibt_cq_tell(t, cq);
	if (cq_is_holding(cq))
		cq_moderation_set(t, cq);
	ibt_overrun(t, q, cq);
}
