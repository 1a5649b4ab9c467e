/* SPDX-License-Identifier: BSD-2-Clause */
#include "direct/inside.h"
#include "hca/key.h"
#include "util/prefetch.h"
#include "util/step.h"

/*
 * A series goes on for as long as nothing is out of the ordinary.  The request
 * that is stays undone: alone, later, it is judged, waits or fails.
 */

#define AHEAD 4 /* receives on, one is fetched from the target's core */

/* ---- one-sided: all of them in one call of the space ---- */

struct moves {
	struct space_move move[FAR_SERIES];
	struct space_vec far[FAR_SERIES], near[FAR_SERIES];
	uint32_t count;
};

static void add(struct moves *m, const struct far_request *r,
		const struct far_memory *far, bool is_put)
{
	uint32_t i = m->count++;

	m->far[i] = far->vec[0];
	m->near[i] = r->near.vec[0];
	m->move[i] = (struct space_move){
		.to = is_put ? &m->far[i] : &m->near[i],
		.from = is_put ? &m->near[i] : &m->far[i],
		.to_count = 1,
		.from_count = 1,
	};
}

/* As request_locate, of one after the first, whose key has this row. */
static bool locate(const struct hca *h, const struct mr *row,
		   const struct far_request *r, uint32_t need,
		   struct far_memory *far)
{
	far->n = 1;
	far->vec[0].bytes = r->bytes;
	return key_remote(h, row, r->rkey, r->va, r->bytes, need,
			  &far->vec[0].va) == MR_OK;
}

/* Those that use the first's key, as that alone keeps its memory in place. */
static void gather(struct far_link *l, struct qp *qp, struct far_series *s,
		   struct moves *m)
{
	bool is_put = s->r.opcode == HCA_WR_RDMA_WRITE;
	uint32_t need = is_put ? HCA_REMOTE_WRITE : HCA_REMOTE_READ;
	uint32_t rkey = s->r.rkey;
	const struct mr *row;
	struct far_memory far;
	struct explain x;

	inside_see_told(l, qp);
	if ((!is_put && request_resources(qp, &x)) ||
	    request_locate(l, qp, &s->r, need, &far, &x))
		return;
	row = mr_find(l->hca, rkey);
	do {
		if (!row || s->r.rkey != rkey || !s->r.bytes ||
		    s->r.near.n != 1 ||
		    !locate(l->hca, row, &s->r, need, &far) ||
		    carry_is_in_way(l->hca, qp, far.vec, far.n))
			return;
		add(m, &s->r, &far, is_put);
	} while (m->count < FAR_SERIES && s->next(s->arg, m->count, &s->r));
}

static uint32_t run_moves(struct far_link *l, struct qp *qp,
			  struct far_series *s)
{
	uint8_t opcode = s->r.opcode;
	bool is_put = opcode == HCA_WR_RDMA_WRITE;
	guest_set keys = guest_key(s->r.rkey);
	struct space *near = s->r.near.space;
	struct moves m;
	size_t done = 0;

	m.count = 0;
	inside_begin_copy(l, keys);
	gather(l, qp, s, &m);
	if (m.count && is_put)
		space_put(l->hca->space, near, m.move, m.count, &done);
	else if (m.count)
		space_get(l->hca->space, near, m.move, m.count, &done);
	if (inside_end_copy(l, &s->r, keys, V_OK))
		return 0;
	STEP("a series has moved");
	for (size_t i = 0; i < done; i++) {
		inside_count(qp, opcode, m.far[i].bytes);
		if (is_put)
			comp_remote_write(qp, m.far[i].bytes);
	}
	return (uint32_t)done;
}

/* ---- SENDs of few bytes, which stay with their receives ---- */

/* The target's core has posted them long ago. */
static void fetch_ahead(const struct far_link *l, const struct qp *qp,
			uint32_t bytes)
{
	uint32_t i = rq_cursor(qp);

	if (!qp->srq && qp_far(qp)->posted - i > AHEAD)
		prefetch(wq_at(l->hca, &qp->rq, i + AHEAD),
			 wq_used(&qp->rq, bytes));
}

static uint32_t run_sends(struct far_link *l, struct qp *qp,
			  struct far_series *s)
{
	bool solicited = false;
	uint32_t n = 0;

	do {
		fetch_ahead(l, qp, s->r.total);
		if (!request_carry(l, qp, &s->r))
			break;
		inside_count(qp, s->r.opcode, s->r.bytes);
		solicited |= s->r.solicited;
		n++;
	} while (n < FAR_SERIES && s->next(s->arg, n, &s->r));
	request_announce(l, qp, &s->r, solicited, n);
	return n;
}

uint32_t series_run(struct far_link *l, struct qp *qp, struct far_series *s)
{
	switch ((enum hca_wr)s->r.opcode) {
	case HCA_WR_SEND:
	case HCA_WR_SEND_IMM:
		return run_sends(l, qp, s);
	case HCA_WR_RDMA_WRITE:
	case HCA_WR_RDMA_READ:
		return run_moves(l, qp, s);
	case HCA_WR_RDMA_WRITE_IMM:
	case HCA_WR_SEND_INV:
	case HCA_WR_ATOMIC_CAS:
	case HCA_WR_ATOMIC_FADD:
	case HCA_WR_ATOMIC_WRITE:
	case HCA_WR_LOCAL_INV:
	case HCA_WR_BIND_MW:
		break;
	}
	return 0;
}
