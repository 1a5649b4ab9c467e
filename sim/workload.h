/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The programs: for each direction of each QP pair a list of requests and
 * receives made up front, posted little by little.  A pair goes through
 * rounds: connect, work, end; other pairs and hosts go on meanwhile.
 *
 * So that the outcome does not hang on timing: sources never change, results
 * of READs and atomics and receives have places of their own, and a request
 * after a READ of writable memory is fenced.
 */
#ifndef SIM_WORKLOAD_H
#define SIM_WORKLOAD_H

#include "sim/world.h"

#define FLOW_OPS	 64
#define FLOW_SGES	 4

#define WORKLOAD_SOURCE	 (96u << 10) /* bytes that requests send from */
#define WORKLOAD_AREA	 (80u << 10) /* bytes of each remote area */
#define WORKLOAD_ATOMICS 8	     /* words at flow.atomics */
#define WORKLOAD_INLINE	 128	     /* bytes */

struct service;

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
	uint32_t op;  /* the request that uses it */
	uint32_t got; /* lossy services: the one that did */
};

/* What a flow registers: sources and results; what its requests name; what
 * its messages are received into. */
enum { REGION_LOCAL, REGION_REMOTE, REGION_TARGET, REGION_COUNT };

struct region {
	struct host *at;
	uint32_t off, bytes, access;
	struct mr *mr;	     /* NULL: not now */
	uint32_t lkey, rkey; /* the latest */
	uint8_t *frozen;     /* what it held when it was deregistered */
};

enum sqd { SQD_NO, SQD_DRAINING, SQD_DRAINED };

/* Requests from `qp` of `from` to its peer, in `back` those of the peer. */
struct flow {
	uint32_t id;
	const struct service *service;
	struct pair *pair;
	struct flow *back;
	struct host *from, *to;
	struct hca_qp_cap cap;
	bool shares;  /* qp takes its receives from cap.srq */
	uint32_t tap; /* of `from`: for both queues of qp */
	/* NULL while the host is dead: */
	struct qp *qp;
	struct ibt_qp *q;
	uint32_t pd;
	struct region region[REGION_COUNT];
	uint32_t source, sink, sink_end, psn, atomics, writable, constant;
	uint32_t recv_brk, recv_end;
	/* Of this round: */
	uint32_t ops_count, posted, next; /* next: completion awaited */
	uint32_t failed;		  /* first op in error, or ops_count */
	uint32_t recvs_count, recvs_posted, recvs_next;
	uint8_t rnr_retry;
	uint8_t sqd;	 /* enum sqd */
	uint8_t revoked; /* bits 1 << REGION_*, deregistered amid traffic */
	bool dead;	 /* its host died in this round */
	bool fence_next;
	uint32_t longest, last; /* lossy services, see loose.c */
	struct op ops[FLOW_OPS];
	struct recv recvs[FLOW_OPS];
};

/* Draw the requests of a round, after forgetting those before. */
void workload_draw(struct world *w, struct flow *f);
/* Let the programs post and poll; when they want to run again. */
uint64_t workload_step(struct world *w);
/* Is there a completion to poll for? */
bool workload_has_news(const struct world *w);

/* ---- for the services ---- */

uint32_t workload_below(struct world *w, uint32_t n);
/* A message's length, mostly small. */
uint32_t workload_bytes(struct world *w);
/* Cut `bytes` from *brk on into pieces, some of them empty. */
uint8_t workload_cut(struct world *w, struct piece *p, uint32_t *brk,
		     uint32_t bytes, uint32_t at_most);
/* A receive for the message of request `op`; false when there is no room. */
bool workload_receive(struct world *w, struct flow *f, uint32_t op,
		      uint32_t bytes);
/* Near the wrap in half of the cases, later on far from the one before. */
uint32_t workload_psn(struct world *w, struct flow *f);
void workload_modify(struct world *w, struct flow *f, struct hca_qp_attr *a,
		     uint32_t state, uint32_t mask);

#endif
