/* SPDX-License-Identifier: BSD-2-Clause */
#include "sim/pair.h"

#include <stdlib.h>
#include <string.h>

#include "ibt/ibt.h"
#include "sim/bytestream.h"
#include "sim/node.h"
#include "sim/oracle.h"
#include "sim/pcap.h"
#include "sim/service.h"
#include "sim/subnet.h"

/* The size of a flow's memory for results, and of its memory for receives. */
#define SINK_BYTES (256u << 10)
#define PAIRS	   6 /* most pairs of a world */
#define ROUNDS	   6 /* most rounds of a pair */

/* Each pair draws one of these services, RC with a chance of 1/2.  In a world
 * with byte streams all pairs have service_iwarp instead. */
static const struct service *const services[] = {&service_rc, &service_rc,
						 &service_uc, &service_ud};

#define SERVICES ((uint32_t)(sizeof(services) / sizeof(services[0])))

static uint32_t draw_below(struct world *w, uint32_t n)
{
	return rng_below(&w->rng, n);
}

struct flow *pair_flow_of(struct world *w, const struct host *h, uint32_t qpn)
{
	for (uint32_t i = 0; i < w->flow_count; i++) {
		struct flow *f = &w->flows[i];

		if (f->from == h && f->qp && f->qp->qpn == qpn)
			return f;
	}
	return NULL;
}

bool pair_is_broken(const struct flow *f)
{
	return f->round.dead || f->qp->state == HCA_QP_ERR;
}

bool pair_peer_is_gone(const struct flow *f)
{
	return pair_is_broken(f->back);
}

/* ---- objects ---- */

/* Returns how many completions of receives may wait in a CQ.  For a shared
 * receive queue that is more than the queue's depth, because a slot is free as
 * soon as a message takes its receive. */
static uint32_t receive_depth(const struct flow *f)
{
	return f->shares ? FLOW_OPS : f->cap.recv_wr;
}

static void tap_init(struct world *w, struct host *h, uint32_t i)
{
	struct tap *t = &h->taps[i];

	memset(t, 0, sizeof(*t));
	/* the CQ has room for the completions of all its queues, and no more */
	for (uint32_t k = 0; k < w->flow_count; k++)
		if (w->flows[k].from == h && w->flows[k].tap == i)
			t->cqe += w->flows[k].cap.send_wr +
				  receive_depth(&w->flows[k]);
	if (!t->cqe)
		return;
	t->by_event = t->fired = draw_below(w, 2);
	t->cq = cq_new(&h->hca, t->cqe, i, false);
	if (!t->cq)
		abort();
	t->cq->head = t->cq->tail = draw_below(w, 2) ? 0u : 0xffffffe0u;
}

/* Indices are free-running; half of the queues begin near the wrap. */
static void set_indices(struct world *w, struct wq *q)
{
	q->head = q->completed = q->tail = draw_below(w, 2) ? 0u : 0xfffffff8u;
}

/* Discards all posted receives.  The lower half of srq_shared.next is the index
 * of the next receive. */
static void empty_srq(struct srq *s)
{
	uint32_t head = s->wq.head;

	s->wq.tail = head;
	srq_shared(s)->next = srq_shared(s)->next >> 32 << 32 | head;
}

/* Sets the other indices of the receive queue: `posted` and `completed`, which
 * peers change, and `collected`. */
static void set_peer_indices(struct qp *qp, uint32_t at)
{
	qp_target(qp)->posted = at;
	qp_target(qp)->completed = qp->rq.collected = at;
}

static void set_receive_indices(struct world *w, struct flow *f)
{
	set_indices(w, f->shares ? &f->cap.srq->wq : &f->qp->rq);
	if (f->shares)
		empty_srq(f->cap.srq);
	else
		set_peer_indices(f->qp, f->qp->rq.head);
}

static void qp_init(struct world *w, struct flow *f)
{
	struct host *h = f->from;
	struct cq *cq = h->taps[f->tap].cq;

	f->pd = hca_pd_new(&h->hca);
	if (f->shares)
		f->cap.srq = srq_new(&h->hca, f->pd, f->cap.recv_wr,
				     f->cap.recv_sge, 0);
	if (f->shares && !f->cap.srq)
		abort();
	f->qp = qp_new(&h->hca, h->qpns++, f->service->qp_type, f->pd, cq, cq,
		       &f->cap, false);
	if (!f->qp)
		abort();
	f->qp->is_by_lid = w->subnet != NULL;
	f->q = engine_qp_add(h->engine, f->qp);
	if (!f->q)
		abort();
	set_indices(w, &f->qp->sq);
	set_receive_indices(w, f);
}

static void qp_fini(struct flow *f)
{
	if (f->bytestream)
		bytestream_break(f);
	engine_qp_remove(f->from->engine, f->q);
	qp_withdraw(&f->from->hca, f->qp);
	qp_free(&f->from->hca, f->qp);
	if (f->shares)
		srq_free(&f->from->hca, f->cap.srq);
	f->q = NULL;
	f->qp = NULL;
}

static void region_register(struct flow *f, struct region *r)
{
	uint32_t pd = r->at == f->from ? f->pd : f->back->pd;

	r->mr = mr_new(&r->at->hca, pd, r->at->memory.va + r->off, r->bytes,
		       r->at->memory.va + r->off, r->access);
	if (!r->mr)
		abort();
	r->lkey = r->mr->lkey;
	r->rkey = r->mr->rkey;
	free(r->frozen);
	r->frozen = NULL;
}

static void region_init(struct flow *f, int i, struct host *at, uint32_t bytes,
			uint32_t access)
{
	f->region[i] = (struct region){.at = at,
				       .off = node_alloc(at, bytes),
				       .bytes = bytes,
				       .access = access};
}

static void fill_random(struct world *w, struct host *h, uint32_t off,
			uint32_t bytes)
{
	for (uint32_t i = 0; i < bytes; i += 8) {
		uint64_t v = rng_u64(&w->rng);

		memcpy(h->memory.bytes + off + i, &v, 8);
	}
	memcpy(h->shadow + off, h->memory.bytes + off, bytes);
}

static void make_memory(struct world *w, struct flow *f)
{
	const uint32_t remote_bytes = 2 * WORKLOAD_AREA + 8 * WORKLOAD_ATOMICS;
	const uint32_t all = HCA_LOCAL_WRITE | HCA_REMOTE_WRITE |
			     HCA_REMOTE_READ | HCA_REMOTE_ATOMIC;

	region_init(f, REGION_LOCAL, f->from, WORKLOAD_SOURCE + SINK_BYTES,
		    HCA_LOCAL_WRITE);
	f->source = f->region[REGION_LOCAL].off;
	fill_random(w, f->from, f->source, WORKLOAD_SOURCE);
	region_init(f, REGION_REMOTE, f->to, remote_bytes, all);
	f->constant = f->region[REGION_REMOTE].off;
	f->writable = f->constant + WORKLOAD_AREA;
	f->atomics = f->writable + WORKLOAD_AREA;
	fill_random(w, f->to, f->constant, 2 * WORKLOAD_AREA);
	region_init(f, REGION_TARGET, f->to, SINK_BYTES, HCA_LOCAL_WRITE);
}

static void make_flow(struct world *w, struct pair *p, uint32_t i,
		      struct host *from, struct host *to)
{
	struct flow *f = &p->flow[i];

	f->id = (uint32_t)(f - w->flows);
	f->pair = p;
	f->back = &p->flow[!i];
	f->from = from;
	f->to = to;
	f->cap = (struct hca_qp_cap){.send_wr = 1 + draw_below(w, 32),
				     .recv_wr = 1 + draw_below(w, 32),
				     .send_sge = FLOW_SGES,
				     .recv_sge = FLOW_SGES,
				     .inline_bytes = WORKLOAD_INLINE};
	f->shares = !draw_below(w, 3);
	f->tap = draw_below(w, WORLD_TAPS);
}

void pair_init(struct world *w)
{
	w->pair_count = 1 + draw_below(w, draw_below(w, 4) ? 3 : PAIRS);
	w->flow_count = 2 * w->pair_count;
	w->pairs = calloc(w->pair_count, sizeof(*w->pairs));
	w->flows = calloc(w->flow_count, sizeof(*w->flows));
	if (!w->pairs || !w->flows)
		abort();
	for (uint32_t i = 0; i < w->pair_count; i++) {
		struct pair *p = &w->pairs[i];
		uint32_t a = draw_below(w, w->host_count);
		uint32_t b = (a + 1 + draw_below(w, w->host_count - 1)) %
			     w->host_count;

		p->flow = &w->flows[2 * i];
		p->rounds = 1 + draw_below(w, ROUNDS);
		make_flow(w, p, 0, &w->hosts[a], &w->hosts[b]);
		make_flow(w, p, 1, &w->hosts[b], &w->hosts[a]);
		p->flow[0].service = p->flow[1].service =
			w->kind.has_streams ? &service_iwarp
					    : services[draw_below(w, SERVICES)];
		make_memory(w, &p->flow[0]);
		make_memory(w, &p->flow[1]);
	}
	for (uint32_t i = 0; i < w->host_count; i++)
		pair_host_is_back(w, &w->hosts[i]);
}

void pair_host_is_back(struct world *w, struct host *h)
{
	for (uint32_t i = 0; i < WORLD_TAPS; i++)
		tap_init(w, h, i);
	for (uint32_t i = 0; i < w->flow_count; i++)
		if (w->flows[i].from == h)
			qp_init(w, &w->flows[i]);
}

/* Deregisters the region, and keeps a copy: from here on nothing may change the
 * region's bytes. */
static void freeze_region(struct region *r)
{
	mr_free(&r->at->hca, r->mr);
	r->mr = NULL;
	r->frozen = malloc(r->bytes);
	if (!r->frozen)
		abort();
	memcpy(r->frozen, r->at->memory.bytes + r->off, r->bytes);
}

void pair_host_dies(struct world *w, struct host *h)
{
	for (uint32_t i = 0; i < w->flow_count; i++) {
		struct flow *f = &w->flows[i];

		for (int k = 0; k < REGION_COUNT; k++)
			if (f->region[k].at == h)
				f->region[k].mr = NULL;
		if (f->from != h)
			continue;
		f->round.sqd = SQD_NO;
		f->round.dead = true;
		qp_fini(f);
	}
	for (uint32_t i = 0; i < WORLD_TAPS; i++) {
		if (h->taps[i].cq)
			cq_free(&h->hca, h->taps[i].cq);
		memset(&h->taps[i], 0, sizeof(h->taps[i]));
	}
}

void pair_fini(struct world *w)
{
	for (uint32_t i = 0; i < w->host_count; i++)
		if (!w->hosts[i].dead)
			pair_host_dies(w, &w->hosts[i]);
	for (uint32_t i = 0; i < w->flow_count; i++) {
		for (int k = 0; k < REGION_COUNT; k++)
			free(w->flows[i].region[k].frozen);
		free(w->flows[i].bytestream);
	}
	for (uint32_t i = 0; i < w->pair_count; i++)
		pcap_disconnect(&w->pairs[i].pcap);
	free(w->flows);
	free(w->pairs);
}

/* ---- rounds ---- */

static bool are_hosts_up(const struct pair *p)
{
	return node_is_up(p->flow[0].from) && node_is_up(p->flow[1].from);
}

/* Are the hosts of the pair's remaining queue pairs up? */
static bool can_act(const struct pair *p)
{
	for (int i = 0; i < 2; i++)
		if (p->flow[i].qp && !node_is_up(p->flow[i].from))
			return false;
	return true;
}

static void reset_flow(struct world *w, struct flow *f)
{
	struct hca_qp_attr a = {0};

	if (f->qp)
		workload_modify(w, f, &a, HCA_QP_RESET, 0);
	/* a reset leaves the receives of the previous round in a shared queue
	 */
	if (f->qp && f->shares)
		empty_srq(f->cap.srq);
	f->round.sqd = SQD_NO;
}

static void start_round(struct world *w, struct pair *p)
{
	p->round++;
	p->rough = !world_is_quiet(w);
	for (int i = 0; i < 2; i++) {
		struct flow *f = &p->flow[i];

		reset_flow(w, f);
		f->round.revoked = 0;
		f->round.dead = false;
		f->sink = f->source + WORKLOAD_SOURCE;
		f->sink_end = f->sink + SINK_BYTES;
		f->recv_brk = f->region[REGION_TARGET].off;
		f->recv_end = f->recv_brk + SINK_BYTES;
		workload_draw(w, f);
	}
	for (int i = 0; i < 2; i++)
		for (int k = 0; k < REGION_COUNT; k++)
			if (!p->flow[i].region[k].mr)
				region_register(&p->flow[i],
						&p->flow[i].region[k]);
	p->flow->service->connect(w, p->flow);
	/* in half of the rounds one MSN is near its wrap */
	if (draw_below(w, 2))
		p->flow[draw_below(w, 2)].q->resp.msn = 0xfffff0;
	p->phase = PAIR_RUNNING;
}

/* Ends the round, and lets the oracle check it. */
static void finish_round(struct world *w, struct pair *p)
{
	for (int i = 0; i < 2; i++) {
		p->flow[i].round.certain = p->flow[i].round.ops_count;
		if (p->flow[i].service->end)
			p->flow[i].service->end(&p->flow[i]);
	}
	for (int i = 0; i < 2; i++)
		reset_flow(w, &p->flow[i]);
	oracle_round(w, p);
	p->phase = p->round < p->rounds && !world_is_quiet(w) ? PAIR_DOWN
							      : PAIR_OVER;
}

/* Has the flow nothing to wait for in this round? */
static bool is_done(const struct flow *f)
{
	if (!pair_is_broken(f) && f->round.sqd && f->qp->state != HCA_QP_SQE)
		return false;
	return (f->round.dead || f->round.next == f->round.ops_count) &&
	       f->service->is_over(f);
}

/* Counts the receives in a shared receive queue that no message has taken. */
static uint32_t unused_receives(const struct flow *f)
{
	return f->shares ? f->cap.srq->wq.head - srq_next(f->cap.srq) : 0;
}

/* Has each posted request and receive completed?  A receive may also have
 * stayed in a shared receive queue. */
static bool is_flushed(const struct flow *f)
{
	return pair_is_broken(f) &&
	       (f->round.dead || f->round.next == f->round.posted) &&
	       (f->back->round.dead ||
		f->round.recvs_next + unused_receives(f->back) ==
			f->round.recvs_posted);
}

static void flush_pair(struct world *w, struct pair *p)
{
	struct hca_qp_attr a = {0};

	for (int i = 0; i < 2; i++)
		if (!p->flow[i].round.dead)
			workload_modify(w, &p->flow[i], &a, HCA_QP_ERR, 0);
	p->phase = PAIR_FLUSHING;
}

/* Sets the QP of a drained send queue back to RTS, in one call of four. */
static void resume_sq(struct world *w, struct flow *f)
{
	struct hca_qp_attr a = {0};

	if (f->round.sqd != SQD_DRAINED || !node_is_up(f->from) ||
	    draw_below(w, 4))
		return;
	f->round.sqd = SQD_NO;
	if (f->qp->state == HCA_QP_SQD)
		workload_modify(w, f, &a, HCA_QP_RTS, 0);
}

static void run_pair(struct world *w, struct pair *p)
{
	resume_sq(w, &p->flow[0]);
	resume_sq(w, &p->flow[1]);
	if (!is_done(&p->flow[0]) || !is_done(&p->flow[1]))
		return;
	if (!can_act(p))
		return;
	if (draw_below(w, 2))
		flush_pair(w, p);
	else
		finish_round(w, p);
}

/* May a frame of an unreliable pair's previous round still arrive? */
static bool may_come_late(const struct world *w, const struct pair *p)
{
	if (!p->flow->service->is_lossy || !p->round)
		return false;
	if (w->subnet && subnet_is_busy(w))
		return true;
	for (int i = 0; i < 2; i++) {
		const struct host *h = p->flow[i].from;

		if (h->inbox_count || engine_has_tx(h->engine))
			return true;
		for (size_t k = 0; k < w->flights.count; k++)
			if (w->flights.heap[k]->to_host == h->index)
				return true;
	}
	return false;
}

static void step_pair(struct world *w, struct pair *p)
{
	switch (p->phase) {
	case PAIR_DOWN:
		if (are_hosts_up(p) && !may_come_late(w, p))
			start_round(w, p);
		break;
	case PAIR_RUNNING:
		run_pair(w, p);
		break;
	case PAIR_FLUSHING:
		if (can_act(p) && is_flushed(&p->flow[0]) &&
		    is_flushed(&p->flow[1]))
			finish_round(w, p);
		break;
	case PAIR_OVER:
		break;
	}
}

void pair_step(struct world *w)
{
	for (uint32_t i = 0; i < w->pair_count; i++)
		step_pair(w, &w->pairs[i]);
}

bool pair_all_over(const struct world *w)
{
	for (uint32_t i = 0; i < w->pair_count; i++)
		if (w->pairs[i].phase != PAIR_OVER)
			return false;
	return true;
}

void pair_stuck(struct world *w)
{
	const struct flow *f = w->flows;

	while (f->pair->phase == PAIR_OVER)
		f++;
	if (is_done(f))
		f = f->back;
	world_fail(w,
		   "stuck: flow %u (phase %u, QP state %u) has %u of %u "
		   "requests and %u of %u receives done",
		   f->id, f->pair->phase, f->qp ? f->qp->state : 99,
		   f->round.next, f->round.ops_count, f->round.recvs_next,
		   f->round.recvs_count);
}

/* ---- disturbances ---- */

void pair_drained(struct world *w, const struct host *h, uint32_t qpn)
{
	struct flow *f = pair_flow_of(w, h, qpn);

	if (!f || f->round.sqd != SQD_DRAINING)
		world_fail(w, "host %u: SQ_DRAINED without a request for it",
			   h->index);
	else
		f->round.sqd = SQD_DRAINED;
}

/* A program drains its send queue (SQD). */
static void drain_sq(struct world *w, struct flow *f)
{
	struct hca_qp_attr a = {.en_sqd_async_notify = 1};

	/* the simulator does not drain the send queues of iWARP QPs */
	if (!f->qp || f->qp->state != HCA_QP_RTS || f->round.sqd ||
	    f->bytestream)
		return;
	f->round.sqd = SQD_DRAINING;
	workload_modify(w, f, &a, HCA_QP_SQD, HCA_QP_EN_SQD_ASYNC);
}

/* A program migrates its QP to the alternate path, or rearms a QP that has
 * migrated. */
static void change_path(struct world *w, struct flow *f)
{
	struct hca_qp_attr a = {.path_mig_state = HCA_MIG_MIGRATED};

	if (!f->qp || f->qp->state != HCA_QP_RTS || !f->qp->attr.alt_ah.dlid)
		return;
	if (f->qp->attr.path_mig_state == HCA_MIG_MIGRATED)
		a.path_mig_state = HCA_MIG_REARM;
	else if (f->qp->attr.path_mig_state != HCA_MIG_ARMED)
		return;
	workload_modify(w, f, &a, HCA_QP_RTS, HCA_QP_PATH_MIG_STATE);
}

/* A program deregisters a region that the seed draws. */
static void deregister_one(struct world *w, struct flow *f)
{
	uint32_t k = draw_below(w, REGION_COUNT);
	struct region *r = &f->region[k];

	if (!node_is_up(r->at) || !r->mr)
		return;
	f->round.revoked |= (uint8_t)(1u << k);
	freeze_region(r);
}

void pair_disturb(struct world *w)
{
	struct flow *f = &w->flows[draw_below(w, w->flow_count)];
	struct hca_qp_attr a = {0};

	if (f->pair->phase != PAIR_RUNNING || !node_is_up(f->from))
		return;
	switch (draw_below(w, 6)) {
	case 0: /* the round ends with requests outstanding */
		if (are_hosts_up(f->pair))
			finish_round(w, f->pair);
		break;
	case 1:
		workload_modify(w, f, &a, HCA_QP_ERR, 0);
		break;
	case 2:
		deregister_one(w, f);
		break;
	case 3:
		if (w->subnet)
			change_path(w, f);
		else
			drain_sq(w, f);
		break;
	default:
		drain_sq(w, f);
		break;
	}
}
