/* SPDX-License-Identifier: BSD-2-Clause */
/* Checks completions and memory against the workload; never asks the engine. */
#ifndef SIM_ORACLE_H
#define SIM_ORACLE_H

#include "sim/pair.h"

/* In a wr_id: bit 63 marks a receive; round, flow and index follow. */
#define ORACLE_RECV (1ull << 63)

static inline uint64_t oracle_wr_id(const struct flow *f, uint32_t index)
{
	return (uint64_t)f->pair->round << 48 | (uint64_t)f->id << 32 | index;
}

/* The opcode (HCA_WC_*) of the completion of a request. */
uint32_t oracle_opcode(const struct op *o);
/* Checks a completion that a program has polled. */
void oracle_completion(struct world *w, const struct cqe *c);
/*
 * At the end of a pair's round: compares its memory byte by byte with a replay
 * of its requests, except for bytes that an unsuccessful request may have
 * written.
 */
void oracle_round(struct world *w, struct pair *p);
/* At the end of the world: compares all memory, the guards included. */
void oracle_end(struct world *w);
/*
 * Writes what a replayed request wrote into n pieces of the shadow of h. vague:
 * the request may have written, so the pieces are not compared.
 */
void oracle_spread(struct host *h, const struct piece *p, uint8_t n,
		   const uint8_t *data, uint32_t bytes, bool vague);

#endif
