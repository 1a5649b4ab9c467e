/* SPDX-License-Identifier: BSD-2-Clause */
/* What must hold, told from the workload alone and never from the engine. */
#ifndef SIM_ORACLE_H
#define SIM_ORACLE_H

#include "sim/pair.h"

/* wr_id: bit 63 a receive, then its round, flow, and index. */
#define ORACLE_RECV (1ull << 63)

static inline uint64_t oracle_wr_id(const struct flow *f, uint32_t index)
{
	return (uint64_t)f->pair->round << 48 | (uint64_t)f->id << 32 | index;
}

/* The completion's opcode for a request. */
uint32_t oracle_opcode(const struct op *o);
void oracle_completion(struct world *w, const struct cqe *c);
/*
 * The end of a pair's round: its memory, byte for byte.  What a request
 * without success may have written is taken as it is.
 */
void oracle_round(struct world *w, struct pair *p);
/* The world's end: all memory, what lies between the regions included. */
void oracle_end(struct world *w);
/*
 * Data that a replayed request puts into n pieces of h's shadow; vague: it may
 * have, so that nothing is known of them.
 */
void oracle_spread(struct host *h, const struct piece *p, uint8_t n,
		   const uint8_t *data, uint32_t bytes, bool vague);

#endif
