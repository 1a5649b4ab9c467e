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
 * The distance in bytes between words that one processor writes and another
 * reads all the time and words that a processor has to itself: two cache lines,
 * since processors fetch lines in pairs.
 */
#define HCA_APART 128

/* A completion, in the ring or as cq_poll returns it. */
struct cqe {
	uint64_t wr_id;
	uint32_t status; /* enum hca_status */
	uint32_t opcode; /* enum hca_wc */
	uint32_t vendor_err;
	uint32_t byte_len;
	uint32_t imm_be; /* the immediate, or the invalidated rkey */
	uint32_t qpn;
	uint32_t src_qpn;
	uint32_t wc_flags;
	uint32_t wq_index; /* polling this completion frees slots up to here */
	uint32_t sl;	   /* a datagram's service level, see ud_resp.c */
	uint64_t at_ns;	   /* when it was pushed, by the progress clock */
	aoff wq;	   /* the queue of the request; 0: its QP is gone */
};

enum cq_arm { CQ_DISARMED, CQ_ARMED_SOLICITED, CQ_ARMED_ANY };

/*
 * In the word cq_shared.arm, above enum cq_arm: how many events were raised and
 * not reported yet, and how many completions were held back since the queue was
 * armed (cq_moderate).
 */
#define CQ_ARM_MASK  3u
#define CQ_OWED_ONE  4u
#define CQ_OWED_MASK 0xfffcu
#define CQ_HELD_ONE  0x10000u
#define CQ_HELD_MAX  0xffffu

enum { CQ_OVERRUN_UNTOLD = 1, CQ_OVERRUN_TOLD };

/*
 * In the arena, in the owner's part.  The owner alone writes the ring, under
 * `lock`.  A peer of this host leaves a completion with its receive (rq.c),
 * puts the QP on the list cq_shared.incoming, and changes cq_shared.arm as the
 * event demands, all by single atomic operations: a peer that is stopped there
 * delays no other.  A QP from the list stays in `watched` for a while, where
 * every poll finds its completions, so that its peer need not put the QP on the
 * list again.
 */
#define CQ_WATCHED 4

struct cq {
	/* Peers read the members before `lock`, which change seldom; the owner
	 * writes the others with each poll, HCA_APART bytes away. */
	uint64_t peer_at;    /* where struct cq_shared is, bytes from here */
	uint32_t is_silent;  /* there is no channel: arming has no effect */
	uint32_t hold_count; /* completions for an event; 0, 1: one */
	/* An event that is held back is raised after this time; 0: never. */
	uint64_t hold_ns;
	uint64_t user; /* the front end's cookie, which events carry */
	uint32_t id;
	uint32_t size; /* entries in the ring, a power of two */
	uint32_t cqe;  /* the capacity that was granted; <= size */
	/* taken by the owner's threads */
	_Alignas(HCA_APART) struct alock lock;
	aoff ring;
	ring_index head;
	shared_flag overrun; /* after an overflow nothing more is written */
	/* A thread moves completions from the list to the ring. */
	shared_flag is_collecting;
	/* The next entry to poll; written under lock. */
	_Alignas(HCA_APART) ring_index tail;
	/* How many entries of `watched` are used; under lock. */
	shared_u32 watching;
	uint32_t oldest;	  /* the entry to replace next; under lock */
	aoff watched[CQ_WATCHED]; /* struct qp; under lock */
};

/* In the arena, in the part that peers of this host write. */
struct cq_shared {
	_Atomic aoff incoming; /* struct qp; the next one is qp_target.next */
	_Atomic uint32_t arm;  /* enum cq_arm, events, completions held back */
};

/* The words of a CQ of this process that peers write. */
static inline struct cq_shared *cq_shared(const struct cq *cq)
{
	return (struct cq_shared *)((uintptr_t)cq + cq->peer_at);
}

/* The effect of a completion on the events of its queue. */
enum cq_push {
	CQ_QUIET,   /* no event */
	CQ_NOTIFY,  /* the caller calls cq_owed and reports the events */
	CQ_LATER,   /* cq_fire is due in hold_ns; the caller sees to that */
	CQ_OVERRUN, /* the ring overflowed: IBTA 11.6.3.2 */
};

/* Creates a queue for @cqe completions.  NULL: there is no memory, or there are
 * HCA_MAX_CQ already.  @is_silent: the queue has no channel. */
struct cq *cq_new(struct hca *h, uint32_t cqe, uint64_t user, bool is_silent);
/* Frees a queue that no QP uses. */
void cq_free(struct hca *h, struct cq *cq);
/* Changes the capacity to @cqe completions.  0; -EINVAL if more completions
 * wait; -ENOMEM. */
int cq_resize(struct hca *h, struct cq *cq, uint32_t cqe);
/*
 * Appends c.  CQ_NOTIFY: an event may have to be raised (arming is one-shot);
 * the caller asks cq_owed.  Until cq_owed was asked, every later call returns
 * CQ_NOTIFY too, since the thread that has to ask may be stopped before.
 */
enum cq_push cq_push(struct hca *h, struct cq *cq, const struct cqe *c,
		     bool solicited);
/* A peer has left @count completions at qp: changes the armed state, and puts
 * qp on the list. */
enum cq_push cq_announce(struct hca *h, struct cq *cq, struct qp *qp,
			 bool solicited, bool failed, uint32_t count);
/* The owner: moves what peers have left into the ring.  @also, or NULL: a QP
 * that may have completions without being on the list. */
void cq_collect(struct hca *h, struct cq *cq, struct qp *also);
/*
 * The owner: moves what peers have left at a QP that is about to be destroyed
 * into the ring, and stops watching the QP.  No peer works at the QP any more.
 */
void cq_forget(struct hca *h, struct cq *cq, struct qp *qp);
/* Takes the events that were raised: their number, for the caller to report. */
uint32_t cq_owed(struct cq *cq);
/* Moderates events (IBTA 11.2.8.2): one for @count completions, or after
 * @period_ns. */
void cq_moderate(struct hca *h, struct cq *cq, uint32_t count,
		 uint64_t period_ns);
/* Are completions held back without an event? */
static inline bool cq_is_holding(const struct cq *cq)
{
	return atomic_load(&cq_shared(cq)->arm) >= CQ_HELD_ONE;
}
/* Raises the event for the completions that are held back, and disarms. */
void cq_fire(struct cq *cq);
/* Takes up to n completions, and frees the slots of their requests. */
uint32_t cq_poll(struct hca *h, struct cq *cq, struct cqe *out, uint32_t n);
/* Is there a completion?  A program asks again after it has armed the queue. */
bool cq_has(const struct hca *h, struct cq *cq);
/* Arms the queue: the next completion, or with solicited_only the next one that
 * is pushed as solicited, raises one event.  Callers of cq_push and cq_announce
 * push failed completions as solicited. */
void cq_arm(struct cq *cq, bool solicited_only);
/* Drops the completions of a QP that is destroyed. */
void cq_purge(struct hca *h, struct cq *cq, uint32_t qpn);

#endif
