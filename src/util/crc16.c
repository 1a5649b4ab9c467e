/* SPDX-License-Identifier: BSD-2-Clause */
#include "util/crc16.h"

#include <stdbool.h>

#include "util/lock.h"
#include "util/shared.h"

#define POLYNOMIAL 0xd008u /* bit 15 is the coefficient of x^0 */
#define SLICES	   8

/* slice[k][b] is the state after byte b and k zero bytes, from state 0. */
static uint16_t slice[SLICES][256];
static struct lock fill_lock;
static shared_flag is_filled;

static void fill_slices(void)
{
	for (unsigned int b = 0; b < 256; b++) {
		unsigned int crc = b;

		for (int bit = 0; bit < 8; bit++)
			crc = crc >> 1 ^ (crc & 1 ? POLYNOMIAL : 0);
		slice[0][b] = (uint16_t)crc;
	}
	for (unsigned int b = 0; b < 256; b++)
		for (int k = 1; k < SLICES; k++) {
			uint16_t crc = slice[k - 1][b];

			slice[k][b] =
				(uint16_t)(crc >> 8 ^ slice[0][crc & 0xff]);
		}
}

/* Fills the tables at the first use and not when the library is loaded, since
 * most programs never compute this CRC. */
static void fill_once(void)
{
	lock_take(&fill_lock);
	if (!shared_load(&is_filled)) {
		fill_slices();
		shared_store(&is_filled, true);
	}
	lock_give(&fill_lock);
}

uint16_t crc16_update(uint16_t crc, const void *data, size_t bytes)
{
	const uint8_t *p = data;

	if (!shared_load(&is_filled))
		fill_once();
	for (; bytes >= SLICES; bytes -= SLICES, p += SLICES)
		crc = (uint16_t)(slice[7][(p[0] ^ crc) & 0xff] ^
				 slice[6][p[1] ^ crc >> 8] ^ slice[5][p[2]] ^
				 slice[4][p[3]] ^ slice[3][p[4]] ^
				 slice[2][p[5]] ^ slice[1][p[6]] ^
				 slice[0][p[7]]);
	for (; bytes; bytes--, p++)
		crc = (uint16_t)(crc >> 8 ^ slice[0][(crc ^ *p) & 0xff]);
	return crc;
}
