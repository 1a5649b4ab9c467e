/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Access slots: each peer that works in an arena has a slot there, in which it
 * writes at which QP it works and by which keys it copies.  A peer is "inside"
 * from access_enter to access_leave.  An owner that has withdrawn a QP waits
 * for the peers that are inside at this QP.  An owner that has withdrawn a key
 * waits for the peers that copy by this key.  The owner does not wait for dead
 * peers.
 *
 *	peer                                owner
 *	access_enter: at this QP            withdraw the key
 *	access_copy: by this key            access_wait
 *	look the key up, copy               the memory is the program's again
 *	access_copied
 *	access_leave
 *
 * access_enter and access_copy are exchanges, which order the peer's store of
 * its slot before its lookup of the QP or the key.  The owner withdraws the QP
 * or the key before it reads the slots.  Without this order the owner could
 * find the slot empty while the peer still finds the key, and the peer would
 * copy after ibv_dereg_mr has returned.
 *
 * The access of a peer that is stopped while it copies can be revoked: the peer
 * notices this before it copies more, and then touches nothing.  The access of
 * a peer that is stopped inside, but not while it copies, cannot be revoked.
 * An owner that has withdrawn the QP waits for such a peer; an owner that has
 * withdrawn a key does not.
 *
 * Slots are claimed in order; the first that was never claimed ends the table.
 * Owner: the arena.  One thread of a peer uses a slot at a time, under a lock
 * of its process.  The slots are input to the owner.
 */
#ifndef HCA_ACCESS_H
#define HCA_ACCESS_H

#include "hca/hca.h"

#define ACCESS_MAX 1024 /* slots of an arena */

/* How a peer notices that its access was revoked. */
enum access_by {
	ACCESS_BY_CALLS, /* the peer checks before each system call */
	ACCESS_BY_RSEQ,	 /* the kernel aborts the copy of a preempted peer */
};

/*
 * A set of a QP and keys.  Each key sets one of 32 bits.  Several keys share a
 * bit, so an owner may wait for a peer that copies by another key.
 *
 *	bit 63     the QPN and the keys are valid; 0: any QP and any key
 *	bit 62     the peer copies
 *	bit 61     the access was revoked
 *	bits 32-55 the QPN; 0: no QP
 *	bits 0-31  the keys
 */
typedef uint64_t access_set;

#define ACCESS_ALL     0ull
#define ACCESS_SAY     (1ull << 63)
#define ACCESS_COPIES  (1ull << 62)
#define ACCESS_REVOKED (ACCESS_SAY | 1ull << 61)

/* An access slot. */
struct access {
	struct alock process; /* held by the peer that has the slot */
	shared_u32 epoch;     /* odd: inside; 0: the slot was never claimed */
	shared_u32 thread;    /* the alock_thread() of the thread that copies */
	/* The QP and keys that the peer may touch while it is inside. */
	_Atomic access_set touches;
	shared_u32 by;		/* enum access_by, of the present copy */
	uint32_t reserved2[25]; /* fills the slot up to HCA_APART bytes */
};

_Static_assert(sizeof(struct access) == HCA_APART,
	       "peers write their slots in different cache lines");

/* Returns the set of one QP, without keys. */
static inline access_set access_qp(uint32_t qpn)
{
	return ACCESS_SAY | (access_set)qpn << 32;
}
/* Returns the set of one key.  It does not depend on the lowest 8 bits of the
 * key, which change when a window is bound again. */
static inline access_set access_key(uint32_t key)
{
	return ACCESS_SAY | 1ull << ((key >> 8) * 2654435761u >> 27);
}
/* Claims a slot in the arena of another process.  NULL: all slots are claimed,
 * or the arena names no valid table of slots. */
struct access *access_claim(struct hca *peer);
/* Releases the slot, unless another process has inherited it.  The peer is not
 * inside. */
void access_release(struct access *g);
/* Announces the QP at which the peer will work (@what: access_qp).  Called
 * before the peer reads the arena: the exchange orders the store of the slot
 * before these reads.  So either the peer finds the QP withdrawn, or the owner
 * waits for access_leave. */
static inline void access_enter(struct access *g, access_set what)
{
	atomic_store_explicit(&g->touches, what, memory_order_relaxed);
	shared_publish(&g->epoch, shared_own(&g->epoch) + 1);
}
/* Announces, until access_copied, that the peer copies at a QP by some keys
 * (@what: access_qp and access_key, joined by OR).  The exchange orders the
 * store of the slot before the caller's lookup of the keys.  So if the owner
 * withdraws a key, either the peer finds it withdrawn, or the owner waits for
 * access_copied. */
void access_copy(struct access *g, access_set what);
/* Tells the owner how the peer, during its next copy, notices that its access
 * was revoked. */
static inline void access_copy_by(struct access *g, enum access_by how)
{
	shared_store(&g->by, how);
}
/* Was the access revoked?  The peer calls this function before each system call
 * that copies.  Acquire: the copy does not begin before this load.  Otherwise
 * the peer could still copy after the owner has revoked the access. */
static inline bool access_is_revoked(const struct access *g)
{
	return atomic_load_explicit(&g->touches, memory_order_acquire) ==
	       ACCESS_REVOKED;
}
/* Ends the copy that access_copy has announced by the same @what.  @then: the
 * QP and keys that the peer may touch from here on.  False: the access was
 * revoked, and the peer only calls access_leave. */
bool access_copied(struct access *g, access_set what, access_set then);
/* Tells the owner that the peer is not inside any more.  The release store of
 * epoch orders the peer's accesses to the arena before it: an owner that loads
 * the new epoch may free or reuse what the peer has touched.  The epoch skips
 * 0, which would mark the slot as never claimed. */
static inline void access_leave(struct access *g)
{
	uint32_t next = shared_own(&g->epoch) + 1;

	shared_store(&g->epoch, next ? next : 2);
}
/*
 * For the owner: returns when each peer that was inside and may touch `what`
 * has left, has ended its copy by these keys, is dead, or is stopped after its
 * access was revoked.  The caller has withdrawn `what`, and holds no lock that
 * a peer may wait for.  For the empty set, ACCESS_SAY, the function waits only
 * for peers whose slots do not say what they may touch, and for peers whose
 * access was revoked.
 */
void access_wait(struct hca *own, access_set what);

/* For the owner: revokes the access of the peer `who`, if the peer is stopped
 * while it copies.  True: the access is revoked. */
bool access_revoke(struct hca *own, alock_owner who);

/* The state of a scan, which does the work of access_wait for a caller that
 * cannot wait: the caller calls access_scan_begin, and then access_scan_done
 * until access_scan_done returns true. */
struct access_scan {
	access_set what; /* the set that was withdrawn */
	/* at: the index of the slot to look at next.  epoch: the epoch of that
	 * slot at the first look; 0: there was no look yet. */
	uint32_t at, epoch;
};

/* For the owner: begins a scan for the peers that may touch `what`, which the
 * owner has withdrawn. */
void access_scan_begin(struct access_scan *g, access_set what);
/* For the owner: returns true when each peer that was inside at
 * access_scan_begin, and may touch the set, has left, has ended its copy by
 * these keys, has died, or is stopped after its access was revoked.  The
 * function never waits. */
bool access_scan_done(struct hca *own, struct access_scan *g);

#endif
