/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Copies that somebody else may end: of memory that two processes have mapped,
 * for as long as its owner lends it.
 *
 * The copy is a restartable sequence (rseq(2)).  Whatever takes the processor
 * from the thread, a stop among it, the kernel has it go on before the
 * sequence, which first looks at a word.  So who finds the thread off its
 * processor, after writing there that the lease has ended, knows that it
 * stores nothing more.
 *
 * Like copy_nofault.h, whose handler it needs, only x86-64 has it, and by the
 * same rule a copy fails where memory is not there.  Lock: none.
 */
#ifndef MEMORY_COPY_REVOCABLE_H
#define MEMORY_COPY_REVOCABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "hca/space.h"

/* Of one thread, from copy_revocable_take on. */
struct copy_revocable {
	const void *word; /* 8 bytes; while they are not `ended`, copy */
	uint64_t ended;
	void *rseq; /* the thread's struct rseq */
};

enum copy_revocable_end {
	COPY_REVOCABLE_DONE,
	COPY_REVOCABLE_FAULT, /* the memory is not there; some may be copied */
	COPY_REVOCABLE_ENDED, /* the word says so; the same */
};

/*
 * For this thread; false: it has no restartable sequences, or
 * copy_nofault_is_on is false, and nothing may be copied.
 */
bool copy_revocable_take(struct copy_revocable *l, const void *word,
			 uint64_t ended);
/* One ordered copy (space.h).  Both sides are equally long. */
enum copy_revocable_end copy_revocable_move(const struct copy_revocable *l,
					    const struct space_move *m);
/* One atomic (space.h), which was executed if it is COPY_REVOCABLE_DONE alone.
 */
enum copy_revocable_end copy_revocable_atomic(const struct copy_revocable *l,
					      enum space_atomic op, void *word,
					      uint64_t swap_add,
					      uint64_t compare, uint64_t *old);

/* For the guard's handler: is a fault at ip one of ours, where goes it on? */
bool copy_revocable_is_at(uintptr_t ip);
uintptr_t copy_revocable_fault_at(void);

#endif
