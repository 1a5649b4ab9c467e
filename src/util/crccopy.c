/* SPDX-License-Identifier: BSD-2-Clause */
#include "util/crccopy.h"

#if defined(__x86_64__)

#include <immintrin.h>

/*
 * Folding: 128 bits that stand d bits before others are worth
 * low * x^(d+32) + high * x^(d-32) modulo the polynomial at their place, all
 * reflected (Gopal et al., "Fast CRC Computation for Generic Polynomials
 * Using PCLMULQDQ Instruction", 2009).  The factors are of d = 2048, 512, 128.
 */
#define LOW_2048  0x11542778a
#define HIGH_2048 0x1322d1430
#define LOW_512	  0x154442bd4
#define HIGH_512  0x1c6e41596
#define LOW_128	  0x1751997d0
#define HIGH_128  0x0ccaa009e
#define LOW_64	  0x163cd6124
/* The polynomial and the quotient of x^64 by it, for what is left of 64 bits.
 */
#define POLYNOMIAL 0x1db710641
#define BARRETT	   0x1f7011641

#define INNER                                                                  \
	static inline __attribute__((                                          \
		always_inline, target("avx512f,vpclmulqdq,pclmul,sse4.1")))
/* A sanitizer would call out of it; the program's memory is not its concern. */
#define ALONE                                                                  \
	__attribute__((noinline, section("crccopy_text"),                      \
		       target("avx512f,vpclmulqdq,pclmul,sse4.1"),             \
		       no_sanitize("address", "undefined", "thread")))

extern const char __start_crccopy_text[], __stop_crccopy_text[];

INNER __m512i fold(__m512i a, __m512i by, __m512i onto)
{
	__m512i low = _mm512_clmulepi64_epi128(a, by, 0x00);
	__m512i high = _mm512_clmulepi64_epi128(a, by, 0x11);

	return _mm512_ternarylogic_epi64(low, high, onto, 0x96); /* xor */
}

INNER __m128i fold_one(__m128i a, __m128i by, __m128i onto)
{
	__m128i low = _mm_clmulepi64_si128(a, by, 0x00);
	__m128i high = _mm_clmulepi64_si128(a, by, 0x11);

	return _mm_xor_si128(_mm_xor_si128(low, high), onto);
}

INNER __m512i move(uint8_t *to, const uint8_t *from)
{
	__m512i v = _mm512_loadu_si512(from);

	_mm512_storeu_si512(to, v);
	return v;
}

/* 16 bytes, and 32 bits of zero behind them, modulo the polynomial. */
INNER uint32_t reduce(__m128i x)
{
	__m128i low = _mm_set_epi32(0, 0, 0, -1), t;

	t = _mm_clmulepi64_si128(x, _mm_set_epi64x(0, HIGH_128), 0x00);
	x = _mm_xor_si128(_mm_srli_si128(x, 8), t);
	t = _mm_clmulepi64_si128(_mm_and_si128(x, low),
				 _mm_set_epi64x(0, LOW_64), 0x00);
	x = _mm_xor_si128(_mm_srli_si128(x, 4), t);
	t = _mm_clmulepi64_si128(_mm_and_si128(x, low),
				 _mm_set_epi64x(0, BARRETT), 0x00);
	t = _mm_clmulepi64_si128(_mm_and_si128(t, low),
				 _mm_set_epi64x(0, POLYNOMIAL), 0x00);
	return (uint32_t)_mm_extract_epi32(_mm_xor_si128(x, t), 1);
}

/* Four sums of 64 bytes into one of 16. */
INNER __m128i gather(__m512i a, __m512i b, __m512i c, __m512i d)
{
	__m512i by = _mm512_broadcast_i32x4(_mm_set_epi64x(HIGH_512, LOW_512));
	__m128i by_one = _mm_set_epi64x(HIGH_128, LOW_128), x;

	d = fold(fold(fold(a, by, b), by, c), by, d);
	x = _mm512_castsi512_si128(d);
	x = fold_one(x, by_one, _mm512_extracti32x4_epi32(d, 1));
	x = fold_one(x, by_one, _mm512_extracti32x4_epi32(d, 2));
	return fold_one(x, by_one, _mm512_extracti32x4_epi32(d, 3));
}

ALONE void crccopy_steps(void *to, const void *from, size_t bytes, uint32_t crc,
			 uint32_t *sum)
{
	__m512i by =
		_mm512_broadcast_i32x4(_mm_set_epi64x(HIGH_2048, LOW_2048));
	__m512i first = _mm512_zextsi128_si512(_mm_cvtsi32_si128((int)crc));
	const uint8_t *p = from, *end = p + bytes;
	uint8_t *q = to;
	__m512i a = _mm512_xor_si512(move(q, p), first);
	__m512i b = move(q + 64, p + 64);
	__m512i c = move(q + 128, p + 128);
	__m512i d = move(q + 192, p + 192);

	while ((p += CRCCOPY_STEP) != end) {
		q += CRCCOPY_STEP;
		a = fold(a, by, move(q, p));
		b = fold(b, by, move(q + 64, p + 64));
		c = fold(c, by, move(q + 128, p + 128));
		d = fold(d, by, move(q + 192, p + 192));
	}
	*sum = reduce(gather(a, b, c, d));
	_mm256_zeroupper();
}

bool crccopy_is_fast(void)
{
	return __builtin_cpu_supports("avx512f") &&
	       __builtin_cpu_supports("vpclmulqdq");
}

bool crccopy_is_at(uintptr_t ip)
{
	return ip >= (uintptr_t)__start_crccopy_text &&
	       ip < (uintptr_t)__stop_crccopy_text;
}

#else

bool crccopy_is_fast(void)
{
	return false;
}

void crccopy_steps(void *to, const void *from, size_t bytes, uint32_t crc,
		   uint32_t *sum)
{
}

bool crccopy_is_at(uintptr_t ip)
{
	return false;
}

#endif
