/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Completion queues (IBTA Vol 1, 11.4.2).  Owner: the adapter; lock: cq->lock.
 */
#ifndef HCA_CQ_H
#define HCA_CQ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "hca/arena.h"
#include "util/lock.h"
#include "util/ring.h"

struct hca;
struct qp;

/*
 * The distance in bytes that separates words which processors write or read at
 * the same time: two cache lines, since processors fetch lines in pairs.
 */
#define HCA_APART 128

/* A completion, in the ring or as cq_poll returns it. */
struct cqe {
	uint64_t wr_id;
	uint32_t status;     /* enum hca_status */
	uint32_t opcode;     /* enum hca_wc */
	uint32_t vendor_err; /* the status again; 0 for a flushed request */
	uint32_t byte_len;   /* the length of the message or request */
	uint32_t imm_be;     /* the immediate, or the invalidated rkey */
	uint32_t qpn;	     /* the QP whose request or receive this is */
	uint32_t src_qpn;    /* a receive: the sender's QP */
	uint32_t wc_flags;   /* HCA_WC_GRH, HCA_WC_WITH_IMM, HCA_WC_WITH_INV */
	/* Polling this completion frees the slots of wq up to and including
	 * this index. */
	uint32_t wq_index;
	/* slid: the LID of a datagram's sender.  sl: the datagram's service
	 * level, see ibt/ud_resp.c.  dlid_path_bits: the path bits of the LID
	 * to which the datagram was sent.  A datagram by UDP sets only sl. */
	uint16_t slid;
	uint8_t sl, dlid_path_bits;
	uint64_t at_ns; /* when the work completed, by the progress clock */
	aoff wq;	/* struct wq of the request; 0: no slot is freed */
};

/* Which completion raises the next event: none, the next solicited one, the
 * next one of any kind. */
enum cq_arm { CQ_DISARMED, CQ_ARMED_SOLICITED, CQ_ARMED_ANY };

/*
 * The word cq_shared.arm has enum cq_arm in its lowest bits.  The bits above it
 * (CQ_UNREPORTED) count the events that were raised and not reported yet.  The
 * highest bits (CQ_HELD) count the completions that were held back since the
 * queue was armed (cq_moderate).
 */
#define CQ_ARM_MASK	   3u
#define CQ_UNREPORTED_ONE  4u
#define CQ_UNREPORTED_MASK 0xfffcu
#define CQ_HELD_ONE	   0x10000u
#define CQ_HELD_MAX	   0xffffu

/* Values of cq.overrun: whether the front end was told of the overflow. */
enum { CQ_OVERRUN_UNREPORTED = 1, CQ_OVERRUN_REPORTED };

#define CQ_WATCHED 4

/*
 * In the arena, in the owner's part.  Only the owner writes the ring, under
 * `lock`.
 *
 * A peer of this host leaves a completion in the slot of its receive (rq.c),
 * puts the QP on the list cq_shared.incoming, and raises an event in
 * cq_shared.arm if the queue is armed.  Each step takes effect by one atomic
 * operation, so a peer that is stopped between two steps delays no other
 * process.  A QP from the list stays in `watched` for a while.  Meanwhile the
 * QP's peer need not put the QP on the list again: a poll that wants more
 * completions than the ring holds also looks at the watched QPs.
 */
struct cq {
	/* Peers read the members before `lock`, which change seldom.  The owner
	 * writes the others with each completion or poll, HCA_APART bytes
	 * away. */
	uint64_t peer_at;   /* where struct cq_shared is, bytes from here */
	uint32_t is_silent; /* there is no channel: arming has no effect */
	/* How many completions raise one event; 0, 1: each does. */
	uint32_t hold_count;
	/* An event that is held back is raised after this time; 0: never. */
	uint64_t hold_ns;
	uint64_t user; /* the front end's cookie, which events carry */
	uint32_t id;   /* differs between all CQs of this adapter */
	uint32_t size; /* entries in the ring, a power of two */
	uint32_t cqe;  /* the capacity that was granted; <= size */
	/* Taken only by threads of the owner. */
	_Alignas(HCA_APART) struct alock lock;
	aoff ring;	 /* struct cqe[size] */
	ring_index head; /* the next entry to write */
	/* CQ_OVERRUN_*: the ring has overflowed, and nothing more is written;
	 * 0: it has not. */
	shared_flag overrun;
	/* A thread moves completions of peers to the ring. */
	shared_flag is_collecting;
	/* The next entry to poll; written under lock. */
	_Alignas(HCA_APART) ring_index tail;
	/* How many entries of `watched` are used; written under lock. */
	shared_u32 watching;
	uint32_t oldest;	  /* the entry to replace next; under lock */
	aoff watched[CQ_WATCHED]; /* struct qp; under lock */
};

/* In the arena, in the part that peers of this host write. */
struct cq_shared {
	/* The first struct qp of the list; qp_target.next is the next one. */
	_Atomic aoff incoming;
	_Atomic uint32_t arm; /* enum cq_arm, events, completions held back */
};

/* Returns the words of a CQ of this process that peers write. */
static inline struct cq_shared *cq_shared(const struct cq *cq)
{
	return (struct cq_shared *)((uintptr_t)cq + cq->peer_at);
}

/* The effect of a completion on the events of its queue. */
enum cq_push {
	CQ_QUIET,  /* no event */
	CQ_NOTIFY, /* the caller calls cq_take_unreported and reports the events
		    */
	CQ_LATER,  /* the caller makes a timer that calls cq_fire in hold_ns */
	CQ_OVERRUN, /* the ring has overflowed: IBTA 11.6.3.2 */
};

/* Creates a queue for @cqe completions.  @user: the front end's cookie;
 * @is_silent: the queue has no channel.  NULL: there is no memory, or there are
 * HCA_MAX_CQ already.  Under the ctx lock. */
struct cq *cq_new(struct hca *h, uint32_t cqe, uint64_t user, bool is_silent);
/* Frees a queue that no QP uses.  Under the ctx lock. */
void cq_free(struct hca *h, struct cq *cq);
/* Changes the capacity to @cqe completions.  Returns 0; -EINVAL if more
 * completions wait; or -ENOMEM.  After an error the capacity is as before. */
int cq_resize(struct hca *h, struct cq *cq, uint32_t cqe);
/*
 * Appends c, and raises an event if the queue is armed for it (arming is
 * one-shot).  @solicited: c also counts for a queue that is armed for solicited
 * completions alone.  Returns CQ_OVERRUN if the ring is full; from then on each
 * call drops c and returns CQ_QUIET.  CQ_NOTIFY: the caller calls
 * cq_take_unreported.  The caller may be stopped before it calls
 * cq_take_unreported.  So until some thread has called cq_take_unreported, each
 * later call that appends its completion and does not hold it back returns
 * CQ_NOTIFY too.
 */
enum cq_push cq_push(struct hca *h, struct cq *cq, const struct cqe *c,
		     bool solicited);
/* For a peer that has left @count completions at qp: puts qp on the list of cq,
 * and raises an event if the queue is armed for it.  @failed: a completion has
 * an error.  Returns CQ_QUIET, CQ_NOTIFY or CQ_LATER; the peer leaves the work
 * of the last two to the owner, by QP_NOTIFY_CQ or QP_NOTIFY_LATER. */
enum cq_push cq_announce(struct hca *h, struct cq *cq, struct qp *qp,
			 bool solicited, bool failed, uint32_t count);
/* For the owner: moves into the ring the completions that peers have left.
 * @also, or NULL: a QP that may have such completions although it is not on the
 * list. */
void cq_collect(struct hca *h, struct cq *cq, struct qp *also);
/*
 * For the owner, before qp is destroyed: moves into the ring the completions
 * that peers have left at qp, and removes qp from the watched QPs.  No peer
 * works at qp any more.
 */
void cq_forget(struct hca *h, struct cq *cq, struct qp *qp);
/* Takes the events that were raised: returns their number, and the caller
 * reports them. */
uint32_t cq_take_unreported(struct cq *cq);
/* Moderates events: @count completions raise one event.  If fewer completions
 * come, they raise an event @period_ns after the first of them; @period_ns 0:
 * they raise none.  A failed completion raises an event at once.  All this
 * holds while the queue is armed. */
void cq_moderate(struct hca *h, struct cq *cq, uint32_t count,
		 uint64_t period_ns);
/* Are completions held back without an event? */
static inline bool cq_is_holding(const struct cq *cq)
{
	return atomic_load(&cq_shared(cq)->arm) >= CQ_HELD_ONE;
}
/* Raises the event for the completions that are held back, if there are any,
 * and disarms the queue.  The caller then calls cq_take_unreported. */
void cq_fire(struct cq *cq);
/* Moves up to n completions to `out`, and frees the slots of their requests.
 * Returns their number. */
uint32_t cq_poll(struct hca *h, struct cq *cq, struct cqe *out, uint32_t n);
/* Is there perhaps a completion to poll?  False only if there is none.  A
 * program that has called cq_arm has to check this before it sleeps, because a
 * completion that came before cq_arm raises no event. */
bool cq_has(const struct hca *h, struct cq *cq);
/* Is there a completion of qp to poll?  For the owner.  Looks at each
 * completion in the queue until it finds one, and moves none. */
bool cq_has_of(const struct hca *h, struct cq *cq, const struct qp *qp);
/* Arms the queue: the next completion raises one event; with solicited_only,
 * the next one that is pushed as solicited.  (Callers of cq_push and
 * cq_announce push failed completions as solicited.) */
void cq_arm(struct cq *cq, bool solicited_only);
/* Drops the completions of the QP with this QPN, which is being destroyed or
 * enters RESET. */
void cq_purge(struct hca *h, struct cq *cq, uint32_t qpn);

#endif
