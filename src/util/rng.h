/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Pseudo-random numbers from a seed (xoshiro256++ seeded by splitmix64).  Equal
 * seeds give equal numbers, on which the simulator relies.  Earlier numbers
 * reveal the state, and so the later numbers.  Therefore numbers that nobody
 * may guess, for example QPNs, PSNs and the secret by which keys are made, come
 * from util/random.h, or from a state into which a number from there was just
 * mixed (cm_seed, live_seed).  Not thread-safe: the owner's lock protects the
 * state.
 */
#ifndef UTIL_RNG_H
#define UTIL_RNG_H

#include <stdbool.h>
#include <stdint.h>

struct rng {
	uint64_t s[4]; /* the state of the generator */
};

/* Sets the state from a seed, which may be any number. */
void rng_init(struct rng *r, uint64_t seed);
/* Returns the next 64 random bits. */
uint64_t rng_u64(struct rng *r);
/* Returns the next 32 random bits. */
static inline uint32_t rng_u32(struct rng *r)
{
	return (uint32_t)(rng_u64(r) >> 32);
}
/* Returns a number in [0, n), nearly uniformly distributed; n > 0. */
uint32_t rng_below(struct rng *r, uint32_t n);
/* Returns true with a probability of millionths / 1 000 000. */
bool rng_chance(struct rng *r, uint32_t millionths);

#endif
