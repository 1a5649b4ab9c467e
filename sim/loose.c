/* SPDX-License-Identifier: BSD-2-Clause */
#include "sim/loose.h"

#include <string.h>

#include "sim/oracle.h"
#include "sim/pair.h"
#include "util/bits.h"

#define NOTHING 0xffffffffu /* the index of no request */

bool loose_make(struct world *w, struct flow *f, bool defective,
		const uint8_t *opcodes, uint32_t n, uint32_t most,
		uint32_t head)
{
	static const uint8_t defects[] = {OP_BAD_RKEY, OP_BAD_LKEY,
					  OP_BAD_RECV};
	struct op *o = &f->round.ops[f->round.ops_count];
	uint32_t start;

	/* longest: the most bytes of a message of the round, for which most
	 * receives have room */
	if (!f->round.ops_count) {
		f->round.longest = bits_min_u32(workload_bytes(w), most);
		f->round.last = NOTHING;
	}
	o->opcode = opcodes[workload_below(w, n)];
	o->bytes = workload_below(w, f->round.longest + 1);
	o->imm = rng_u32(&w->rng);
	o->flags = workload_below(w, 3) ? HCA_SEND_SIGNALED : 0;
	if (defective) {
		o->bytes += !o->bytes;
		o->defect = defects[workload_below(w, sizeof(defects))];
		if (o->defect == OP_BAD_RKEY && n > 2)
			o->opcode = HCA_WR_RDMA_WRITE;
		else if (o->defect != OP_BAD_LKEY)
			o->opcode = HCA_WR_SEND;
	}
	start = f->source + workload_below(w, WORKLOAD_SOURCE - o->bytes);
	o->pieces = workload_cut(w, o->piece, &start, o->bytes, FLOW_SGES);
	if (!o->defect && o->bytes <= WORKLOAD_INLINE && workload_below(w, 2))
		o->flags |= HCA_SEND_INLINE;
	o->remote = f->writable + workload_below(w, WORKLOAD_AREA - o->bytes);
	f->round.recvs[f->round.recvs_count].got = NOTHING;
	return o->opcode == HCA_WR_RDMA_WRITE ||
	       workload_receive(w, f, f->round.ops_count,
				head + (workload_below(w, 4)
						? f->round.longest + 1
						: o->bytes));
}

bool loose_may_end(const struct flow *f, uint32_t i, uint32_t status)
{
	const struct op *o = &f->round.ops[i];
	bool local = o->defect == OP_BAD_LKEY;

	if (status == HCA_WR_FLUSH_ERR)
		return pair_is_broken(f) || f->qp->state == HCA_QP_SQE;
	if (f->round.failed < i)
		return false;
	if (status)
		return status == HCA_LOC_PROT_ERR &&
		       (local || f->round.revoked & 1 << REGION_LOCAL);
	return !local;
}

static bool is_write(const struct op *o)
{
	return o->opcode == HCA_WR_RDMA_WRITE ||
	       o->opcode == HCA_WR_RDMA_WRITE_IMM;
}

/* Do the receive's bytes [skip, skip + bytes) equal those at data? */
static bool holds_bytes(const struct flow *f, const struct recv *r,
			uint32_t skip, const uint8_t *data, uint32_t bytes)
{
	for (uint8_t i = 0; i < r->pieces && bytes; i++) {
		const struct piece *p = &r->piece[i];
		uint32_t at = bits_min_u32(skip, p->bytes);
		uint32_t part = bits_min_u32(p->bytes - at, bytes);

		if (memcmp(f->to->memory.bytes + p->off + at, data, part) != 0)
			return false;
		skip -= at;
		data += part;
		bytes -= part;
	}
	return !bytes;
}

/* Can the message of request o have completed receive r with completion c? */
static bool is_message(const struct flow *f, const struct recv *r,
		       const struct op *o, const struct cqe *c, uint32_t head)
{
	bool imm = o->opcode != HCA_WR_SEND;
	uint32_t opcode = is_write(o) ? HCA_WC_RECV_RDMA_WITH_IMM : HCA_WC_RECV;

	if (o->opcode == HCA_WR_RDMA_WRITE || c->opcode != opcode ||
	    c->byte_len != head + o->bytes ||
	    imm != !!(c->wc_flags & HCA_WC_WITH_IMM) ||
	    (imm && c->imm_be != o->imm))
		return false;
	return is_write(o) ||
	       holds_bytes(f, r, head, f->from->memory.bytes + o->piece[0].off,
			   o->bytes);
}

/* Returns the index of a posted message that matches completion c, or NOTHING.
 * A round without faults keeps the order of messages: then only messages that
 * were posted after the last received message can match. */
static uint32_t find_message(const struct flow *f, const struct recv *r,
			     const struct cqe *c, uint32_t head)
{
	uint32_t from = f->pair->rough ? 0 : f->round.last + 1;

	for (uint32_t k = from; k < f->round.posted; k++)
		if (is_message(f, r, &f->round.ops[k], c, head))
			return k;
	return NOTHING;
}

void loose_received(struct world *w, struct flow *f, uint32_t i,
		    const struct cqe *c, uint32_t head)
{
	struct recv *r = &f->round.recvs[i];

	if (i != f->round.recvs_next || i >= f->round.recvs_posted) {
		world_fail(w, "flow %u receive %u completes before %u", f->id,
			   i, f->round.recvs_next);
		return;
	}
	f->round.recvs_next++;
	if (c->status == HCA_WR_FLUSH_ERR && pair_is_broken(f->back))
		return;
	if (c->status == HCA_LOC_PROT_ERR &&
	    (f->round.ops[r->op].defect == OP_BAD_RECV ||
	     f->round.revoked & 1 << REGION_TARGET))
		return;
	if (c->status) {
		world_fail(w, "flow %u receive %u has status %u", f->id, i,
			   c->status);
		return;
	}
	r->got = f->round.last = find_message(f, r, c, head);
	if (r->got == NOTHING)
		world_fail(w,
			   "flow %u receive %u is no message that was sent "
			   "(%u bytes)",
			   f->id, i, c->byte_len);
}

/* Any message without a completed receive may have been lost. */
bool loose_is_over(const struct flow *f)
{
	return true;
}

/* Checks that each byte of a WRITE's target is the old byte or a byte of some
 * posted WRITE, and excludes the target from the comparison of oracle_round. */
static void replay_write(struct flow *f, const struct op *o)
{
	const uint8_t *source = f->from->memory.bytes + o->piece[0].off;
	const struct host *h = f->to;
	struct piece at = {o->remote, o->bytes};

	for (uint32_t b = 0; b < o->bytes; b++) {
		uint32_t to = o->remote + b;
		bool known = h->memory.bytes[to] == h->shadow[to] ||
			     h->memory.bytes[to] == source[b];

		for (uint32_t k = 0; !known && k < f->round.posted; k++) {
			const struct op *p = &f->round.ops[k];

			known = is_write(p) && !p->defect && to >= p->remote &&
				to - p->remote < p->bytes &&
				h->memory.bytes[to] ==
					f->from->memory.bytes[p->piece[0].off +
							      to - p->remote];
		}
		if (known)
			continue;
		world_fail(
			h->world,
			"flow %u: byte 0x%x is neither old nor written by a WRITE",
			f->id, to);
		return;
	}
	oracle_spread(f->to, &at, 1, source, o->bytes, true);
}

/* Returns how many bytes the receive has room for. */
static uint32_t room_of(const struct recv *r)
{
	uint32_t bytes = 0;

	for (uint8_t i = 0; i < r->pieces; i++)
		bytes += r->piece[i].bytes;
	return bytes;
}

void loose_replay(struct flow *f, uint32_t head)
{
	for (uint32_t i = 0; i < f->round.posted; i++)
		if (is_write(&f->round.ops[i]) && !f->round.ops[i].defect)
			replay_write(f, &f->round.ops[i]);
	for (uint32_t i = 0; i < f->round.recvs_posted; i++) {
		const struct recv *r = &f->round.recvs[i];
		const struct op *o =
			&f->round.ops[r->got == NOTHING ? 0 : r->got];

		if (r->got != NOTHING && !is_write(o) &&
		    !holds_bytes(f, r, head,
				 f->from->memory.bytes + o->piece[0].off,
				 o->bytes))
			world_fail(f->to->world,
				   "flow %u receive %u changed after its "
				   "completion",
				   f->id, i);
		/* a message that did not arrive whole may have written bytes */
		oracle_spread(f->to, r->piece, r->pieces, f->to->memory.bytes,
			      room_of(r), true);
	}
}
