/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A copy that computes the CRC-32 of what it copies, for the price of the
 * copy: each byte is read once, so what is summed up is what was copied even
 * if somebody writes there meanwhile.
 *
 * The code that reads stands alone in a section of its own, and calls nothing:
 * host/guard.c tells by the section that a fault is one of reading.
 *
 * Pure functions, no state.
 */
#ifndef UTIL_CRCCOPY_H
#define UTIL_CRCCOPY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CRCCOPY_STEP 256

/* May crccopy_steps be called? */
bool crccopy_is_fast(void);
/* Copy `bytes`, a multiple of CRCCOPY_STEP and not 0; *sum gets the state
 * after `crc` and the copied ones (util/crc.h). */
void crccopy_steps(void *to, const void *from, size_t bytes, uint32_t crc,
		   uint32_t *sum);
/* Is the instruction at ip of crccopy_steps?  For handlers of signals. */
bool crccopy_is_at(uintptr_t ip);

#endif
