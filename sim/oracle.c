/* SPDX-License-Identifier: BSD-2-Clause */
#include "sim/oracle.h"

#include <string.h>

#include "util/bits.h"

static bool has_receive(const struct op *o)
{
	return o->opcode == HCA_WR_RDMA_WRITE_IMM || o->opcode == HCA_WR_SEND ||
	       o->opcode == HCA_WR_SEND_IMM;
}

static uint32_t expected_opcode(const struct op *o)
{
	switch ((enum hca_wr)o->opcode) {
	case HCA_WR_RDMA_WRITE:
	case HCA_WR_RDMA_WRITE_IMM:
		return HCA_WC_RDMA_WRITE;
	case HCA_WR_RDMA_READ:
		return HCA_WC_RDMA_READ;
	case HCA_WR_ATOMIC_CAS:
		return HCA_WC_COMP_SWAP;
	case HCA_WR_ATOMIC_FADD:
		return HCA_WC_FETCH_ADD;
	case HCA_WR_SEND:
	case HCA_WR_SEND_IMM:
	case HCA_WR_LOCAL_INV:
	case HCA_WR_SEND_INV:
		break;
	}
	return HCA_WC_SEND;
}

/* May request i of f end so? */
static bool may_end(const struct world *w, const struct flow *f, uint32_t i,
		    uint32_t status)
{
	const struct flow *back = &w->flows[(f - w->flows) ^ 1];
	const struct op *o = &f->ops[i];

	if (status == HCA_WR_FLUSH_ERR)
		return f->qp->state == HCA_QP_ERR;
	if (f->failed < i)
		return false; /* only flushing follows a failure */
	if (status == HCA_RETRY_EXC_ERR)
		return back->qp->state == HCA_QP_ERR;
	switch ((enum op_defect)o->defect) {
	case OP_GOOD:
		break;
	case OP_BAD_RKEY:
		return status == HCA_REM_ACCESS_ERR;
	case OP_BAD_LKEY:
		return status == HCA_LOC_PROT_ERR;
	case OP_SHORT_RECV:
		return status == HCA_REM_INV_REQ_ERR;
	case OP_BAD_RECV:
		return status == HCA_REM_OP_ERR;
	}
	return status == HCA_SUCCESS;
}

static void sent(struct world *w, struct flow *f, uint32_t i,
		 const struct cqe *c)
{
	uint32_t flow = (uint32_t)(f - w->flows);

	if (i < f->next || i >= f->posted) {
		world_fail(w, "flow %u request %u completes again", flow, i);
		return;
	}
	for (; f->next < i; f->next++)
		if (f->ops[f->next].flags & HCA_SEND_SIGNALED ||
		    f->failed < f->ops_count)
			world_fail(w, "flow %u request %u never completed",
				   flow, f->next);
	f->next = i + 1;
	if (!may_end(w, f, i, c->status))
		world_fail(w,
			   "flow %u request %u of %u (opcode %u) ends with "
			   "status %u",
			   flow, i, f->ops_count, f->ops[i].opcode, c->status);
	if (c->status && f->failed == f->ops_count)
		f->failed = i;
	if (!c->status && !(f->ops[i].flags & HCA_SEND_SIGNALED))
		world_fail(w, "flow %u request %u is not signaled", flow, i);
	if (!c->status && c->opcode != expected_opcode(&f->ops[i]))
		world_fail(w, "flow %u request %u has opcode %u", flow, i,
			   c->opcode);
}

/* Does the receive hold the message already now? */
static bool holds(const struct flow *f, const struct recv *r,
		  const struct op *o)
{
	const uint8_t *from = f->from->mem + o->piece[0].off;
	const uint8_t *to = f->to->mem + r->piece[0].off;

	if (o->opcode == HCA_WR_RDMA_WRITE_IMM)
		to = f->to->mem + o->remote;
	/* a later WRITE may be there already: the end tells */
	return o->opcode == HCA_WR_RDMA_WRITE_IMM ||
	       !memcmp(from, to, o->bytes);
}

static void received(struct world *w, struct flow *f, uint32_t i,
		     const struct cqe *c)
{
	const struct flow *back = &w->flows[(f - w->flows) ^ 1];
	const struct recv *r = &f->recvs[i];
	const struct op *o = &f->ops[r->op];
	bool imm = o->opcode != HCA_WR_SEND;
	uint32_t flow = (uint32_t)(f - w->flows);
	uint32_t opcode = o->opcode == HCA_WR_RDMA_WRITE_IMM
				  ? HCA_WC_RECV_RDMA_WITH_IMM
				  : HCA_WC_RECV;

	if (i != f->recvs_next || i >= f->recvs_posted) {
		world_fail(w, "flow %u receive %u comes for %u", flow, i,
			   f->recvs_next);
		return;
	}
	f->recvs_next++;
	if (c->status == HCA_WR_FLUSH_ERR && back->qp->state == HCA_QP_ERR)
		return;
	if ((c->status == HCA_LOC_LEN_ERR && o->defect == OP_SHORT_RECV) ||
	    (c->status == HCA_LOC_PROT_ERR && o->defect == OP_BAD_RECV))
		return;
	if (c->status || o->defect)
		world_fail(w, "flow %u receive %u has status %u", flow, i,
			   c->status);
	else if (c->byte_len != o->bytes || c->opcode != opcode)
		world_fail(w, "flow %u receive %u has %u bytes, not %u", flow,
			   i, c->byte_len, o->bytes);
	else if (imm != !!(c->wc_flags & HCA_WC_WITH_IMM) ||
		 (imm && c->imm_be != o->imm))
		world_fail(w, "flow %u receive %u: wrong immediate", flow, i);
	else if (!holds(f, r, o))
		world_fail(w, "flow %u receive %u: wrong data", flow, i);
}

void oracle_completion(struct world *w, const struct cqe *c)
{
	uint32_t flow = (uint32_t)(c->wr_id >> 32) & 0xffff;
	uint32_t i = (uint32_t)c->wr_id;
	struct flow *f = &w->flows[flow];

	if ((c->wr_id & ~ORACLE_RECV) != oracle_wr_id(w, f, i)) {
		world_fail(w, "a completion of an earlier round");
		return;
	}
	world_hash(w, &c->wr_id, sizeof c->wr_id);
	world_hash(w, &c->status, sizeof c->status);
	if (c->wr_id & ORACLE_RECV)
		received(w, f, i, c);
	else
		sent(w, f, i, c);
}

bool oracle_is_over(const struct world *w)
{
	for (uint32_t i = 0; i < w->flow_count; i++) {
		const struct flow *f = &w->flows[i];
		bool alive = f->qp->state != HCA_QP_ERR;

		if (f->next < f->ops_count)
			return false;
		/* of a broken flow some receives stay, unless flushed */
		if (f->failed == f->ops_count && alive &&
		    w->flows[i ^ 1].qp->state != HCA_QP_ERR &&
		    f->recvs_next < f->recvs_count)
			return false;
	}
	return true;
}

/* ---- the memories ---- */

static void spread(struct host *h, const struct piece *p, uint8_t n,
		   const uint8_t *data, uint32_t bytes, bool vague)
{
	for (uint8_t i = 0; i < n && bytes; i++) {
		uint32_t part = bits_min_u32(p[i].bytes, bytes);

		if (vague)
			memset(h->vague + p[i].off, 1, part);
		else
			memcpy(h->shadow + p[i].off, data, part);
		data += part;
		bytes -= part;
	}
}

static void replay_atomic(struct flow *f, const struct op *o, bool vague)
{
	struct piece at = {o->remote, 8};
	uint64_t old, value;

	memcpy(&old, f->to->shadow + o->remote, 8);
	spread(f->from, o->piece, o->pieces, (uint8_t *)&old, 8, vague);
	value = o->opcode == HCA_WR_ATOMIC_FADD ? old + o->swap_add
		: old == o->compare		? o->swap_add
						: old;
	spread(f->to, &at, 1, (uint8_t *)&value, 8, vague);
}

static void replay(struct flow *f, uint32_t i, const struct recv **recv)
{
	const struct op *o = &f->ops[i];
	const uint8_t *source = f->from->shadow + o->piece[0].off;
	const uint8_t *remote = f->to->shadow + o->remote;
	bool vague = i >= f->failed;
	struct piece at = {o->remote, o->bytes};

	if (has_receive(o)) {
		const struct recv *r = (*recv)++;

		if (o->opcode != HCA_WR_RDMA_WRITE_IMM &&
		    o->defect != OP_BAD_RECV)
			spread(f->to, r->piece, r->pieces, source, o->bytes,
			       vague);
	}
	/* refused before it touched anything */
	if (o->defect)
		return;
	if (o->opcode == HCA_WR_RDMA_WRITE ||
	    o->opcode == HCA_WR_RDMA_WRITE_IMM)
		spread(f->to, &at, 1, source, o->bytes, vague);
	else if (o->opcode == HCA_WR_RDMA_READ)
		spread(f->from, o->piece, o->pieces, remote, o->bytes, vague);
	else if (!has_receive(o))
		replay_atomic(f, o, vague);
}

static void compare(struct world *w, int i)
{
	struct host *h = &w->hosts[i];

	for (uint32_t k = 0; k < WORLD_MEM; k++) {
		if (h->vague[k] || h->mem[k] == h->shadow[k])
			continue;
		world_fail(w, "host %d: byte 0x%x is 0x%02x, not 0x%02x", i, k,
			   h->mem[k], h->shadow[k]);
		return;
	}
	memcpy(h->shadow, h->mem, WORLD_MEM);
}

void oracle_memory(struct world *w)
{
	for (uint32_t i = 0; i < w->flow_count; i++) {
		const struct recv *r = w->flows[i].recvs;

		w->flows[i].failed =
			bits_min_u32(w->flows[i].failed, w->flows[i].next);
		for (uint32_t k = 0; k < w->flows[i].ops_count; k++)
			replay(&w->flows[i], k, &r);
	}
	for (int i = 0; i < WORLD_HOSTS; i++) {
		struct host *h = &w->hosts[i];

		if (memcmp(h->mem, h->shadow, WORLD_MEM) != 0)
			compare(w, i);
		memset(h->vague, 0, h->brk);
	}
}
