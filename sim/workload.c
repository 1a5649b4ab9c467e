/* SPDX-License-Identifier: BSD-2-Clause */
#include "sim/workload.h"

#include <stdlib.h>
#include <string.h>

#include "sim/oracle.h"
#include "util/bits.h"

#define SOURCE_BYTES (96u << 10)
#define SINK_BYTES   (512u << 10)
#define AREA_BYTES   (80u << 10)
#define ATOMICS	     8
#define INLINE_BYTES 128

static uint32_t below(struct world *w, uint32_t n)
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

/* Cut `bytes` from *brk on into pieces, some of them empty. */
static uint8_t cut(struct world *w, struct piece *p, uint32_t *brk,
		   uint32_t bytes, uint32_t at_most)
{
	uint8_t n = (uint8_t)(1 + below(w, at_most));

	for (uint8_t i = 0; i < n; i++) {
		uint32_t part = i + 1 == n ? bytes : below(w, bytes + 1);

		p[i] = (struct piece){*brk, part};
		*brk += part;
		bytes -= part;
	}
	return n;
}

static uint32_t random_bytes(struct world *w)
{
	switch (below(w, 8)) {
	case 0:
		return 0;
	case 1:
		return below(w, 65537);
	case 2:
		return 256u << below(w, 7);
	default:
		return below(w, 5000);
	}
}

static const uint8_t opcodes[] = {HCA_WR_RDMA_WRITE,	 HCA_WR_RDMA_WRITE,
				  HCA_WR_RDMA_WRITE_IMM, HCA_WR_SEND,
				  HCA_WR_SEND,		 HCA_WR_SEND_IMM,
				  HCA_WR_RDMA_READ,	 HCA_WR_RDMA_READ,
				  HCA_WR_ATOMIC_CAS,	 HCA_WR_ATOMIC_FADD};

/* The READ's or atomic's end, false when there is no room. */
static bool make_answered(struct world *w, struct flow *f, struct op *o,
			  bool atomic)
{
	uint32_t room = f->sink_end - f->sink;

	if (atomic)
		o->bytes = 8;
	if (o->bytes > room)
		return false;
	o->pieces = cut(w, o->piece, &f->sink, o->bytes, FLOW_SGES);
	if (atomic) {
		o->remote = f->atomics + 8 * below(w, ATOMICS);
		o->swap_add = rng_u64(&w->rng);
		/* half of the comparisons can hold: replayed by the oracle */
		o->compare = below(w, 2) ? 0 : rng_u64(&w->rng);
		return true;
	}
	f->fence_next = below(w, 2);
	o->remote = f->fence_next ? f->writable : f->constant;
	o->remote += below(w, AREA_BYTES - o->bytes);
	return true;
}

/* A receive for the message; false when there is no room. */
static bool make_receive(struct world *w, struct flow *f, uint32_t op,
			 uint32_t bytes)
{
	struct recv *r = &f->recvs[f->recvs_count];
	uint32_t room = f->recv_end - f->recv_brk;

	if (bytes > room)
		return false;
	if (f->ops[op].defect == OP_SHORT_RECV)
		bytes -= 1 + below(w, bytes);
	else
		bytes += below(w, bits_min_u32(room - bytes + 1, 300));
	r->pieces = cut(w, r->piece, &f->recv_brk, bytes, FLOW_SGES);
	r->op = op;
	f->recvs_count++;
	return true;
}

static bool make_op(struct world *w, struct flow *f, bool defective)
{
	struct op *o = &f->ops[f->ops_count];
	bool fenced = f->fence_next;
	uint32_t start;

	memset(o, 0, sizeof *o);
	o->opcode = opcodes[below(w, sizeof opcodes)];
	o->bytes = random_bytes(w);
	o->imm = rng_u32(&w->rng);
	o->flags = (uint8_t)((fenced || !below(w, 8) ? HCA_SEND_FENCE : 0) |
			     (below(w, 3) ? HCA_SEND_SIGNALED : 0));
	if (defective) {
		o->bytes += !o->bytes;
		o->defect = (uint8_t)(OP_BAD_RKEY + below(w, 4));
	}
	if (o->defect >= OP_SHORT_RECV)
		o->opcode = HCA_WR_SEND;
	if (o->defect == OP_BAD_RKEY && o->opcode != HCA_WR_RDMA_READ)
		o->opcode = HCA_WR_RDMA_WRITE;
	f->fence_next = false;
	switch ((enum hca_wr)o->opcode) {
	case HCA_WR_RDMA_READ:
		return make_answered(w, f, o, false);
	case HCA_WR_ATOMIC_CAS:
	case HCA_WR_ATOMIC_FADD:
		return make_answered(w, f, o, true);
	case HCA_WR_RDMA_WRITE:
	case HCA_WR_RDMA_WRITE_IMM:
	case HCA_WR_SEND:
	case HCA_WR_SEND_IMM:
	case HCA_WR_LOCAL_INV:
	case HCA_WR_SEND_INV:
		break;
	}
	start = f->source + below(w, SOURCE_BYTES - o->bytes);
	o->pieces = cut(w, o->piece, &start, o->bytes, FLOW_SGES);
	if (!o->defect && o->bytes <= INLINE_BYTES && below(w, 2))
		o->flags |= HCA_SEND_INLINE;
	o->remote = f->writable + below(w, AREA_BYTES - o->bytes);
	return o->opcode == HCA_WR_RDMA_WRITE ||
	       make_receive(w, f, f->ops_count, o->bytes);
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
	const uint32_t remote_bytes = 2 * AREA_BYTES + 8 * ATOMICS;
	const uint32_t all = HCA_LOCAL_WRITE | HCA_REMOTE_WRITE |
			     HCA_REMOTE_READ | HCA_REMOTE_ATOMIC;
	struct flow *back = &w->flows[(f - w->flows) ^ 1];

	f->source = world_alloc(f->from, SOURCE_BYTES + SINK_BYTES);
	f->sink = f->source + SOURCE_BYTES;
	f->sink_end = f->sink + SINK_BYTES;
	fill(w, f->from, f->source, SOURCE_BYTES + 4096);
	f->local = map(f->from, f->pd, f->source, SOURCE_BYTES + SINK_BYTES,
		       HCA_LOCAL_WRITE);
	f->constant = world_alloc(f->to, remote_bytes);
	f->writable = f->constant + AREA_BYTES;
	f->atomics = f->writable + AREA_BYTES;
	fill(w, f->to, f->constant, 2 * AREA_BYTES);
	f->remote = map(f->to, back->pd, f->constant, remote_bytes, all);
	f->recv_brk = world_alloc(f->to, SINK_BYTES);
	f->recv_end = f->recv_brk + SINK_BYTES;
	f->target =
		map(f->to, back->pd, f->recv_brk, SINK_BYTES, HCA_LOCAL_WRITE);
}

static void make_ops(struct world *w, struct flow *f)
{
	uint32_t n = 1 + below(w, FLOW_OPS);
	/* one pair in eight gets a request that must fail */
	uint32_t defect = below(w, 8) ? n : below(w, n);

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
	struct hca_qp_cap cap = {.send_wr = 1 + below(w, 32),
				 .recv_wr = 1 + below(w, 32),
				 .send_sge = FLOW_SGES,
				 .recv_sge = FLOW_SGES,
				 .inline_bytes = INLINE_BYTES};
	uint32_t qpn = 0x11 + (uint32_t)(f - w->flows);

	f->pd = hca_pd_new(&f->from->hca);
	f->cq = cq_new(&f->from->hca, 2 * FLOW_OPS, qpn);
	f->qp = f->cq ? qp_new(&f->from->hca, qpn, HCA_QPT_RC, f->pd, f->cq,
			       f->cq, &cap, false)
		      : NULL;
	f->q = f->qp ? engine_qp_add(f->from->engine, f->qp) : NULL;
	if (!f->q)
		abort();
}

static void modify(struct world *w, struct flow *f, struct hca_qp_attr *a,
		   uint32_t state, uint32_t mask)
{
	const char *why = "";

	a->qp_state = state;
	if (engine_qp_modify(f->from->engine, f->q, a, mask | HCA_QP_STATE,
			     f->from->addr.ip, w->now_ns, &why))
		world_fail(w, "modify to %u: %s", state, why);
}

/* What both ends agree on is in *a; the rest is drawn. */
static void connect_qp(struct world *w, struct flow *f, struct hca_qp_attr *a)
{
	memcpy(a->ah.dgid, f->to->addr.ip, 16);
	a->ah.is_global = 1;
	a->ah.hop_limit = 64;
	a->port_num = 1;
	a->dest_qpn = w->flows[(f - w->flows) ^ 1].qp->qpn;
	a->access_flags =
		HCA_REMOTE_WRITE | HCA_REMOTE_READ | HCA_REMOTE_ATOMIC;
	a->min_rnr_timer = (uint8_t)(1 + below(w, 12));
	a->timeout = (uint8_t)(8 + below(w, 7));
	a->retry_cnt = (uint8_t)below(w, 8);
	a->rnr_retry = 7;
	modify(w, f, a, HCA_QP_INIT,
	       HCA_QP_PKEY_INDEX | HCA_QP_PORT | HCA_QP_ACCESS_FLAGS);
	modify(w, f, a, HCA_QP_RTR,
	       HCA_QP_AV | HCA_QP_PATH_MTU | HCA_QP_DEST_QPN | HCA_QP_RQ_PSN |
		       HCA_QP_MAX_DEST_RD_ATOMIC | HCA_QP_MIN_RNR_TIMER);
	modify(w, f, a, HCA_QP_RTS,
	       HCA_QP_SQ_PSN | HCA_QP_TIMEOUT | HCA_QP_RETRY_CNT |
		       HCA_QP_RNR_RETRY | HCA_QP_MAX_QP_RD_ATOMIC);
}

/* Near the wrap in half of the cases, later on far from the one before. */
static uint32_t draw_psn(struct world *w, struct flow *f)
{
	if (w->round)
		f->psn += below(w, 2) ? 0x400000 : 0xb00000;
	else
		f->psn = rng_u32(&w->rng) | (below(w, 2) ? 0xffff00 : 0);
	return f->psn &= 0xffffff;
}

static void make_pair(struct world *w, struct flow *f)
{
	struct hca_qp_attr there = {0}, back = {0};

	there.path_mtu = back.path_mtu = 1 + below(w, 5);
	there.sq_psn = back.rq_psn = draw_psn(w, &f[0]);
	there.rq_psn = back.sq_psn = draw_psn(w, &f[1]);
	there.max_rd_atomic = back.max_dest_rd_atomic =
		(uint8_t)(1 + below(w, 16));
	back.max_rd_atomic = there.max_dest_rd_atomic =
		(uint8_t)(1 + below(w, 16));
	connect_qp(w, &f[0], &there);
	connect_qp(w, &f[1], &back);
}

void workload_init(struct world *w)
{
	uint32_t pairs = 1 + below(w, 2);

	w->flow_count = 2 * pairs;
	w->flows = calloc(w->flow_count, sizeof *w->flows);
	if (!w->flows)
		abort();
	for (uint32_t i = 0; i < w->flow_count; i++) {
		w->flows[i].from = &w->hosts[i & 1];
		w->flows[i].to = &w->hosts[~i & 1];
		make_qp(w, &w->flows[i]);
	}
	for (uint32_t i = 0; i < w->flow_count; i++) {
		make_memory(w, &w->flows[i]);
		make_ops(w, &w->flows[i]);
	}
	for (uint32_t i = 0; i < w->flow_count; i += 2)
		make_pair(w, &w->flows[i]);
}

/* Nothing of the old connection may be delivered after its reset. */
static void forget(struct world *w, struct flow *f)
{
	struct hca_qp_attr a = {0};

	modify(w, f, &a, HCA_QP_RESET, 0);
	if (cq_count(f->cq))
		world_fail(w, "a completion outlived its QP's reset");
	f->sink = f->source + SOURCE_BYTES;
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
		make_pair(w, &w->flows[i]);
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
	e->rkey = f->remote->rkey ^ (o->defect == OP_BAD_RKEY);
	e->va = f->to->va + o->remote;
	e->swap_add = o->swap_add;
	e->compare = o->compare;
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
	uint32_t n = cq_poll(&f->from->hca, f->cq, c, 1 + below(w, 8));

	for (uint32_t i = 0; i < n; i++)
		oracle_completion(w, &c[i]);
}

void workload_step(struct world *w)
{
	for (uint32_t i = 0; i < w->flow_count; i++) {
		struct flow *f = &w->flows[i], *back = &w->flows[i ^ 1];
		uint32_t n = below(w, 6), recvs = below(w, 3);

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
