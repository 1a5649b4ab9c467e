/* SPDX-License-Identifier: BSD-2-Clause */
#include "hca/comp.h"

#include "hca/hca.h"

/* Adds one completion to the sums of `op`.  Each addition is a release, which
 * orders the operation's stores to memory before the new sum.  Otherwise a
 * program that loads the sum could then read old bytes of that memory. */
static void add_completion(struct qp *qp, enum comp_op op, bool failed,
			   uint64_t bytes)
{
	struct comp_sum *s = &qp_target(qp)->comp.of[op];

	if (!(shared_own(&qp_target(qp)->comp.ops) & 1u << op))
		return;
	if (failed) {
		atomic_fetch_add_explicit(&s->failed, 1, memory_order_release);
		return;
	}
	atomic_fetch_add_explicit(&s->bytes, bytes, memory_order_release);
	atomic_fetch_add_explicit(&s->done, 1, memory_order_release);
}

static enum comp_op op_of(uint8_t opcode)
{
	switch ((enum hca_wr)opcode) {
	case HCA_WR_SEND:
	case HCA_WR_SEND_IMM:
	case HCA_WR_SEND_INV:
		return COMP_SEND;
	case HCA_WR_RDMA_WRITE:
	case HCA_WR_RDMA_WRITE_IMM:
		return COMP_WRITE;
	case HCA_WR_RDMA_READ:
		return COMP_READ;
	case HCA_WR_ATOMIC_CAS:
	case HCA_WR_ATOMIC_FADD:
	case HCA_WR_ATOMIC_WRITE:
	case HCA_WR_LOCAL_INV:
	case HCA_WR_BIND_MW:
		break;
	}
	return COMP_OPS;
}

void comp_request(struct qp *qp, uint8_t opcode, bool failed, uint64_t bytes)
{
	enum comp_op op;

	if (!shared_own(&qp_target(qp)->comp.ops))
		return;
	op = op_of(opcode);
	if (op != COMP_OPS)
		add_completion(qp, op, failed, bytes);
}

void comp_receive(struct qp *qp, const struct cqe *c)
{
	if (shared_own(&qp_target(qp)->comp.ops))
		add_completion(qp, COMP_RECV, c->status != HCA_SUCCESS,
			       c->byte_len);
}

void comp_remote_write(struct qp *qp, uint64_t bytes)
{
	if (shared_own(&qp_target(qp)->comp.ops))
		add_completion(qp, COMP_REMOTE_WRITE, false, bytes);
}
