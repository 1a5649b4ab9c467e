/* SPDX-License-Identifier: BSD-2-Clause */
#include "util/crcfactor.h"

#define POWER_0 0x80000000u /* x^0, a register of 32 bits */

struct crcfactor crcfactor_crc32 = {.polynomial = 0xedb88320u};
struct crcfactor crcfactor_crc32c = {.polynomial = 0x82f63b78u};

static uint32_t times_power(uint32_t polynomial, uint32_t a, unsigned int n)
{
	while (n--)
		a = crcfactor_times_x(polynomial, a);
	return a;
}

/* Returns a / x modulo P, which is the b for which b * x = a modulo P.  P has
 * the term x^0, so b has the term x^31 if and only if a has the term x^0. */
static uint32_t divide_by_x(uint32_t polynomial, uint32_t a)
{
	return a & POWER_0 ? (a ^ polynomial) << 1 | 1 : a << 1;
}

/*
 * Returns the whole part of x^95 / P, by long division.  The remainder is x^31
 * at first, and each of the 64 steps brings down a zero.  The first step gives
 * the coefficient of x^63, which is bit 0.
 */
static uint64_t quotient_of_95(uint32_t polynomial)
{
	uint32_t rest = times_power(polynomial, POWER_0, 31);
	uint64_t quotient = 0;

	for (int i = 0; i < 64; i++) {
		quotient |= (uint64_t)(rest & 1) << i;
		rest = crcfactor_times_x(polynomial, rest);
	}
	return quotient;
}

void crcfactor_init(struct crcfactor *f)
{
	uint32_t power = divide_by_x(f->polynomial, POWER_0);

	/* power is x^(8i - 1): the second half of by[i], and the first half of
	 * by[i - 8]. */
	for (size_t i = 0; i <= CRCFACTOR_FAR + 8; i++) {
		if (i <= CRCFACTOR_FAR)
			f->by[i][1] = (uint64_t)power << 32;
		if (i >= 8)
			f->by[i - 8][0] = (uint64_t)power << 32;
		power = times_power(f->polynomial, power, 8);
	}
	for (size_t i = 0; i < 4; i++) {
		f->lanes[i][0] = f->by[48 - 16 * i][0];
		f->lanes[i][1] = f->by[48 - 16 * i][1];
	}
	f->power_95 = times_power(f->polynomial, POWER_0, 95);
	f->quotient = quotient_of_95(f->polynomial);
	f->divisor = (uint64_t)f->polynomial << 1 | 1;
}

uint32_t crcfactor_bits(const struct crcfactor *f, uint32_t crc,
			const uint8_t *p, size_t bytes)
{
	while (bytes--)
		crc = times_power(f->polynomial, crc ^ *p++, 8);
	return crc;
}
