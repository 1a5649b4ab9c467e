/* SPDX-License-Identifier: BSD-2-Clause */
#include "sim/oracle.h"

#include <stdlib.h>
#include <string.h>

#include "sim/service.h"
#include "util/bits.h"

uint32_t oracle_opcode(const struct op *o)
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
	case HCA_WR_ATOMIC_WRITE:
		return HCA_WC_ATOMIC_WRITE;
	case HCA_WR_SEND:
	case HCA_WR_SEND_IMM:
	case HCA_WR_LOCAL_INV:
	case HCA_WR_BIND_MW:
	case HCA_WR_SEND_INV:
		break;
	}
	return HCA_WC_SEND;
}

/* Checks the completion of request i of f. */
static void check_request(struct world *w, struct flow *f, uint32_t i,
			  const struct cqe *c)
{
	uint32_t flow = f->id;

	if (i < f->round.next || i >= f->round.posted) {
		world_fail(w,
			   "flow %u request %u has completed before, or was "
			   "never posted",
			   flow, i);
		return;
	}
	for (; f->round.next < i; f->round.next++)
		if (f->round.ops[f->round.next].flags & HCA_SEND_SIGNALED ||
		    f->round.failed < f->round.ops_count)
			world_fail(w, "flow %u request %u never completed",
				   flow, f->round.next);
	f->round.next = i + 1;
	if (!f->service->may_end(f, i, c->status))
		world_fail(w,
			   "flow %u request %u of %u (opcode %u) ends with "
			   "status %u",
			   flow, i, f->round.ops_count, f->round.ops[i].opcode,
			   c->status);
	if (c->status && f->round.failed == f->round.ops_count)
		f->round.failed = i;
	if (!c->status && !(f->round.ops[i].flags & HCA_SEND_SIGNALED))
		world_fail(w,
			   "flow %u request %u completes with success, "
			   "although it is not signaled",
			   flow, i);
	if (!c->status && c->opcode != oracle_opcode(&f->round.ops[i]))
		world_fail(w,
			   "the completion of flow %u request %u has the wrong "
			   "opcode %u",
			   flow, i, c->opcode);
}

void oracle_completion(struct world *w, const struct cqe *c)
{
	uint32_t flow = (uint32_t)(c->wr_id >> 32) & 0xffff;
	uint32_t i = (uint32_t)c->wr_id;
	struct flow *f;

	if (flow >= w->flow_count) {
		world_fail(w,
			   "a completion names flow %u, which does not exist",
			   flow);
		return;
	}
	f = &w->flows[flow];
	if ((c->wr_id & ~ORACLE_RECV) != oracle_wr_id(f, i)) {
		world_fail(w, "flow %u: a completion is of an earlier round",
			   flow);
		return;
	}
	world_hash(w, &c->wr_id, sizeof(c->wr_id));
	world_hash(w, &c->status, sizeof(c->status));
	if (c->wr_id & ORACLE_RECV)
		f->service->received(w, f, i, c);
	else
		check_request(w, f, i, c);
}

/* ---- memory ---- */

/* Excludes bytes from the comparison of oracle_round. */
static void note_vague(struct host *h, uint32_t off, uint32_t bytes)
{
	struct world *w = h->world;

	if (w->vagues.count == w->vagues.room) {
		w->vagues.room = w->vagues.room ? 2 * w->vagues.room : 256;
		w->vagues.list =
			realloc(w->vagues.list,
				w->vagues.room * sizeof(*w->vagues.list));
		if (!w->vagues.list)
			abort();
	}
	w->vagues.list[w->vagues.count++] = (struct vague){h, off, bytes};
}

void oracle_spread(struct host *h, const struct piece *p, uint8_t n,
		   const uint8_t *data, uint32_t bytes, bool vague)
{
	for (uint8_t i = 0; i < n && bytes; i++) {
		uint32_t part = bits_min_u32(p[i].bytes, bytes);

		if (vague)
			note_vague(h, p[i].off, part);
		else
			memcpy(h->shadow + p[i].off, data, part);
		data += part;
		bytes -= part;
	}
}

/* Compares bytes of the memory of h with the shadow memory; the world fails at
 * the first difference. */
static void compare_memory(struct world *w, const struct host *h, uint32_t off,
			   uint32_t bytes)
{
	if (!memcmp(h->memory.bytes + off, h->shadow + off, bytes))
		return;
	while (h->memory.bytes[off] == h->shadow[off])
		off++;
	world_fail(w, "host %u: byte 0x%x is 0x%02x, not 0x%02x", h->index, off,
		   h->memory.bytes[off], h->shadow[off]);
}

/* Compares a region with the shadow memory and, if the region was deregistered,
 * with its bytes at that time. */
static void check_region(struct world *w, const struct region *r)
{
	const struct host *h = r->at;

	if (r->frozen &&
	    memcmp(r->frozen, h->memory.bytes + r->off, r->bytes) != 0)
		world_fail(
			w,
			"host %u: a region is written to after its deregistration",
			h->index);
	compare_memory(w, h, r->off, r->bytes);
}

void oracle_round(struct world *w, struct pair *p)
{
	w->vagues.count = 0;
	for (int i = 0; i < 2; i++) {
		struct flow *f = &p->flow[i];

		f->round.failed = bits_min_u32(f->round.failed, f->round.next);
		f->round.certain =
			bits_min_u32(f->round.certain, f->round.failed);
		f->service->replay(f);
	}
	for (uint32_t i = 0; i < w->vagues.count; i++) {
		const struct vague *v = &w->vagues.list[i];

		memcpy(v->host->shadow + v->off, v->host->memory.bytes + v->off,
		       v->bytes);
	}
	for (int i = 0; i < 2; i++)
		for (int k = 0; k < REGION_COUNT; k++)
			check_region(w, &p->flow[i].region[k]);
}

void oracle_end(struct world *w)
{
	for (uint32_t i = 0; i < w->host_count; i++)
		compare_memory(w, &w->hosts[i], 0,
			       (uint32_t)w->hosts[i].memory.size);
}
