/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * 24-bit serial numbers (PSN, MSN, SSN; IBTA Vol 1 9.7.1).  Arithmetic is
 * modulo 2^24, and a is before b if b - a modulo 2^24 is in [1, 2^23].  The
 * type is a struct with one member, so that `<`, which would be wrong for
 * numbers that wrap, does not compile.
 */
#ifndef UTIL_SERIAL24_H
#define UTIL_SERIAL24_H

#include <stdbool.h>
#include <stdint.h>

#define SERIAL24_MASK 0xffffffu

struct serial24 {
	uint32_t v; /* always < 2^24 */
};

/* Returns v modulo 2^24. */
static inline struct serial24 serial24(uint32_t v)
{
	return (struct serial24){v & SERIAL24_MASK};
}

/* Returns a + n modulo 2^24; n may be negative. */
static inline struct serial24 serial24_add(struct serial24 a, int64_t n)
{
	return serial24((uint32_t)(a.v + (uint64_t)n));
}

/* Returns a - b in [-2^23, 2^23): the distance by which a is ahead of b. */
static inline int32_t serial24_diff(struct serial24 a, struct serial24 b)
{
	int32_t d = (int32_t)((a.v - b.v) & SERIAL24_MASK);

	return d >= 1 << 23 ? d - (1 << 24) : d;
}

/* Returns whether a is before b (IBTA 9.7.1). */
static inline bool serial24_is_before(struct serial24 a, struct serial24 b)
{
	return serial24_diff(a, b) < 0;
}

/* Returns whether two serial numbers are equal. */
static inline bool serial24_is_equal(struct serial24 a, struct serial24 b)
{
	return a.v == b.v;
}

#endif
