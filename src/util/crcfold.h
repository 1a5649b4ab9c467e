/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The CRC of more than CRCTIER_FEW bytes by carry-less multiplication: a
 * template for vectors of any width.  Before a file includes this one, it
 * defines:
 *
 *	WIDE		the bytes of a vector
 *	WIDE_TARGET	the instruction sets that vectors need
 *	INNER		the specifiers of an inline function that uses vectors
 *	vector		the type of a vector
 *	wide_load	loads a vector
 *	wide_store	stores a vector
 *	wide_last	loads a vector, and clears all but its last `bytes`
 *			bytes, 1 to WIDE
 *	wide_seed	adds a CRC state to the first four bytes of a vector
 *	wide_spread	fills a vector with copies of a row of crcfactor.by
 *	wide_fold	multiplies a vector by such a row, and adds a vector
 *	wide_sum	reduces a vector to 16 bytes, which have the vector's
 *			remainder at the place of its last 16 bytes
 *
 * Four sums are computed at once.  A product takes several cycles, but the
 * processor can begin a product in each cycle.
 */
#include "util/crccopy.h"
#include "util/crcmul.h"
#include "util/crctier.h"

#define STEP (4 * WIDE)

_Static_assert(STEP <= CRCFACTOR_FAR && CRCTIER_STEP % STEP == 0, "STEP");
_Static_assert(WIDE <= CRCTIER_FEW, "there is more than one vector");

/* Loads a vector and, if `copies`, stores it.  Each byte is read once, so the
 * CRC is that of the copied bytes. */
INNER vector take_vector(uint8_t *to, const uint8_t *from, size_t at,
			 bool copies)
{
	vector v = wide_load(from + at);

	if (copies)
		wide_store(to + at, v);
	return v;
}

/*
 * Computes four sums, each of every fourth vector, and adds them up.  `bytes`
 * is a multiple of STEP that is not 0.  Returns a vector which, at the place of
 * the last vector of the bytes, has the same remainder as all the bytes.
 */
INNER vector fold_steps(const struct crcfactor *f, uint32_t crc, uint8_t *to,
			const uint8_t *p, size_t bytes, bool copies)
{
	vector by = wide_spread(f->by[STEP]);
	vector a = wide_seed(take_vector(to, p, 0, copies), crc);
	vector b = take_vector(to, p, WIDE, copies);
	vector c = take_vector(to, p, 2 * WIDE, copies);
	vector d = take_vector(to, p, 3 * WIDE, copies);

	for (size_t at = STEP; at != bytes; at += STEP) {
		a = wide_fold(a, by, take_vector(to, p, at, copies));
		b = wide_fold(b, by, take_vector(to, p, at + WIDE, copies));
		c = wide_fold(c, by, take_vector(to, p, at + 2 * WIDE, copies));
		d = wide_fold(d, by, take_vector(to, p, at + 3 * WIDE, copies));
	}
	d = wide_fold(c, wide_spread(f->by[WIDE]), d);
	d = wide_fold(b, wide_spread(f->by[2 * WIDE]), d);
	return wide_fold(a, wide_spread(f->by[3 * WIDE]), d);
}

/* Returns the CRC state.  If there are more than STEP bytes, first folds whole
 * steps until 1 to STEP bytes remain; otherwise takes the first vector as the
 * sum.  Then adds the one to four vectors that remain.  The sum so far, and
 * each of these vectors but the last, are multiplied by the power for their
 * distance from the end, so that no product waits for another. */
INNER uint32_t fold_many(const struct crcfactor *f, uint32_t crc,
			 const uint8_t *p, size_t bytes)
{
	size_t done = bytes > STEP ? (bytes - 1) / STEP * STEP : WIDE;
	vector sum = bytes > STEP ? fold_steps(f, crc, NULL, p, done, false)
				  : wide_seed(wide_load(p), crc);

	p += done;
	bytes -= done;
	sum = wide_fold(sum, wide_spread(f->by[bytes]),
			wide_last(p + bytes - WIDE, (bytes - 1) % WIDE + 1));
	for (; bytes > WIDE; p += WIDE, bytes -= WIDE)
		sum = wide_fold(wide_load(p), wide_spread(f->by[bytes - WIDE]),
				sum);
	return crcmul_reduce(f, wide_sum(f, sum));
}

/* Copies `bytes` bytes, a multiple of STEP that is not 0, and updates the state
 * *crc. */
INNER void fold_copy(const struct crcfactor *f, void *to, const void *from,
		     size_t bytes, uint32_t *crc)
{
	vector sum = fold_steps(f, *crc, to, from, bytes, true);

	*crc = crcmul_reduce(f, wide_sum(f, sum));
}
