/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Copies that fail instead of crashing when the program has unmapped the
 * memory.  A handler of SIGSEGV and SIGBUS recognises a fault by its
 * instruction: for an instruction of these copies the copy returns false, any
 * other fault is passed to the handler that was installed before.
 *
 * The program may replace the handler, and each thread may block the signals.
 * copy_nofault_is_on checks for this every 200 us of the progress clock; while
 * it returns false, callers have the kernel copy.  Only x86-64 has these
 * copies.
 *
 * Lock: none, except that the host's lock covers copy_nofault_open and
 * copy_nofault_close.  Several threads copy at once: a thread that polls a
 * completion queue does not hold the progress lock.
 */
#ifndef MEMORY_COPY_NOFAULT_H
#define MEMORY_COPY_NOFAULT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Installs the handler, unless ADVERB_GUARD=0 or under valgrind. */
void copy_nofault_open(void);
/* Restores the handlers that were installed before, unless the program has
 * replaced adverb's. */
void copy_nofault_close(void);
/* Chooses `rep movsb` or vector registers for copies; copy_nofault_open calls
 * this with what suits the processor, tests call it with either. */
void copy_nofault_choose(bool fast_strings);
/* Sets the progress clock, by which all threads decide when to check again. */
void copy_nofault_turn(uint64_t now_ns);
/* Returns whether this thread may call the copies below. */
bool copy_nofault_is_on(void);
/* Returns whether copies use `rep movsb`. */
bool copy_nofault_has_strings(void);
/* Copies `bytes` bytes.  Returns false if some of the memory is not accessible;
 * part of the bytes may have been copied then. */
bool copy_nofault(void *to, const void *from, size_t bytes);
/* Copies `bytes` bytes and updates *crc by the copied bytes (crc32_update).
 * Returns false if some of the memory is not accessible; part of the bytes may
 * have been copied then. */
bool copy_nofault_crc(void *to, const void *from, size_t bytes, uint32_t *crc);
/* Copies 1, 2, 4 or 8 bytes to an address aligned to that size, by one store,
 * which other threads see after the caller's earlier stores.  Returns false if
 * the memory at `to` is not accessible. */
bool copy_nofault_store(void *to, const void *from, size_t bytes);

#endif
