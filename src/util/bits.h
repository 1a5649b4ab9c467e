/* SPDX-License-Identifier: BSD-2-Clause */
/* Integer arithmetic, and two macros for arrays and for members of structures;
 * no state. */
#ifndef UTIL_BITS_H
#define UTIL_BITS_H

#include <stddef.h>
#include <stdint.h>

/* The number of elements of the array a, which must not be a pointer. */
#define ARRAY_COUNT(a) (sizeof(a) / sizeof((a)[0]))
/* The address of the structure of this type whose member is at ptr. */
#define CONTAINER_OF(ptr, type, member)                                        \
	((type *)(void *)((char *)(ptr)-offsetof(type, member)))

/* Returns the smaller of two 8-bit numbers. */
static inline uint8_t bits_min_u8(uint8_t a, uint8_t b)
{
	return a < b ? a : b;
}

/* Returns the smaller of two 32-bit numbers. */
static inline uint32_t bits_min_u32(uint32_t a, uint32_t b)
{
	return a < b ? a : b;
}

/* Returns the larger of two 64-bit numbers. */
static inline uint64_t bits_max_u64(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

/* Returns the smaller of two 64-bit numbers. */
static inline uint64_t bits_min_u64(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* Returns the larger of two 32-bit numbers. */
static inline uint32_t bits_max_u32(uint32_t a, uint32_t b)
{
	return a > b ? a : b;
}

/* Returns the smallest power of two >= v, and 1 for v = 0.  Assumes
 * v <= 2^31: for a larger v the loop has no end. */
static inline uint32_t bits_pow2_up(uint32_t v)
{
	uint32_t p = 1;

	while (p < v)
		p <<= 1;
	return p;
}

/* Returns the smallest multiple of `align`, a power of two, that is >= v. */
static inline uint64_t bits_align_up(uint64_t v, uint64_t align)
{
	return (v + align - 1) & ~(align - 1);
}

/* Returns ceil(a / b) for b > 0. */
static inline uint64_t bits_div_up(uint64_t a, uint64_t b)
{
	return a / b + (a % b != 0);
}

#endif
