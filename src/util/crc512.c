/* SPDX-License-Identifier: BSD-2-Clause */
/* The template crcfold.h for vectors of 512 bits: VPCLMULQDQ and AVX-512. */
#include "util/crcmul.h"

#if defined(__x86_64__)

#define WIDE	    64
#define WIDE_TARGET "avx512f,avx512bw,vpclmulqdq,pclmul,sse4.2"
#define INNER	    static inline __attribute__((always_inline, target(WIDE_TARGET)))

typedef __m512i vector;

INNER vector wide_load(const void *p)
{
	return _mm512_loadu_si512(p);
}

INNER void wide_store(void *p, vector v)
{
	_mm512_storeu_si512(p, v);
}

INNER vector wide_last(const uint8_t *p, size_t bytes)
{
	return _mm512_maskz_loadu_epi8(~UINT64_C(0) << (64 - bytes), p);
}

INNER vector wide_seed(vector v, uint32_t crc)
{
	return _mm512_xor_si512(v, _mm512_zextsi128_si512(crcmul_word(crc)));
}

INNER vector wide_spread(const uint64_t by[2])
{
	return _mm512_broadcast_i32x4(crcmul_load(by));
}

/* With the second product first, gcc copies no register. */
INNER vector wide_fold(vector v, vector by, vector onto)
{
	vector second = _mm512_clmulepi64_epi128(v, by, 0x11);
	vector first = _mm512_clmulepi64_epi128(v, by, 0x00);

	return _mm512_ternarylogic_epi64(first, second, onto, 0x96); /* xor */
}

INNER crcmul_vec wide_sum(const struct crcfactor *f, vector v)
{
	__m256i half;

	v = wide_fold(v, wide_load(f->lanes), _mm512_setzero_si512());
	half = _mm256_xor_si256(_mm512_castsi512_si256(v),
				_mm512_extracti64x4_epi64(v, 1));
	return _mm_xor_si128(_mm256_castsi256_si128(half),
			     _mm256_extracti128_si256(half, 1));
}

#include "util/crcfold.h"

__attribute__((target(WIDE_TARGET))) uint32_t
crc512_update(const struct crcfactor *f, uint32_t crc, const uint8_t *p,
	      size_t bytes)
{
	crc = fold_many(f, crc, p, bytes);
	_mm256_zeroupper();
	return crc;
}

CRCCOPY_ALONE(WIDE_TARGET)
void crc512_copy(void *to, const void *from, size_t bytes, uint32_t *crc)
{
	fold_copy(&crcfactor_crc32, to, from, bytes, crc);
	_mm256_zeroupper();
}

CRCCOPY_ALONE(WIDE_TARGET)
void crc512_copy_c(void *to, const void *from, size_t bytes, uint32_t *crc)
{
	fold_copy(&crcfactor_crc32c, to, from, bytes, crc);
	_mm256_zeroupper();
}

#endif
