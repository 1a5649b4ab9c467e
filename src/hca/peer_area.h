/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The protocol between processes of one host that work in one arena.
 *
 * A peer whose path is direct (src/direct) executes its requests in the
 * target's arena.  The arena has two parts.  Only the owner writes the first
 * part; peers map it read-only.  Peers and owner write the second part, which
 * is described here.
 *
 * Words that another process can write are input: for the owner the words of
 * the second part, for a peer those of both parts.  Each is read once into a
 * copy, and the copy is checked and used.
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
 *	set notify bits, read is_asleep      or set is_asleep, read notify bits,
 *	release the lock, access_leave       sleep until a peer writes the
 *	                                     eventfd
 *
 * Order.  The protocol depends on the order of these three pairs of accesses.
 * The comments of cq.c, srq.c and notify.c state further orders, of the words
 * that those files use.
 *
 * - The peer writes the completion and the eager message before wqe.left
 *   (release), and a poll loads wqe.left (acquire) before it reads them.
 *   Otherwise the poll could report a completion that is half written.  For a
 *   QP with an SRQ, the poll loads `completed` instead of wqe.left.
 * - The peer stores a notify bit before it loads is_asleep, and the owner
 *   stores is_asleep before it loads the notify bits (sequentially consistent).
 *   Otherwise the peer could see no sleeper and the owner no bit, and the event
 *   would be lost.
 * - The peer stores its access slot before it looks up the QP or the key
 *   (access_enter and access_copy are exchanges), and the owner withdraws the
 *   QP or the key before it reads the slots.  Otherwise the peer could copy by
 *   a key after ibv_dereg_mr has returned.
 *
 * Death.  Either side may die between two of these steps.  qp_target.lock names
 * its holder.  The next process that takes the lock of a dead holder settles
 * the receive that the holder had taken (srq_settle), and sets is_torn.  Then
 * the arena's owner finds the completions that the dead holder had not put on
 * the list (rq_settle, cq_settle), and serves the notify bits that the holder
 * had not set (peer_death.h).  tests/scenario/crash_point.h ends either side at
 * each named step.
 */
#ifndef HCA_PEER_AREA_H
#define HCA_PEER_AREA_H

#include <stddef.h>
#include <stdint.h>

#include "hca/adapter.h"
#include "hca/comp.h"
#include "hca/cq.h"
#include "util/ring.h"

/* The states of an atomic that a peer asks the target's own process to
 * execute. */
enum target_ask {
	TARGET_ASK_NONE,     /* the peer has asked for none */
	TARGET_ASK_POSTED,   /* the peer has written qp_target.asked */
	TARGET_ASK_ANSWERED, /* executed; ask_found: the value found */
	TARGET_ASK_REFUSED   /* not executed; ask_found: enum verdict */
};

/* An atomic that a peer asks the target's own process to execute: enum hca_wr,
 * the key by which the peer names the memory, the address and the operands. */
struct target_request {
	uint32_t opcode, rkey;
	uint64_t va, swap_add, compare;
};

/* A failure of the QP that a peer has found.  verdict: enum verdict.
 * mr_verdict: explain.verdict.  detail: a number that request_detail turns into
 * explain.detail, since a pointer means nothing in another process.  The other
 * members are those of struct explain. */
struct target_failure {
	uint32_t verdict, cause, opcode, detail;
	uint32_t key, mr_verdict, need;
	uint64_t wr_id, va, bytes, region_va, region_bytes;
};

/* This bit of qp_target.packets_from says that a peer has written the word. */
#define TARGET_LEFT 0x80000000u

/* Bits of qp_target.notify, by which a peer tells a QP's own process what to do
 * or what has happened.  The owner itself sets QP_NOTIFY_LOST. */
enum qp_notify {
	QP_NOTIFY_HEARD = 1,  /* the first request has come */
	QP_NOTIFY_CQ = 2,     /* an event of recv_cq has to be raised */
	QP_NOTIFY_LATER = 4,  /* an event of recv_cq is due in cq.hold_ns */
	QP_NOTIFY_FULL = 8,   /* recv_cq has overflowed */
	QP_NOTIFY_LIMIT = 16, /* the SRQ fell below its limit */
	QP_NOTIFY_ASK = 32,   /* execute the atomic qp_target.asked */
	QP_NOTIFY_FAIL = 64,  /* the QP fails; the reason is qp_target.note */
	/* The owner has to collect completions: rq_is_full is true, or a
	 * request waits for memory of an eager message (eager.h). */
	QP_NOTIFY_ROOM = 128,
	/* The owner could not copy an eager message: the message's memory is
	 * not registered, not mapped or too short.  In struct qp, rq_lost is
	 * the address, rq_lost_key its lkey, rq_lost_id the receive's wr_id. */
	QP_NOTIFY_LOST = 256,
	QP_NOTIFY_ALL = 511, /* the bits above */
};

/*
 * The part of a QP that peers write.  `lock` is the responder lock.  Under it
 * peers read the QP's state and attributes, take receives and write this
 * struct, and the owner changes attributes and state.  But the owner enters ERR
 * without the lock: a request that a peer has begun is then executed to its
 * end, and the receives are flushed after the peer has released the lock.
 */
struct qp_target {
	/* SENDs, WRITEs and atomics write only the members up to is_torn, in
	 * one cache line, unless a completion counter counts the WRITEs. */
	struct alock lock;
	aoff next; /* the next QP on recv_cq's list `incoming` */
	/* completed + 1 if a message has taken the receive at `completed` and
	 * has not completed it (rq.c). */
	uint64_t held;
	uint64_t rx_bytes;    /* bytes of SENDs, WRITEs and atomics of peers */
	uint32_t rx_packets;  /* requests of peers, or pieces of long ones */
	uint32_t posted;      /* rq.head, as rq_take last read it */
	ring_index completed; /* the next receive to complete */
	/* The QP is on recv_cq's list `incoming`, or is being put there, or is
	 * in recv_cq's `watched` (cq.c). */
	shared_flag is_queued;
	/* The owner waits for the lock: peers must not begin a request. */
	shared_flag is_wanted;
	/* The index after the last receive that got an eager message. */
	ring_index eager_end;
	_Atomic uint32_t notify; /* enum qp_notify, see notify.h */
	uint8_t has_failed;	 /* no request is accepted; note: the reason */
	uint8_t is_heard;	 /* QP_NOTIFY_HEARD was set */
	/* A peer died while it held the lock: rq_settle is due. */
	uint8_t is_torn;
	/* READs write tx_bytes.  Few other requests write the members from here
	 * on. */
	uint64_t tx_bytes; /* bytes that READs have fetched */
	/* UC, and RC by LID: says that the peer sends packets from now on.  The
	 * upper 32 bits name the connection of this peer (qp.connection).  The
	 * lower bits are TARGET_LEFT and, for RC, the PSN of the first packet.
	 * Set without the lock. */
	uint64_t packets_from;
	_Atomic uint32_t ask;	     /* enum target_ask, of `asked` */
	uint32_t rx_wraps;	     /* how often rx_packets has wrapped */
	struct target_request asked; /* the atomic */
	uint64_t ask_found;	     /* its result */
	struct target_failure note;  /* the reason of has_failed */
	struct comp comp;	     /* sums of completions */
};

_Static_assert(offsetof(struct qp_target, tx_bytes) == 64,
	       "all members that a SEND writes are in one cache line");

/* The words of an arena that peers write and that belong to no single queue. */
struct hca_peer_area {
	shared_flag notify_pending; /* a bit of `notify` may be set */
	shared_flag has_eager;	    /* a receive may hold an eager message */
	/* Bits by row of hca_shared.qps: qp_target.notify is not 0. */
	_Atomic uint64_t notify[(HCA_MAX_QP + 63) / 64];
	/* By row of hca_shared.qps: the receive of a shared queue that the QP
	 * is about to take, or has taken and does not hold yet (srq.c). */
	_Atomic uint64_t takes[HCA_MAX_QP];
	/* By row of the MR table: the rkey of the row's window, if the
	 * window was invalidated; else 0, or an rkey of an earlier binding. */
	uint32_t gone[HCA_MAX_MR];
	/* hca_peer_area_at returns this for an offset that is out of range. */
	_Alignas(HCA_APART) uint8_t nowhere[HCA_APART];
};

/*
 * Returns the struct of the second part that belongs to the queue @from, a CQ
 * or SRQ in h's arena.  The struct lies @peer_at bytes after @from.  Another
 * process may have written @peer_at, so this function returns `nowhere` if
 * HCA_APART bytes at that place are not inside the second part.  The caller may
 * use HCA_APART bytes.
 */
static inline void *hca_peer_area_at(const struct hca *h, const void *from,
				     uint64_t peer_at)
{
	aoff off = (aoff)((uintptr_t)from - (uintptr_t)h->arena.base) + peer_at;

	return arena_shares(&h->arena, off, HCA_APART) ? h->arena.base + off
						       : h->peer_area->nowhere;
}

#endif
