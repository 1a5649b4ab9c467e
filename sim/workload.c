/* SPDX-License-Identifier: BSD-2-Clause */
#include "sim/workload.h"

#include <stdlib.h>
#include <string.h>

#include "sim/oracle.h"
#include "sim/service.h"
#include "util/bits.h"

#define SINK_BYTES (512u << 10)

static const struct service *const services[] = {&service_rc};

#define SERVICES ((uint32_t)(sizeof services / sizeof services[0]))

uint32_t workload_below(struct world *w, uint32_t n)
{
	return rng_below(&w->rng, n);
}

static void fill(struct world *w, struct host *h, uint32_t off, uint32_t bytes)
{
	for (uint32_t i = 0; i < bytes; i += 8) {
		uint64_t v = rng_u64(&w->rng);

		memcpy(h->mem + off + i, &v, 8);
	}
	memcpy(h->shadow + off, h->mem + off, bytes);
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
	struct recv *r = &f->recvs[f->recvs_count];
	uint32_t room = f->recv_end - f->recv_brk;

	if (bytes > room)
		return false;
	if (f->ops[op].defect == OP_SHORT_RECV)
		bytes -= 1 + workload_below(w, bytes);
	else
		bytes += workload_below(w, bits_min_u32(room - bytes + 1, 300));
	r->pieces = workload_cut(w, r->piece, &f->recv_brk, bytes, FLOW_SGES);
	r->op = op;
	f->recvs_count++;
	return true;
}

static struct mr *map(struct host *h, uint32_t pd, uint32_t off, uint32_t bytes,
		      uint32_t access)
{
	struct mr *mr =
		mr_new(&h->hca, pd, h->va + off, bytes, h->va + off, access);

	if (!mr)
		abort();
	return mr;
}

static void make_memory(struct world *w, struct flow *f)
{
	const uint32_t remote_bytes = 2 * WORKLOAD_AREA + 8 * WORKLOAD_ATOMICS;
	const uint32_t all = HCA_LOCAL_WRITE | HCA_REMOTE_WRITE |
			     HCA_REMOTE_READ | HCA_REMOTE_ATOMIC;
	struct flow *back = f->back;

	f->source = world_alloc(f->from, WORKLOAD_SOURCE + SINK_BYTES);
	f->sink = f->source + WORKLOAD_SOURCE;
	f->sink_end = f->sink + SINK_BYTES;
	fill(w, f->from, f->source, WORKLOAD_SOURCE + 4096);
	f->local = map(f->from, f->pd, f->source, WORKLOAD_SOURCE + SINK_BYTES,
		       HCA_LOCAL_WRITE);
	f->constant = world_alloc(f->to, remote_bytes);
	f->writable = f->constant + WORKLOAD_AREA;
	f->atomics = f->writable + WORKLOAD_AREA;
	fill(w, f->to, f->constant, 2 * WORKLOAD_AREA);
	f->remote = map(f->to, back->pd, f->constant, remote_bytes, all);
	f->recv_brk = world_alloc(f->to, SINK_BYTES);
	f->recv_end = f->recv_brk + SINK_BYTES;
	f->target =
		map(f->to, back->pd, f->recv_brk, SINK_BYTES, HCA_LOCAL_WRITE);
}

static bool make_op(struct world *w, struct flow *f, bool defective)
{
	memset(&f->ops[f->ops_count], 0, sizeof f->ops[0]);
	return f->service->make(w, f, defective);
}

static void make_ops(struct world *w, struct flow *f)
{
	uint32_t n = 1 + workload_below(w, FLOW_OPS);
	/* one pair in eight gets a request that must fail */
	uint32_t defect = workload_below(w, 8) ? n : workload_below(w, n);

	while (f->ops_count < n && make_op(w, f, f->ops_count == defect))
		f->ops_count++;
	/* slots of unsignaled requests come back with a signaled one */
	for (uint32_t i = f->qp->sq.depth - 1; i < f->ops_count;
	     i += f->qp->sq.depth)
		f->ops[i].flags |= HCA_SEND_SIGNALED;
	if (!f->ops_count)
		abort();
	f->ops[f->ops_count - 1].flags |= HCA_SEND_SIGNALED;
	f->failed = f->ops_count;
}

static void make_qp(struct world *w, struct flow *f)
{
	struct hca_qp_cap cap = {.send_wr = 1 + workload_below(w, 32),
				 .recv_wr = 1 + workload_below(w, 32),
				 .send_sge = FLOW_SGES,
				 .recv_sge = FLOW_SGES,
				 .inline_bytes = WORKLOAD_INLINE};
	uint32_t qpn = 0x11 + f->id;

	f->pd = hca_pd_new(&f->from->hca);
	f->cq = cq_new(&f->from->hca, 2 * FLOW_OPS, qpn);
	f->qp = f->cq ? qp_new(&f->from->hca, qpn, f->service->qp_type, f->pd,
			       f->cq, f->cq, &cap, false)
		      : NULL;
	f->q = f->qp ? engine_qp_add(f->from->engine, f->qp) : NULL;
	if (!f->q)
		abort();
}

void workload_modify(struct world *w, struct flow *f, struct hca_qp_attr *a,
		     uint32_t state, uint32_t mask)
{
	const char *why = "";

	a->qp_state = state;
	if (engine_qp_modify(f->from->engine, f->q, a, mask | HCA_QP_STATE,
			     f->from->addr.ip, w->now_ns, &why))
		world_fail(w, "modify to %u: %s", state, why);
}

uint32_t workload_psn(struct world *w, struct flow *f)
{
	if (w->round)
		f->psn += workload_below(w, 2) ? 0x400000 : 0xb00000;
	else
		f->psn = rng_u32(&w->rng) |
			 (workload_below(w, 2) ? 0xffff00 : 0);
	return f->psn &= 0xffffff;
}

void workload_init(struct world *w)
{
	const struct service *service = NULL;
	uint32_t pairs = 1 + workload_below(w, 2);

	w->flow_count = 2 * pairs;
	w->flows = calloc(w->flow_count, sizeof *w->flows);
	if (!w->flows)
		abort();
	for (uint32_t i = 0; i < w->flow_count; i++) {
		struct flow *f = &w->flows[i];

		f->id = i;
		f->back = &w->flows[i ^ 1];
		f->from = &w->hosts[i & 1];
		f->to = &w->hosts[~i & 1];
		if (!(i & 1))
			service = services[workload_below(w, SERVICES)];
		f->service = service;
		make_qp(w, f);
	}
	for (uint32_t i = 0; i < w->flow_count; i++) {
		make_memory(w, &w->flows[i]);
		make_ops(w, &w->flows[i]);
	}
	for (uint32_t i = 0; i < w->flow_count; i += 2)
		w->flows[i].service->connect(w, &w->flows[i]);
}

/* Nothing of the old connection may be delivered after its reset. */
static void forget(struct world *w, struct flow *f)
{
	struct hca_qp_attr a = {0};

	workload_modify(w, f, &a, HCA_QP_RESET, 0);
	if (cq_count(f->cq))
		world_fail(w, "a completion outlived its QP's reset");
	f->sink = f->source + WORKLOAD_SOURCE;
	f->recv_brk = f->recv_end - SINK_BYTES;
	f->ops_count = f->posted = f->next = 0;
	f->recvs_count = f->recvs_posted = f->recvs_next = 0;
	f->fence_next = false;
}

void workload_restart(struct world *w)
{
	w->round++;
	for (uint32_t i = 0; i < w->flow_count; i++)
		forget(w, &w->flows[i]);
	for (uint32_t i = 0; i < w->flow_count; i++)
		make_ops(w, &w->flows[i]);
	for (uint32_t i = 0; i < w->flow_count; i += 2)
		w->flows[i].service->connect(w, &w->flows[i]);
}

void workload_fini(struct world *w)
{
	for (uint32_t i = 0; i < w->flow_count; i++)
		engine_qp_remove(w->flows[i].from->engine, w->flows[i].q);
	free(w->flows);
}

/* ---- posting ---- */

static void put_pieces(struct wqe *e, const struct host *h, const struct mr *mr,
		       const struct piece *p, uint8_t n)
{
	e->num_sge = n;
	for (uint8_t i = 0; i < n; i++)
		wqe_sges(e)[i] =
			(struct wq_sge){h->va + p[i].off, p[i].bytes, mr->lkey};
}

static bool post_op(struct world *w, struct flow *f)
{
	const struct op *o = &f->ops[f->posted];
	struct wqe *e = wq_reserve(&f->from->hca, &f->qp->sq);

	if (!e)
		return false;
	memset(e, 0, sizeof *e);
	e->wr_id = oracle_wr_id(w, f, f->posted);
	e->opcode = o->opcode;
	e->flags = o->flags;
	e->bytes = o->bytes;
	e->imm_be = o->imm;
	f->service->fill(f, o, e);
	put_pieces(e, f->from, f->local, o->piece, o->pieces);
	for (int i = 0; o->defect == OP_BAD_LKEY && i < o->pieces; i++)
		wqe_sges(e)[i].lkey ^= 1;
	if (o->flags & HCA_SEND_INLINE)
		memcpy(e + 1, f->from->mem + o->piece[0].off, o->bytes);
	wq_commit(&f->qp->sq);
	f->posted++;
	return true;
}

/* At the responder, whose QP is that of the flow back. */
static bool post_recv(struct world *w, struct flow *f, struct flow *back)
{
	const struct recv *r = &f->recvs[f->recvs_posted];
	struct wqe *e = wq_reserve(&f->to->hca, &back->qp->rq);

	if (!e)
		return false;
	memset(e, 0, sizeof *e);
	e->wr_id = ORACLE_RECV | oracle_wr_id(w, f, f->recvs_posted);
	put_pieces(e, f->to, f->target, r->piece, r->pieces);
	for (int i = 0; f->ops[r->op].defect == OP_BAD_RECV && i < r->pieces;
	     i++)
		wqe_sges(e)[i].lkey ^= 1;
	wq_commit(&back->qp->rq);
	f->recvs_posted++;
	return true;
}

static void poll(struct world *w, struct flow *f)
{
	struct cqe c[8];
	uint32_t n = cq_poll(&f->from->hca, f->cq, c, 1 + workload_below(w, 8));

	for (uint32_t i = 0; i < n; i++)
		oracle_completion(w, &c[i]);
}

void workload_step(struct world *w)
{
	for (uint32_t i = 0; i < w->flow_count; i++) {
		struct flow *f = &w->flows[i], *back = f->back;
		uint32_t n = workload_below(w, 6), recvs = workload_below(w, 3);

		poll(w, f);
		while (n-- && f->posted < f->ops_count && post_op(w, f))
			;
		while (recvs-- && f->recvs_posted < f->recvs_count &&
		       post_recv(w, f, back))
			;
		engine_doorbell(f->from->engine, f->q, w->now_ns);
		engine_doorbell(back->from->engine, back->q, w->now_ns);
	}
}

bool workload_is_posted(const struct world *w)
{
	for (uint32_t i = 0; i < w->flow_count; i++) {
		const struct flow *f = &w->flows[i];

		if (f->posted < f->ops_count ||
		    f->recvs_posted < f->recvs_count)
			return false;
	}
	return true;
}
