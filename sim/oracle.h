/* SPDX-License-Identifier: BSD-2-Clause */
/* The oracle checks completions and memory against the workload, and calls no
 * function of the engine. */
#ifndef SIM_ORACLE_H
#define SIM_ORACLE_H

#include "sim/pair.h"

/* The bit of a wr_id that marks a receive. */
#define ORACLE_RECV (1ull << 63)

/* Returns the wr_id of ops[index] of flow f in the pair's present round.  For
 * recvs[index], the caller adds ORACLE_RECV. */
static inline uint64_t oracle_wr_id(const struct flow *f, uint32_t index)
{
	return (uint64_t)f->pair->round << 48 | (uint64_t)f->id << 32 | index;
}

/* Returns the opcode (HCA_WC_*) that the completion of request o must have. */
uint32_t oracle_opcode(const struct op *o);
/* Checks a completion that a program has polled; the world fails if it is
 * wrong. */
void oracle_completion(struct world *w, const struct cqe *c);
/*
 * Ends a pair's round: compares the pair's memory byte by byte with a replay of
 * its requests, except for bytes that a request of unknown outcome may have
 * written.
 */
void oracle_round(struct world *w, struct pair *p);
/* Ends the world: compares all memory, guard bytes included. */
void oracle_end(struct world *w);
/*
 * Copies `bytes` bytes of data to the n pieces p[] in h->shadow, as a replayed
 * request does.  If vague, it is not known whether the request was executed:
 * nothing is copied, and oracle_round does not compare the pieces.
 */
void oracle_spread(struct host *h, const struct piece *p, uint8_t n,
		   const uint8_t *data, uint32_t bytes, bool vague);

#endif
