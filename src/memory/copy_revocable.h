/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Copies to and from memory that two processes have mapped, which the owner of
 * the memory can revoke.
 *
 * A copy is a restartable sequence (rseq(2)).  When the thread is preempted or
 * stopped, the kernel restarts the sequence, which begins with a load of a
 * word.  So if the owner writes `ended` to the word, and then finds the thread
 * off its processor, that thread stores nothing more to the memory.
 *
 * Only x86-64 has these copies.  They need the signal handler of
 * copy_nofault.h, and like those copies fail where memory is not accessible.
 * Lock: none.
 */
#ifndef MEMORY_COPY_REVOCABLE_H
#define MEMORY_COPY_REVOCABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "hca/space.h"

/* The data of one thread's copies, set by copy_revocable_take. */
struct copy_revocable {
	const void *word; /* 8 bytes: the copy may go on while != `ended` */
	uint64_t ended;
	void *rseq; /* the thread's struct rseq */
};

enum copy_revocable_end {
	COPY_REVOCABLE_DONE,
	/* Some memory is not accessible; part of the bytes may be copied. */
	COPY_REVOCABLE_FAULT,
	/* The copy was revoked; part of the bytes may be copied. */
	COPY_REVOCABLE_ENDED,
};

/*
 * Initialises *l for this thread.  Returns false if the thread has no
 * restartable sequences or copy_nofault_is_on is false: then the thread must
 * not copy.
 */
bool copy_revocable_take(struct copy_revocable *l, const void *word,
			 uint64_t ended);
/* Makes one ordered copy (hca/space.h).  Both sides have the same length. */
enum copy_revocable_end copy_revocable_move(const struct copy_revocable *l,
					    const struct space_move *m);
/* Executes one atomic (hca/space.h) and sets *old.  With any result other than
 * COPY_REVOCABLE_DONE the atomic was not executed. */
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
