/* SPDX-License-Identifier: BSD-2-Clause */
/* The template crcfold.h for vectors of 256 bits: VPCLMULQDQ, for processors
 * without AVX-512. */
#include "util/crcmul.h"

#if defined(__x86_64__)

#define WIDE	    32
#define WIDE_TARGET "avx2,vpclmulqdq,pclmul,sse4.2"
#define INNER	    static inline __attribute__((always_inline, target(WIDE_TARGET)))

typedef __m256i vector;

INNER vector wide_load(const void *p)
{
	return _mm256_loadu_si256(p);
}

INNER void wide_store(void *p, vector v)
{
	_mm256_storeu_si256(p, v);
}

INNER vector wide_last(const uint8_t *p, size_t bytes)
{
	static const uint8_t zeros_and_ones[64] = {[32 ... 63] = 0xff};

	return _mm256_and_si256(wide_load(p),
				wide_load(zeros_and_ones + bytes));
}

INNER vector wide_seed(vector v, uint32_t crc)
{
	return _mm256_xor_si256(v, _mm256_zextsi128_si256(crcmul_word(crc)));
}

INNER vector wide_spread(const uint64_t by[2])
{
	return _mm256_broadcastsi128_si256(crcmul_load(by));
}

INNER vector wide_fold(vector v, vector by, vector onto)
{
	vector first = _mm256_clmulepi64_epi128(v, by, 0x00);
	vector second = _mm256_clmulepi64_epi128(v, by, 0x11);

	return _mm256_xor_si256(_mm256_xor_si256(first, onto), second);
}

INNER crcmul_vec wide_sum(const struct crcfactor *f, vector v)
{
	v = wide_fold(v, wide_load(f->lanes[2]), _mm256_setzero_si256());
	return _mm_xor_si128(_mm256_castsi256_si128(v),
			     _mm256_extracti128_si256(v, 1));
}

#include "util/crcfold.h"

__attribute__((target(WIDE_TARGET))) uint32_t
crc256_update(const struct crcfactor *f, uint32_t crc, const uint8_t *p,
	      size_t bytes)
{
	crc = fold_many(f, crc, p, bytes);
	_mm256_zeroupper();
	return crc;
}

CRCCOPY_ALONE(WIDE_TARGET)
void crc256_copy(void *to, const void *from, size_t bytes, uint32_t *crc)
{
	fold_copy(&crcfactor_crc32, to, from, bytes, crc);
	_mm256_zeroupper();
}

CRCCOPY_ALONE(WIDE_TARGET)
void crc256_copy_c(void *to, const void *from, size_t bytes, uint32_t *crc)
{
	fold_copy(&crcfactor_crc32c, to, from, bytes, crc);
	_mm256_zeroupper();
}

#endif
