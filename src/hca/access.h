/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Access slots: each peer that works in an arena has one there, and says in it
 * at which QP it works and by which keys it copies.  The owner that has
 * withdrawn a QP waits for peers that were inside at this QP; the owner that
 * has withdrawn a key waits for peers that copied by this key.  Dead peers are
 * not waited for.
 *
 *	peer                                owner
 *	access_enter: at this QP            withdraw the key
 *	access_copy: by this key            access_wait
 *	look the key up, copy               the memory is the program's again
 *	access_copied
 *	access_leave
 *
 * access_enter and access_copy are exchanges, so a peer's slot is written
 * before the peer reads the QP or the key; the owner withdraws first and reads
 * the slots then.  Without that order the peer could copy by a key whose owner
 * had found the slot empty, after ibv_dereg_mr returned.
 *
 * The access of a peer that is stopped while it copies can be revoked: the peer
 * finds out before it would copy on, and touches nothing more.  A peer that is
 * stopped elsewhere inside is waited for, by the owner of its QP alone.
 *
 * Slots are claimed in order; the first that was never claimed ends the table.
 * Owner: the arena.  One thread of a peer uses a slot at a time, under a lock
 * of its process.  The slots are input to the owner.
 */
#ifndef HCA_ACCESS_H
#define HCA_ACCESS_H

#include "hca/hca.h"

#define ACCESS_MAX 1024

/* How a peer whose access was revoked finds out. */
enum access_by {
	ACCESS_BY_CALLS, /* the peer checks before each system call */
	ACCESS_BY_RSEQ,	 /* the kernel aborts its copy when it is preempted */
};

/*
 * A QP and keys.  Each key sets one of 32 bits, which several keys share, so an
 * owner may wait for a peer that copies by another key.
 *
 *	63 QPN and keys are valid          62 the peer copies   61 revoked
 *	32-55 QPN, or 0                    0-31 keys
 */
typedef uint64_t access_set;

#define ACCESS_ALL     0ull
#define ACCESS_SAY     (1ull << 63)
#define ACCESS_COPIES  (1ull << 62)
#define ACCESS_REVOKED (ACCESS_SAY | 1ull << 61)

struct access {
	struct alock process; /* held by the peer that has the slot */
	shared_u32 epoch;     /* odd: inside; 0: the slot was never claimed */
	shared_u32 thread;    /* the thread that copies */
	_Atomic access_set touches;
	shared_u32 by; /* enum access_by, of the present copy */
	uint32_t reserved2[25];
};

_Static_assert(sizeof(struct access) == HCA_APART, "each writes its own");

/* The set of one QP, without keys. */
static inline access_set access_qp(uint32_t qpn)
{
	return ACCESS_SAY | (access_set)qpn << 32;
}
/* The set of one key, without its lowest 8 bits, in which a window's keys
 * differ. */
static inline access_set access_key(uint32_t key)
{
	return ACCESS_SAY | 1ull << ((key >> 8) * 2654435761u >> 27);
}
/* Claims a slot in the target's arena; NULL: all are claimed. */
struct access *access_claim(struct hca *peer);
/* Gives the slot back; the peer is not inside. */
void access_release(struct access *g);
/* Announces the QP at which the peer will work, before the peer reads the
 * arena: the peer then finds the QP withdrawn, or the owner waits for
 * access_leave.  The exchange orders the store of the slot before the reads. */
static inline void access_enter(struct access *g, access_set what)
{
	atomic_store_explicit(&g->touches, what, memory_order_relaxed);
	shared_publish(&g->epoch, shared_own(&g->epoch) + 1);
}
/* Announces by which keys the peer copies, until access_copied. */
void access_copy(struct access *g, access_set what);
/* How the next copy finds out that it was revoked. */
static inline void access_copy_by(struct access *g, enum access_by how)
{
	shared_store(&g->by, how);
}
/* Was the access revoked?  The peer asks between two system calls and after the
 * last one. */
static inline bool access_is_revoked(const struct access *g)
{
	return atomic_load_explicit(&g->touches, memory_order_acquire) ==
	       ACCESS_REVOKED;
}
/* Ends the copy that access_copy announced by the same @what; @then: the QP and
 * keys that the peer uses from here on.  False: the access was revoked, and the
 * peer calls access_leave and nothing else. */
bool access_copied(struct access *g, access_set what, access_set then);
/* The peer is not inside any more. */
static inline void access_leave(struct access *g)
{
	shared_store(&g->epoch, shared_own(&g->epoch) + 1);
}
/*
 * The owner: returns when each peer that was inside and may touch `what` has
 * left, is dead or was revoked.  Called without a lock that a peer may wait
 * for.
 */
void access_wait(struct hca *own, access_set what);

/* The owner: revokes the access of `who` if it is stopped while it copies.
 * True: the access is revoked. */
bool access_revoke(struct hca *own, alock_owner who);

/* The state of an access_wait by a caller that cannot wait: it calls
 * access_scan_begin, and then access_scan_done until that returns true. */
struct access_scan {
	access_set what;
	uint32_t at, epoch;
};

/* The owner: begins a scan for the peers that may touch `what`, which it has
 * withdrawn. */
void access_scan_begin(struct access_scan *g, access_set what);
/* The owner: has each peer that was inside at access_scan_begin and may touch
 * the set left, died or been revoked?  Never waits. */
bool access_scan_done(struct hca *own, struct access_scan *g);

#endif
