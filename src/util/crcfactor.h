/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The constants of a CRC by carry-less multiplication.  All of them are
 * computed from the polynomial, so crcfactor.c contains only the polynomials of
 * CRC-32 and CRC-32C.
 *
 * Notation: P is the polynomial, including x^32.  Bit i of a register of n bits
 * is the coefficient of x^(n - 1 - i), so the register's first bytes in memory
 * are the highest powers.  A processor's carry-less multiplication of a
 * register of m bits by one of n bits gives a register of m + n bits: the
 * product of the two polynomials, times x.
 *
 * Sixteen bytes, in a register whose halves are A (first in memory) and B, are
 * A * x^64 + B.  Then:
 *
 * - If d more bytes follow, the sixteen bytes stand for A * x^(8d + 64) + B *
 *   x^(8d).  Two products by the constants by[d] add up to sixteen bytes that
 *   equal this sum modulo P (Gopal et al., "Fast CRC Computation for Generic
 *   Polynomials Using PCLMULQDQ Instruction", 2009).
 * - The state after the sixteen bytes is S = A * x^96 + B * x^32 modulo P.  One
 *   product by the constant power_95, which is x^95 modulo P, makes S a
 *   register of 96 bits.
 * - The remainder of S is S - Q * P, where Q is the whole part of S / P.  The
 *   last 32 bits of S do not change Q.  With U for the first 64 bits of S, Q is
 *   the whole part of U * x^32 / P.  That is the first 64 bits of the product
 *   of U and the constant quotient, which is the whole part of x^95 / P
 *   (Barrett).  Polynomials have no carries, so Q is exact.
 *
 * A constructor (crctier.c) writes the constants of CRC-32 and CRC-32C when the
 * library is loaded, and crc16.c writes those of its CRC at the first use.  The
 * constants are only read from then on.
 */
#ifndef UTIL_CRCFACTOR_H
#define UTIL_CRCFACTOR_H

#include <stddef.h>
#include <stdint.h>

#define CRCFACTOR_FAR 256 /* the largest distance in by[], in bytes */

struct crcfactor {
	/* P without its x^32, a register of 32 bits. */
	uint32_t polynomial;
	/* x^95 modulo P, a register of 32 bits. */
	uint32_t power_95;
	/* The whole part of x^95 / P, a register of 64 bits. */
	_Alignas(16) uint64_t quotient;
	/* P, a register of 33 bits. */
	uint64_t divisor;
	/* by[d] is {x^(8d + 63), x^(8d - 1)} modulo P, registers of 64 bits. */
	_Alignas(64) uint64_t by[CRCFACTOR_FAR + 1][2];
	/* by[48], by[32], by[16], by[0], as one vector of 64 bytes. */
	_Alignas(64) uint64_t lanes[4][2];
};

/* The constants of CRC-32 and of CRC-32C. */
extern struct crcfactor crcfactor_crc32, crcfactor_crc32c;

/* Returns a * x modulo P, where `polynomial` is P without its x^32; all are
 * registers of 32 bits. */
static inline uint32_t crcfactor_times_x(uint32_t polynomial, uint32_t a)
{
	return a >> 1 ^ (polynomial & -(a & 1));
}

/* Computes all constants of f from f->polynomial. */
void crcfactor_init(struct crcfactor *f);

/*
 * Returns the state after `bytes` bytes at p from state `crc`, computed bit by
 * bit, as a CRC is defined.  Uses no constant but f->polynomial.
 */
uint32_t crcfactor_bits(const struct crcfactor *f, uint32_t crc,
			const uint8_t *p, size_t bytes);

#endif
