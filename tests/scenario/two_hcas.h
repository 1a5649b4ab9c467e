/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Two adapters and one connection between them in one process: the smallest
 * world in which a test can lose any ACK or request that it chooses.
 *
 * side[0] --- frames that the test passes, drops, changes --- side[1]
 */
#ifndef TESTS_SCENARIO_TWO_HCAS_H
#define TESTS_SCENARIO_TWO_HCAS_H

#include "engine/engine.h"
#include "hca/access.h"
#include "hdr/pkt.h"
#include "scenario/subnet.h"
#include "sim/memory.h"

#define TWO_HCAS_MEMORY (1 << 20)

#define TWO_HCAS_BASE	0x100000000ull
#define TWO_HCAS_QKEY	0x11111111u

struct two_hcas_side {
	void *arena; /* the memory of hca's arena */
	struct hca hca;
	struct memory memory;		   /* at TWO_HCAS_BASE */
	uint8_t bytes[TWO_HCAS_MEMORY];	   /* the contents of memory */
	struct memory_elsewhere elsewhere; /* memory as the peer reaches it */
	struct hca peers_view;		   /* hca as the peer has mapped it */
	struct access *access;		   /* the peer's access slot in hca */
	struct engine *engine;
	struct cq *cq; /* of sends and receives */
	struct qp *qp;
	struct ibt_qp *side; /* qp in the engine */
	struct srq *srq;     /* the SRQ of qp; NULL: qp has none */
	struct mr *mr;	     /* all of memory, with every right */
	uint8_t ip[16];
	struct explain explained; /* the latest explanation */
	uint32_t events[16];	  /* how many, by type */
	uint32_t woken;		  /* wake-ups by the peer */
	/* The side sends nothing, and serves no notify bits and no timers. */
	bool is_stopped;
	bool is_dead; /* the side does nothing any more */
};

/* Decides a frame's fate: how many copies arrive (0 drops it). */
typedef int two_hcas_fate(void *context, int from,
			  const struct engine_frame *f);

struct two_hcas {
	struct two_hcas_side side[2];
	uint64_t now_ns;
	two_hcas_fate *fate;	   /* NULL: every frame arrives once */
	void *context;		   /* of fate */
	void (*turns)(int side);   /* called before a side works; or NULL */
	enum engine_peer liveness; /* answer to ENGINE_ASK_PEER */
	bool is_broker_mute;	   /* ENGINE_ASK_PEER gets no answer */
	uint32_t asked; /* answered questions about source ports so far */
	/* Questions about source ports get no answer. */
	bool is_silent;
	struct subnet *subnet; /* by LID: carries the packets; else NULL */
	/* The subnet's number of changes, as the engines see it. */
	shared_u32 changes;
	bool is_restless;    /* the subnet changes after each of its answers */
	bool has_old_gids;   /* packets with an SGID of no port are expected */
	uint32_t asked_path; /* how often an engine asked for a path */
};

/* Takes the mode of the next worlds from a test's arguments.  "direct":
 * requests use no packets (src/direct).  "direct at-once": the post executes
 * requests (engine_post_direct).  "direct apart": the post executes requests
 * without the progress lock where that is possible (engine_post_apart).  If the
 * last word is "without", both sides switch off every mechanism of struct
 * engine_without.  "by-lid": packets go through a subnet (scenario/subnet.h)
 * without a GRH.  "by-gid": they do so with a GRH. */
void two_hcas_mode(int argc, char **argv);
/* Side i of the next worlds switches these mechanisms off. */
void two_hcas_without(int i, struct engine_without without);
/* The next worlds send packets through a subnet: with a GRH, if is_global. */
void two_hcas_by_lid(bool is_global);
/* Returns whether packets go through a subnet. */
bool two_hcas_is_by_lid(void);
/* Returns whether requests use no packets. */
bool two_hcas_is_direct(void);
/* Makes two sides with RC QPs of `depth` requests and `depth` receives, which
 * are connected with path MTU `mtu` (1 to 5: 256 to 4096 bytes). */
struct two_hcas *two_hcas_new(uint32_t mtu, uint32_t depth);
/* As two_hcas_new, but each QP takes its receives from a shared receive queue.
 */
struct two_hcas *two_hcas_new_shared(uint32_t mtu, uint32_t depth);
/* As two_hcas_new, with QPs of a type: HCA_QPT_RC, HCA_QPT_UC or HCA_QPT_UD. */
struct two_hcas *two_hcas_new_of(uint32_t type, uint32_t mtu, uint32_t depth);
/* Frees the sides, but not the engines of dead sides.  Fails the test if
 * another engine has work left. */
void two_hcas_free(struct two_hcas *d);
/* Marks side i's adapter as the kernel marks the adapter of a process that has
 * ended: hca_is_alive is false. */
void two_hcas_end_process(struct two_hcas *d, int i);
/* Moves side i's QP from RESET to RTS, connected with the peer. */
void two_hcas_connect(struct two_hcas *d, int i, uint32_t mtu);
/* Prepares a signaled request of side i with the keys of the whole memory.
 * local and remote: offsets in the memories of side i and of the peer.  The
 * caller may change the returned WQE, and then posts the WQE by two_hcas_post.
 */
struct wqe *two_hcas_send(struct two_hcas *d, int i, enum hca_wr op,
			  uint64_t local, uint32_t bytes, uint64_t remote);
/* Posts the request of the last two_hcas_send. */
void two_hcas_post(struct two_hcas *d, int i);
/* Posts `count` requests of side 0, from or to the start of its memory. */
void two_hcas_post_row(struct two_hcas *d, uint32_t count, enum hca_wr op,
		       uint32_t bytes, uint64_t remote);
/* Posts a receive of `bytes` bytes at the offset `local` of side i's memory. */
void two_hcas_recv(struct two_hcas *d, int i, uint64_t local, uint32_t bytes);
/* Returns the time of all tries of side i's QP, in nanoseconds. */
uint64_t two_hcas_tries_ns(const struct two_hcas *d, int i);
/* Writes random bytes to [at, at + bytes) of side i's memory. */
void two_hcas_fill(struct two_hcas *d, int i, uint64_t at, uint32_t bytes);
/* Gives packet p to side `to` with the address of the peer as its source.  Sets
 * the P_Key and the destination QPN of p. */
void two_hcas_forge(struct two_hcas *d, int to, struct pkt *p);
/* Gives packet p to side `to` as two_hcas_forge does, but from source port
 * `port` of this host. */
void two_hcas_forge_from(struct two_hcas *d, int to, struct pkt *p,
			 uint16_t port);
/* Runs until neither side has anything to send or wait for, or until until_ns.
 */
void two_hcas_run(struct two_hcas *d, uint64_t until_ns);
/* Polls one completion of side i; false: there is none. */
bool two_hcas_poll(struct two_hcas *d, int i, struct cqe *c);

#endif
