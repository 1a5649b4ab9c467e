/* SPDX-License-Identifier: BSD-2-Clause */
/* Posts requests and receives that the input chooses, for a harness with two
 * adapters. */
#ifndef FUZZ_WORK_H
#define FUZZ_WORK_H

#include "ibt/ibt.h"
#include "input.h"
#include "scenario/two_hcas.h"

/* Returns an offset or a length in bytes, mostly one inside the memory. */
static inline uint32_t work_place(struct input_bytes *in)
{
	uint32_t v = input_u16(in);

	return v >= 0xfff0 ? v << 16 : v << 3;
}

/* Returns whether the queue has no room for another request. */
static inline bool work_is_full(const struct wq *q)
{
	return shared_own(&q->head) - shared_load(&q->tail) >= q->depth;
}

/* Posts a request of side i.  chosen: the flags that the input may set; always:
 * the flags that are set in any case.  Returns false, and posts nothing, if the
 * QP is not in RTS or a later state, or its send queue is full. */
static inline bool work_send(struct input_bytes *in, struct two_hcas *d, int i,
			     uint8_t chosen, uint8_t always)
{
	static const uint8_t any[] = {
		HCA_WR_RDMA_WRITE,  HCA_WR_RDMA_WRITE_IMM, HCA_WR_SEND,
		HCA_WR_SEND_IMM,    HCA_WR_RDMA_READ,	   HCA_WR_ATOMIC_CAS,
		HCA_WR_ATOMIC_FADD, HCA_WR_LOCAL_INV,	   HCA_WR_SEND_INV};
	struct two_hcas_side *side = &d->side[i];
	enum hca_wr op = (enum hca_wr)any[input_u8(in) % sizeof(any)];
	uint32_t local = work_place(in), bytes = input_u16(in);
	uint32_t remote = work_place(in);
	uint8_t flags = input_u8(in);
	struct wqe *w;

	/* libibverbs refuses this request before the engine sees it */
	if (side->qp->type == HCA_QPT_UD && op == HCA_WR_LOCAL_INV)
		op = HCA_WR_SEND;
	if (side->qp->state < HCA_QP_RTS || work_is_full(&side->qp->sq))
		return false;
	w = two_hcas_send(d, i, op, local, bytes, remote);
	w->flags = (uint8_t)(always | (flags & chosen));
	w->rkey ^= flags & 0x80 ? input_u8(in) : 0;
	w->imm_be = input_u8(in);
	w->swap_add = w->compare = input_u8(in);
	two_hcas_post(d, i);
	return true;
}

/* Posts a receive of side i.  Returns false, and posts nothing, if the QP is in
 * RESET or its receive queue is full. */
static inline bool work_recv(struct input_bytes *in, struct two_hcas *d, int i)
{
	struct two_hcas_side *side = &d->side[i];
	uint32_t local = work_place(in), bytes = input_u16(in);

	if (side->qp->state == HCA_QP_RESET ||
	    (side->srq
		     ? shared_own(&side->srq->wq.head) - srq_next(side->srq) >=
			       side->srq->wq.depth
		     : work_is_full(&side->qp->rq)))
		return false;
	two_hcas_recv(d, i, local, bytes);
	return true;
}

#endif
