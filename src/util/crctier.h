/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The implementations of a CRC for different processors, and the choice of one
 * for this processor.  Other folders use util/crc.h and util/crccopy.h.
 *
 * A constructor makes the choice when the library is loaded, by the processor's
 * instruction sets and by the registers that the kernel saves.  The choice is
 * only read from then on.  If another constructor runs earlier and needs a CRC,
 * the CRC is computed bit by bit.
 *
 * The functions leave the upper halves of the vector registers zero, since
 * later SSE instructions would be slow otherwise.
 */
#ifndef UTIL_CRCTIER_H
#define UTIL_CRCTIER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "util/crcfactor.h"

/* Returns the state after `bytes` bytes at p from state `crc` (util/crc.h). */
typedef uint32_t crctier_update(const struct crcfactor *f, uint32_t crc,
				const uint8_t *p, size_t bytes);
/* Copies `bytes` bytes, a multiple of CRCTIER_STEP that is not 0, and updates
 * the state *crc by the copied bytes (util/crccopy.h). */
typedef void crctier_copy(void *to, const void *from, size_t bytes,
			  uint32_t *crc);

#define CRCTIER_FEW  64	 /* the most bytes for `few` and `few_c` */
#define CRCTIER_STEP 256 /* crctier_copy takes multiples of this many bytes */

/* One implementation. */
struct crctier {
	const char *name; /* the name in results of tests and benchmarks */
	/* Returns whether this processor has the instructions. */
	bool (*is_here)(void);
	/* CRC-32 of at most CRCTIER_FEW bytes. */
	crctier_update *few;
	/* CRC-32 of more than CRCTIER_FEW bytes. */
	crctier_update *many;
	/* CRC-32C of at most CRCTIER_FEW bytes. */
	crctier_update *few_c;
	/* CRC-32C of more than CRCTIER_FEW bytes. */
	crctier_update *many_c;
	/* A copy that computes the CRC-32; NULL: the caller uses memcpy and
	 * crc32_update. */
	crctier_copy *copy;
	/* A copy that computes the CRC-32C; NULL: as for `copy`. */
	crctier_copy *copy_c;
	/* Whether a signal that interrupts `copy` or `copy_c` may find the
	 * upper halves of the vector registers in use. */
	bool is_wide;
	/* Whether the functions of crcmul.h may be called. */
	bool multiplies;
};

/* The implementations to choose from, the fastest first.  Every processor can
 * use the last. */
extern const struct crctier crctier_all[];
/* The number of entries in crctier_all. */
extern const size_t crctier_count;

/* The implementation that crc.c, crc16.c and crccopy.c use. */
extern struct crctier crctier_chosen;
/* Chooses t, whose is_here must return true.  Only the constructor, and tests
 * that have one thread, call this function. */
void crctier_choose(const struct crctier *t);

/* Computes the CRC of any number of bytes by tables, or by shifts for a CRC-32
 * of many bytes.  Takes only crcfactor_crc32 and crcfactor_crc32c.  The first
 * call comes after crcslice_fill. */
crctier_update crcslice_update;
/* Computes the tables of crcslice_update. */
void crcslice_fill(void);
/* Compute the CRC by carry-less multiplication: crcfew_update for at most
 * CRCTIER_FEW bytes, the others for more bytes by registers of 128, 256 and 512
 * bits.  Those of 256 and 512 bits are for x86-64 alone. */
crctier_update crcfew_update, crc128_update, crc256_update, crc512_update;
/* Copy and compute the CRC-32 by registers of 128, 256 and 512 bits.  Those of
 * 256 and 512 bits are for x86-64 alone. */
crctier_copy crc128_copy, crc256_copy, crc512_copy;
/* The same for the CRC-32C. */
crctier_copy crc128_copy_c, crc256_copy_c, crc512_copy_c;
/* Compute the CRC by the processor's CRC instruction, and take only
 * crcfactor_crc32 and crcfactor_crc32c; on x86-64 the instruction is for
 * CRC-32C alone.  crcinsn_few takes any number of bytes.  crcinsn_many, which
 * is for x86-64 alone, takes more than CRCTIER_FEW bytes, and computes the CRCs
 * of three stretches at once. */
crctier_update crcinsn_few, crcinsn_many;

#endif
