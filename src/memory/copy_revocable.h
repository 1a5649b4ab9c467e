/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Copies to and from memory that two processes have mapped.  The owner of the
 * memory can revoke a copy of the other process.
 *
 * A copy is a restartable sequence (rseq(2)), which begins with a load of a
 * word and ends if the word equals `ended`.  When the thread is preempted or
 * stopped, the kernel restarts the sequence.  So once the owner has written
 * `ended` to the word, and then finds the thread off its processor, that thread
 * stores nothing more to the memory.
 *
 * Only x86-64 has these copies.  They return an error where memory is not
 * accessible, by means of the signal handler of copy_nofault.h.  Lock: none.
 */
#ifndef MEMORY_COPY_REVOCABLE_H
#define MEMORY_COPY_REVOCABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "hca/space.h"

/* The data of one thread's copies, set by copy_revocable_take. */
struct copy_revocable {
	/* An aligned word of 8 bytes, not owned, which the owner of the memory
	 * sets to `ended` to revoke the copies. */
	const void *word;
	uint64_t ended; /* the value of the word that ends a copy */
	void *rseq;	/* the thread's struct rseq */
};

enum copy_revocable_end {
	COPY_REVOCABLE_DONE, /* all bytes are copied */
	/* Some memory is not accessible; part of the bytes may be copied. */
	COPY_REVOCABLE_FAULT,
	/* The copy was revoked; part of the bytes may be copied. */
	COPY_REVOCABLE_ENDED,
};

/*
 * Initialises *l for this thread's copies, which end once *word, an aligned
 * word of 8 bytes, equals `ended`.  Returns false if the thread must not copy:
 * it has no restartable sequences, because the processor, the C library or the
 * kernel lacks them; `rep movsb` is slow here; or copy_nofault_is_on returns
 * false.
 */
bool copy_revocable_take(struct copy_revocable *l, const void *word,
			 uint64_t ended);
/* Makes one move, which takes several copies, with the order of stores that
 * hca/space.h states.  Both sides of *m have the same length, and their
 * addresses are those of this process. */
enum copy_revocable_end copy_revocable_move(const struct copy_revocable *l,
					    const struct space_move *m);
/* Executes one atomic of hca/space.h at `word`, which is aligned to 8 bytes,
 * and sets *old to the value before.  If the result is not COPY_REVOCABLE_DONE,
 * the atomic was not executed. */
enum copy_revocable_end copy_revocable_atomic(const struct copy_revocable *l,
					      enum space_atomic op, void *word,
					      uint64_t swap_add,
					      uint64_t compare, uint64_t *old);

/* For the handler of copy_nofault.c: returns whether ip is an instruction of
 * these copies. */
bool copy_revocable_is_at(uintptr_t ip);
/* For the handler of copy_nofault.c: returns the address at which a thread
 * continues after a fault in these copies. */
uintptr_t copy_revocable_fault_at(void);

#endif
