/* SPDX-License-Identifier: BSD-2-Clause */
/* The creation, the states and the flush of a QP. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "ibt/ibt.h"
#include "ibt/mcast.h"
#include "ibt/rnr_wait.h"
#include "ibt/rx_pending.h"
#include "ibt/unreliable_tx.h"
#include "util/bits.h"
#include "util/check.h"

/* How long an RC QP and a UD QP wait for room in the socket of a peer
 * (ibt_qp_patience_ns). */
#define RC_PATIENCE_NS 100000000u
#define UD_PATIENCE_NS 2000000000u

int ibt_qp_init(struct ibt *t, struct ibt_qp *q, struct qp *qp)
{
	memset(q, 0, sizeof(*q));
	q->qp = qp;
	q->counters = &t->counters[qp->device % HCA_MAX_DEVICES];
	if (qp->type != HCA_QPT_RC && rx_pending_open(t))
		return -ENOMEM;
	list_init(&q->pending.packets);
	q->notes = calloc(qp->sq.size, sizeof(*q->notes));
	if (!q->notes)
		return -ENOMEM;
	list_init(&q->active);
	list_init(&q->handed);
	list_init(&q->owing);
	list_init(&q->direct.waiting);
	list_init(&q->direct.leaving);
	list_init(&q->direct.rnr.node);
	wheel_timer_init(&q->timers.ack);
	wheel_timer_init(&q->timers.rnr);
	q->timers.rnr.kind = IBT_TIMER_RNR;
	wheel_timer_init(&q->timers.reorder);
	q->timers.reorder.kind = IBT_TIMER_REORDER;
	reorder_init(&q->resp.reorder);
	reorder_init(&q->req.reorder);
	q->mtu = IBT_MAX_MTU;
	t->qps++;
	return 0;
}

static void leave_timers_and_lists(struct ibt *t, struct ibt_qp *q)
{
	rnr_wait_end(t, q);
	wheel_cancel(&t->wheel, &q->timers.ack);
	wheel_cancel(&t->wheel, &q->timers.rnr);
	list_remove(&q->active);
	list_remove(&q->handed);
	list_remove(&q->owing);
	list_remove(&q->direct.waiting);
	list_remove(&q->direct.leaving);
}

int ibt_qp_room(struct ibt_qp *q, uint32_t max_dest_rd_atomic)
{
	uint32_t replies = max_dest_rd_atomic + IBT_SPARE_REPLIES;
	uint32_t resources = bits_pow2_up(2 * max_dest_rd_atomic + 2);
	struct rc_resp *r = &q->resp;
	struct resource *more;
	struct reply *room;

	replies = bits_max_u32(bits_pow2_up(replies), r->reply_size);
	resources = bits_max_u32(resources, r->resource_size);
	if (replies == r->reply_size && resources == r->resource_size)
		return 0;
	room = calloc(1, replies * sizeof(*room) +
				 resources * sizeof(*r->resources));
	if (!room)
		return -ENOMEM;
	/* the QP may be in use, so replies and resources are kept */
	for (uint32_t i = r->reply_tail; i != r->reply_head; i++)
		room[i & (replies - 1)] = r->replies[i & (r->reply_size - 1)];
	more = (struct resource *)(void *)(room + replies);
	for (uint32_t i = 0; i < r->resource_size; i++) /* the oldest first */
		more[i] = r->resources[(r->resource_next + i) &
				       (r->resource_size - 1)];
	r->resource_next = r->resource_size;
	free(r->replies);
	r->replies = room;
	r->resources = more;
	r->reply_size = replies;
	r->resource_size = resources;
	return 0;
}

void ibt_qp_fini(struct ibt *t, struct ibt_qp *q)
{
	leave_timers_and_lists(t, q);
	mcast_forget(t, q);
	rx_pending_reset(t, q);
	rc_resp_reset(t, q);
	reorder_drop(t, &q->req.reorder);
	free(q->resp.replies);
	free(q->notes);
	t->qps--;
}

void ibt_qp_set_lids(const struct ibt *t, struct ibt_qp *q)
{
	const struct hca_qp_attr *a = &q->qp->attr;

	inaddr_map_lid(q->self.ip,
		       ibt_lid(t, q, a->port_num, a->ah.src_path_bits));
	inaddr_map_lid(q->peer.ip, a->ah.dlid);
}

void ibt_qp_activate(struct ibt *t, struct ibt_qp *q)
{
	if (!list_is_linked(&q->active))
		list_push_tail(&t->active, &q->active);
}

bool ibt_qp_holds_ack(struct ibt *t, struct ibt_qp *q)
{
	if (!q->resp.ack_owed || !t->holds_acks || !q->qp->attr.ah.local)
		return false;
	if (list_is_empty(&t->owing))
		t->owing_ns = t->now_ns;
	if (!list_is_linked(&q->owing))
		list_push_tail(&t->owing, &q->owing);
	return true;
}

void ibt_qp_owe(struct ibt *t, struct ibt_qp *q)
{
	if (!ibt_qp_holds_ack(t, q))
		ibt_qp_activate(t, q);
}

static void flush_queue(struct ibt *t, struct ibt_qp *q, struct wq *wq, aoff cq,
			bool send)
{
	const uint64_t *ids = arena_at(&t->hca->arena, wq->ids);
	const ring_index *next = send ? &wq->completed : &wq->collected;
	uint32_t head = shared_load(&wq->head), i;

	/* ibt_complete may fail the QP and so flush the rest of the queue
	 * itself, up to a newer head. */
	while ((int32_t)(head - (i = shared_own(next))) > 0) {
		const struct wqe *w = wq_at(t->hca, wq, i);
		struct cqe c = {
			.wr_id = send ? w->wr_id : ids[i & (wq->size - 1)],
			.status = HCA_WR_FLUSH_ERR,
			.opcode = send ? HCA_WC_SEND : HCA_WC_RECV,
			.qpn = q->qp->qpn,
			.wq_index = i,
			.wq = hca_off(t->hca, wq),
		};

		if (send) {
			comp_request(q->qp, w->opcode, true, 0);
			shared_store(&wq->completed, i + 1);
			q->counters->failed_by[HCA_WR_FLUSH_ERR]++;
		} else {
			comp_receive(q->qp, &c);
			rq_pass(q->qp);
		}
		ibt_complete(t, q, cq, &c, true);
	}
}

void ibt_qp_flush_sends(struct ibt *t, struct ibt_qp *q)
{
	q->direct.awaits_accesses = false;
	flush_queue(t, q, &q->qp->sq, q->qp->send_cq, true);
}

void ibt_qp_await_accesses(struct ibt *t, struct ibt_qp *q)
{
	if (list_is_linked(&q->direct.leaving))
		return;
	q->direct.leaving_since_ns = t->direct.leaving_look_ns = t->now_ns;
	list_push_tail(&t->direct.leaving, &q->direct.leaving);
}

/* Completes the posted receives with a flush error.  While a peer holds the
 * responder lock, leaves them for ibt_qp_end_waits: the peer may be about to
 * complete one of them. */
static void flush_receives(struct ibt *t, struct ibt_qp *q)
{
	if (!q->is_entered) {
		if (!rq_enter_own(t->hca, q->qp)) {
			ibt_qp_await_accesses(t, q);
			return;
		}
		/* a peer that takes the lock now finds the QP in ERR, and
		 * completes no receive */
		rq_leave(q->qp);
	}
	list_remove(&q->direct.leaving);
	cq_collect(t->hca, arena_at(&t->hca->arena, q->qp->recv_cq), q->qp);
	if (rq_held(t->hca, q->qp)) {
		struct cqe c = {.status = HCA_WR_FLUSH_ERR,
				.opcode = HCA_WC_RECV,
				.qpn = q->qp->qpn};

		ibt_receive_done(t, q, &c, true);
	}
	if (!q->qp->srq)
		flush_queue(t, q, &q->qp->rq, q->qp->recv_cq, false);
	/* the QP takes no more receives of the SRQ: IBTA 10.2.9.5 */
	if (q->owes_last_wqe)
		ibt_event(t, q, ENGINE_LAST_WQE);
	q->owes_last_wqe = false;
}

void ibt_qp_flush(struct ibt *t, struct ibt_qp *q)
{
	ibt_qp_flush_sends(t, q);
	flush_receives(t, q);
}

/* In ERR: flushes the receives, unless a peer still holds the responder lock.
 * In any other state: activates q, unless a peer still uses the memory that q
 * withdraws. */
static void look_for_peers(struct ibt *t, struct ibt_qp *q)
{
	if (q->qp->state == HCA_QP_ERR) {
		flush_receives(t, q);
	} else if (access_scan_done(t->hca, &q->direct.scan)) {
		list_remove(&q->direct.leaving);
		ibt_qp_activate(t, q);
	}
}

void ibt_qp_end_waits(struct ibt *t)
{
	struct list *n = t->direct.leaving.next, *next;

	if (t->now_ns < t->direct.leaving_look_ns)
		return;
	t->direct.leaving_look_ns = UINT64_MAX;
	for (; n != &t->direct.leaving; n = next) {
		struct ibt_qp *q =
			CONTAINER_OF(n, struct ibt_qp, direct.leaving);
		next = n->next;
		look_for_peers(t, q);
		if (list_is_linked(n))
			t->direct.leaving_look_ns = bits_min_u64(
				t->direct.leaving_look_ns,
				ibt_look_ns(t, q->direct.leaving_since_ns));
	}
}

/* Resets all protocol state, so that no earlier packet is delivered, and
 * removes the QP's completions from its CQs (RESET, IBTA 10.3.1). */
static void reset_qp(struct ibt *t, struct ibt_qp *q)
{
	struct qp *qp = q->qp;

	leave_timers_and_lists(t, q);
	rc_req_reset(t, q);
	rc_resp_reset(t, q);
	rx_pending_reset(t, q);
	q->heard = false;
	q->source.until_ns = 0;
	q->credit.is_awaited = false;
	q->direct.path = IBT_PATH_UNDECIDED;
	q->direct.is_asking = q->direct.may_execute = false;
	q->direct.awaits_accesses = false;
	q->direct.apart.has_found = false;
	q->dropped = 0;
	cq_purge(t->hca, arena_at(&t->hca->arena, qp->send_cq), qp->qpn);
	cq_purge(t->hca, arena_at(&t->hca->arena, qp->recv_cq), qp->qpn);
	rq_reset(qp);
	q->req.wqe = shared_own(&qp->sq.head);
	shared_store(&qp->sq.completed, q->req.wqe);
	shared_store(&qp->sq.tail, q->req.wqe);
	memset(&qp->attr, 0, sizeof(qp->attr));
}

bool ibt_qp_serves(const struct ibt_qp *q, enum opcode_service service)
{
	if (q->qp->is_iwarp)
		return false;
	switch (q->qp->type) {
	case HCA_QPT_RC:
		return service == OPCODE_SERVICE_RC;
	case HCA_QPT_UC:
		return service == OPCODE_SERVICE_UC;
	case HCA_QPT_UD:
		return service == OPCODE_SERVICE_UD;
	}
	return false;
}

static void set_state(struct qp *qp, enum hca_qp_state state)
{
	/* The store is atomic, because threads that post load the state without
	 * a lock.  It orders nothing: ibt_qp_enter has the fence that the state
	 * ERR needs. */
	__atomic_store_n(&qp->state, state, __ATOMIC_RELAXED);
	if (state == HCA_QP_RTR) {
		qp->connection++;
		qp_target(qp)->has_failed = qp_target(qp)->is_heard = 0;
		qp_target(qp)->ask = TARGET_ASK_NONE;
	}
}

void ibt_qp_enter(struct ibt *t, struct ibt_qp *q, enum hca_qp_state state)
{
	struct qp *qp = q->qp;
	uint32_t old = qp->state;

	set_state(qp, state);
	shared_store(&q->flying, 0);
	switch (state) {
	case HCA_QP_RESET:
		reset_qp(t, q);
		break;
	case HCA_QP_INIT:
		break;
	case HCA_QP_RTR:
		q->resp.epsn = serial24(qp->attr.rq_psn);
		/* A UD QP has no path MTU and gets the greatest one.  A request
		 * of a UD QP has another limit: the MTU of the port of its AH
		 * (ud_req.c). */
		q->mtu = 128u << (qp->type == HCA_QPT_UD ? t->hca->active_mtu
							 : qp->attr.path_mtu);
		break;
	case HCA_QP_RTS:
		if (old == HCA_QP_RTR) {
			q->req.una = serial24(qp->attr.sq_psn);
			q->req.max = q->req.una;
			q->req.window = IBT_WINDOW_START;
		}
		if (old == HCA_QP_SQE)
			unreliable_tx_reset(q);
		/* the next drain asks for its event itself */
		if (old == HCA_QP_SQD)
			qp->attr.en_sqd_async_notify = 0;
		q->req.draining = false;
		ibt_qp_activate(t, q);
		break;
	case HCA_QP_SQD:
		q->req.draining = true;
		if (q->stream) {
			/* stream_tx finds out when the queue is drained */
		} else if (qp->type == HCA_QPT_RC) {
			rc_req_nudge(t, q);
			rc_comp_drained(t, q);
		} else {
			unreliable_tx_drained(t, q);
		}
		ibt_qp_activate(t, q);
		break;
	case HCA_QP_SQE:
		ibt_qp_flush_sends(t, q);
		break;
	case HCA_QP_ERR:
		rnr_wait_end(t, q);
		list_remove(&q->direct.waiting);
		wheel_cancel(&t->wheel, &q->timers.ack);
		wheel_cancel(&t->wheel, &q->timers.rnr);
		rx_pending_reset(t, q);
		rc_resp_reorder_over(t, q);
		reorder_drop(t, &q->req.reorder);
		/* In ERR nothing more is read from memory (IBTA 10.3.1).  But a
		 * QP that has refused a request keeps its replies, because the
		 * NAK is sent after them. */
		if (!q->resp.tombstone)
			rc_reply_stop(q);
		/* Orders the store of the state before the flush's load of the
		 * receive queue's head.  A thread that posts a receive stores
		 * the head and then, after lock_give or a fence, loads the
		 * state (has_failed in verbs/post.c).  So the flush sees the
		 * receive, or the thread sees ERR and rings the doorbell, which
		 * flushes the receive.  Without this order neither might
		 * happen, and the receive would never complete.  Requests need
		 * no fence here, since a thread that posts a request rings the
		 * doorbell in any state. */
		shared_fence();
		q->owes_last_wqe = old != HCA_QP_RESET && qp->srq;
		if (old != HCA_QP_RESET)
			ibt_qp_flush(t, q);
		/* stream_tx then ends the stream or sends its Terminate, and
		 * src/host closes the connection */
		if (q->stream)
			ibt_qp_activate(t, q);
		break;
	}
}

void ibt_qp_fail(struct ibt *t, struct ibt_qp *q, enum engine_event_type type)
{
	ibt_qp_enter(t, q, HCA_QP_ERR);
	if (type != ENGINE_EXPLAIN)
		ibt_event(t, q, type);
}

uint64_t ibt_qp_patience_ns(const struct ibt *t, const struct ibt_qp *q)
{
	if (q->qp->type == HCA_QPT_RC || t->strict)
		return RC_PATIENCE_NS;
	return q->qp->type == HCA_QPT_UC ? t->patience_ns : UD_PATIENCE_NS;
}

void ibt_qp_note(struct ibt_qp *q)
{
	const struct rc_req *r = &q->req;
	const struct wq *sq = &q->qp->sq;
	int32_t flying = serial24_diff(r->max, r->una);
	enum qp_wait wait = QP_WAIT_NONE;

	if (r->rnr_waiting)
		wait = QP_WAIT_RECEIVE;
	else if (r->retries)
		wait = QP_WAIT_SILENT;
	else if (q->credit.is_awaited && r->wqe != shared_load(&sq->head))
		wait = QP_WAIT_CREDIT;
	else if (flying && (uint32_t)flying >= r->window)
		wait = QP_WAIT_WINDOW;
	else if (r->rd_wqes && r->wqe != shared_load(&sq->head))
		wait = QP_WAIT_READS;
	else if (flying)
		wait = QP_WAIT_ANSWER;
	q->qp->stats.wait = wait;
	shared_store(&q->flying, flying > 0 ? (uint32_t)flying : 0);
	shared_store(&q->is_unanswered,
		     q->qp->type != HCA_QPT_RC &&
			     q->direct.path == IBT_PATH_PACKETS);
}
