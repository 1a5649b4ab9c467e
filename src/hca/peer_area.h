/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The protocol between processes of one host that work in one arena.
 *
 * A peer that goes without packets (src/direct) executes its requests in the
 * target's arena.  The arena has two parts: the owner writes the first, which
 * peers map read-only, and peers and owner write the second, which is described
 * here.  To the owner everything in the second part is input, as the first part
 * is to a peer: each word is read once, checked, and the copy is used.
 *
 *	initiator (peer)                     owner (target)
 *	access_enter: at this QP             withdraw the QP or the key
 *	take qp_target.lock                  access_wait: no peer is inside
 *	take a receive       (rq.c, srq.c)
 *	access_copy: by these keys
 *	look the keys up, copy
 *	access_copied
 *	write the completion into the slot
 *	store completed, then wqe.left       poll: load wqe.left, then the slot
 *	put the QP on cq_shared.incoming     take the list, collect
 *	set notify bits, read is_asleep      set is_asleep, read notify bits
 *	give the lock, access_leave          or sleep until a peer writes the
 *	                                     eventfd
 *
 * Order.  The completion and the eager message are written before wqe.left
 * (release); a poll loads wqe.left (acquire) before it reads them, else it
 * would report a completion that is half written.  The notify bits and
 * is_asleep are each stored before the other is loaded (sequentially
 * consistent), else the peer would see no sleeper and the owner no bit, and the
 * event would be lost.  access_enter and access_copy are exchanges: the
 * owner's withdrawal and the peer's lookup are ordered by them, else the peer
 * could copy by a key after ibv_dereg_mr returned.
 *
 * Death.  Either side may die between two of these steps.  qp_target.lock names
 * its owner; the next process that takes the lock repairs (rq_settle,
 * srq_settle, cq_settle), and the owner looks for bits and completions that a
 * dead peer did not report (peer_death.h).  tests/scenario/crash_point.h ends
 * either side at each named step.
 */
#ifndef HCA_PEER_AREA_H
#define HCA_PEER_AREA_H

#include <stddef.h>
#include <stdint.h>

#include "hca/adapter.h"
#include "hca/comp.h"
#include "hca/cq.h"
#include "util/ring.h"

/* The states of a request that the target's own process has to execute. */
enum target_ask {
	TARGET_ASK_NONE,
	TARGET_ASK_POSTED,
	TARGET_ASK_ANSWERED,
	TARGET_ASK_REFUSED
};

/* Why a peer found that the QP fails: struct explain without pointers. */
struct target_failure {
	uint32_t verdict, cause, opcode, detail;
	uint32_t key, mr_verdict, need;
	uint64_t wr_id, va, bytes, region_va, region_bytes;
};

/* Bits of qp_target.notify, by which a peer tells a QP's own process what to do
 * or what has happened. */
enum qp_notify {
	QP_NOTIFY_HEARD = 1,  /* the first request has come */
	QP_NOTIFY_CQ = 2,     /* an event of recv_cq has to be raised */
	QP_NOTIFY_LATER = 4,  /* an event has to be raised within cq.hold_ns */
	QP_NOTIFY_FULL = 8,   /* recv_cq has overflowed */
	QP_NOTIFY_LIMIT = 16, /* the SRQ fell below its limit */
	QP_NOTIFY_ASK = 32,   /* execute the request in qp_target.ask */
	QP_NOTIFY_FAIL = 64,  /* the QP fails for qp_target.note */
	QP_NOTIFY_ROOM = 128, /* collect completions: rq_is_full */
	QP_NOTIFY_LOST = 256, /* an eager message found no memory: qp.rq_lost */
	QP_NOTIFY_ALL = 511,
};

/*
 * The part of a QP that peers write.  `lock` is the responder's lock: under it
 * peers read the QP's state and attributes, take receives and write this
 * struct.  Under it the owner changes attributes and state, but for ERR, which
 * it enters at once: a request that a peer has begun still ends as it would
 * have, and the receives are flushed when the peer has left.
 */
struct qp_target {
	/* Each request writes the members up to is_left: one cache line. */
	struct alock lock;
	aoff next; /* the next QP on recv_cq's list `incoming` */
	/* completed + 1 if a message holds the receive at `completed` (rq.c).
	 */
	uint64_t held;
	uint64_t rx_bytes;     /* bytes that peers have written */
	uint32_t rx_packets;   /* pieces in which they came */
	uint32_t posted;       /* rq.head, as a peer last read it */
	ring_index completed;  /* the next receive to complete */
	shared_flag is_queued; /* on the list, about to be, or watched */
	shared_flag is_wanted; /* peers must not begin a request */
	ring_index eager_end;  /* past the last receive with an eager message */
	_Atomic uint32_t notify; /* enum qp_notify, see notify.h */
	uint8_t has_failed;	 /* no request is accepted; note: the reason */
	uint8_t is_heard;	 /* QP_NOTIFY_HEARD was set */
	uint8_t is_torn;	 /* a peer died in the lock: rq_settle is due */
	/* UC: the peer sends packets from here on; set without the lock. */
	uint8_t is_left;
	/* Few requests write the members from here on. */
	uint64_t tx_bytes;    /* bytes that READs have fetched */
	_Atomic uint32_t ask; /* enum target_ask */
	uint32_t ask_opcode;  /* enum hca_wr */
	uint32_t ask_rkey;
	uint64_t ask_va, ask_swap_add, ask_compare, ask_found;
	struct target_failure note;
	struct comp comp;
};

_Static_assert(offsetof(struct qp_target, tx_bytes) == 64,
	       "a peer's request writes one cache line");

/* The words of an arena that peers write and that belong to no one queue. */
struct hca_peer_area {
	shared_flag notify_pending; /* a bit of `notify` is set */
	shared_flag has_eager;	    /* a receive may hold an eager message */
	_Atomic uint64_t notify[(HCA_MAX_QP + 63) / 64]; /* by row of qps */
	_Atomic uint64_t takes[HCA_MAX_QP]; /* by row of qps: srq.c */
	uint32_t gone[HCA_MAX_MR]; /* keys of windows that were invalidated */
	/* hca_peer_area_at returns this for an offset that is out of range. */
	_Alignas(HCA_APART) uint8_t nowhere[HCA_APART];
};

/*
 * The struct of the peers' part that lies @peer_at bytes from @from, a queue of
 * h that another process may have written; `nowhere` if that is not inside the
 * peers' part.  At most HCA_APART bytes of it may be used.
 */
static inline void *hca_peer_area_at(const struct hca *h, const void *from,
				     uint64_t peer_at)
{
	aoff off = (aoff)((uintptr_t)from - (uintptr_t)h->arena.base) + peer_at;

	return arena_shares(&h->arena, off, HCA_APART) ? h->arena.base + off
						       : h->peer_area->nowhere;
}

#endif
