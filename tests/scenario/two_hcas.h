/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Two adapters and one RC connection between them, by hand: the smallest
 * world in which a scenario can lose this ACK or that request.
 *
 *	side[0] --- frames that the test passes, drops, changes --- side[1]
 */
#ifndef TESTS_SCENARIO_TWO_HCAS_H
#define TESTS_SCENARIO_TWO_HCAS_H

#include "engine/engine.h"
#include "hca/access.h"
#include "hdr/pkt.h"
#include "sim/memory.h"

#define TWO_HCAS_MEMORY (1 << 20)

#define TWO_HCAS_BASE	0x100000000ull
#define TWO_HCAS_QKEY	0x11111111u

struct two_hcas_side {
	void *arena;
	struct hca hca;
	struct memory memory; /* at TWO_HCAS_BASE */
	uint8_t bytes[TWO_HCAS_MEMORY];
	struct memory_elsewhere elsewhere; /* for the other side */
	struct hca peer_area;		   /* hca as the other side has it, */
	struct access *access;		   /* and its slot there */
	struct engine *engine;
	struct cq *cq;
	struct qp *qp;
	struct ibt_qp *side;
	struct srq *srq; /* NULL, or where qp takes its receives */
	struct mr *mr;	 /* all of memory, every right */
	uint8_t ip[16];
	struct explain explained; /* the latest */
	uint32_t events[16];	  /* by type */
	uint32_t kicked;
	bool is_stopped; /* it serves no letters */
	bool is_dead;	 /* and this does nothing any more */
};

/* Decides a frame's fate: how many copies arrive (0 drops it). */
typedef int two_hcas_fate(void *context, int from,
			  const struct engine_frame *f);

struct two_hcas {
	struct two_hcas_side side[2];
	uint64_t now_ns;
	two_hcas_fate *fate; /* NULL: every frame arrives once */
	void *context;
	void (*turns)(int side);   /* who works from here on; or NULL */
	enum engine_peer liveness; /* answer to ENGINE_ASK_PEER */
	uint32_t asked;		   /* whose ports of this host are, so often */
	bool is_silent;		   /* and nobody answers */
};

/* With the argument "direct" requests go without packets (src/direct), and with
 * "at-once" after it as soon as they are posted (engine_post_direct), with
 * "apart" without the progress lock where that is possible
 * (engine_post_apart). */
void two_hcas_mode(int argc, char **argv);
bool two_hcas_is_direct(void);
struct two_hcas *two_hcas_new(uint32_t mtu, uint32_t depth);
/* The same with a shared receive queue of `depth` on each side. */
struct two_hcas *two_hcas_new_shared(uint32_t mtu, uint32_t depth);
/* Two sides of another service: HCA_QPT_UC or HCA_QPT_UD. */
struct two_hcas *two_hcas_new_of(uint32_t type, uint32_t mtu, uint32_t depth);
void two_hcas_free(struct two_hcas *d);
/* Marks side i's adapter as the kernel marks that of a process that has ended:
 * hca_is_alive. */
void two_hcas_end_process(struct two_hcas *d, int i);
/* Side i, in RESET, to RTS with the other. */
void two_hcas_connect(struct two_hcas *d, int i, uint32_t mtu);
/* Post on side i; lkey and rkey are those of the whole-memory regions. */
struct wqe *two_hcas_send(struct two_hcas *d, int i, enum hca_wr op,
			  uint64_t local, uint32_t bytes, uint64_t remote);
void two_hcas_post(struct two_hcas *d,
		   int i); /* after the last change to the wqe */
/* So many of one kind, from or to the beginning of side 0's memory. */
void two_hcas_post_row(struct two_hcas *d, uint32_t count, enum hca_wr op,
		       uint32_t bytes, uint64_t remote);
void two_hcas_recv(struct two_hcas *d, int i, uint64_t local, uint32_t bytes);
/* The timeouts of all tries of side i's QP, in nanoseconds. */
uint64_t two_hcas_tries_ns(const struct two_hcas *d, int i);
/* Write something of one's own to [at, at + bytes) of side i's memory. */
void two_hcas_fill(struct two_hcas *d, int i, uint64_t at, uint32_t bytes);
/* p, of which all but its P_Key and destination is given, comes to side `to` as
 * if from the other. */
void two_hcas_forge(struct two_hcas *d, int to, struct pkt *p);
/* The same from a port of this host. */
void two_hcas_forge_from(struct two_hcas *d, int to, struct pkt *p,
			 uint16_t port);
/* Run until neither side has anything to send or wait for, or until_ns. */
void two_hcas_run(struct two_hcas *d, uint64_t until_ns);
/* Take one completion of side i; false when there is none. */
bool two_hcas_poll(struct two_hcas *d, int i, struct cqe *c);

#endif
