/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A copy that computes the CRC-32 of what it copies, for the price of the
 * copy or of the CRC, whichever is more: each byte is read once, so what is
 * summed up is what was copied even if somebody writes there meanwhile.
 *
 * The code that reads stands alone in a section of its own, and calls nothing:
 * memory/copy_nofault.c tells by the section that a fault is one of reading.
 *
 * No state but the choice that util/crctier.h made.
 */
#ifndef UTIL_CRCCOPY_H
#define UTIL_CRCCOPY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "util/crctier.h"

#define CRCCOPY_STEP CRCTIER_STEP

/* Before each such copy: a sanitizer would call out of it, and the program's
 * memory is not its concern. */
#define CRCCOPY_ALONE(instructions)                                            \
	__attribute__((noinline, section("crccopy_text"),                      \
		       target(instructions),                                   \
		       no_sanitize("address", "undefined", "thread")))

/* This processor's copy of steps, or NULL. */
crctier_copy *crccopy_steps(void);
/* Does it leave upper halves of vector registers in use, if interrupted? */
bool crccopy_is_wide(void);
/* Is the instruction at ip one of such a copy?  For handlers of signals. */
bool crccopy_is_at(uintptr_t ip);

#endif
