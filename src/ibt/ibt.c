/* SPDX-License-Identifier: BSD-2-Clause */
#include "ibt/ibt.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "ibt/rx_pending.h"
#include "util/bits.h"

#define LOOK_MAX_NS 1000000 /* the longest interval of ibt_look_ns */

int ibt_init(struct ibt *t, uint64_t now_ns)
{
	t->counters = arena_at(&t->hca->arena, t->hca->shared->counters);
	wheel_init(&t->wheel, now_ns);
	list_init(&t->active);
	list_init(&t->handed);
	list_init(&t->owing);
	list_init(&t->direct.waiting);
	for (int i = 0; i < DIRECT_POST_LOCKS; i++)
		list_init(&t->direct.awaiting[i].qps);
	list_init(&t->direct.unused);
	list_init(&t->direct.leaving);
	t->direct.leaving_look_ns = UINT64_MAX;
	list_init(&t->held.free);
	t->held.rows = malloc(IBT_POOL * sizeof(*t->held.rows));
	t->events.ring = calloc(IBT_EVENTS, sizeof(*t->events.ring));
	t->events.size = IBT_EVENTS;
	if (!t->held.rows || !t->events.ring) {
		free(t->held.rows);
		free(t->events.ring);
		return -ENOMEM;
	}
	return 0;
}

void ibt_fini(struct ibt *t)
{
	free(t->held.rows);
	free(t->events.ring);
	free(t->mcast.rows);
	rx_pending_close(t);
}

uint64_t ibt_look_ns(const struct ibt *t, uint64_t since_ns)
{
	uint64_t step = bits_max_u64((t->now_ns - since_ns) / 4, IBT_LOOK_NS);

	return t->now_ns + bits_min_u64(step, LOOK_MAX_NS);
}

static uint32_t events_waiting(const struct ibt *t)
{
	return t->events.head - t->events.tail;
}

static bool grow_events(struct ibt *t)
{
	uint32_t size = 2 * t->events.size;
	struct engine_event *events =
		size > IBT_EVENTS_MAX ? NULL : calloc(size, sizeof(*events));

	if (!events)
		return false;
	for (uint32_t i = t->events.tail; i != t->events.head; i++)
		events[i & (size - 1)] = *ibt_event_at(t, i);
	free(t->events.ring);
	t->events.ring = events;
	t->events.size = size;
	return true;
}

/* Adds an event to the ring and returns it; NULL: there is no room. */
static struct engine_event *add_event(struct ibt *t, uint64_t user,
				      enum engine_event_type type)
{
	struct engine_event *e;

	if (events_waiting(t) == t->events.size && !grow_events(t))
		return NULL;
	e = ibt_event_at(t, t->events.head++);
	memset(e, 0, sizeof(*e));
	e->type = type;
	e->user = user;
	return e;
}

static struct engine_event *add_qp_event(struct ibt *t, const struct ibt_qp *q,
					 uint64_t user,
					 enum engine_event_type type)
{
	struct engine_event *e = add_event(t, user, type);

	if (!e)
		return NULL;
	e->qpn = q->qp->qpn;
	e->dest_qpn = q->qp->attr.dest_qpn;
	e->connection = q->qp->connection;
	e->self = q->self;
	e->peer = q->peer;
	return e;
}

void ibt_event(struct ibt *t, const struct ibt_qp *q,
	       enum engine_event_type type)
{
	add_qp_event(t, q, q->qp->user, type);
}

void ibt_explain(struct ibt *t, const struct ibt_qp *q, struct explain *x)
{
	struct engine_event *e;

	x->qpn = q->qp->qpn;
	if (!x->dest_qpn)
		x->dest_qpn = q->qp->attr.dest_qpn;
	memcpy(x->self_ip, q->self.ip, sizeof(x->self_ip));
	memcpy(x->peer_ip, q->peer.ip, sizeof(x->peer_ip));
	if (events_waiting(t) >= IBT_EVENTS)
		return; /* the rest of the room is for events of other types */
	e = add_qp_event(t, q, q->qp->user, ENGINE_EXPLAIN);
	if (e)
		e->explain = *x;
}

/* Returns port n of q's device; NULL: there is no such port. */
static const struct hca_port *find_port(const struct ibt *t,
					const struct ibt_qp *q, uint32_t n)
{
	return n && n <= HCA_MAX_PORTS ? &t->ports[q->qp->device][n - 1] : NULL;
}

uint16_t ibt_lid(const struct ibt *t, const struct ibt_qp *q, uint32_t number,
		 uint8_t path_bits)
{
	const struct hca_port *port = find_port(t, q, number);

	if (!port || !port->lid)
		return 0;
	return (uint16_t)(port->lid | (path_bits & ((1 << port->lmc) - 1)));
}

uint16_t ibt_port_pkey(const struct ibt *t, const struct ibt_qp *q,
		       uint32_t number, uint32_t index)
{
	const struct hca_port *port = find_port(t, q, number);

	return port && index < HCA_MAX_PKEYS ? port->pkeys[index] : 0;
}

uint16_t ibt_pkey(const struct ibt *t, const struct ibt_qp *q)
{
	const struct hca_qp_attr *a = &q->qp->attr;

	return q->qp->is_by_lid
		       ? ibt_port_pkey(t, q, a->port_num, a->pkey_index)
		       : BTH_DEFAULT_PKEY;
}

void ibt_cq_event(struct ibt *t, uint64_t user, enum engine_event_type type)
{
	add_event(t, user, type);
}

void ibt_cq_tell(struct ibt *t, struct cq *cq)
{
	for (uint32_t n = cq_take_unreported(cq); n; n--)
		ibt_cq_event(t, cq->user, ENGINE_CQ_EVENT);
}

void ibt_srq_tell(struct ibt *t, struct srq *s)
{
	if (srq_owed(s))
		ibt_cq_event(t, s->user, ENGINE_SRQ_LIMIT);
}

void ibt_overrun(struct ibt *t, struct ibt_qp *q, struct cq *cq)
{
	struct explain x = {.cause = EXPLAIN_CQ_OVERRUN};

	if (shared_load(&cq->overrun) != CQ_OVERRUN_UNREPORTED)
		return;
	shared_store(&cq->overrun, CQ_OVERRUN_REPORTED);
	ibt_explain(t, q, &x);
	add_qp_event(t, q, cq->user, ENGINE_CQ_ERR);
	if (q->qp->state != HCA_QP_ERR)
		ibt_qp_fail(t, q, ENGINE_QP_FATAL);
}

void ibt_complete(struct ibt *t, struct ibt_qp *q, aoff cq_off,
		  const struct cqe *c, bool solicited)
{
	struct cq *cq = arena_at(&t->hca->arena, cq_off);
	struct cqe stamped = *c;
	enum cq_push asks;

	stamped.at_ns =
		q->direct.apart.is_running ? q->direct.apart.now_ns : t->now_ns;
	asks = cq_push(t->hca, cq, &stamped, solicited || c->status);
	if (q->direct.apart.is_running) {
		q->direct.apart.has_news |= asks != CQ_QUIET;
		return;
	}
	switch (asks) {
	case CQ_QUIET:
		break;
	case CQ_LATER:
		cq_moderation_set(t, cq);
		break;
	case CQ_NOTIFY:
		ibt_cq_tell(t, cq);
		break;
	case CQ_OVERRUN:
		ibt_overrun(t, q, cq);
		break;
	}
}

bool ibt_responder_enter(struct ibt *t, struct ibt_qp *q) NO_LOCK_ANALYSIS
{
	struct qp *qp = q->qp;

	if (!rq_enter_own(t->hca, qp))
		return false;
	if (rq_is_behind(qp))
		cq_collect(t->hca, arena_at(&t->hca->arena, qp->recv_cq), qp);
	q->is_entered = true;
	return true;
}

void ibt_responder_leave(struct ibt_qp *q) NO_LOCK_ANALYSIS
{
	q->is_entered = false;
	rq_leave(q->qp);
}

struct wqe *ibt_receive_take(struct ibt *t, struct ibt_qp *q)
{
	bool low;
	struct wqe *w = rq_take(t->hca, q->qp, &low);

	if (low)
		ibt_srq_tell(t, arena_at(&t->hca->arena, q->qp->srq));
	return w;
}

void ibt_receive_done(struct ibt *t, struct ibt_qp *q, struct cqe *c,
		      bool solicited)
{
	if (rq_done(t->hca, q->qp, c))
		ibt_complete(t, q, q->qp->recv_cq, c, solicited);
}

static uint32_t wc_opcode(uint8_t opcode)
{
	switch ((enum hca_wr)opcode) {
	case HCA_WR_RDMA_WRITE:
	case HCA_WR_RDMA_WRITE_IMM:
		return HCA_WC_RDMA_WRITE;
	case HCA_WR_SEND:
	case HCA_WR_SEND_IMM:
	case HCA_WR_SEND_INV:
		return HCA_WC_SEND;
	case HCA_WR_RDMA_READ:
		return HCA_WC_RDMA_READ;
	case HCA_WR_ATOMIC_CAS:
		return HCA_WC_COMP_SWAP;
	case HCA_WR_ATOMIC_FADD:
		return HCA_WC_FETCH_ADD;
	case HCA_WR_LOCAL_INV:
		return HCA_WC_LOCAL_INV;
	case HCA_WR_ATOMIC_WRITE:
		return HCA_WC_ATOMIC_WRITE;
	case HCA_WR_BIND_MW:
		return HCA_WC_BIND_MW;
	}
	return HCA_WC_SEND;
}

_Static_assert(HCA_RNR_RETRY_EXC_ERR < EVENT_STATUSES,
	       "each status is counted");

void ibt_request_done(struct ibt *t, struct ibt_qp *q, enum hca_status status)
{
	struct wq *sq = &q->qp->sq;
	uint32_t i = shared_own(&sq->completed);
	struct wqe *w = wq_at(t->hca, sq, i);
	struct cqe c = {
		.wr_id = w->wr_id,
		.status = status,
		.opcode = wc_opcode(w->opcode),
		.vendor_err = status,
		.byte_len = w->bytes,
		.qpn = q->qp->qpn,
		.wq_index = i,
		.wq = hca_off(t->hca, sq),
	};

	comp_request(q->qp, w->opcode, status, w->bytes);
	shared_store(&sq->completed, i + 1);
	if (status) {
		q->counters->failed++;
		q->counters->failed_by[status]++;
	}
	if (status || (w->flags & HCA_SEND_SIGNALED))
		ibt_complete(t, q, q->qp->send_cq, &c, false);
}

void ibt_request_failed(struct ibt *t, struct ibt_qp *q, const struct wqe *w,
			enum hca_status status, struct explain *x)
{
	struct req_note *n = rc_req_note(q, q->req.wqe);

	n->started = true;
	n->status = (uint8_t)status;
	x->wr_id = w->wr_id;
	x->opcode = w->opcode;
	ibt_explain(t, q, x);
}

void ibt_dropped(struct ibt *t, struct ibt_qp *q, struct explain *x,
		 enum ibt_drop why, uint32_t src_qpn)
{
	static const char *const words[] = {
		[IBT_DROP_RECEIVE] =
			"no receive was posted; post receives earlier",
		[IBT_DROP_LENGTH] = "the message is longer than its receive; "
				    "post longer receives",
		[IBT_DROP_QKEY] = "its Q_Key is not that of the queue pair; "
				  "send with the qkey of this queue pair",
		[IBT_DROP_LOST] = "some of its packets were lost; send less at "
				  "a time, or use RC",
		[IBT_DROP_INVALID] = "it breaks the rules of its service",
		[IBT_DROP_KEY] =
			"the memory of a WRITE was refused; the message "
			"before this one says why",
		[IBT_DROP_BUSY] = "a process of this host keeps the queue pair "
				  "locked; check whether a peer is stopped",
	};

	q->counters->rx_dropped++;
	q->counters->rx_no_receive += why == IBT_DROP_RECEIVE;
	if (q->dropped & 1u << why)
		return;
	q->dropped |= 1u << why;
	x->cause = EXPLAIN_DROPPED;
	x->drop = (uint8_t)why;
	x->dest_qpn = src_qpn;
	if (why != IBT_DROP_INVALID || !x->detail)
		x->detail = words[why];
	ibt_explain(t, q, x);
}
