/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A copy that also computes the CRC-32 of the copied bytes, in the time of the
 * copy or of the CRC, whichever is longer.  Each byte is read once, so the CRC
 * is that of the copied bytes even if another thread writes to the source
 * meanwhile.
 *
 * The code of the copies lies in a section of its own, crccopy_text, and calls
 * nothing: by the section memory/copy_nofault.c tells that a fault happened in
 * such a copy.
 *
 * The only state is the choice of util/crctier.h.
 */
#ifndef UTIL_CRCCOPY_H
#define UTIL_CRCCOPY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "util/crctier.h"

#define CRCCOPY_STEP CRCTIER_STEP

/* The attributes of each such copy.  A sanitizer would add calls out of the
 * section, and would judge the program's memory. */
#define CRCCOPY_ALONE(instructions)                                            \
	__attribute__((noinline, section("crccopy_text"),                      \
		       target(instructions),                                   \
		       no_sanitize("address", "undefined", "thread")))

/* Returns this processor's copy, which takes multiples of CRCCOPY_STEP bytes,
 * or NULL if it has none. */
crctier_copy *crccopy_steps(void);
/* Returns whether that copy, if a signal interrupts it, leaves the upper halves
 * of the vector registers in use. */
bool crccopy_is_wide(void);
/* Returns whether ip is an instruction of such a copy; async-signal-safe. */
bool crccopy_is_at(uintptr_t ip);

#endif
