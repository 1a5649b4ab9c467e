/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What has completed at a queue pair, summed for completion counters
 * (ibv_create_comp_cntr): of its own requests, signaled or not, of its
 * receives, and of its peer's WRITEs.  The peer's READs are not: a long one may
 * come as several requests, which cannot be told from several READs.  Atomics,
 * windows and invalidations are none of these.
 *
 * In the arena, with the queue pair; a peer on this host sums what it executes
 * there.  Only operations that are counted cost more than one load.  Whoever
 * reads a sum sees the memory that its completions wrote.
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
	_Atomic uint64_t done, bytes; /* with success; the bytes of those */
	_Atomic uint64_t failed;
};

struct comp {
	shared_u32 ops; /* bits of those that are counted; they only grow */
	struct comp_sum of[COMP_OPS];
};

/* A request of the queue pair's own; opcode: enum hca_wr. */
void comp_request(struct qp *qp, uint8_t opcode, bool failed, uint64_t bytes);
/* A receive, with what its completion says. */
void comp_receive(struct qp *qp, const struct cqe *c);
/* A WRITE of its peer, all of which is placed. */
void comp_remote_write(struct qp *qp, uint64_t bytes);

#endif
