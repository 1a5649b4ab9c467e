/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The programs: for each direction of each QP pair a list of requests and
 * receives made up front, posted little by little.
 *
 * So that the outcome does not hang on timing: sources never change, results
 * of READs and atomics and receives have places of their own, and a request
 * after a READ of writable memory is fenced.
 */
#ifndef SIM_WORKLOAD_H
#define SIM_WORKLOAD_H

#include "sim/world.h"

#define FLOW_OPS  64
#define FLOW_SGES 4

struct piece {
	uint32_t off, bytes; /* in the host's memory */
};

/* The last two are the receive's. */
enum op_defect {
	OP_GOOD,
	OP_BAD_RKEY,
	OP_BAD_LKEY,
	OP_SHORT_RECV,
	OP_BAD_RECV,
};

struct op {
	uint8_t opcode, flags, pieces, defect;
	struct piece piece[FLOW_SGES];
	uint32_t bytes, imm, remote; /* remote: offset at the responder */
	uint64_t swap_add, compare;
};

struct recv {
	uint8_t pieces;
	struct piece piece[FLOW_SGES];
	uint32_t op; /* the request that uses it */
};

/* Requests from `qp` of `from` to its peer; flow i ^ 1 is the way back. */
struct flow {
	struct host *from, *to;
	struct qp *qp;
	struct ibt_qp *q;
	struct cq *cq; /* both of qp's */
	uint32_t pd;
	struct mr *local, *remote, *target; /* target: receives, at `to` */
	uint32_t source, sink, sink_end, psn, atomics, writable, constant;
	uint32_t recv_brk, recv_end;
	uint32_t ops_count, posted, next; /* next: completion awaited */
	uint32_t failed;		  /* first op in error, or ops_count */
	uint32_t recvs_count, recvs_posted, recvs_next;
	bool fence_next;
	struct op ops[FLOW_OPS];
	struct recv recvs[FLOW_OPS];
};

/* Make QPs and requests. */
void workload_init(struct world *w);
void workload_fini(struct world *w);
/* Reset every QP where it stands, connect again, and make other requests. */
void workload_restart(struct world *w);
/* Let the programs post and poll. */
void workload_step(struct world *w);
bool workload_is_posted(const struct world *w);

#endif
