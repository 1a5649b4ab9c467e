/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The CRC for old and emulated processors, without carry-less multiplication:
 * by tables, sixteen bytes in a step.  The CRC-32 of long data is computed by
 * shifts instead.
 */
#include <endian.h>
#include <string.h>

#include "util/crctier.h"

#define STEP  16
#define AHEAD 5	  /* take_word changes only words among the five behind v */
#define LONG  128 /* from this length on, by_shifts is faster */

/* Entry [k][b] is the state after byte b and k zero bytes, from state 0. */
typedef uint32_t table[STEP][256];

static table of_crc32, of_crc32c;

static void fill_table(const struct crcfactor *f, table of_byte)
{
	for (uint32_t b = 0; b < 256; b++) {
		uint8_t byte = (uint8_t)b;

		of_byte[0][b] = crcfactor_bits(f, 0, &byte, 1);
	}
	for (uint32_t b = 0; b < 256; b++) {
		for (int k = 1; k < STEP; k++) {
			uint32_t crc = of_byte[k - 1][b];

			of_byte[k][b] = crc >> 8 ^ of_byte[0][crc & 255];
		}
	}
}

void crcslice_fill(void)
{
	fill_table(&crcfactor_crc32, of_crc32);
	fill_table(&crcfactor_crc32c, of_crc32c);
}

/* Looks eight bytes up, the last one in of_byte[0].  There is no loop, since
 * gcc -O2 would not unroll it. */
static inline uint32_t slice_eight(uint64_t v, const uint32_t (*of_byte)[256])
{
	return of_byte[7][v & 255] ^ of_byte[6][v >> 8 & 255] ^
	       of_byte[5][v >> 16 & 255] ^ of_byte[4][v >> 24 & 255] ^
	       of_byte[3][v >> 32 & 255] ^ of_byte[2][v >> 40 & 255] ^
	       of_byte[1][v >> 48 & 255] ^ of_byte[0][v >> 56];
}

static inline uint64_t load_word(const uint8_t *p)
{
	uint64_t v;

	memcpy(&v, p, sizeof(v));
	return le64toh(v);
}

static inline uint32_t slice_four(uint32_t v, const uint32_t (*of_byte)[256])
{
	return of_byte[3][v & 255] ^ of_byte[2][v >> 8 & 255] ^
	       of_byte[1][v >> 16 & 255] ^ of_byte[0][v >> 24];
}

static uint32_t by_tables(const uint32_t (*of_byte)[256], uint32_t crc,
			  const uint8_t *p, size_t bytes)
{
	uint32_t word;

	for (; bytes >= STEP; p += STEP, bytes -= STEP)
		crc = slice_eight(load_word(p) ^ crc, of_byte + 8) ^
		      slice_eight(load_word(p + 8), of_byte);
	for (; bytes >= 4; p += 4, bytes -= 4) {
		memcpy(&word, p, sizeof(word));
		crc = slice_four(crc ^ le32toh(word), of_byte);
	}
	while (bytes--)
		crc = crc >> 8 ^ of_byte[0][(crc ^ *p++) & 255];
	return crc;
}

/* Values that are still to be added to the next words of the data: word[i] to
 * the i-th, where 0 is the next one. */
struct ahead {
	uint64_t word[AHEAD];
};

/*
 * The polynomial of CRC-32 divides x^300 + x^155 + x^117 + x^89 + 1.  So the
 * CRC stays the same if a set bit is cleared and the bits 145, 183, 211 and 300
 * places behind it are inverted.  take_word clears a whole word v, and adds v,
 * shifted by these distances, to the second to fifth word behind v (Russell,
 * "Chorba", 2024).
 */
static inline void take_word(struct ahead *a, uint64_t v)
{
	uint64_t *w = a->word;

	v ^= w[0];
	w[0] = w[1];
	w[1] = w[2] ^ v << 17 ^ v << 55;
	w[2] = w[3] ^ v >> 47 ^ v >> 9 ^ v << 19;
	w[3] = w[4] ^ v >> 45 ^ v << 44;
	w[4] = v >> 20;
}

/* Clears words by take_word, without a table, until fewer than 56 bytes are
 * left.  by_tables computes the CRC of the rest. */
static uint32_t by_shifts(uint32_t crc, const uint8_t *p, size_t bytes)
{
	struct ahead a = {{crc}};
	uint8_t last[sizeof(a)];
	uint64_t v;

	for (; bytes >= sizeof(a) + 16; p += 16, bytes -= 16) {
		take_word(&a, load_word(p));
		take_word(&a, load_word(p + 8));
	}
	for (int i = 0; i < AHEAD; i++) {
		v = htole64(load_word(p + 8 * i) ^ a.word[i]);
		memcpy(last + 8 * i, &v, sizeof(v));
	}
	crc = by_tables(of_crc32, 0, last, sizeof(last));
	return by_tables(of_crc32, crc, p + sizeof(last), bytes - sizeof(last));
}

uint32_t crcslice_update(const struct crcfactor *f, uint32_t crc,
			 const uint8_t *p, size_t bytes)
{
	if (f == &crcfactor_crc32c)
		return by_tables(of_crc32c, crc, p, bytes);
	return bytes < LONG ? by_tables(of_crc32, crc, p, bytes)
			    : by_shifts(crc, p, bytes);
}
