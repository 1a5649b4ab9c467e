/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Who is inside an arena: a slot for each process that works in it by itself,
 * saying at which QP, and by which keys it copies.  The owner, having withdrawn
 * a QP, waits for those that were inside at it; having withdrawn a key, for
 * those that copied by it.  The dead are not waited for.
 *
 *	guest: access_enter: at this QP		owner: withdraw the key
 *	       access_copy: by this key		       access_wait
 *	       look at the key, copy		       the memory is its own
 *	       access_copied
 *	       access_leave
 *
 * One that is stopped amid its copying can be seized: it finds out before it
 * would copy on, and touches nothing more.  Then it is not inside.  One that is
 * stopped elsewhere is waited for, but by the owner of its QP alone.
 *
 * Slots are claimed in order, so the first that nobody ever had ends them.
 * Owner: the arena.  A guest has one slot in an arena, used under its lane's
 * lock.  What stands in a slot of another process's arena is input.
 */
#ifndef HCA_ACCESS_H
#define HCA_ACCESS_H

#include "hca/hca.h"

#define ACCESS_MAX 1024

/* What makes one that was seized find out. */
enum access_by {
	ACCESS_BY_CALLS, /* it looks before each system call */
	ACCESS_BY_RSEQ, /* whenever it goes on after it was off its processor */
};

/*
 * A QP and keys, each key one of 32 bits that it shares with others; what
 *shares nothing is not waited for:
 *
 *	63: it says what it may touch	32-55: QPN, or 0	0-31: keys
 *	62: and copies			61: it is seized
 */
typedef uint64_t access_set;

#define ACCESS_ALL     0ull
#define ACCESS_SAY     (1ull << 63)
#define ACCESS_COPIES  (1ull << 62)
#define ACCESS_REVOKED (ACCESS_SAY | 1ull << 61)

struct access {
	struct alock process; /* whose it is, for as long as it has it */
	shared_u32 epoch;     /* odd: inside; 0: nobody ever had the slot */
	shared_u32 thread;    /* that copies */
	_Atomic access_set touches;
	shared_u32 by; /* enum access_by: how it copies */
	uint32_t reserved2[25];
};

_Static_assert(sizeof(struct access) == HCA_APART, "each writes its own");

static inline access_set access_qp(uint32_t qpn)
{
	return ACCESS_SAY | (access_set)qpn << 32;
}
/* A window's keys differ in their lowest 8 bits alone. */
static inline access_set access_key(uint32_t key)
{
	return ACCESS_SAY | 1ull << ((key >> 8) * 2654435761u >> 27);
}
/* A slot in far's arena for this process; NULL: all are taken. */
struct access *access_claim(struct hca *peer_area);
/* Not inside. */
void access_release(struct access *g);
/* Of what it is to touch, all that is read of the arena after it the owner has
 * not yet withdrawn, or waits. */
static inline void access_enter(struct access *g, access_set what)
{
	atomic_store_explicit(&g->touches, what, memory_order_relaxed);
	shared_publish(&g->epoch, shared_own(&g->epoch) + 1);
}
/* The same for keys, from here to access_copied, which may end by itself. */
void access_copy(struct access *g, access_set what);
/* Before it looks and copies that way. */
static inline void access_copy_by(struct access *g, enum access_by how)
{
	shared_store(&g->by, how);
}
/* Between two system calls, and after the last. */
static inline bool access_is_revoked(const struct access *g)
{
	return atomic_load_explicit(&g->touches, memory_order_acquire) ==
	       ACCESS_REVOKED;
}
/* It has copied; false: it is seized, and touches nothing but access_leave. */
bool access_copied(struct access *g, access_set what, access_set then);
static inline void access_leave(struct access *g)
{
	shared_store(&g->epoch, shared_own(&g->epoch) + 1);
}
/*
 * The owner: returns when everybody who was inside and may touch `what` has
 * left, is dead or seized.  Not under a lock that a guest may wait for.
 */
void access_wait(struct hca *own, access_set what);

/* The owner: seize `who` if it is stopped amid copying; has it been? */
bool access_revoke(struct hca *own, alock_owner who);

/* The same for who cannot wait: access_scan_begin, then access_scan_done until
 * true. */
struct access_scan {
	access_set what;
	uint32_t at, epoch;
};

void access_scan_begin(struct access_scan *g, access_set what);
bool access_scan_done(struct hca *own, struct access_scan *g);

#endif
