/* SPDX-License-Identifier: BSD-2-Clause */
#include "util/crc16.h"

#include <pthread.h>
#include <stdbool.h>

#include "util/crcfactor.h"
#include "util/crctier.h"
#include "util/lock.h"
#include "util/shared.h"

#define POLYNOMIAL 0xd008u /* P: bit 15 is the coefficient of x^0 */
#define SLICES	   8
/* The CRC of fewer bytes is computed by tables: by_product gives all but four
 * bytes to crctier.many, which takes more than CRCTIER_FEW bytes. */
#define MANY (CRCTIER_FEW + 4 + 1)

/*
 * The product of P and x^16 + 1, without its x^32: bit 31 is the coefficient of
 * x^0.  The functions of util/crctier.h, which are for polynomials of degree
 * 32, compute the remainder of the data modulo the product.  Since P divides
 * the product, this remainder and the data are equal modulo P.
 */
static struct crcfactor product = {.polynomial = 0xd0085008u};

/* slice[k][b] is the state after byte b and k zero bytes, from state 0. */
static uint16_t slice[SLICES][256];
static struct lock fill_lock;
static shared_flag is_filled;

/* In the child of a fork, the thread that held the lock does not exist.  The
 * child fills the tables again, unless they were full. */
static void after_fork(void)
{
	lock_init(&fill_lock);
}

/* A constructor registers the handler, because a fork that has begun skips the
 * handlers that another thread registers meanwhile. */
__attribute__((constructor)) static void watch_forks(void)
{
	pthread_atfork(NULL, NULL, after_fork);
}

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
 * most programs never compute this CRC.  The release store of is_filled comes
 * after the stores to the tables, and pairs with the acquire load in
 * crc16_update: otherwise another thread could read an empty table. */
static void fill_once(void)
{
	lock_take(&fill_lock);
	if (!shared_load(&is_filled)) {
		fill_slices();
		crcfactor_init(&product);
		shared_store(&is_filled, true);
	}
	lock_give(&fill_lock);
}

static uint16_t by_tables(uint16_t crc, const uint8_t *p, size_t bytes)
{
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

/* The remainder of all but the last four bytes modulo the product is a state of
 * 32 bits, which is added to these four bytes.  Their CRC from state 0 is then
 * that of all the data. */
static uint16_t by_product(uint16_t crc, const uint8_t *p, size_t bytes)
{
	uint32_t rest = crctier_chosen.many(&product, crc, p, bytes - 4);
	uint8_t last[4];

	for (size_t i = 0; i < sizeof(last); i++)
		last[i] = (uint8_t)(p[bytes - 4 + i] ^ rest >> 8 * i);
	return by_tables(0, last, sizeof(last));
}

uint16_t crc16_update(uint16_t crc, const void *data, size_t bytes)
{
	if (!shared_load(&is_filled))
		fill_once();
	return crctier_chosen.multiplies && bytes >= MANY
		       ? by_product(crc, data, bytes)
		       : by_tables(crc, data, bytes);
}
