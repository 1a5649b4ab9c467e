/* SPDX-License-Identifier: BSD-2-Clause */
#include "sim/workload.h"

#include <stdlib.h>
#include <string.h>

#include "sim/node.h"
#include "sim/oracle.h"
#include "sim/pair.h"
#include "sim/service.h"
#include "util/bits.h"

uint32_t workload_below(struct world *w, uint32_t n)
{
	return rng_below(&w->rng, n);
}

uint8_t workload_cut(struct world *w, struct piece *p, uint32_t *brk,
		     uint32_t bytes, uint32_t at_most)
{
	uint8_t n = (uint8_t)(1 + workload_below(w, at_most));

	for (uint8_t i = 0; i < n; i++) {
		uint32_t part =
			i + 1 == n ? bytes : workload_below(w, bytes + 1);

		p[i] = (struct piece){*brk, part};
		*brk += part;
		bytes -= part;
	}
	return n;
}

uint32_t workload_bytes(struct world *w)
{
	switch (workload_below(w, 8)) {
	case 0:
		return 0;
	case 1:
		return workload_below(w, 65537);
	case 2:
		return 256u << workload_below(w, 7);
	default:
		return workload_below(w, 5000);
	}
}

bool workload_receive(struct world *w, struct flow *f, uint32_t op,
		      uint32_t bytes)
{
	struct recv *r = &f->round.recvs[f->round.recvs_count];
	uint32_t room = f->recv_end - f->recv_brk;

	if (bytes > room)
		return false;
	if (f->round.ops[op].defect == OP_SHORT_RECV)
		bytes -= 1 + workload_below(w, bytes);
	else
		bytes += workload_below(w, bits_min_u32(room - bytes + 1, 300));
	r->pieces = workload_cut(w, r->piece, &f->recv_brk, bytes, FLOW_SGES);
	r->op = op;
	f->round.recvs_count++;
	return true;
}

static bool make_op(struct world *w, struct flow *f, bool defective)
{
	memset(&f->round.ops[f->round.ops_count], 0, sizeof(f->round.ops[0]));
	return f->service->make(w, f, defective);
}

void workload_draw(struct world *w, struct flow *f)
{
	uint32_t n = 1 + workload_below(w, FLOW_OPS);
	/* in one round of eight a request of the flow has a defect */
	uint32_t defect = workload_below(w, 8) ? n : workload_below(w, n);

	f->round.ops_count = f->round.posted = f->round.next = 0;
	f->round.recvs_count = f->round.recvs_posted = f->round.recvs_next = 0;
	f->round.fence_next = false;
	while (f->round.ops_count < n &&
	       make_op(w, f, f->round.ops_count == defect))
		f->round.ops_count++;
	/* only the completion of a signaled request frees the slots of the
	 * unsignaled requests before it */
	for (uint32_t i = f->qp->sq.depth - 1; i < f->round.ops_count;
	     i += f->qp->sq.depth)
		f->round.ops[i].flags |= HCA_SEND_SIGNALED;
	if (!f->round.ops_count)
		abort();
	f->round.ops[f->round.ops_count - 1].flags |= HCA_SEND_SIGNALED;
	f->round.failed = f->round.ops_count;
}

void workload_modify(struct world *w, struct flow *f, struct hca_qp_attr *a,
		     uint32_t state, uint32_t mask)
{
	const char *why = "";

	a->qp_state = state;
	if (engine_qp_modify(f->from->engine, f->q, a, mask | HCA_QP_STATE,
			     f->from->addr.ip, node_now(f->from), &why))
		world_fail(w, "modify of flow %u to %u: %s", f->id, state, why);
}

uint32_t workload_psn(struct world *w, struct flow *f)
{
	if (f->pair->round > 1)
		f->psn += workload_below(w, 2) ? 0x400000 : 0xb00000;
	else
		f->psn = rng_u32(&w->rng) |
			 (workload_below(w, 2) ? 0xffff00 : 0);
	return f->psn &= 0xffffff;
}

/* ---- posting ---- */

static void put_pieces(struct wqe *e, const struct region *r,
		       const struct piece *p, uint8_t n)
{
	e->num_sge = n;
	for (uint8_t i = 0; i < n; i++)
		wqe_sges(e)[i] = (struct wq_sge){r->at->memory.va + p[i].off,
						 p[i].bytes, r->lkey};
}

/* Posts f's next request.  False: the send queue is full. */
static bool post_op(struct world *w, struct flow *f)
{
	const struct op *o = &f->round.ops[f->round.posted];
	struct wqe *e = wq_reserve(&f->from->hca, &f->qp->sq);

	if (!e)
		return false;
	memset(e, 0, sizeof(*e));
	e->wr_id = oracle_wr_id(f, f->round.posted);
	e->opcode = o->opcode;
	e->flags = o->flags;
	e->bytes = o->bytes;
	e->imm_be = o->imm;
	put_pieces(e, &f->region[REGION_LOCAL], o->piece, o->pieces);
	for (int i = 0; o->defect == OP_BAD_LKEY && i < o->pieces; i++)
		wqe_sges(e)[i].lkey ^= 1;
	if (o->flags & HCA_SEND_INLINE)
		memcpy(e + 1, f->from->memory.bytes + o->piece[0].off,
		       o->bytes);
	f->service->fill(f, o, e);
	wq_commit(&f->qp->sq);
	f->round.posted++;
	return true;
}

/*
 * Does the message end before the i-th element of its receive, or is it a WRITE
 * with immediate data, which uses no element?  Then the responder never checks
 * the element's lkey, and a bad lkey must do no harm.  False if it is not known
 * which message takes the receive, or if the message's request has a defect.
 */
static bool is_beyond(const struct flow *f, const struct recv *r, int i)
{
	const struct op *o = &f->round.ops[r->op];
	uint32_t before = 0;

	if (f->service->is_lossy || o->defect)
		return false;
	while (i-- > 0)
		before += r->piece[i].bytes;
	return o->opcode == HCA_WR_RDMA_WRITE_IMM || before >= o->bytes;
}

/* Posts f's next receive to the responder's QP, f->back->qp, or to the shared
 * receive queue of that QP, if it has one.  False: the queue is full. */
static bool post_recv(struct world *w, struct flow *f)
{
	const struct recv *r = &f->round.recvs[f->round.recvs_posted];
	struct srq *srq = f->back->shares ? f->back->cap.srq : NULL;
	struct wq *rq = srq ? &srq->wq : &f->back->qp->rq;
	struct wqe *e = srq ? srq_reserve(&f->to->hca, srq)
			    : wq_reserve(&f->to->hca, rq);

	if (!e)
		return false;
	memset(e, 0, sizeof(*e));
	e->wr_id = ORACLE_RECV | oracle_wr_id(f, f->round.recvs_posted);
	put_pieces(e, &f->region[REGION_TARGET], r->piece, r->pieces);
	for (int i = 0; i < r->pieces; i++)
		if (f->round.ops[r->op].defect == OP_BAD_RECV ||
		    is_beyond(f, r, i))
			wqe_sges(e)[i].lkey ^= 1;
	wq_commit_recv(&f->to->hca, rq, e->wr_id);
	f->round.recvs_posted++;
	return true;
}

/* Ends the wait of direct SENDs for a receive, as a poll that finds nothing
 * does (ibt/rnr_wait). */
static void resume_one(struct world *w, struct host *h, const struct cq *cq)
{
	uint32_t number = engine_post_lock_of(cq);
	struct ibt_qp *left = NULL;
	void *to_wake = NULL;

	world_take_lock(w, h);
	if (engine_awaits_receive(h->engine, number))
		engine_resume_apart(h->engine, number, node_now(h), &left,
				    &to_wake);
	if (to_wake)
		node_wake(to_wake);
	if (left)
		engine_doorbell(h->engine, left, node_now(h));
}

/* Polls a few completions; a program that waits for events arms the CQ, and
 * polls again before it waits.  False: there is nothing to do now. */
static bool poll_tap(struct world *w, struct host *h, struct tap *t)
{
	struct cqe c[8];
	uint32_t n;

	if (!t->cq || (t->by_event && !t->fired))
		return false;
	n = cq_poll(&h->hca, t->cq, c, 1 + workload_below(w, 8));
	for (uint32_t i = 0; i < n; i++)
		oracle_completion(w, &c[i]);
	if (!n && workload_below(w, 2))
		resume_one(w, h, t->cq);
	if (n || !t->by_event)
		return n;
	if (t->armed) {
		t->fired = false;
	} else {
		t->armed = true;
		cq_arm(t->cq, false);
	}
	return true;
}

/* May the program of f post now? */
static bool is_working(const struct flow *f)
{
	return f->pair->phase == PAIR_RUNNING && !f->round.dead &&
	       node_is_up(f->from);
}

/* Gives posted requests to the engine in one of the three ways of a real
 * program: under the post lock, directly, or by the doorbell. */
static void ring_doorbell(struct world *w, struct flow *f)
{
	struct engine *e = f->from->engine;
	uint64_t now = node_now(f->from);
	uint32_t way = workload_below(w, 3);
	void *to_wake;

	if (way == 2 && engine_qp_posts_apart(f->q)) {
		bool done = engine_post_apart(e, f->q, now, &to_wake);

		if (to_wake)
			node_wake(to_wake);
		if (done)
			return;
	}
	if (way == 0 || !engine_post_direct(e, f->q, now))
		engine_doorbell(e, f->q, now);
}

/* Posts a few requests of f, and a few receives to f's QP.  False: nothing was
 * posted. */
static bool post_some(struct world *w, struct flow *f)
{
	uint32_t n = workload_below(w, 6), recvs = workload_below(w, 3);
	uint32_t before;

	/* an unreliable message without a posted receive is lost */
	if (f->service->is_lossy && workload_below(w, 2))
		recvs = FLOW_OPS;
	before = f->round.posted + f->back->round.recvs_posted;

	while (n-- && f->round.posted < f->round.ops_count &&
	       (!f->service->may_post || f->service->may_post(f)) &&
	       post_op(w, f))
		;
	/* receives for the peer's messages are posted to this QP */
	while (recvs-- &&
	       f->back->round.recvs_posted < f->back->round.recvs_count &&
	       post_recv(w, f->back))
		;
	if (f->round.posted + f->back->round.recvs_posted == before)
		return false;
	world_take_lock(w, f->from);
	ring_doorbell(w, f);
	return true;
}

uint64_t workload_step(struct world *w)
{
	bool busy = false;

	for (uint32_t i = 0; i < w->host_count; i++)
		for (int k = 0; k < WORLD_TAPS; k++)
			if (node_is_up(&w->hosts[i]))
				busy |= poll_tap(w, &w->hosts[i],
						 &w->hosts[i].taps[k]);
	for (uint32_t i = 0; i < w->flow_count; i++)
		if (is_working(&w->flows[i]))
			busy |= post_some(w, &w->flows[i]);
	world_take_lock(w, NULL);
	pair_step(w);
	return w->now_ns + (busy ? 1000 : 200000) + workload_below(w, 20000);
}

bool workload_has_news(const struct world *w)
{
	for (uint32_t i = 0; i < w->host_count; i++) {
		const struct host *h = &w->hosts[i];

		for (int k = 0; node_is_up(h) && k < WORLD_TAPS; k++) {
			const struct tap *t = &h->taps[k];

			if (t->cq &&
			    (t->by_event ? t->fired : cq_has(&h->hca, t->cq)))
				return true;
		}
	}
	return false;
}
