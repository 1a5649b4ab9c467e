/* SPDX-License-Identifier: BSD-2-Clause */
#include "direct/far.h"

#include <string.h>

#include "direct/inside.h"
#include "util/inaddr.h"
#include "util/prefetch.h"
#include "util/step.h"

/* A word of the arena, which its owner may write as we look. */
#define SEEN(word) __atomic_load_n(&(word), __ATOMIC_RELAXED)

/* Its receives lie where peers write them. */
static bool has_places(const struct far_link *l, const struct qp *qp)
{
	const struct arena *a = &l->hca->arena;
	uint64_t bytes = (uint64_t)qp->rq.size * qp->rq.stride;

	return wq_is_sound(l->hca, &qp->rq, WQE_ROOM) &&
	       arena_shares(a, qp->rq.slots, bytes) &&
	       arena_shares(a, l->places.far, sizeof(struct qp_far)) &&
	       qp->stats.row < HCA_MAX_QP &&
	       (!qp->srq || inside_at(l->hca, qp->srq, sizeof(struct srq))) &&
	       (!qp->recv_cq ||
		inside_at(l->hca, qp->recv_cq, sizeof(struct cq)));
}

/* Into *qp what is known of it. */
static void put_places(const struct far_link *l, struct qp *qp)
{
	const struct far_places *p = &l->places;

	qp->self = p->self;
	qp->qpn = l->qpn;
	qp->far_at = (uintptr_t)l->hca->arena.base + p->far - (uintptr_t)qp;
	qp->type = p->type;
	qp->pd = p->pd;
	qp->recv_pd = p->recv_pd;
	qp->recv_cq = p->recv_cq;
	qp->srq = p->srq;
	qp->stats.row = p->row;
	qp->rq.size = p->slot_count;
	qp->rq.depth = p->depth;
	qp->rq.stride = p->stride;
	qp->rq.max_sge = p->max_sge;
	qp->rq.slots = p->slots;
	qp->rq.ids = 0;
}

/*
 * Into *qp what does not change as long as there is a queue pair, of the one at
 * `at`.  False: it is not the one we mean, or makes no sense.
 */
static bool read_places(struct far_link *l, aoff at, struct qp *qp)
{
	const struct qp *there = inside_at(l->hca, at, sizeof *there);
	struct far_places *p = &l->places;
	bool good;

	if (!there || SEEN(there->qpn) != l->qpn)
		return false;
	*p = (struct far_places){
		.self = at,
		.serial = SEEN(there->serial),
		.type = SEEN(there->type),
		.pd = SEEN(there->pd),
		.recv_pd = SEEN(there->recv_pd),
		.row = SEEN(there->stats.row),
		.far = at + SEEN(there->far_at),
		.recv_cq = SEEN(there->recv_cq),
		.srq = SEEN(there->srq),
		.slots = SEEN(there->rq.slots),
		.slot_count = SEEN(there->rq.size),
		.depth = SEEN(there->rq.depth),
		.stride = SEEN(there->rq.stride),
		.max_sge = SEEN(there->rq.max_sge),
	};
	put_places(l, qp);
	good = has_places(l, qp);
	if (!good)
		p->self = 0;
	return good;
}

/* The one that was found last: is it still at `at`? */
static bool is_there(const struct far_link *l, aoff at)
{
	const struct qp *there;

	if (!at || at != l->places.self)
		return false;
	there = arena_at(&l->hca->arena, at);
	return SEEN(there->qpn) == l->qpn &&
	       SEEN(there->serial) == l->places.serial;
}

static bool find_at(struct far_link *l, aoff at, struct qp *qp)
{
	if (!is_there(l, at))
		return read_places(l, at, qp);
	put_places(l, qp);
	return true;
}

static bool find(struct far_link *l, struct qp *qp)
{
	const struct hca_shared *s = l->hca->shared;
	aoff table = SEEN(s->qps);
	const aoff *rows = inside_at(l->hca, table, HCA_MAX_QP * sizeof(aoff));
	uint32_t top = SEEN(s->qp_top);

	if (!rows)
		return false;
	if (find_at(l, __atomic_load_n(&rows[l->row], __ATOMIC_ACQUIRE), qp))
		return true;
	for (uint32_t i = 0; i < HCA_MAX_QP && i < top; i++)
		if (find_at(l, __atomic_load_n(&rows[i], __ATOMIC_ACQUIRE),
			    qp)) {
			l->row = i;
			return true;
		}
	return false;
}

/*
 * At its responder: what its owner changes only there, but for the state, which
 * may become ERR at any time and is what it was at this moment.  Receives are
 * looked at when they are needed, and seem to be none until then.
 */
static void copy_attributes(const struct far_link *l, struct qp *qp)
{
	const struct qp *there = inside_original(l, qp);
	const struct hca_qp_attr *a = &there->attr;

	qp->state = SEEN(there->state);
	qp->connection = SEEN(there->connection);
	qp->attr.dest_qpn = SEEN(a->dest_qpn);
	qp->attr.rq_psn = SEEN(a->rq_psn);
	qp->attr.qkey = SEEN(a->qkey);
	qp->attr.access_flags = SEEN(a->access_flags);
	qp->attr.min_rnr_timer = SEEN(a->min_rnr_timer);
	qp->attr.max_dest_rd_atomic = SEEN(a->max_dest_rd_atomic);
	memcpy(qp->attr.ah.dgid, a->ah.dgid, sizeof a->ah.dgid);
	ring_store(&qp->rq.head, rq_cursor(qp));
	ring_store(&qp->rq.told, rq_cursor(qp));
}

/* The same connection as ever (9.6.1.1); UC takes it up at any PSN. */
static bool is_ours(const struct far_link *l, const struct qp *qp)
{
	return qp->attr.dest_qpn == l->our_qpn &&
	       (l->type != HCA_QPT_RC || qp->attr.rq_psn == l->our_psn) &&
	       (!l->connection || l->connection == qp->connection) &&
	       inaddr_has_same_ip(qp->attr.ah.dgid, l->our_ip);
}

/* Would it take our packets? */
static bool is_open(const struct far_link *l, const struct qp *qp)
{
	return qp->state >= HCA_QP_RTR && qp->state <= HCA_QP_SQE &&
	       !qp_far(qp)->has_failed && qp->type == l->type &&
	       (l->type == HCA_QPT_UD || is_ours(l, qp));
}

/* What the target was asked to do: is it done? */
static enum far_answer fetch(struct far_link *l, struct qp *qp,
			     struct far_request *r)
{
	uint32_t state = atomic_load(&qp_far(qp)->ask);

	if (state == FAR_ASKED)
		return FAR_ASKED_IT;
	l->is_asked = false;
	r->found = qp_far(qp)->ask_found;
	r->verdict = (uint32_t)r->found;
	return state == FAR_ANSWERED ? FAR_DONE : FAR_REFUSED;
}

static enum far_answer busy(struct far_link *l, uint64_t now_ns)
{
	if (!l->is_busy && !l->is_asked)
		l->asked_ns = now_ns;
	l->is_busy = true;
	return FAR_BUSY;
}

static enum far_answer execute(struct far_link *l, struct qp *qp,
			       struct far_request *r)
{
	struct explain x = {.opcode = request_opcode(r)};
	enum verdict v;

	if (!qp_far(qp)->is_heard) {
		qp_far(qp)->is_heard = 1;
		STEP("the first request is heard");
		inside_post(l, qp, r, QP_MAIL_HEARD);
	}
	v = request_run(l, qp, r, &x);
	if (r->is_seized && r->is_executed)
		return FAR_DONE;
	if (r->is_seized || r->is_full)
		return busy(l, r->now_ns);
	if (v && r->is_ours)
		return FAR_OUR_FAULT;
	if (v && r->is_gone)
		return FAR_GONE;
	if (v && r->is_denied)
		return FAR_DENIED;
	if (v == V_RNR) {
		r->rnr_timer = qp->attr.min_rnr_timer;
		return FAR_RNR;
	}
	r->verdict = v;
	if (v && l->type != HCA_QPT_RC)
		return FAR_REFUSED;
	if (!v)
		inside_count(qp, r->opcode, r->bytes);
	qp_far(qp)->rx_packets++;
	if (v) {
		request_refuse(l, qp, r, v, &x);
		return verdict_row(v)->silent ? FAR_CLOSED : FAR_REFUSED;
	}
	return l->is_asked ? FAR_ASKED_IT : FAR_DONE;
}

/* To its responder; false: it is not to be had now. */
static bool approach(struct far_link *l, struct qp *qp)
	TRY_ACQUIRE(true, &qp_far(qp)->lock) NO_LOCK_ANALYSIS
{
	if (ring_load(&qp_far(qp)->is_wanted) || !rq_enter(l->hca, qp))
		return false;
	copy_attributes(l, qp);
	return true;
}

/* If we were seized, its owner may have its lock, or have freed it. */
static void leave_responder(struct qp *qp, const struct far_request *r)
	RELEASE(&qp_far(qp)->lock) NO_LOCK_ANALYSIS
{
	if (r->is_seized)
		alock_leave(&qp_far(qp)->lock);
	else
		rq_leave(qp);
}

static bool takes_receive(const struct far_request *r)
{
	return hca_wr_is_send(r->opcode) || r->opcode == HCA_WR_SEND_INV ||
	       r->opcode == HCA_WR_RDMA_WRITE_IMM;
}

/* The next receive comes from the target's core, which watches it. */
static void expect(struct far_link *l, const struct qp *qp,
		   const struct far_request *r)
{
	if (takes_receive(r))
		prefetch_read(rq_slot(l->hca, qp), wq_used(&qp->rq, r->total));
}

/* Inside its arena, at its responder. */
static enum far_answer run(struct far_link *l, struct far_request *r)
{
	enum far_answer answer = FAR_LOST;
	struct qp copy, *qp = &copy;

	if (!find(l, qp)) {
		l->is_asked = false;
		return FAR_CLOSED;
	}
	expect(l, qp, r);
	if (!approach(l, qp))
		return busy(l, r->now_ns);
	l->is_busy = l->waits_for_place = false;
	/* the answer of one that has failed since is good, if it has one */
	if (l->is_asked && l->connection == qp->connection &&
	    atomic_load(&qp_far(qp)->ask) != FAR_ASKED) {
		answer = fetch(l, qp, r);
	} else if (is_open(l, qp)) {
		l->connection = qp->connection;
		answer = l->is_asked ? FAR_ASKED_IT : execute(l, qp, r);
	} else {
		l->is_asked = false;
		if (qp->state == HCA_QP_ERR)
			answer = FAR_CLOSED;
	}
	leave_responder(qp, r);
	expect(l, qp, r);
	return answer;
}

/* Or executed something else. */
static bool has_ended(const struct far_link *l)
{
	return l->guest && !hca_is_alive(l->hca);
}

/*
 * What takes long comes before the look: between that and a copy it must not
 * become another program.
 */
static bool is_gone(struct far_link *l)
{
	struct space *s = l->hca->space;

	if (l->guest && s->ops->refresh)
		s->ops->refresh(s);
	return has_ended(l);
}

static void enter(struct far_link *l)
{
	if (l->guest)
		guest_enter(l->guest, guest_qp(l->qpn));
	STEP("the guest is inside");
}

static void leave(struct far_link *l)
{
	if (l->guest)
		guest_leave(l->guest);
	STEP("the guest has left");
}

enum far_answer far_run(struct far_link *l, struct far_request *r)
{
	enum far_answer answer;

	if (is_gone(l))
		return FAR_GONE;
	enter(l);
	answer = run(l, r);
	leave(l);
	/* what a program executed since then had there was not meant */
	if (has_ended(l))
		return FAR_GONE;
	return answer;
}

void far_leave(struct far_link *l)
{
	struct qp qp;

	if (is_gone(l))
		return;
	enter(l);
	/* seen by who gets the first packet: sending it orders the two */
	if (find(l, &qp) &&
	    l->connection == SEEN(inside_original(l, &qp)->connection))
		__atomic_store_n(&qp_far(&qp)->is_left, 1, __ATOMIC_RELEASE);
	leave(l);
}

/* For who is connected, has been heard and waits for nothing. */
static bool is_easy(struct far_link *l, const struct qp *qp)
{
	return !l->is_asked && qp_far(qp)->is_heard &&
	       l->connection == qp->connection && is_open(l, qp);
}

static uint32_t run_series(struct far_link *l, struct far_series *s)
{
	struct qp copy, *qp = &copy;
	uint32_t n = 0;

	if (!find(l, qp) || !approach(l, qp))
		return 0;
	if (is_easy(l, qp)) {
		n = series_run(l, qp, s);
		qp_far(qp)->rx_packets += n;
	}
	leave_responder(qp, &s->r);
	return n;
}

uint32_t far_run_series(struct far_link *l, struct far_series *s)
{
	uint32_t n;

	if (is_gone(l))
		return 0;
	enter(l);
	n = run_series(l, s);
	leave(l);
	if (has_ended(l))
		return 0;
	if (n)
		l->is_busy = l->waits_for_place = false;
	return n;
}

static bool has_receive(const struct far_link *l, struct qp *qp)
{
	inside_see_posted(l, qp);
	return rq_has(l->hca, qp);
}

static bool is_ready(struct far_link *l, bool wants_receive)
{
	struct qp copy, *qp = &copy;
	bool ready;

	if (!find(l, qp)) /* to hear that it is lost */
		return l->is_asked || l->is_busy;
	if (!approach(l, qp))
		return false;
	inside_see_told(l, qp);
	if (l->is_busy)
		ready = !rq_is_full(l->hca, qp) &&
			!(l->waits_for_place && carry_is_any(l->hca, qp));
	else if (l->is_asked)
		ready = !is_open(l, qp) ||
			atomic_load(&qp_far(qp)->ask) != FAR_ASKED;
	else
		ready = is_open(l, qp) &&
			(!wants_receive || has_receive(l, qp));
	rq_leave(qp);
	return ready;
}

bool far_is_ready(struct far_link *l, bool wants_receive)
{
	bool ready;

	if (is_gone(l))
		return true;
	enter(l);
	ready = is_ready(l, wants_receive);
	leave(l);
	return ready;
}

enum verdict far_explain(const struct far_note *there, struct explain *x)
{
	const volatile struct far_note *words = there;
	const struct far_note copy = *words, *n = &copy;
	uint32_t verdict =
		verdict_is_refusal(n->verdict) ? n->verdict : V_INVALID;

	*x = (struct explain){
		.cause = (enum explain_cause)n->cause,
		.wr_id = n->wr_id,
		.opcode = n->opcode,
		.key = n->key,
		.va = n->va,
		.bytes = n->bytes,
		.verdict = n->mr_verdict,
		.need = n->need,
		.region_va = n->region_va,
		.region_bytes = n->region_bytes,
		.detail = request_detail(n->detail),
	};
	return (enum verdict)verdict;
}
