/* SPDX-License-Identifier: BSD-2-Clause */
#include "util/crc.h"

#include <isa-l/crc.h>
#include <stdbool.h>
#include <string.h>

#include "util/crcslice.h"
#if defined(__x86_64__)
#include <immintrin.h>
#endif

/* x^32 + x^26 + x^23 + ... + 1 without its x^32, reflected. */
#define CRC32_POLYNOMIAL 0xedb88320u
/* The polynomial is primitive: x^n and x^(n mod CRC32_ORDER) are the same. */
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

/* x^-(2^k). */
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

/* What four bits that leave a register are worth. */
static const uint32_t times_x4[16] = {
	0x00000000, 0x1db71064, 0x3b6e20c8, 0x26d930ac,
	0x76dc4190, 0x6b6b51f4, 0x4db26158, 0x5005713c,
	0xedb88320, 0xf00f9344, 0xd6d6a3e8, 0xcb61b38c,
	0x9b64c2b0, 0x86d3d2d4, 0xa00ae278, 0xbdbdf21c,
};

#if defined(__x86_64__)
/* x^(32 * (k + 1)). */
static const uint32_t word_power[16] = {
	0xedb88320, 0xb1e6b092, 0x6655004f, 0xa06a2517,
	0xba8ccbe8, 0x32b39da3, 0xad2a31b3, 0xed627dae,
	0x78ed02d5, 0xa700e96a, 0xba1aca03, 0x15141c31,
	0x1ed8f66e, 0xd95efd26, 0xe3720acb, 0x88d14467,
};
#endif
/* clang-format on */

#if defined(__x86_64__)
#define MULTIPLIES __attribute__((target("pclmul,sse4.1")))

/* Of 63 bits, their high powers in the low half, by Barrett's reduction (Gopal
 * et al., 2009, reflected). */
MULTIPLIES static uint32_t reduce(__m128i p)
{
	const __m128i barrett = _mm_set_epi64x(0x1db710641, 0x1f7011641);
	__m128i low = _mm_set_epi32(0, 0, 0, -1), t;

	p = _mm_slli_epi64(p, 1);
	t = _mm_clmulepi64_si128(_mm_and_si128(p, low), barrett, 0x00);
	t = _mm_clmulepi64_si128(_mm_and_si128(t, low), barrett, 0x10);
	return (uint32_t)_mm_extract_epi32(_mm_xor_si128(p, t), 1);
}

MULTIPLIES static __m128i product(uint32_t a, uint32_t b)
{
	return _mm_clmulepi64_si128(_mm_cvtsi32_si128((int)a),
				    _mm_cvtsi32_si128((int)b), 0);
}

MULTIPLIES static uint32_t multiply(uint32_t a, uint32_t b)
{
	return reduce(product(a, b));
}

/*
 * A few words, headers mostly: each is moved to its place by itself, so that
 * none waits for another, and all are reduced together.  ISA-L's code for long
 * data takes four times as long for them.
 */
MULTIPLIES static uint32_t update_words(uint32_t crc, const uint8_t *p,
					size_t words)
{
	__m128i sum = _mm_setzero_si128();

	for (size_t i = 0; i < words; i++, crc = 0) {
		uint32_t word;

		memcpy(&word, p + 4 * i, sizeof word);
		sum = _mm_xor_si128(
			sum, product(word ^ crc, word_power[words - 1 - i]));
	}
	return reduce(sum);
}
#endif

/*
 * ISA-L's AVX-512 code leaves the upper halves of the vector registers in use.
 * Then each SSE instruction after it waits for them: 140 ns a packet.
 */
static void leave_vectors(void)
{
#if defined(__x86_64__)
	if (__builtin_cpu_supports("avx"))
		__asm__ volatile("vzeroupper");
#endif
}

static bool multiplies(void)
{
#if defined(__x86_64__)
	return __builtin_cpu_supports("pclmul");
#else
	return true; /* ISA-L looks by itself */
#endif
}

uint32_t crc32_update(uint32_t crc, const void *data, size_t bytes)
{
	if (!bytes)
		return crc;
	if (!multiplies())
		return crcslice_update(crc, data, bytes);
#if defined(__x86_64__)
	if (bytes <= sizeof word_power && bytes % 4 == 0)
		return update_words(crc, data, bytes / 4);
#endif
	/* ISA-L inverts on both sides; it only reads through its pointer. */
	crc = ~crc32_gzip_refl(~crc, (unsigned char *)(uintptr_t)data, bytes);
	leave_vectors();
	return crc;
}

uint32_t crc32c_update(uint32_t crc, const void *data, size_t bytes)
{
	unsigned char *at = (unsigned char *)(uintptr_t)data;

	/* ISA-L takes the length of this one as an int. */
	while (bytes > 0) {
		size_t now = bytes < 0x40000000 ? bytes : 0x40000000;

		crc = crc32_iscsi(at, (int)now, crc);
		at += now;
		bytes -= now;
	}
	leave_vectors();
	return crc;
}

static uint32_t times_x(uint32_t a)
{
	return a >> 1 ^ (CRC32_POLYNOMIAL & -(a & 1));
}

/* Horner from the highest powers, which are the low bits of `a`, by four. */
static uint32_t multiply_bits(uint32_t a, uint32_t b)
{
	uint32_t times[16] = {[8] = b}, product = 0;

	times[4] = times_x(times[8]);
	times[2] = times_x(times[4]);
	times[1] = times_x(times[2]);
	for (int i = 3; i < 16; i++)
		times[i] = times[i & (i - 1)] ^ times[i & -i];
	for (int i = 0; i < 8; i++, a >>= 4)
		product = product >> 4 ^ times_x4[product & 15] ^ times[a & 15];
	return product;
}

#if defined(__x86_64__)
uint32_t crc32_multiply(uint32_t a, uint32_t b)
{
	return __builtin_cpu_supports("pclmul") ? multiply(a, b)
						: multiply_bits(a, b);
}
#else
uint32_t crc32_multiply(uint32_t a, uint32_t b)
{
	return multiply_bits(a, b);
}
#endif

/* Multiplies the powers that the set bits of 8 * bytes select. */
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

uint32_t crc32_shift(uint32_t crc, size_t bytes)
{
	return crc32_multiply(crc, crc32_factor(bytes));
}

uint32_t crc32_unshift(uint32_t crc, size_t bytes)
{
	return crc32_multiply(crc, crc32_inverse_factor(bytes));
}
