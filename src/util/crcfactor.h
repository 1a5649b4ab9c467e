/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The numbers that carry-less multiplication needs for a CRC.  All of them are
 * computed from the polynomial when the library is loaded, so that the two
 * polynomials are the only constants of this code.
 *
 * Notation: P is the polynomial, x^32 and more.  A register of n bits holds in
 * its bit i the coefficient of x^(n - 1 - i), so its first bytes in memory are
 * the highest powers.  A processor's carry-less product of a register of m bits
 * and one of n is, as a register of m + n bits, the product times x.
 *
 * Sixteen bytes, in a register whose halves are A (first in memory) and B, are
 * A * x^64 + B.  Then:
 *
 * - d bytes later they are worth A * x^(8d + 64) + B * x^(8d) modulo P, which
 *   two products give (Gopal et al., "Fast CRC Computation for Generic
 *   Polynomials Using PCLMULQDQ Instruction", 2009): by[d];
 * - the state after them is S = A * x^96 + B * x^32 modulo P; one product, by
 *   x^95 modulo P, makes a register of 96 bits of it: power_95;
 * - from which Q * P is to be taken, Q being the whole part of S / P.  Its
 *   last 32 bits do not count for Q.  With U for its first 64, Q is the whole
 *   part of U * x^32 / P, and that is the first 64 bits of the product of U
 *   and the whole part of x^95 / P (Barrett): quotient.  Polynomials have no
 *   carries, hence nothing is off by one.
 *
 * Written once, by a constructor, before other code of the library runs; read
 * only from then on.
 */
#ifndef UTIL_CRCFACTOR_H
#define UTIL_CRCFACTOR_H

#include <stddef.h>
#include <stdint.h>

#define CRCFACTOR_FAR 256 /* bytes: as far as by[] goes */

struct crcfactor {
	/* P without its x^32, a register of 32 bits. */
	uint32_t polynomial;
	/* x^95 modulo P, a register of 32 bits. */
	uint32_t power_95;
	/* The whole part of x^95 / P, a register of 64 bits. */
	_Alignas(16) uint64_t quotient;
	/* P, a register of 33 bits. */
	uint64_t divisor;
	/* {x^(8d + 63), x^(8d - 1)} modulo P, registers of 64 bits. */
	_Alignas(64) uint64_t by[CRCFACTOR_FAR + 1][2];
	/* by[48], by[32], by[16], by[0]: for four times 16 bytes at once. */
	_Alignas(64) uint64_t lanes[4][2];
};

extern struct crcfactor crcfactor_crc32, crcfactor_crc32c;

/* a * x modulo P; registers of 32 bits. */
static inline uint32_t crcfactor_times_x(uint32_t polynomial, uint32_t a)
{
	return a >> 1 ^ (polynomial & -(a & 1));
}

/* Compute all of the above from the polynomial. */
void crcfactor_init(struct crcfactor *f);

/*
 * The state after `bytes` bytes at p have followed `crc`, bit by bit, which is
 * how a CRC is defined.  It needs the polynomial alone.
 */
uint32_t crcfactor_bits(const struct crcfactor *f, uint32_t crc,
			const uint8_t *p, size_t bytes);

#endif
