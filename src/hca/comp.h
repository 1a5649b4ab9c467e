/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Sums of the operations that have completed at a queue pair, for completion
 * counters (ibv_create_comp_cntr): the QP's own requests, signaled or not, its
 * receives, and its peer's WRITEs.  The peer's READs are not counted, because a
 * long READ may arrive as several requests, which look like several READs.
 * Atomics, binds and invalidations are not counted either.
 *
 * The sums lie in the arena, in struct qp_target.  A peer of this host adds the
 * WRITEs that it executes directly; the QP's own process adds all other
 * operations.  While no operation of the QP is counted, each completion costs
 * one load.  An addition to a sum is a release, and the load of the sum for the
 * program (verbs/counter.c) is an acquire.  Otherwise a program that has read a
 * sum could read old bytes of the memory that the summed operations wrote.
 * Lock: none; additions are atomic.
 */
#ifndef HCA_COMP_H
#define HCA_COMP_H

#include <stdbool.h>
#include <stdint.h>

#include "util/shared.h"

struct cqe;
struct qp;

/* Positions of the bits IBV_QP_ATTACH_COMP_CNTR_OP_*. */
enum comp_op {
	COMP_SEND,
	COMP_RECV,
	COMP_READ,
	COMP_REMOTE_READ, /* never summed */
	COMP_WRITE,
	COMP_REMOTE_WRITE,
	COMP_OPS
};

#define COMP_ALL ((1u << COMP_OPS) - 1 - (1u << COMP_REMOTE_READ))

struct comp_sum {
	_Atomic uint64_t done;	 /* completions with success */
	_Atomic uint64_t bytes;	 /* the bytes of completions with success */
	_Atomic uint64_t failed; /* completions with an error */
};

/* The sums of one queue pair. */
struct comp {
	/* Bit 1 << enum comp_op: the operation is counted.  Bits are set and
	 * never cleared. */
	shared_u32 ops;
	struct comp_sum of[COMP_OPS]; /* by enum comp_op */
};

/* Counts a completed request of qp itself.  @opcode: enum hca_wr; @failed: it
 * completed with an error; @bytes: the request's length, not counted if
 * @failed. */
void comp_request(struct qp *qp, uint8_t opcode, bool failed, uint64_t bytes);
/* Counts a completed receive of qp, whose completion is *c. */
void comp_receive(struct qp *qp, const struct cqe *c);
/* Counts a WRITE of qp's peer.  Called after all its bytes are written. */
void comp_remote_write(struct qp *qp, uint64_t bytes);

#endif
