/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Copies that return false if the program has unmapped the memory; memcpy would
 * crash there.  A handler of SIGSEGV and SIGBUS looks at the address of
 * the faulting instruction.  If the instruction belongs to one of these copies,
 * the copy returns false.  If it belongs to a copy of copy_revocable.h, that
 * copy returns an error.  Any other fault, and a signal that no instruction has
 * raised, gets the action that the signal had before copy_nofault_open: a
 * handler, with the signal mask that sigaction(2) says, SIG_DFL or SIG_IGN.
 * After the first signal for a handler with SA_RESETHAND the action is SIG_DFL.
 *
 * The program may replace the handler, and each thread may block the signals.
 * copy_nofault_is_on checks handler and signals every 200 us of the progress
 * clock.  While copy_nofault_is_on returns false, callers must not use these
 * copies, and let the kernel copy instead.  On processors other than x86-64
 * copy_nofault_is_on always returns false.
 *
 * Lock: none for the copies, which several threads make at once, since a thread
 * that polls a completion queue does not hold the progress lock.  One thread at
 * a time calls copy_nofault_open and copy_nofault_close.
 */
#ifndef MEMORY_COPY_NOFAULT_H
#define MEMORY_COPY_NOFAULT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "util/crc.h"

/* Installs the handler of SIGSEGV and SIGBUS, unless ADVERB_GUARD is 0,
 * valgrind runs the program, or the handler is installed already. */
void copy_nofault_open(void);
/* Restores the handlers that were installed before, unless the program has
 * replaced adverb's. */
void copy_nofault_close(void);
/* Chooses `rep movsb` (true) or vector registers (false) for copies without a
 * CRC; between addresses where `rep movsb` would be slow, copies always use
 * vector registers.  copy_nofault_open calls this function with the faster
 * choice; tests call it with either. */
void copy_nofault_choose(bool fast_strings);
/* Sets the progress clock, by which each thread decides when to check the
 * handler again. */
void copy_nofault_turn(uint64_t now_ns);
/* Returns whether this thread may call the copies below. */
bool copy_nofault_is_on(void);
/* Returns the choice of copy_nofault_choose. */
bool copy_nofault_has_strings(void);
/* Copies `bytes` bytes.  Returns false if some of the memory is not accessible;
 * part of the bytes may have been copied then. */
bool copy_nofault(void *to, const void *from, size_t bytes);
/* Copies `bytes` bytes to `to`, adverb's own memory, and updates *crc, the
 * state of a CRC of this kind, with the copied bytes (crc_update).  Returns
 * false if some of the memory is not accessible; part of the bytes may have
 * been copied then, and *crc has no meaning. */
bool copy_nofault_crc(void *to, const void *from, size_t bytes,
		      enum crc_kind kind, uint32_t *crc);
/* Does the work of copy_nofault_crc, but `from`, and not `to`, is adverb's own
 * memory. */
bool copy_nofault_crc_to(void *to, const void *from, size_t bytes,
			 enum crc_kind kind, uint32_t *crc);
/* Copies 1, 2, 4 or 8 bytes from adverb's own memory to an address aligned to
 * that size, by one store.  x86-64 makes the store visible to other threads
 * only after the caller's earlier stores, so a program that polls these bytes
 * sees them last.  Returns false if the memory at `to` is not accessible. */
bool copy_nofault_store(void *to, const void *from, size_t bytes);

#endif
