/* SPDX-License-Identifier: BSD-2-Clause */
/* RC: every message arrives, in order, or the pair fails. */
#include "sim/service.h"

#include <string.h>

#include "sim/oracle.h"
#include "sim/pair.h"
#include "sim/subnet.h"
#include "util/bits.h"

static const uint8_t opcodes[] = {
	HCA_WR_RDMA_WRITE,  HCA_WR_RDMA_WRITE,	HCA_WR_RDMA_WRITE_IMM,
	HCA_WR_SEND,	    HCA_WR_SEND,	HCA_WR_SEND_IMM,
	HCA_WR_RDMA_READ,   HCA_WR_RDMA_READ,	HCA_WR_ATOMIC_CAS,
	HCA_WR_ATOMIC_FADD, HCA_WR_ATOMIC_WRITE};

/* Draws those attributes of a READ or an atomic that the caller has not drawn.
 * False: there is no room for the result. */
static bool make_read_or_atomic(struct world *w, struct flow *f, struct op *o,
				bool atomic)
{
	uint32_t room = f->sink_end - f->sink;

	if (atomic)
		o->bytes = 8;
	if (o->bytes > room)
		return false;
	o->pieces = workload_cut(w, o->piece, &f->sink, o->bytes, FLOW_SGES);
	if (atomic) {
		o->remote =
			f->atomics + 8 * workload_below(w, WORKLOAD_ATOMICS);
		o->swap_add = rng_u64(&w->rng);
		/* a comparison with 0 may succeed, a random one does not */
		o->compare = workload_below(w, 2) ? 0 : rng_u64(&w->rng);
		return true;
	}
	f->round.fence_next = workload_below(w, 2);
	o->remote = f->round.fence_next ? f->writable : f->constant;
	o->remote += workload_below(w, WORKLOAD_AREA - o->bytes);
	return true;
}

bool service_rc_make(struct world *w, struct flow *f, bool defective)
{
	struct op *o = &f->round.ops[f->round.ops_count];
	bool fenced = f->round.fence_next;
	uint32_t start;

	o->opcode =
		f->service
			->opcodes[workload_below(w, f->service->opcode_count)];
	o->bytes = workload_bytes(w);
	o->imm = rng_u32(&w->rng);
	o->flags = (uint8_t)((fenced || !workload_below(w, 8) ? HCA_SEND_FENCE
							      : 0) |
			     (workload_below(w, 3) ? HCA_SEND_SIGNALED : 0));
	if (defective) {
		o->bytes += !o->bytes;
		o->defect = (uint8_t)(OP_BAD_RKEY + workload_below(w, 4));
	}
	if (o->defect >= OP_SHORT_RECV)
		o->opcode = HCA_WR_SEND;
	if (o->defect == OP_BAD_RKEY && o->opcode != HCA_WR_RDMA_READ)
		o->opcode = HCA_WR_RDMA_WRITE;
	f->round.fence_next = false;
	switch ((enum hca_wr)o->opcode) {
	case HCA_WR_RDMA_READ:
		return make_read_or_atomic(w, f, o, false);
	case HCA_WR_ATOMIC_CAS:
	case HCA_WR_ATOMIC_FADD:
		return make_read_or_atomic(w, f, o, true);
	case HCA_WR_ATOMIC_WRITE:
		o->bytes = 8;
		break;
	case HCA_WR_RDMA_WRITE:
	case HCA_WR_RDMA_WRITE_IMM:
	case HCA_WR_SEND:
	case HCA_WR_SEND_IMM:
	case HCA_WR_LOCAL_INV:
	case HCA_WR_BIND_MW:
	case HCA_WR_SEND_INV:
		break;
	}
	start = f->source + workload_below(w, WORKLOAD_SOURCE - o->bytes);
	o->pieces = workload_cut(w, o->piece, &start, o->bytes, FLOW_SGES);
	if (!o->defect && o->bytes <= WORKLOAD_INLINE && workload_below(w, 2))
		o->flags |= HCA_SEND_INLINE;
	o->remote = f->writable + workload_below(w, WORKLOAD_AREA - o->bytes);
	if (o->opcode == HCA_WR_ATOMIC_WRITE)
		o->remote &= ~7u;
	return o->opcode == HCA_WR_RDMA_WRITE ||
	       o->opcode == HCA_WR_ATOMIC_WRITE ||
	       workload_receive(w, f, f->round.ops_count, o->bytes);
}

void service_rc_enter_rts(struct world *w, struct flow *f,
			  struct hca_qp_attr *a)
{
	workload_modify(w, f, a, HCA_QP_INIT,
			HCA_QP_PKEY_INDEX | HCA_QP_PORT | HCA_QP_ACCESS_FLAGS);
	workload_modify(w, f, a, HCA_QP_RTR,
			HCA_QP_AV | HCA_QP_PATH_MTU | HCA_QP_DEST_QPN |
				HCA_QP_RQ_PSN | HCA_QP_MAX_DEST_RD_ATOMIC |
				HCA_QP_MIN_RNR_TIMER);
	workload_modify(w, f, a, HCA_QP_RTS,
			HCA_QP_SQ_PSN | HCA_QP_TIMEOUT | HCA_QP_RETRY_CNT |
				HCA_QP_RNR_RETRY | HCA_QP_MAX_QP_RD_ATOMIC);
}

/* Gives the QP an alternate path, from port 2 to port 2 of the peer. */
static void set_alternate(struct world *w, struct flow *f,
			  struct hca_qp_attr *a)
{
	subnet_draw_path(f, 2, &a->alt_ah);
	a->alt_port_num = 2;
	a->path_mig_state = HCA_MIG_REARM;
	workload_modify(w, f, a, HCA_QP_RTS,
			HCA_QP_ALT_PATH | HCA_QP_PATH_MIG_STATE);
}

/* The caller sets the attributes in *a that both QPs must agree on; this
 * function sets the others.  alt_timeout is not 0 if the QP gets an alternate
 * path. */
static void connect_qp(struct world *w, struct flow *f, struct hca_qp_attr *a)
{
	memcpy(a->ah.dgid, f->to->addr.ip, 16);
	a->ah.is_global = 1;
	a->ah.hop_limit = 64;
	a->ah.local = w->kind.direct || w->kind.has_shm_ack;
	a->ah.bursts = rng_chance(&w->rng, 500000);
	if (w->subnet)
		subnet_draw_path(f, 1, &a->ah);
	a->port_num = 1;
	a->dest_qpn = f->back->qp->qpn;
	a->access_flags =
		HCA_REMOTE_WRITE | HCA_REMOTE_READ | HCA_REMOTE_ATOMIC;
	a->min_rnr_timer =
		(uint8_t)(1 +
			  workload_below(w, workload_below(w, 8) ? 12 : 20));
	a->timeout = (uint8_t)(8 + workload_below(w, 7));
	a->retry_cnt = (uint8_t)workload_below(w, 8);
	a->rnr_retry = f->round.rnr_retry =
		(uint8_t)(workload_below(w, 4) ? 7 : workload_below(w, 7));
	service_rc_enter_rts(w, f, a);
	if (a->alt_timeout)
		set_alternate(w, f, a);
}

static void connect_pair(struct world *w, struct flow *f)
{
	struct hca_qp_attr there = {0}, back = {0};

	there.path_mtu = back.path_mtu = 1 + workload_below(w, 5);
	there.sq_psn = back.rq_psn = workload_psn(w, &f[0]);
	there.rq_psn = back.sq_psn = workload_psn(w, &f[1]);
	there.max_rd_atomic = back.max_dest_rd_atomic =
		(uint8_t)(1 + workload_below(w, 16));
	back.max_rd_atomic = there.max_dest_rd_atomic =
		(uint8_t)(1 + workload_below(w, 16));
	if (w->subnet && !workload_below(w, 2))
		there.alt_timeout = back.alt_timeout =
			(uint8_t)(8 + workload_below(w, 7));
	connect_qp(w, &f[0], &there);
	connect_qp(w, &f[1], &back);
}

static bool has_receive(const struct op *o)
{
	return o->opcode == HCA_WR_RDMA_WRITE_IMM || o->opcode == HCA_WR_SEND ||
	       o->opcode == HCA_WR_SEND_IMM;
}

/* May the request fail with this status? */
static bool may_fail(const struct flow *f, const struct op *o, uint32_t status)
{
	const struct world *w = f->from->world;
	bool send = o->opcode == HCA_WR_SEND || o->opcode == HCA_WR_SEND_IMM;

	switch (status) {
	case HCA_RETRY_EXC_ERR:
		/* A request to a live peer may fail with this status only in a
		 * round with faults, and in such a round only under strict
		 * timing or if no broker knows the peer. */
		return pair_peer_is_gone(f) ||
		       (f->pair->rough &&
			(w->strict || w->liveness == LIVENESS_FOREIGN));
	case HCA_RNR_RETRY_EXC_ERR:
		return f->round.rnr_retry != 7 && has_receive(o);
	case HCA_REM_ACCESS_ERR:
		return o->defect == OP_BAD_RKEY ||
		       (!send && f->round.revoked & 1 << REGION_REMOTE);
	case HCA_LOC_PROT_ERR:
		return o->defect == OP_BAD_LKEY ||
		       f->round.revoked & 1 << REGION_LOCAL;
	case HCA_REM_INV_REQ_ERR:
		return o->defect == OP_SHORT_RECV;
	case HCA_REM_OP_ERR:
		return o->defect == OP_BAD_RECV ||
		       (send && f->round.revoked & 1 << REGION_TARGET);
	default:
		return false;
	}
}

static bool may_end(const struct flow *f, uint32_t i, uint32_t status)
{
	const struct op *o = &f->round.ops[i];

	if (status == HCA_WR_FLUSH_ERR)
		return pair_is_broken(f);
	if (f->round.failed < i)
		return false; /* only flushing follows a failure */
	return status ? may_fail(f, o, status) : o->defect == OP_GOOD;
}

/* Does the receive's memory hold the message? */
static bool holds_message(const struct flow *f, const struct recv *r,
			  const struct op *o)
{
	const uint8_t *from = f->from->memory.bytes + o->piece[0].off;
	const uint8_t *to = f->to->memory.bytes + r->piece[0].off;

	if (o->opcode == HCA_WR_RDMA_WRITE_IMM)
		to = f->to->memory.bytes + o->remote;
	/* a WRITE with immediate is not checked here, because a later WRITE may
	 * have changed the same bytes already; oracle_round checks them */
	return o->opcode == HCA_WR_RDMA_WRITE_IMM ||
	       !memcmp(from, to, o->bytes);
}

void service_rc_received(struct world *w, struct flow *f, uint32_t i,
			 const struct cqe *c)
{
	const struct recv *r = &f->round.recvs[i];
	const struct op *o = &f->round.ops[r->op];
	bool imm = o->opcode != HCA_WR_SEND;
	uint32_t flow = f->id;
	uint32_t opcode = o->opcode == HCA_WR_RDMA_WRITE_IMM
				  ? HCA_WC_RECV_RDMA_WITH_IMM
				  : HCA_WC_RECV;

	if (i != f->round.recvs_next || i >= f->round.recvs_posted) {
		world_fail(w,
			   "flow %u receive %u completes: %u is next, and %u "
			   "are posted",
			   flow, i, f->round.recvs_next, f->round.recvs_posted);
		return;
	}
	f->round.recvs_next++;
	if (c->status == HCA_WR_FLUSH_ERR && pair_is_broken(f->back))
		return;
	if ((c->status == HCA_LOC_LEN_ERR && o->defect == OP_SHORT_RECV) ||
	    (c->status == HCA_LOC_PROT_ERR &&
	     (o->defect == OP_BAD_RECV ||
	      f->round.revoked & 1 << REGION_TARGET)))
		return;
	if (c->status || o->defect)
		world_fail(w, "flow %u receive %u has status %u", flow, i,
			   c->status);
	else if (c->byte_len != o->bytes || c->opcode != opcode)
		world_fail(w,
			   "flow %u receive %u has %u bytes and opcode %u, not "
			   "%u and %u",
			   flow, i, c->byte_len, c->opcode, o->bytes, opcode);
	else if (imm != !!(c->wc_flags & HCA_WC_WITH_IMM) ||
		 (imm && c->imm_be != o->imm))
		world_fail(w, "flow %u receive %u: wrong immediate", flow, i);
	else if (!holds_message(f, r, o))
		world_fail(w, "flow %u receive %u: wrong data", flow, i);
}

static bool is_atomic(const struct op *o)
{
	return o->opcode == HCA_WR_ATOMIC_CAS ||
	       o->opcode == HCA_WR_ATOMIC_FADD;
}

static void replay_atomic(struct flow *f, const struct op *o, bool vague)
{
	struct piece at = {o->remote, 8};
	uint64_t old, value;

	memcpy(&old, f->to->shadow + o->remote, 8);
	if (!o->defect)
		oracle_spread(f->from, o->piece, o->pieces, (uint8_t *)&old, 8,
			      vague);
	value = o->opcode == HCA_WR_ATOMIC_FADD ? old + o->swap_add
		: old == o->compare		? o->swap_add
						: old;
	oracle_spread(f->to, &at, 1, (uint8_t *)&value, 8, vague);
}

static void replay_op(struct flow *f, uint32_t i, const struct recv **recv)
{
	const struct op *o = &f->round.ops[i];
	const uint8_t *source = f->from->shadow + o->piece[0].off;
	const uint8_t *remote = f->to->shadow + o->remote;
	bool vague = i >= f->round.certain;
	struct piece at = {o->remote, o->bytes};

	if (has_receive(o)) {
		const struct recv *r = (*recv)++;

		if (o->opcode != HCA_WR_RDMA_WRITE_IMM &&
		    o->defect != OP_BAD_RECV)
			oracle_spread(f->to, r->piece, r->pieces, source,
				      o->bytes, vague);
	}
	/* the target may have executed the atomic, although the initiator
	 * cannot store the result */
	if (o->defect == OP_BAD_LKEY && is_atomic(o))
		replay_atomic(f, o, true);
	/* a defective request writes no further memory */
	if (o->defect)
		return;
	if (o->opcode == HCA_WR_RDMA_WRITE ||
	    o->opcode == HCA_WR_ATOMIC_WRITE ||
	    o->opcode == HCA_WR_RDMA_WRITE_IMM)
		oracle_spread(f->to, &at, 1, source, o->bytes, vague);
	else if (o->opcode == HCA_WR_RDMA_READ)
		oracle_spread(f->from, o->piece, o->pieces, remote, o->bytes,
			      vague);
	else if (!has_receive(o))
		replay_atomic(f, o, vague);
}

void service_rc_fill(const struct flow *f, const struct op *o, struct wqe *e)
{
	e->rkey = f->region[REGION_REMOTE].rkey ^ (o->defect == OP_BAD_RKEY);
	e->va = f->to->memory.va + o->remote;
	e->swap_add = o->swap_add;
	e->compare = o->compare;
}

/* After a failure the round does not wait for further receives, since some
 * receives stay posted. */
bool service_rc_is_over(const struct flow *f)
{
	return f->round.failed < f->round.ops_count || pair_is_broken(f) ||
	       pair_is_broken(f->back) ||
	       f->round.recvs_next == f->round.recvs_count;
}

void service_rc_replay(struct flow *f)
{
	const struct recv *r = f->round.recvs;

	for (uint32_t i = 0; i < f->round.ops_count; i++)
		replay_op(f, i, &r);
}

const struct service service_rc = {
	.qp_type = HCA_QPT_RC,
	.opcodes = opcodes,
	.opcode_count = sizeof(opcodes),
	.make = service_rc_make,
	.connect = connect_pair,
	.fill = service_rc_fill,
	.may_end = may_end,
	.received = service_rc_received,
	.is_over = service_rc_is_over,
	.replay = service_rc_replay,
};
