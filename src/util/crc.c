/* SPDX-License-Identifier: BSD-2-Clause */
#include "util/crc.h"

#include "util/crcmul.h"
#include "util/crctier.h"

/* x^32 + x^26 + x^23 + ... + 1 without the x^32, bit-reflected. */
#define CRC32_POLYNOMIAL 0xedb88320u
/* The polynomial is primitive: x^n = x^(n mod CRC32_ORDER). */
#define CRC32_ORDER 0xffffffffu

/* x^(2^k) modulo the polynomial, k = 0..31. */
/* clang-format off */
static const uint32_t power_of_two[32] = {
	0x40000000, 0x20000000, 0x08000000, 0x00800000,
	0x00008000, 0xedb88320, 0xb1e6b092, 0xa06a2517,
	0xed627dae, 0x88d14467, 0xd7bbfe6a, 0xec447f11,
	0x8e7ea170, 0x6427800e, 0x4d47bae0, 0x09fe548f,
	0x83852d0f, 0x30362f1a, 0x7b5a9cc3, 0x31fec169,
	0x9fec022a, 0x6c8dedc4, 0x15d6874d, 0x5fde7a4e,
	0xbad90e37, 0x2e4e5eef, 0x4eaba214, 0xa8a472c0,
	0x429a969e, 0x148d302a, 0xc40ba6d0, 0xc4e22c3c,
};

/* x^-(2^k) modulo the polynomial, k = 0..31. */
static const uint32_t inverse_power_of_two[32] = {
	0xdb710641, 0x6d930ac3, 0x6d3d2d4d, 0x6567cb95,
	0xd7125358, 0x5b358fd3, 0x2e9bb40b, 0x12a59a49,
	0x8df9403d, 0x5139de12, 0xba340226, 0x29c45641,
	0x12fbc105, 0xecd30c55, 0x3755ebd8, 0x24ee460c,
	0x23783fcf, 0x479933fc, 0xa39442a5, 0x9ea0056d,
	0xf42608f6, 0x20cacf04, 0x2a0cf83d, 0xeffd8645,
	0x2a39a67d, 0x640ebd82, 0x9dfd8792, 0x277402ab,
	0xad31bc4f, 0x31536354, 0x5ea35fca, 0x52b55e39,
};

/* Entry v is added to a register from which the four bits v were shifted out. */
static const uint32_t times_x4[16] = {
	0x00000000, 0x1db71064, 0x3b6e20c8, 0x26d930ac,
	0x76dc4190, 0x6b6b51f4, 0x4db26158, 0x5005713c,
	0xedb88320, 0xf00f9344, 0xd6d6a3e8, 0xcb61b38c,
	0x9b64c2b0, 0x86d3d2d4, 0xa00ae278, 0xbdbdf21c,
};

/* clang-format on */

uint32_t crc32_update(uint32_t crc, const void *data, size_t bytes)
{
	const struct crctier *t = &crctier_chosen;

	return (bytes <= CRCTIER_FEW ? t->few : t->many)(&crcfactor_crc32, crc,
							 data, bytes);
}

uint32_t crc32c_update(uint32_t crc, const void *data, size_t bytes)
{
	const struct crctier *t = &crctier_chosen;

	return (bytes <= CRCTIER_FEW ? t->few_c : t->many_c)(&crcfactor_crc32c,
							     crc, data, bytes);
}

/* Returns a * b by Horner's method.  It begins with the highest powers, which
 * are the low bits of `a`, and takes four bits in a step. */
static uint32_t multiply_bits(uint32_t a, uint32_t b)
{
	uint32_t times[16] = {[8] = b}, product = 0;

	for (int i = 8; i > 1; i /= 2)
		times[i / 2] = crcfactor_times_x(CRC32_POLYNOMIAL, times[i]);
	for (int i = 3; i < 16; i++)
		times[i] = times[i & (i - 1)] ^ times[i & -i];
	for (int i = 0; i < 8; i++, a >>= 4)
		product = product >> 4 ^ times_x4[product & 15] ^ times[a & 15];
	return product;
}

#if CRCMUL_IS_BUILT
__attribute__((target(CRCMUL_TARGET))) static uint32_t
multiply_at_once(uint32_t a, uint32_t b)
{
	return crcmul_multiply(&crcfactor_crc32, a, b);
}
#else
#define multiply_at_once multiply_bits
#endif

uint32_t crc32_multiply(uint32_t a, uint32_t b)
{
	return crctier_chosen.multiplies ? multiply_at_once(a, b)
					 : multiply_bits(a, b);
}

/* Returns the product of those entries of power[] that the set bits of
 * 8 * bytes, modulo CRC32_ORDER, select. */
static uint32_t select_powers(const uint32_t *power, size_t bytes)
{
	uint32_t product = 0x80000000u; /* x^0 */
	uint64_t bits = (uint64_t)(bytes % CRC32_ORDER) * 8 % CRC32_ORDER;

	for (; bits != 0; bits >>= 1, power++) {
		if (bits & 1)
			product = crc32_multiply(product, *power);
	}
	return product;
}

uint32_t crc32_factor(size_t bytes)
{
	return select_powers(power_of_two, bytes);
}

uint32_t crc32_inverse_factor(size_t bytes)
{
	return select_powers(inverse_power_of_two, bytes);
}

uint32_t crc32_unshift(uint32_t crc, size_t bytes)
{
	return crc32_multiply(crc, crc32_inverse_factor(bytes));
}
