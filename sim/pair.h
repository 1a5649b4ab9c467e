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
	bool rough; /* the round began before due.quiet_ns: faults may happen */
};

/* Makes pairs between the world's hosts, and their QPs; each pair is DOWN. */
void pair_init(struct world *w);
/* Destroys the pairs and their objects. */
void pair_fini(struct world *w);
/* Moves each pair to its next phase, if nothing has to be awaited. */
void pair_step(struct world *w);
/* Is each pair OVER? */
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
/* The engine of h has raised ENGINE_SQ_DRAINED for the QP with number qpn. */
void pair_drained(struct world *w, const struct host *h, uint32_t qpn);
/* Returns the flow whose QP on h has number qpn, or NULL. */
struct flow *pair_flow_of(struct world *w, const struct host *h, uint32_t qpn);
/* Is f's QP in ERR, or gone with its process? */
bool pair_is_broken(const struct flow *f);
/* Is the QP of f's peer in ERR, or gone with its process? */
bool pair_peer_is_gone(const struct flow *f);

#endif
