/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The life of a pair of QPs, and of the objects around it: connect, work, end
 * and begin anew, while other pairs and hosts go on.
 *
 *	DOWN --> RUNNING --> OVER
 *	  ^       |    |
 *	  |       v    |	FLUSHING: the QPs were put into error, and
 *	  |   FLUSHING |	all that was posted must come back
 *	  |       |    |
 *	  +-------+----+	checked by the oracle
 */
#ifndef SIM_PAIR_H
#define SIM_PAIR_H

#include "sim/workload.h"

enum pair_phase { PAIR_DOWN, PAIR_RUNNING, PAIR_FLUSHING, PAIR_OVER };

struct pair {
	enum pair_phase phase;
	struct flow *flow; /* two */
	uint32_t round, rounds;
	bool rough; /* the round began while there were faults */
};

/* Make pairs between the world's hosts, and their QPs; all are down. */
void pair_init(struct world *w);
void pair_fini(struct world *w);
/* Move each pair on as far as it can. */
void pair_step(struct world *w);
bool pair_all_over(const struct world *w);
/* Fail, and tell where it stands. */
void pair_stuck(struct world *w);
/* A program does something rude to one of its objects. */
void pair_disturb(struct world *w);
void pair_host_dies(struct world *w, struct host *h);
void pair_host_is_back(struct world *w, struct host *h);
/* The event that flow's send queue has drained. */
void pair_drained(struct world *w, const struct host *h, uint32_t qpn);
/* The flow of the QP, NULL when there is none. */
struct flow *pair_flow_of(struct world *w, const struct host *h, uint32_t qpn);
/* Can f's own QP do nothing more?  Can its peer's? */
bool pair_is_broken(const struct flow *f);
bool pair_peer_is_gone(const struct flow *f);

#endif
