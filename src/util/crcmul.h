/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Carry-less multiplication of the halves of 16-byte registers, for the
 * computation of a CRC (util/crcfactor.h has the arithmetic): PCLMULQDQ of
 * x86-64, PMULL of arm64.
 *
 * Inline functions without state.  Their callers are compiled for CRCMUL_TARGET
 * and called only if crctier_chosen.multiplies.
 */
#ifndef UTIL_CRCMUL_H
#define UTIL_CRCMUL_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "util/crcfactor.h"

#if defined(__x86_64__)

#include <immintrin.h>

#define CRCMUL_IS_BUILT 1
#define CRCMUL_TARGET	"pclmul,sse4.2"
#define CRCMUL                                                                 \
	static inline __attribute__((always_inline, target(CRCMUL_TARGET)))

/* A register of 16 bytes.  "First" means first in memory. */
typedef __m128i crcmul_vec;

/* Loads 16 bytes, which need no alignment. */
CRCMUL crcmul_vec crcmul_load(const void *p)
{
	return _mm_loadu_si128(p);
}

/* Stores 16 bytes at p, which needs no alignment. */
CRCMUL void crcmul_store(void *p, crcmul_vec v)
{
	_mm_storeu_si128(p, v);
}

/* Returns a register of these two halves. */
CRCMUL crcmul_vec crcmul_halves(uint64_t first, uint64_t second)
{
	return _mm_set_epi64x((int64_t)second, (int64_t)first);
}

/* Returns the four bytes of word, followed by twelve zero bytes. */
CRCMUL crcmul_vec crcmul_word(uint32_t word)
{
	return _mm_cvtsi32_si128((int)word);
}

/* Returns the sum of two polynomials, which is their exclusive or. */
CRCMUL crcmul_vec crcmul_add(crcmul_vec a, crcmul_vec b)
{
	return _mm_xor_si128(a, b);
}

/* Returns the bits that are set in both a and b. */
CRCMUL crcmul_vec crcmul_mask(crcmul_vec a, crcmul_vec b)
{
	return _mm_and_si128(a, b);
}

/* Returns the carry-less product of the first halves of a and b. */
CRCMUL crcmul_vec crcmul_firsts(crcmul_vec a, crcmul_vec b)
{
	return _mm_clmulepi64_si128(a, b, 0x00);
}

/* Returns the carry-less product of the second halves of a and b. */
CRCMUL crcmul_vec crcmul_seconds(crcmul_vec a, crcmul_vec b)
{
	return _mm_clmulepi64_si128(a, b, 0x11);
}

/* Returns the carry-less product of a's first half and b's second half. */
CRCMUL crcmul_vec crcmul_cross(crcmul_vec a, crcmul_vec b)
{
	return _mm_clmulepi64_si128(a, b, 0x10);
}

/* Returns the second half of v, followed by eight zero bytes. */
CRCMUL crcmul_vec crcmul_second(crcmul_vec v)
{
	return _mm_srli_si128(v, 8);
}

/* Returns four zero bytes, followed by the first twelve bytes of v. */
CRCMUL crcmul_vec crcmul_late(crcmul_vec v)
{
	return _mm_slli_si128(v, 4);
}

/* Returns the first eight bytes of v. */
CRCMUL uint64_t crcmul_first_half(crcmul_vec v)
{
	return (uint64_t)_mm_cvtsi128_si64(v);
}

/* Returns the bytes 8 to 11 of v. */
CRCMUL uint32_t crcmul_third_word(crcmul_vec v)
{
	return (uint32_t)_mm_extract_epi32(v, 2);
}

#elif defined(__aarch64__) && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__

#include <arm_neon.h>

#define CRCMUL_IS_BUILT 1
#if defined(__clang__)
#define CRCMUL_TARGET "aes,crc"
#else
#define CRCMUL_TARGET "+crypto+crc"
#endif
#define CRCMUL                                                                 \
	static inline __attribute__((always_inline, target(CRCMUL_TARGET)))

/* These functions do what the x86-64 functions of the same names do. */
typedef uint64x2_t crcmul_vec;

CRCMUL crcmul_vec crcmul_load(const void *p)
{
	return vreinterpretq_u64_u8(vld1q_u8(p));
}

CRCMUL void crcmul_store(void *p, crcmul_vec v)
{
	vst1q_u8(p, vreinterpretq_u8_u64(v));
}

CRCMUL crcmul_vec crcmul_halves(uint64_t first, uint64_t second)
{
	return vcombine_u64(vcreate_u64(first), vcreate_u64(second));
}

CRCMUL crcmul_vec crcmul_word(uint32_t word)
{
	return crcmul_halves(word, 0);
}

CRCMUL crcmul_vec crcmul_add(crcmul_vec a, crcmul_vec b)
{
	return veorq_u64(a, b);
}

CRCMUL crcmul_vec crcmul_mask(crcmul_vec a, crcmul_vec b)
{
	return vandq_u64(a, b);
}

/* Returns the carry-less product of a and b; for this processor alone. */
CRCMUL crcmul_vec crcmul_product(uint64_t a, uint64_t b)
{
	return vreinterpretq_u64_p128(vmull_p64((poly64_t)a, (poly64_t)b));
}

CRCMUL crcmul_vec crcmul_firsts(crcmul_vec a, crcmul_vec b)
{
	return crcmul_product(vgetq_lane_u64(a, 0), vgetq_lane_u64(b, 0));
}

CRCMUL crcmul_vec crcmul_seconds(crcmul_vec a, crcmul_vec b)
{
	return vreinterpretq_u64_p128(vmull_high_p64(vreinterpretq_p64_u64(a),
						     vreinterpretq_p64_u64(b)));
}

CRCMUL crcmul_vec crcmul_cross(crcmul_vec a, crcmul_vec b)
{
	return crcmul_product(vgetq_lane_u64(a, 0), vgetq_lane_u64(b, 1));
}

CRCMUL crcmul_vec crcmul_second(crcmul_vec v)
{
	return vextq_u64(v, vdupq_n_u64(0), 1);
}

CRCMUL crcmul_vec crcmul_late(crcmul_vec v)
{
	return vreinterpretq_u64_u32(
		vextq_u32(vdupq_n_u32(0), vreinterpretq_u32_u64(v), 3));
}

CRCMUL uint64_t crcmul_first_half(crcmul_vec v)
{
	return vgetq_lane_u64(v, 0);
}

CRCMUL uint32_t crcmul_third_word(crcmul_vec v)
{
	return vgetq_lane_u32(vreinterpretq_u32_u64(v), 2);
}

#else
#define CRCMUL_IS_BUILT 0
#endif

#if CRCMUL_IS_BUILT

/* Returns `onto` plus two products: that of the first halves of `a` and `by`,
 * and that of their second halves.  `by` is a row of crcfactor.by. */
CRCMUL crcmul_vec crcmul_fold(crcmul_vec a, crcmul_vec by, crcmul_vec onto)
{
	onto = crcmul_add(onto, crcmul_firsts(a, by));
	return crcmul_add(onto, crcmul_seconds(a, by));
}

/* Returns v, a register of 96 bits, modulo P. */
CRCMUL uint32_t crcmul_modulo(const struct crcfactor *f, crcmul_vec v)
{
	crcmul_vec barrett = crcmul_halves(f->quotient, f->divisor);
	crcmul_vec whole = crcmul_firsts(v, barrett);

	return crcmul_third_word(crcmul_add(v, crcmul_cross(whole, barrett)));
}

/* Returns the state after the 16 bytes v from state 0. */
CRCMUL uint32_t crcmul_reduce(const struct crcfactor *f, crcmul_vec v)
{
	return crcmul_modulo(
		f, crcmul_add(crcmul_firsts(v, crcmul_word(f->power_95)),
			      crcmul_second(v)));
}

/* Returns a * b modulo P.  The processor's product has an extra factor x.  The
 * shift of b to the left by one bit cancels that factor: the shifted bits, as a
 * register of 33 bits, are the same polynomial b. */
CRCMUL uint32_t crcmul_multiply(const struct crcfactor *f, uint32_t a,
				uint32_t b)
{
	crcmul_vec twice = crcmul_halves((uint64_t)b << 1, 0);

	return crcmul_modulo(f,
			     crcmul_late(crcmul_firsts(crcmul_word(a), twice)));
}

#endif
#endif
