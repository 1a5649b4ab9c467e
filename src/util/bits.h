/* SPDX-License-Identifier: BSD-2-Clause */
/* Small arithmetic that every folder needs; no state. */
#ifndef UTIL_BITS_H
#define UTIL_BITS_H

#include <stddef.h>
#include <stdint.h>

#define ARRAY_COUNT(a) (sizeof(a) / sizeof((a)[0]))
#define CONTAINER_OF(ptr, type, member)                                        \
	((type *)(void *)((char *)(ptr)-offsetof(type, member)))

static inline uint32_t bits_min_u32(uint32_t a, uint32_t b)
{
	return a < b ? a : b;
}

static inline uint64_t bits_max_u64(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

static inline uint64_t bits_min_u64(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static inline uint32_t bits_max_u32(uint32_t a, uint32_t b)
{
	return a > b ? a : b;
}

/* The smallest power of two >= v; v of 0 gives 1, v above 2^31 is a bug. */
static inline uint32_t bits_pow2_up(uint32_t v)
{
	uint32_t p = 1;

	while (p < v)
		p <<= 1;
	return p;
}

static inline uint64_t bits_align_up(uint64_t v, uint64_t align)
{
	return (v + align - 1) & ~(align - 1);
}

/* ceil(a / b), b > 0. */
static inline uint64_t bits_div_up(uint64_t a, uint64_t b)
{
	return a / b + (a % b != 0);
}

#endif
