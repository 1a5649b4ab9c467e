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
 * Like guard.h, whose handler it needs, only x86-64 has it, and by the same
 * rule a copy fails where memory is not there.  Lock: none.
 */
#ifndef HOST_LEASE_H
#define HOST_LEASE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "hca/space.h"

/* Of one thread, from lease_take on. */
struct lease {
	const void *word; /* 8 bytes; while they are not `ended`, copy */
	uint64_t ended;
	void *rseq; /* the thread's struct rseq */
};

enum lease_end {
	LEASE_DONE,
	LEASE_FAULT, /* the memory is not there; some may be copied */
	LEASE_ENDED, /* the word says so; the same */
};

/*
 * For this thread; false: it has no restartable sequences, or guard_is_on is
 * false, and nothing may be copied.
 */
bool lease_take(struct lease *l, const void *word, uint64_t ended);
/* One ordered copy (space.h).  Both sides are equally long. */
enum lease_end lease_move(const struct lease *l, const struct space_move *m);
/* One atomic (space.h), which was executed if it is LEASE_DONE alone. */
enum lease_end lease_atomic(const struct lease *l, enum space_atomic op,
			    void *word, uint64_t swap_add, uint64_t compare,
			    uint64_t *old);

/* For the guard's handler: is a fault at ip one of ours, where goes it on? */
bool lease_is_at(uintptr_t ip);
uintptr_t lease_fault_at(void);

#endif
