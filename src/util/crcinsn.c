/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The CRC by the processor's CRC instruction, eight bytes at a time: CRC-32C on
 * x86-64 (SSE4.2), both CRCs on arm64.
 *
 * The instruction takes three cycles, but one can begin in each cycle.  So on
 * x86-64 the CRCs of three stretches of the data are computed at once, and
 * combined by multiplication.
 */
#include "util/crcmul.h"
#include "util/crctier.h"

#if CRCMUL_IS_BUILT

static inline uint64_t load_eight(const uint8_t *p)
{
	uint64_t v;

	memcpy(&v, p, sizeof(v));
	return v;
}

#endif

#if defined(__x86_64__)

CRCMUL uint32_t sum_serially(uint32_t crc, const uint8_t *p, size_t bytes)
{
	uint64_t state = crc;
	uint32_t word;
	uint16_t half;

	for (; bytes >= 8; p += 8, bytes -= 8)
		state = _mm_crc32_u64(state, load_eight(p));
	crc = (uint32_t)state;
	if (bytes & 4) {
		memcpy(&word, p, sizeof(word));
		crc = _mm_crc32_u32(crc, word);
		p += 4;
	}
	if (bytes & 2) {
		memcpy(&half, p, sizeof(half));
		crc = _mm_crc32_u16(crc, half);
		p += 2;
	}
	return bytes & 1 ? _mm_crc32_u8(crc, *p) : crc;
}

/* The bytes of a stretch, at most: move_on(f, crc, 3 * STRETCH) reads
 * by[3 * STRETCH - 4], and by[] ends at CRCFACTOR_FAR. */
#define STRETCH ((CRCFACTOR_FAR + 4) / 3 / 8 * 8)

/*
 * Returns the state after `bytes` - 4 zero bytes, as 64 bits that are not
 * reduced.  The caller reduces them by the CRC instruction, which has the
 * effect of four more zero bytes: the result is the state after `bytes` zero
 * bytes.
 */
CRCMUL crcmul_vec move_on(const struct crcfactor *f, uint64_t state,
			  size_t bytes)
{
	uint32_t factor = (uint32_t)(f->by[bytes - 4][1] >> 32);

	return crcmul_firsts(crcmul_word((uint32_t)state), crcmul_word(factor));
}

/* Returns the state after three stretches.  Their CRCs begin at 0 and do not
 * depend on `crc`, so the processor can begin them before it knows the result
 * of the previous three stretches. */
CRCMUL uint32_t sum_three(const struct crcfactor *f, uint32_t crc,
			  const uint8_t *p, size_t stretch)
{
	uint64_t a = 0, b = 0, c = 0;
	crcmul_vec sum;

	for (const uint8_t *end = p + stretch; p < end; p += 8) {
		a = _mm_crc32_u64(a, load_eight(p));
		b = _mm_crc32_u64(b, load_eight(p + stretch));
		c = _mm_crc32_u64(c, load_eight(p + 2 * stretch));
	}
	sum = crcmul_add(move_on(f, a, 2 * stretch), move_on(f, b, stretch));
	sum = crcmul_add(sum, move_on(f, crc, 3 * stretch));
	return (uint32_t)_mm_crc32_u64(0, crcmul_first_half(sum)) ^ (uint32_t)c;
}

__attribute__((target(CRCMUL_TARGET))) uint32_t
crcinsn_few(const struct crcfactor *f, uint32_t crc, const uint8_t *p,
	    size_t bytes)
{
	return sum_serially(crc, p, bytes);
}

__attribute__((target(CRCMUL_TARGET))) uint32_t
crcinsn_many(const struct crcfactor *f, uint32_t crc, const uint8_t *p,
	     size_t bytes)
{
	for (; bytes >= 3 * STRETCH; p += 3 * STRETCH, bytes -= 3 * STRETCH)
		crc = sum_three(f, crc, p, STRETCH);
	if (bytes > CRCTIER_FEW) {
		size_t stretch = bytes / 24 * 8;

		crc = sum_three(f, crc, p, stretch);
		p += 3 * stretch;
		bytes -= 3 * stretch;
	}
	return sum_serially(crc, p, bytes);
}

#elif CRCMUL_IS_BUILT

#if defined(__clang__)
/* clang's arm_acle.h declares these functions only if the whole file is
 * compiled for processors that have the instruction. */
#define HERE	 static __attribute__((target("crc")))
#define CRC32_8	 __builtin_arm_crc32d
#define CRC32_1	 __builtin_arm_crc32b
#define CRC32C_8 __builtin_arm_crc32cd
#define CRC32C_1 __builtin_arm_crc32cb
#else
#include <arm_acle.h>
#define HERE	 static __attribute__((target("+crc")))
#define CRC32_8	 __crc32d
#define CRC32_1	 __crc32b
#define CRC32C_8 __crc32cd
#define CRC32C_1 __crc32cb
#endif

HERE uint32_t sum_crc32(uint32_t crc, const uint8_t *p, size_t bytes)
{
	for (; bytes >= 8; p += 8, bytes -= 8)
		crc = CRC32_8(crc, load_eight(p));
	for (; bytes; p++, bytes--)
		crc = CRC32_1(crc, *p);
	return crc;
}

HERE uint32_t sum_crc32c(uint32_t crc, const uint8_t *p, size_t bytes)
{
	for (; bytes >= 8; p += 8, bytes -= 8)
		crc = CRC32C_8(crc, load_eight(p));
	for (; bytes; p++, bytes--)
		crc = CRC32C_1(crc, *p);
	return crc;
}

uint32_t crcinsn_few(const struct crcfactor *f, uint32_t crc, const uint8_t *p,
		     size_t bytes)
{
	return f == &crcfactor_crc32 ? sum_crc32(crc, p, bytes)
				     : sum_crc32c(crc, p, bytes);
}

#endif
