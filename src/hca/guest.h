/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Who is inside an arena: a slot for each process that works in it by itself,
 * saying whether it is between looking at a key and its last access to the
 * memory that the key names.  The owner, having withdrawn a key or a QP, waits
 * for those that were inside; the dead are not waited for, the stopped are.
 *
 *	guest: guest_enter			owner: withdraw the key
 *	       look at the key, copy		       guest_wait
 *	       guest_leave			       the memory is its own
 *
 * Slots are claimed in order, so the first that nobody ever had ends them.
 * Owner: the arena.  A guest has one slot in an arena, used under its lane's
 * lock.  What stands in a slot of another process's arena is input.
 */
#ifndef HCA_GUEST_H
#define HCA_GUEST_H

#include "hca/hca.h"

#define GUEST_MAX 1024

struct guest {
	struct alock process; /* whose it is, for as long as it has it */
	ring_index epoch;     /* odd: inside; 0: nobody ever had the slot */
	uint32_t reserved[13];
};

_Static_assert(sizeof(struct guest) == 64, "a cache line of its own");

/* A slot in far's arena for this process; NULL: all are taken. */
struct guest *guest_take(struct hca *far);
/* Not inside. */
void guest_give(struct guest *g);
/* All that is read of the arena after it, the owner has not yet withdrawn, or
 * waits. */
static inline void guest_enter(struct guest *g)
{
	ring_publish(&g->epoch, ring_own(&g->epoch) + 1);
}
static inline void guest_leave(struct guest *g)
{
	ring_store(&g->epoch, ring_own(&g->epoch) + 1);
}
/*
 * The owner: returns when everybody who was inside has left or is dead.  Not
 * under a lock that a guest may wait for.
 */
void guest_wait(struct hca *own);

#endif
