/* SPDX-License-Identifier: BSD-2-Clause */
#include "direct/inside.h"
#include "hca/key.h"
#include "util/prefetch.h"
#include "util/step.h"

/* A batch ends before its first request that is wrong, or that needs more than
 * a copy and a completion.  The caller of target_run_batch later runs that
 * request alone, by target_run, which also judges the request. */

#define AHEAD 4 /* how many receives ahead a slot is prefetched */

/* ---- WRITEs and READs: one call of the space for all of them ---- */

/* The moves are on the stack of a program's thread, which may be small. */
#define MOVES_MAX 32

struct moves {
	struct space_move move[MOVES_MAX];
	struct space_vec target[MOVES_MAX], initiator[MOVES_MAX];
	uint32_t count;
};

static void add_move(struct moves *m, const struct direct_request *r,
		     const struct direct_memory *target, bool is_put)
{
	uint32_t i = m->count++;

	m->target[i] = target->vec[0];
	m->initiator[i] = r->initiator.vec[0];
	m->move[i] = (struct space_move){
		.to = is_put ? &m->target[i] : &m->initiator[i],
		.from = is_put ? &m->initiator[i] : &m->target[i],
		.to_count = 1,
		.from_count = 1,
	};
}

/* Locates the target's memory that r names.  @row: the row of r's key in the MR
 * table.  The queue pair's right and the key's protection domain need no check
 * here: gather_moves has called request_locate for the first request, and all
 * requests of the batch have the same key, by the same binding. */
static bool locate_piece(const struct hca *h, const struct mr *row,
			 uint32_t binding, const struct direct_request *r,
			 uint32_t need, struct direct_memory *target)
{
	target->n = 1;
	target->vec[0].bytes = r->bytes;
	return key_remote(h, row, binding, r->rkey, r->va, r->bytes, need,
			  &target->vec[0].va) == MR_OK;
}

/* Collects the requests that use the same key as the first.  The target keeps
 * only the memory of this key in place during the copy (inside_begin_copy). */
static void gather_moves(struct target_ref *l, struct qp *qp,
			 struct direct_batch *s, struct moves *m)
{
	bool is_put = s->r.opcode == HCA_WR_RDMA_WRITE;
	uint32_t need = is_put ? HCA_REMOTE_WRITE : HCA_REMOTE_READ;
	uint32_t rkey = s->r.rkey, binding;
	const struct mr *row = mr_find(l->hca, rkey);
	struct direct_memory target;
	struct explain x;

	/* The binding is read before request_locate judges the key: if the key
	 * is bound anew after that, key_remote fails. */
	binding = row ? mr_binding(row) : 0;
	inside_see_collected(l, qp);
	if ((!is_put && request_resources(qp, &x)) ||
	    request_locate(l, qp, &s->r, need, &target, &x))
		return;
	do {
		if (!row || s->r.rkey != rkey || !s->r.bytes ||
		    s->r.initiator.n != 1 ||
		    !locate_piece(l->hca, row, binding, &s->r, need, &target) ||
		    eager_is_in_way(l->hca, qp, target.vec, target.n))
			return;
		add_move(m, &s->r, &target, is_put);
	} while (m->count < MOVES_MAX && s->next(s->arg, m->count, &s->r));
}

static uint32_t run_moves(struct target_ref *l, struct qp *qp,
			  struct direct_batch *s)
{
	uint8_t opcode = s->r.opcode;
	bool is_put = opcode == HCA_WR_RDMA_WRITE;
	access_set keys = access_key(s->r.rkey);
	struct space *initiator = s->r.initiator.space;
	struct moves m;
	size_t done = 0; /* how many moves, from the first on, are complete */

	m.count = 0;
	inside_begin_copy(l, keys);
	gather_moves(l, qp, s, &m);
	if (m.count && is_put)
		space_put(l->hca->space, initiator, m.move, m.count, &done);
	else if (m.count)
		space_get(l->hca->space, initiator, m.move, m.count, &done);
	/* A revocation does not undo the moves that are complete.  To make them
	 * again could overwrite what the target's program has stored since.
	 * The target's counters may belong to another QP now, so the moves are
	 * not counted there. */
	if (inside_end_copy(l, &s->r, keys, V_OK))
		return (uint32_t)done;
	STEP("a series has moved");
	for (size_t i = 0; i < done; i++) {
		inside_count(qp, opcode, m.target[i].bytes);
		if (is_put)
			comp_remote_write(qp, m.target[i].bytes);
	}
	return (uint32_t)done;
}

/* ---- SENDs of few bytes, as eager messages ---- */

/* Prefetches the slot of the receive that comes AHEAD receives after the next
 * one, if the target has posted it. */
static void fetch_ahead(const struct target_ref *l, const struct qp *qp,
			uint32_t bytes)
{
	uint32_t i = rq_cursor(qp);

	if (!qp->srq && qp_target(qp)->posted - i > AHEAD)
		prefetch(wq_at(l->hca, &qp->rq, i + AHEAD),
			 wq_used(&qp->rq, bytes));
}

static uint32_t run_sends(struct target_ref *l, struct qp *qp,
			  struct direct_batch *s)
{
	bool solicited = false;
	uint32_t n = 0;

	do {
		fetch_ahead(l, qp, s->r.total);
		if (!request_eager(l, qp, &s->r))
			break;
		inside_count(qp, s->r.opcode, s->r.bytes);
		solicited |= s->r.solicited;
		n++;
	} while (n < DIRECT_BATCH_MAX && s->next(s->arg, n, &s->r));
	if (s->r.outcome.is_dry)
		s->r.outcome.rnr_timer = qp->attr.min_rnr_timer;
	request_announce(l, qp, &s->r, solicited, n);
	return n;
}

/* ---- an atomic, alone, in memory that both processes map ---- */

static uint32_t run_atomic(struct target_ref *l, struct qp *qp,
			   struct direct_batch *s)
{
	struct explain x;

	if (!l->access || s->r.va % 8 || request_resources(qp, &x))
		return 0;
	request_execute_here(l, qp, &s->r);
	if (s->r.outcome.is_executed && !s->r.outcome.is_revoked)
		inside_count(qp, s->r.opcode, s->r.bytes);
	return s->r.outcome.is_executed;
}

uint32_t batch_run(struct target_ref *l, struct qp *qp, struct direct_batch *s)
{
	switch ((enum hca_wr)s->r.opcode) {
	case HCA_WR_SEND:
	case HCA_WR_SEND_IMM:
		return run_sends(l, qp, s);
	case HCA_WR_RDMA_WRITE:
	case HCA_WR_RDMA_READ:
		return run_moves(l, qp, s);
	case HCA_WR_ATOMIC_CAS:
	case HCA_WR_ATOMIC_FADD:
		return run_atomic(l, qp, s);
	case HCA_WR_RDMA_WRITE_IMM:
	case HCA_WR_SEND_INV:
	case HCA_WR_ATOMIC_WRITE:
	case HCA_WR_LOCAL_INV:
	case HCA_WR_BIND_MW:
		break;
	}
	return 0;
}
