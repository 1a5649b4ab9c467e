/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The programs: for each direction of each QP pair a list of requests and
 * receives, drawn at the beginning of a round and posted a few at a time.
 *
 * The final memory does not depend on timing: the memory that requests send
 * from never changes, each receive and each result of a READ or an atomic has
 * memory of its own, and a request after a READ of writable memory is fenced.
 */
#ifndef SIM_WORKLOAD_H
#define SIM_WORKLOAD_H

#include "sim/world.h"

#define FLOW_OPS	 64 /* most requests of a flow in a round */
#define FLOW_SGES	 4  /* most pieces of a request or a receive */

#define WORKLOAD_SOURCE	 (96u << 10) /* bytes that requests send from */
#define WORKLOAD_AREA	 (80u << 10) /* bytes of each remote area */
#define WORKLOAD_ATOMICS 8	     /* words at flow.atomics */
#define WORKLOAD_INLINE	 128	     /* most bytes of an inline request */

struct bytestream;
struct service;

/* [off, off + bytes) of a host's memory. */
struct piece {
	uint32_t off, bytes;
};

/* Why a request must fail.  A request of UC or UD, or one of iWARP that has no
 * response, may then complete with success, because its initiator does not
 * learn of the failure. */
enum op_defect {
	OP_GOOD,       /* nothing is wrong */
	OP_BAD_RKEY,   /* a wrong rkey; UD: a wrong Q_Key */
	OP_BAD_LKEY,   /* wrong lkeys */
	OP_SHORT_RECV, /* its receive is too short */
	OP_BAD_RECV,   /* its receive has a bad lkey */
};

/* A request.  opcode: HCA_WR_*; flags: HCA_SEND_*; pieces: how many of piece[]
 * are in use; defect: enum op_defect. */
struct op {
	uint8_t opcode, flags, pieces, defect;
	struct piece piece[FLOW_SGES]; /* in the requester's memory */
	uint32_t bytes, imm;	       /* the message's length; immediate */
	/* WRITE, READ, atomics: the offset in the responder's memory */
	uint32_t remote;
	uint64_t swap_add, compare; /* an atomic's operands */
};

/* A receive. */
struct recv {
	uint8_t pieces;		       /* how many of piece[] are in use */
	struct piece piece[FLOW_SGES]; /* in the responder's memory */
	uint32_t op;  /* the request for which the receive was drawn */
	uint32_t got; /* loose.c: the request whose message was received */
};

/* The memory regions of a flow. */
enum {
	REGION_LOCAL,  /* the requester's: data to send, and results */
	REGION_REMOTE, /* the responder's, for WRITE, READ and atomics */
	REGION_TARGET, /* the responder's, for receives */
	REGION_COUNT,
};

/* [off, off + bytes) of the memory of host `at`; access: HCA_LOCAL_WRITE and
 * others. */
struct region {
	struct host *at;
	uint32_t off, bytes, access;
	struct mr *mr;	     /* NULL: not registered now */
	uint32_t lkey, rkey; /* those of the latest registration */
	uint8_t *frozen;     /* a copy of the deregistered bytes; owned */
};

/* How far a program has drained a send queue (SQD): not begun, waiting for
 * ENGINE_SQ_DRAINED, drained. */
enum sqd { SQD_NO, SQD_DRAINING, SQD_DRAINED };

/* The requests and receives of a flow in one round of its pair. */
struct round {
	/* How many requests there are, how many of them are posted, and the
	 * index of the next one to complete. */
	uint32_t ops_count, posted, next;
	uint32_t failed; /* the first request in error, or ops_count */
	/* Requests before this one have certainly been executed. */
	uint32_t certain;
	/* How many receives there are, how many of them are posted, and the
	 * index of the next one to complete. */
	uint32_t recvs_count, recvs_posted, recvs_next;
	uint8_t rnr_retry; /* RC: of the requester's QP; 7: no limit */
	uint8_t sqd;	   /* enum sqd */
	uint8_t revoked;   /* bits 1 << REGION_*: deregistered in this round */
	bool dead;	   /* the process of `from` ended in this round */
	bool fence_next;   /* the next request must be fenced */
	uint32_t longest;  /* loose.c: bytes of the longest message */
	/* loose.c: the request whose message was received last */
	uint32_t last;
	struct op ops[FLOW_OPS];
	struct recv recvs[FLOW_OPS];
};

/* The requests of queue pair qp of host `from` to its peer, and the receives
 * that the peer posts for them.  `back` is the flow of the peer's requests. */
struct flow {
	uint32_t id; /* the index in world.flows */
	const struct service *service;
	struct pair *pair;
	struct flow *back;
	struct host *from, *to;
	struct hca_qp_cap cap; /* of qp */
	bool shares;	       /* qp takes its receives from cap.srq */
	uint32_t tap;	       /* the index of qp's CQ in from->taps */
	struct qp *qp;	       /* NULL while the host is dead */
	struct ibt_qp *q;      /* NULL while the host is dead */
	uint32_t pd;	       /* of qp */
	struct region region[REGION_COUNT];
	/* psn: the latest initial PSN.  The other members are offsets.  In the
	 * memory of host `from`, the bytes that requests send begin at
	 * `source`, and [sink, sink_end) is left for results.  In the memory of
	 * host `to`, the area that only READs use begins at `constant`, the
	 * area for WRITEs and READs at `writable`, and the words for atomics at
	 * `atomics`. */
	uint32_t source, sink, sink_end, psn, atomics, writable, constant;
	/* [recv_brk, recv_end) of the memory of `to` is left for receives. */
	uint32_t recv_brk, recv_end;
	struct bytestream *bytestream; /* iWARP: from qp to the peer; owned */
	struct round round;
};

/* Draws f's requests and receives of a new round, in place of the previous
 * round's. */
void workload_draw(struct world *w, struct flow *f);
/* Lets the programs post and poll, and moves the pairs to their next phases
 * (pair_step).  Returns the world's time at which the programs run again, in
 * ns. */
uint64_t workload_step(struct world *w);
/* Can a program that runs now poll a completion? */
bool workload_has_news(const struct world *w);

/* ---- for the services ---- */

/* Draws a number below n; n is not 0. */
uint32_t workload_below(struct world *w, uint32_t n);
/* Draws the length of a message: mostly small, at most 65536 bytes. */
uint32_t workload_bytes(struct world *w);
/* Cuts the `bytes` bytes that begin at offset *brk into at most at_most pieces,
 * of which some may be empty, and adds `bytes` to *brk.  Returns the number of
 * pieces. */
uint8_t workload_cut(struct world *w, struct piece *p, uint32_t *brk,
		     uint32_t bytes, uint32_t at_most);
/* Draws a receive of `bytes` bytes or more for the message of request op, or of
 * fewer bytes if the defect of op is OP_SHORT_RECV.  False: no memory is left.
 */
bool workload_receive(struct world *w, struct flow *f, uint32_t op,
		      uint32_t bytes);
/* Draws an initial PSN: in the first round near the wrap in half of the cases,
 * in later rounds far from the previous PSN. */
uint32_t workload_psn(struct world *w, struct flow *f);
/* Modifies f's QP to state with the attributes in *a that mask names; the world
 * fails if the engine refuses. */
void workload_modify(struct world *w, struct flow *f, struct hca_qp_attr *a,
		     uint32_t state, uint32_t mask);

#endif
