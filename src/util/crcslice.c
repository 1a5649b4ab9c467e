/* SPDX-License-Identifier: BSD-2-Clause */
#include "util/crcslice.h"

#include <endian.h>
#include <string.h>

#define STEP 16

/* of_byte[k][b]: what byte b does to the state, k bytes later. */
static uint32_t of_byte[STEP][256];

/* When the library is loaded: 16 KB, which a cold start does not notice. */
__attribute__((constructor)) static void fill(void)
{
	for (uint32_t b = 0; b < 256; b++) {
		uint32_t crc = b;

		for (int i = 0; i < 8; i++)
			crc = crc >> 1 ^ (0xedb88320u & -(crc & 1));
		of_byte[0][b] = crc;
	}
	for (uint32_t b = 0; b < 256; b++) {
		for (int k = 1; k < STEP; k++) {
			uint32_t crc = of_byte[k - 1][b];

			of_byte[k][b] = crc >> 8 ^ of_byte[0][crc & 255];
		}
	}
}

/* Eight bytes, the last of which `table` is for.  In full: gcc -O2 keeps a
 * loop. */
static inline uint32_t eight(uint64_t v, const uint32_t (*table)[256])
{
	return table[7][v & 255] ^ table[6][v >> 8 & 255] ^
	       table[5][v >> 16 & 255] ^ table[4][v >> 24 & 255] ^
	       table[3][v >> 32 & 255] ^ table[2][v >> 40 & 255] ^
	       table[1][v >> 48 & 255] ^ table[0][v >> 56];
}

static inline uint64_t load(const uint8_t *p)
{
	uint64_t v;

	memcpy(&v, p, sizeof v);
	return le64toh(v);
}

uint32_t crcslice_update(uint32_t crc, const void *data, size_t bytes)
{
	const uint8_t *p = data;

	for (; bytes >= STEP; p += STEP, bytes -= STEP)
		crc = eight(load(p) ^ crc, of_byte + 8) ^
		      eight(load(p + 8), of_byte);
	while (bytes--)
		crc = crc >> 8 ^ of_byte[0][(crc ^ *p++) & 255];
	return crc;
}
