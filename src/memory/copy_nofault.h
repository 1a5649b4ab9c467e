/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Copies that fail instead of crashing when the program has unmapped the
 * memory: a few instructions of ours, and a handler of SIGSEGV and SIGBUS that
 * sends a fault among them to an exit that says so.  All other faults go to
 * the handler that was there before.
 *
 * A program may replace the handler, and each of its threads block the signals:
 * copy_nofault_is_on looks, by the progress clock every 200 us, and callers
 * then have the kernel copy.  Only x86-64 has it.
 *
 * Lock: none, but the host's to open and close it.  A thread that polls a
 * completion queue copies too, beside the holder of the progress lock.
 */
#ifndef MEMORY_COPY_NOFAULT_H
#define MEMORY_COPY_NOFAULT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Install and remove the handler.  ADVERB_GUARD=0: never installed. */
void copy_nofault_open(void);
void copy_nofault_close(void);
/* Copy by the string instruction, or by registers; copy_nofault_open knows. */
void copy_nofault_choose(bool fast_strings);
/* A turn of progress begins: the time, for all threads. */
void copy_nofault_turn(uint64_t now_ns);
/* May this thread call those below? */
bool copy_nofault_is_on(void);
/* Are long copies one string instruction? */
bool copy_nofault_has_strings(void);
/* False: the memory is not there; some bytes may have been copied. */
bool copy_nofault(void *to, const void *from, size_t bytes);
/* The same; *crc gets on by what was copied (crc32_update). */
bool copy_nofault_crc(void *to, const void *from, size_t bytes, uint32_t *crc);
/* One store of 1, 2, 4 or 8 bytes, aligned to that, after all before it. */
bool copy_nofault_store(void *to, const void *from, size_t bytes);

#endif
