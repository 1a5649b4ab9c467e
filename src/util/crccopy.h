/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A copy that also computes a CRC of the copied bytes.  Both together take the
 * time of the copy or of the CRC, whichever is longer.  Each byte is read once,
 * so the CRC is that of the copied bytes even if another thread writes to the
 * source meanwhile.
 *
 * The code of the copies is in a section of its own, crccopy_text, and calls no
 * function outside it.  memory/copy_nofault.c recognises a fault in such a copy
 * by the section.
 *
 * The only state is that of util/crctier.h: which implementation this processor
 * uses.
 */
#ifndef UTIL_CRCCOPY_H
#define UTIL_CRCCOPY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "util/crc.h"
#include "util/crctier.h"

#define CRCCOPY_STEP CRCTIER_STEP

/* The attributes of each function that makes such a copy.  A sanitizer is
 * turned off, since it would add calls of functions outside the section, and
 * would check accesses to the program's memory. */
#define CRCCOPY_ALONE(instructions)                                            \
	__attribute__((noinline, section("crccopy_text"),                      \
		       target(instructions),                                   \
		       no_sanitize("address", "undefined", "thread")))

/* Returns the function that makes the copy on this processor and computes this
 * CRC.  The function takes multiples of CRCCOPY_STEP bytes.  NULL: there is no
 * such function. */
crctier_copy *crccopy_steps(enum crc_kind kind);
/* Returns true if a signal that interrupts the function of crccopy_steps may
 * find the upper halves of the vector registers in use. */
bool crccopy_is_wide(void);
/* Returns whether ip is the address of an instruction of such a copy.
 * Async-signal-safe. */
bool crccopy_is_at(uintptr_t ip);

#endif
