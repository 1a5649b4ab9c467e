/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The ways to compute a CRC that processors differ by, and which of them this
 * one has.  util/crc.h is for whoever wants a CRC.
 *
 * The choice is made once, by a constructor when the library is loaded, after
 * asking the processor and whether the kernel saves its registers; it is read
 * only from then on, by any thread.  A constructor that runs still earlier gets
 * its CRC bit by bit.
 *
 * Each file has its functions beside its instructions.  They leave the upper
 * halves of the vector registers clear: otherwise each SSE instruction after
 * them would wait for those.
 */
#ifndef UTIL_CRCTIER_H
#define UTIL_CRCTIER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "util/crcfactor.h"

/* The state after `bytes` bytes at p have followed `crc` (util/crc.h). */
typedef uint32_t crctier_update(const struct crcfactor *f, uint32_t crc,
				const uint8_t *p, size_t bytes);
/* Copy `bytes`, a multiple of CRCTIER_STEP and not 0; *crc, a state of CRC-32,
 * gets on by what was copied (util/crccopy.h). */
typedef void crctier_copy(void *to, const void *from, size_t bytes,
			  uint32_t *crc);

#define CRCTIER_FEW  64 /* bytes: so many and less are few, more are many */
#define CRCTIER_STEP 256

struct crctier {
	const char *name;
	bool (*is_here)(void);
	/* Few and many bytes, CRC-32 and CRC-32C. */
	crctier_update *few, *many, *few_c, *many_c;
	crctier_copy *copy; /* NULL: memcpy and crc32_update */
	bool is_wide;	    /* copy, interrupted, leaves upper halves in use */
	bool multiplies;    /* crcmul.h works */
};

/* The best first, the last is everywhere; crctier_count of them. */
extern const struct crctier crctier_all[];
extern const size_t crctier_count;

/* crc.c calls this one. */
extern struct crctier crctier_chosen;
/* Choose another one that is here; for tests, which have one thread then. */
void crctier_choose(const struct crctier *t);

/* Any number of bytes, by tables; crcslice_fill makes them. */
crctier_update crcslice_update;
void crcslice_fill(void);
/* By multiplying: few, and many with 128, 256 and 512 bits a register. */
crctier_update crcfew_update, crc128_update, crc256_update, crc512_update;
crctier_copy crc128_copy, crc256_copy, crc512_copy;
/* By the processor's own CRC instruction, which x86-64 has for CRC-32C alone:
 * any number of bytes one after the other, or many by stretches at once. */
crctier_update crcinsn_few, crcinsn_many;

#endif
