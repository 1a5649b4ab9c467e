/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Who is inside an arena: a slot for each process that works in it by itself,
 * saying at which QP, and by which keys it copies.  The owner, having withdrawn
 * a QP, waits for those that were inside at it; having withdrawn a key, for
 * those that copied by it.  The dead are not waited for.
 *
 *	guest: guest_enter: at this QP		owner: withdraw the key
 *	       guest_copy: by this key		       guest_wait
 *	       look at the key, copy		       the memory is its own
 *	       guest_copied
 *	       guest_leave
 *
 * One that is stopped amid its copying can be seized: it finds out before it
 * would copy on, and touches nothing more.  Then it is not inside.  One that is
 * stopped elsewhere is waited for, but by the owner of its QP alone.
 *
 * Slots are claimed in order, so the first that nobody ever had ends them.
 * Owner: the arena.  A guest has one slot in an arena, used under its lane's
 * lock.  What stands in a slot of another process's arena is input.
 */
#ifndef HCA_GUEST_H
#define HCA_GUEST_H

#include "hca/hca.h"

#define GUEST_MAX 1024

/* What makes one that was seized find out. */
enum guest_by {
	GUEST_BY_CALLS, /* it looks before each system call */
	GUEST_BY_LEASE, /* whenever it goes on after it was off its processor */
};

/*
 * A QP and keys, each key one of 32 bits that it shares with others; what
 *shares nothing is not waited for:
 *
 *	63: it says what it may touch	32-55: QPN, or 0	0-31: keys
 *	62: and copies			61: it is seized
 */
typedef uint64_t guest_set;

#define GUEST_ALL    0ull
#define GUEST_SAY    (1ull << 63)
#define GUEST_COPIES (1ull << 62)
#define GUEST_SEIZED (GUEST_SAY | 1ull << 61)

struct guest {
	struct alock process; /* whose it is, for as long as it has it */
	ring_index epoch;     /* odd: inside; 0: nobody ever had the slot */
	ring_index thread;    /* that copies */
	_Atomic guest_set touches;
	ring_index by; /* enum guest_by: how it copies */
	uint32_t reserved2[25];
};

_Static_assert(sizeof(struct guest) == HCA_APART, "each writes its own");

static inline guest_set guest_qp(uint32_t qpn)
{
	return GUEST_SAY | (guest_set)qpn << 32;
}
/* A window's keys differ in their lowest 8 bits alone. */
static inline guest_set guest_key(uint32_t key)
{
	return GUEST_SAY | 1ull << ((key >> 8) * 2654435761u >> 27);
}
/* A slot in far's arena for this process; NULL: all are taken. */
struct guest *guest_take(struct hca *far);
/* Not inside. */
void guest_give(struct guest *g);
/* Of what it is to touch, all that is read of the arena after it the owner has
 * not yet withdrawn, or waits. */
static inline void guest_enter(struct guest *g, guest_set what)
{
	atomic_store_explicit(&g->touches, what, memory_order_relaxed);
	ring_publish(&g->epoch, ring_own(&g->epoch) + 1);
}
/* The same for keys, from here to guest_copied, which may end by itself. */
void guest_copy(struct guest *g, guest_set what);
/* Before it looks and copies that way. */
static inline void guest_copy_by(struct guest *g, enum guest_by how)
{
	ring_store(&g->by, how);
}
/* Between two system calls, and after the last. */
static inline bool guest_is_seized(const struct guest *g)
{
	return atomic_load_explicit(&g->touches, memory_order_acquire) ==
	       GUEST_SEIZED;
}
/* It has copied; false: it is seized, and touches nothing but guest_leave. */
bool guest_copied(struct guest *g, guest_set what, guest_set then);
static inline void guest_leave(struct guest *g)
{
	ring_store(&g->epoch, ring_own(&g->epoch) + 1);
}
/*
 * The owner: returns when everybody who was inside and may touch `what` has
 * left, is dead or seized.  Not under a lock that a guest may wait for.
 */
void guest_wait(struct hca *own, guest_set what);

/* The owner: seize `who` if it is stopped amid copying; has it been? */
bool guest_seize(struct hca *own, alock_owner who);

/* The same for who cannot wait: guest_begin, then guest_left until true. */
struct guest_look {
	guest_set what;
	uint32_t at, epoch;
};

void guest_begin(struct guest_look *g, guest_set what);
bool guest_left(struct hca *own, struct guest_look *g);

#endif
