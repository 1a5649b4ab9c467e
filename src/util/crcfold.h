/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * More than CRCTIER_FEW bytes by carry-less multiplication, written once for
 * vectors of every width.  Each file that includes it has defined
 *
 *	WIDE		bytes of a vector
 *	WIDE_TARGET	the instructions of it
 *	INNER		what inline functions of those begin with
 *	vector		the type, and of it:
 *	wide_load, wide_store
 *	wide_last	the last `bytes`, 1 to WIDE, of those at p, after zeros
 *	wide_seed	with a state added to the first four bytes
 *	wide_spread	the same 16 bytes again and again: a row of crcfactor.by
 *	wide_fold	a vector moved by such a row, onto another
 *	wide_sum	of 16 bytes, what a vector is worth at its end
 *
 * Four vectors at once, for a product takes longer than the next may wait.
 */
#include "util/crccopy.h"
#include "util/crcmul.h"
#include "util/crctier.h"

#define STEP (4 * WIDE)

_Static_assert(STEP <= CRCFACTOR_FAR && CRCTIER_STEP % STEP == 0, "STEP");
_Static_assert(WIDE <= CRCTIER_FEW, "there is more than one vector");

/* Each byte is read once: what is summed up is what was copied. */
INNER vector take(uint8_t *to, const uint8_t *from, size_t at, bool copies)
{
	vector v = wide_load(from + at);

	if (copies)
		wide_store(to + at, v);
	return v;
}

/*
 * Four sums, each of every fourth vector, into one.  `bytes` is a multiple of
 * STEP and not 0; the sum stands at their end.
 */
INNER vector fold_steps(const struct crcfactor *f, uint32_t crc, uint8_t *to,
			const uint8_t *p, size_t bytes, bool copies)
{
	vector by = wide_spread(f->by[STEP]);
	vector a = wide_seed(take(to, p, 0, copies), crc);
	vector b = take(to, p, WIDE, copies);
	vector c = take(to, p, 2 * WIDE, copies);
	vector d = take(to, p, 3 * WIDE, copies);

	for (size_t at = STEP; at != bytes; at += STEP) {
		a = wide_fold(a, by, take(to, p, at, copies));
		b = wide_fold(b, by, take(to, p, at + WIDE, copies));
		c = wide_fold(c, by, take(to, p, at + 2 * WIDE, copies));
		d = wide_fold(d, by, take(to, p, at + 3 * WIDE, copies));
	}
	d = wide_fold(c, wide_spread(f->by[WIDE]), d);
	d = wide_fold(b, wide_spread(f->by[2 * WIDE]), d);
	return wide_fold(a, wide_spread(f->by[3 * WIDE]), d);
}

/* All steps but what the last vectors are for, each of which goes to the end
 * by itself, so that none waits for another. */
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

INNER void fold_copy(void *to, const void *from, size_t bytes, uint32_t *crc)
{
	const struct crcfactor *f = &crcfactor_crc32;
	vector sum = fold_steps(f, *crc, to, from, bytes, true);

	*crc = crcmul_reduce(f, wide_sum(f, sum));
}
