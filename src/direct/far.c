/* SPDX-License-Identifier: BSD-2-Clause */
#include "direct/far.h"

#include "direct/inside.h"
#include "util/inaddr.h"
#include "util/prefetch.h"
#include "util/step.h"

/* The QP in a row, if it is the one we mean. */
static struct qp *in_row(const struct far_link *l, const aoff *rows,
			 uint32_t row)
{
	struct qp *qp =
		inside_at(l->hca, __atomic_load_n(&rows[row], __ATOMIC_ACQUIRE),
			  sizeof(struct qp));

	return qp && qp->qpn == l->qpn ? qp : NULL;
}

static struct qp *find(struct far_link *l)
{
	const struct hca_shared *s = l->hca->shared;
	const aoff *rows = inside_at(l->hca, s->qps, HCA_MAX_QP * sizeof(aoff));
	struct qp *qp = NULL;

	if (!rows)
		return NULL;
	qp = in_row(l, rows, l->row);
	for (uint32_t i = 0; !qp && i < HCA_MAX_QP && i < s->qp_top; i++) {
		qp = in_row(l, rows, i);
		if (qp)
			l->row = i;
	}
	return qp;
}

/* It may enter ERR at any time. */
static uint32_t state_of(const struct qp *qp)
{
	return __atomic_load_n(&qp->state, __ATOMIC_RELAXED);
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
	uint32_t state = state_of(qp);

	return state >= HCA_QP_RTR && state <= HCA_QP_SQE &&
	       !qp->far.has_failed && qp->type == l->type &&
	       (l->type == HCA_QPT_UD || is_ours(l, qp)) &&
	       wq_is_sound(l->hca, &qp->rq, WQE_ROOM);
}

/* What the target was asked to do: is it done? */
static enum far_answer fetch(struct far_link *l, struct qp *qp,
			     struct far_request *r)
{
	uint32_t state = atomic_load(&qp->far.ask);

	if (state == FAR_ASKED)
		return FAR_ASKED_IT;
	l->is_asked = false;
	r->found = qp->far.ask_found;
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

	if (!qp->far.is_heard) {
		qp->far.is_heard = 1;
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
	qp->far.rx_packets++;
	if (v) {
		request_refuse(l, qp, r, v, &x);
		return verdict_row(v)->silent ? FAR_CLOSED : FAR_REFUSED;
	}
	return l->is_asked ? FAR_ASKED_IT : FAR_DONE;
}

/* To its responder; false: it is not to be had now. */
static bool approach(struct far_link *l, struct qp *qp)
	TRY_ACQUIRE(true, &qp->far.lock) NO_LOCK_ANALYSIS
{
	return !ring_load(&qp->far.is_wanted) && rq_enter(l->hca, qp);
}

/* If we were seized, its owner may have its lock, or have freed it. */
static void leave_responder(struct qp *qp, const struct far_request *r)
	RELEASE(&qp->far.lock) NO_LOCK_ANALYSIS
{
	if (r->is_seized)
		alock_leave(&qp->far.lock);
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
	if (takes_receive(r) && wq_is_sound(l->hca, &qp->rq, WQE_ROOM))
		prefetch_read(rq_slot(l->hca, qp), wq_used(&qp->rq, r->total));
}

/* Inside its arena, at its responder. */
static enum far_answer run(struct far_link *l, struct far_request *r)
{
	struct qp *qp = find(l);
	enum far_answer answer = FAR_LOST;

	if (!qp) {
		l->is_asked = false;
		return FAR_CLOSED;
	}
	expect(l, qp, r);
	if (!approach(l, qp))
		return busy(l, r->now_ns);
	l->is_busy = l->waits_for_place = false;
	/* the answer of one that has failed since is good, if it has one */
	if (l->is_asked && l->connection == qp->connection &&
	    atomic_load(&qp->far.ask) != FAR_ASKED) {
		answer = fetch(l, qp, r);
	} else if (is_open(l, qp)) {
		l->connection = qp->connection;
		answer = l->is_asked ? FAR_ASKED_IT : execute(l, qp, r);
	} else {
		l->is_asked = false;
		if (state_of(qp) == HCA_QP_ERR)
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
	struct qp *qp;

	if (is_gone(l))
		return;
	enter(l);
	qp = find(l);
	/* seen by who gets the first packet: sending it orders the two */
	if (qp && l->connection == qp->connection)
		__atomic_store_n(&qp->far.is_left, 1, __ATOMIC_RELEASE);
	leave(l);
}

/* For who is connected, has been heard and waits for nothing. */
static bool is_easy(struct far_link *l, const struct qp *qp)
{
	return !l->is_asked && qp->far.is_heard &&
	       l->connection == qp->connection && is_open(l, qp);
}

static uint32_t run_series(struct far_link *l, struct far_series *s)
{
	struct qp *qp = find(l);
	uint32_t n = 0;

	if (!qp || !approach(l, qp))
		return 0;
	if (is_easy(l, qp)) {
		n = series_run(l, qp, s);
		qp->far.rx_packets += n;
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

static bool has_receive(const struct far_link *l, const struct qp *qp)
{
	return (!qp->srq || inside_at(l->hca, qp->srq, sizeof(struct srq))) &&
	       rq_has(l->hca, qp);
}

static bool is_ready(struct far_link *l, bool wants_receive)
{
	struct qp *qp = find(l);
	bool ready;

	if (!qp) /* to hear that it is lost */
		return l->is_asked || l->is_busy;
	if (!approach(l, qp))
		return false;
	if (l->is_busy)
		ready = !rq_is_full(l->hca, qp) &&
			!(l->waits_for_place && carry_is_any(l->hca, qp));
	else if (l->is_asked)
		ready = !is_open(l, qp) ||
			atomic_load(&qp->far.ask) != FAR_ASKED;
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

void far_explain(const struct far_note *n, struct explain *x)
{
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
}
