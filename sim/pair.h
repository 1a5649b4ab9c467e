/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A pair of connected queue pairs and their objects.  The pair goes through
 * rounds (connect, work, end), independently of other pairs and hosts.
 *
 *	DOWN --> RUNNING --> FLUSHING
 *	  ^         |            |	FLUSHING: the QPs are in ERR, and every
 *	  |         v            v	posted request must complete
 *	  +---- the oracle checks the round ----> OVER, after the last round
 */
#ifndef SIM_PAIR_H
#define SIM_PAIR_H

#include "sim/workload.h"

enum pair_phase { PAIR_DOWN, PAIR_RUNNING, PAIR_FLUSHING, PAIR_OVER };

/* Two connected queue pairs. */
struct pair {
	enum pair_phase phase;
	struct flow *flow; /* array of two, one for each direction */
	/* round: the number of the present round, from 1 on; rounds: how many
	 * the pair goes through, fewer if due.quiet_ns comes first */
	uint32_t round, rounds;
	bool rough; /* the round began before due.quiet_ns: faults may happen */
	struct pcap_stream *pcap; /* the captured connection; owned; or NULL */
};

/* Makes pairs between the world's hosts, and their QPs; each pair is DOWN. */
void pair_init(struct world *w);
/* Destroys the pairs and their objects, and frees the flows. */
void pair_fini(struct world *w);
/* Moves each pair that has nothing to wait for to its next phase. */
void pair_step(struct world *w);
/* Is each pair OVER? */
bool pair_all_over(const struct world *w);
/* Fails the world, and says which flow has not ended.  At least one pair is not
 * OVER. */
void pair_stuck(struct world *w);
/* Draws a flow and a fault of its program: ends the round early, sets the QP to
 * ERR or SQD, deregisters memory, or changes the QP's path.  Does nothing if
 * the pair is not RUNNING, or the program cannot do that now. */
void pair_disturb(struct world *w);
/* Destroys the QPs and CQs of h, whose process ends. */
void pair_host_dies(struct world *w, struct host *h);
/* Makes the CQs and QPs of h, which has a new process with an adapter. */
void pair_host_is_back(struct world *w, struct host *h);
/* Notes that the engine of h has raised ENGINE_SQ_DRAINED for the QP with
 * number qpn. */
void pair_drained(struct world *w, const struct host *h, uint32_t qpn);
/* Returns the flow whose QP on h has number qpn, or NULL. */
struct flow *pair_flow_of(struct world *w, const struct host *h, uint32_t qpn);
/* Is f's QP in ERR, or gone with its process? */
bool pair_is_broken(const struct flow *f);
/* Is the QP of f's peer in ERR, or gone with its process? */
bool pair_peer_is_gone(const struct flow *f);

#endif
