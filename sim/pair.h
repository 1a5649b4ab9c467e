/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A pair of connected queue pairs and their objects.  The pair goes through
 * rounds (connect, work, end), independently of other pairs and hosts.
 *
 *	DOWN --> RUNNING --> OVER
 *	  ^       |    |
 *	  |       v    |	FLUSHING: the QPs are in ERR, and every posted
 *	  |   FLUSHING |	request must complete
 *	  |       |    |
 *	  +-------+----+	the oracle checks the round
 */
#ifndef SIM_PAIR_H
#define SIM_PAIR_H

#include "sim/workload.h"

enum pair_phase { PAIR_DOWN, PAIR_RUNNING, PAIR_FLUSHING, PAIR_OVER };

struct pair {
	enum pair_phase phase;
	struct flow *flow; /* array of two, one for each direction */
	uint32_t round, rounds;
	bool rough; /* the round began before world.quiet_ns: with faults */
};

/* Makes pairs between the world's hosts, and their QPs; each pair is DOWN. */
void pair_init(struct world *w);
void pair_fini(struct world *w);
/* Takes each pair as far as it can go now. */
void pair_step(struct world *w);
bool pair_all_over(const struct world *w);
/* Fails the world, and says which flow has not ended. */
void pair_stuck(struct world *w);
/* A program ends a round early, sets a QP to ERR or SQD, or deregisters memory.
 */
void pair_disturb(struct world *w);
/* The process of h ends: destroys its QPs and CQs. */
void pair_host_dies(struct world *w, struct host *h);
/* A new process of h has an adapter: makes its CQs and QPs. */
void pair_host_is_back(struct world *w, struct host *h);
/* ENGINE_SQ_DRAINED of the QP. */
void pair_drained(struct world *w, const struct host *h, uint32_t qpn);
/* The flow of h's QP; NULL: none has it. */
struct flow *pair_flow_of(struct world *w, const struct host *h, uint32_t qpn);
/* Is f's QP in ERR, or gone with its process? */
bool pair_is_broken(const struct flow *f);
/* Is the QP of f's peer in ERR, or gone with its process? */
bool pair_peer_is_gone(const struct flow *f);

#endif
