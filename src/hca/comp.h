/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Sums of what has completed at a queue pair, for completion counters
 * (ibv_create_comp_cntr): the QP's own requests, signaled or not, its receives,
 * and its peer's WRITEs.  The peer's READs are not counted: a long READ may
 * arrive as several requests, which look like several READs.  Atomics, binds
 * and invalidations are not counted either.
 *
 * The sums lie in the arena, in struct qp_target; a peer of this host adds the
 * requests that it executes there.  An operation that is not counted costs one
 * load.  A reader of a sum sees the memory that the summed completions wrote.
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

struct comp {
	shared_u32 ops; /* 1 << enum comp_op: counted; bits are only set */
	struct comp_sum of[COMP_OPS];
};

/* Counts a completed request of qp itself; opcode: enum hca_wr. */
void comp_request(struct qp *qp, uint8_t opcode, bool failed, uint64_t bytes);
/* Counts a completed receive of qp by its completion c. */
void comp_receive(struct qp *qp, const struct cqe *c);
/* Counts a WRITE of qp's peer after all its bytes are written. */
void comp_remote_write(struct qp *qp, uint64_t bytes);

#endif
