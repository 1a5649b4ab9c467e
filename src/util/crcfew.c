/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The CRC of at most CRCTIER_FEW bytes, mostly headers, by carry-less
 * multiplication.  Each block of sixteen bytes is multiplied by the power of x
 * for its distance from the end (crcfactor.by), so that no product waits for
 * another.  The sum is reduced once.
 *
 * A block of fewer bytes is put at the end of a register, after zeros, which do
 * not change a state of 0.
 */
#include "util/crcmul.h"
#include "util/crctier.h"

#if CRCMUL_IS_BUILT

#define HERE static __attribute__((target(CRCMUL_TARGET)))

/* The sixteen bytes from index n on are 16 - n bytes 0 and n bytes 0xff. */
static const uint8_t zeros_and_ones[32] = {[16 ... 31] = 0xff};

static inline uint32_t load_word(const uint8_t *p)
{
	uint32_t v;

	memcpy(&v, p, sizeof(v));
	return v;
}

static inline uint64_t load_half(const uint8_t *p)
{
	uint64_t v;

	memcpy(&v, p, sizeof(v));
	return v;
}

/* Returns the CRC of 8 to 15 bytes. */
HERE uint32_t sum_halves(const struct crcfactor *f, uint32_t crc,
			 const uint8_t *p, size_t bytes)
{
	unsigned int before = (unsigned int)(16 - bytes) * 8;
	unsigned __int128 v = (unsigned __int128)crc << before;

	v ^= (uint64_t)((unsigned __int128)load_half(p) << before);
	v ^= (unsigned __int128)load_half(p + bytes - 8) << 64;
	return crcmul_reduce(f,
			     crcmul_halves((uint64_t)v, (uint64_t)(v >> 64)));
}

/* Returns the CRC of 4 to 7 bytes. */
HERE uint32_t sum_words(const struct crcfactor *f, uint32_t crc,
			const uint8_t *p, size_t bytes)
{
	unsigned int before = (unsigned int)(8 - bytes) * 8;
	uint64_t v = (uint64_t)crc << before;

	v ^= (uint32_t)((uint64_t)load_word(p) << before);
	v ^= (uint64_t)load_word(p + bytes - 4) << 32;
	return crcmul_modulo(f, crcmul_halves(v, 0));
}

/* Returns the CRC of 1 to 3 bytes.  The state is longer than these bytes, so
 * its rest is added to the result. */
HERE uint32_t sum_bytes(const struct crcfactor *f, uint32_t crc,
			const uint8_t *p, size_t bytes)
{
	unsigned int bits = (unsigned int)bytes * 8;
	uint32_t v = p[0] | (uint32_t)p[bytes - 1] << (bits - 8) |
		     (uint32_t)p[bytes / 2] << bytes / 2 * 8;

	v = (v ^ crc) << (32 - bits);
	return crcmul_modulo(f, crcmul_halves((uint64_t)v << 32, 0)) ^
	       crc >> bits;
}

/* Returns the CRC of 16 bytes or more. */
HERE uint32_t sum_vectors(const struct crcfactor *f, uint32_t crc,
			  const uint8_t *p, size_t bytes)
{
	crcmul_vec sum = crcmul_add(crcmul_load(p), crcmul_word(crc));
	size_t last = (bytes - 1) % 16 + 1;

	if (bytes > 16) {
		const uint8_t *end = p + bytes - 16;

		bytes -= 16;
		sum = crcmul_fold(
			sum, crcmul_load(f->by[bytes]),
			crcmul_mask(crcmul_load(end),
				    crcmul_load(zeros_and_ones + last)));
		for (p += 16; bytes > 16; p += 16, bytes -= 16)
			sum = crcmul_fold(crcmul_load(p),
					  crcmul_load(f->by[bytes - 16]), sum);
	}
	return crcmul_reduce(f, sum);
}

__attribute__((target(CRCMUL_TARGET))) uint32_t
crcfew_update(const struct crcfactor *f, uint32_t crc, const uint8_t *p,
	      size_t bytes)
{
	if (bytes >= 16)
		return sum_vectors(f, crc, p, bytes);
	if (bytes >= 8)
		return sum_halves(f, crc, p, bytes);
	if (bytes >= 4)
		return sum_words(f, crc, p, bytes);
	return bytes ? sum_bytes(f, crc, p, bytes) : crc;
}

#endif
