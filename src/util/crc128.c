/* SPDX-License-Identifier: BSD-2-Clause */
/* The template crcfold.h for vectors of two registers of 128 bits: PCLMULQDQ of
 * x86-64, PMULL of arm64. */
#include "util/crcmul.h"

#if CRCMUL_IS_BUILT

#define WIDE	    32
#define WIDE_TARGET CRCMUL_TARGET
#define INNER	    CRCMUL

typedef struct {
	crcmul_vec first, second;
} vector;

INNER vector wide_load(const void *p)
{
	return (vector){crcmul_load(p), crcmul_load((const uint8_t *)p + 16)};
}

INNER void wide_store(void *p, vector v)
{
	crcmul_store(p, v.first);
	crcmul_store((uint8_t *)p + 16, v.second);
}

INNER vector wide_last(const uint8_t *p, size_t bytes)
{
	static const uint8_t zeros_and_ones[64] = {[32 ... 63] = 0xff};
	vector v = wide_load(p), mask = wide_load(zeros_and_ones + bytes);

	return (vector){crcmul_mask(v.first, mask.first),
			crcmul_mask(v.second, mask.second)};
}

INNER vector wide_seed(vector v, uint32_t crc)
{
	return (vector){crcmul_add(v.first, crcmul_word(crc)), v.second};
}

INNER vector wide_spread(const uint64_t by[2])
{
	return (vector){crcmul_load(by), crcmul_load(by)};
}

INNER vector wide_fold(vector v, vector by, vector onto)
{
	return (vector){crcmul_fold(v.first, by.first, onto.first),
			crcmul_fold(v.second, by.second, onto.second)};
}

INNER crcmul_vec wide_sum(const struct crcfactor *f, vector v)
{
	return crcmul_fold(v.first, crcmul_load(f->by[16]), v.second);
}

#include "util/crcfold.h"

__attribute__((target(WIDE_TARGET))) uint32_t
crc128_update(const struct crcfactor *f, uint32_t crc, const uint8_t *p,
	      size_t bytes)
{
	return fold_many(f, crc, p, bytes);
}

CRCCOPY_ALONE(WIDE_TARGET)
void crc128_copy(void *to, const void *from, size_t bytes, uint32_t *crc)
{
	fold_copy(&crcfactor_crc32, to, from, bytes, crc);
}

CRCCOPY_ALONE(WIDE_TARGET)
void crc128_copy_c(void *to, const void *from, size_t bytes, uint32_t *crc)
{
	fold_copy(&crcfactor_crc32c, to, from, bytes, crc);
}

#endif
