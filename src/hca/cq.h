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
#include "util/ring.h"

struct hca;
struct qp;

/*
 * What one processor writes and another reads all the time lies so far from
 * what each has to itself: two cache lines, as processors fetch neighbours.
 */
#define HCA_APART 128

struct cqe {
	uint64_t wr_id;
	uint32_t status; /* enum hca_status */
	uint32_t opcode; /* enum hca_wc */
	uint32_t vendor_err;
	uint32_t byte_len;
	uint32_t imm_be; /* or the invalidated rkey */
	uint32_t qpn;
	uint32_t src_qpn;
	uint32_t wc_flags;
	uint32_t wq_index; /* polling it frees slots up to here */
	uint32_t sl;	   /* of a datagram, see ud_resp.c */
	uint64_t at_ns;	   /* when it was pushed, by the lane's clock */
	aoff wq;	   /* 0: its QP is gone */
};

enum cq_arm { CQ_DISARMED, CQ_ARMED_SOLICITED, CQ_ARMED_ANY };

/*
 * In the word of that, above it: events that are owed and not yet told, and
 * completions since the arming that were held back (cq_moderate).
 */
#define CQ_ARM_MASK  3u
#define CQ_OWED_ONE  4u
#define CQ_OWED_MASK 0xfffcu
#define CQ_HELD_ONE  0x10000u
#define CQ_HELD_MAX  0xffffu

enum { CQ_OVERRUN_UNTOLD = 1, CQ_OVERRUN_TOLD };

/*
 * In the arena.  The owner alone writes its ring, under `lock`.  A peer on this
 * host leaves what became of a receive with the receive (rq.c), its QP on the
 * list `incoming`, and does with `arm` what the event asks for, all by single
 * atomic operations: who is stopped there keeps nobody out.  A QP
 * from the list stays in `watched` for a while, where every poll looks, so its
 * peer need not add it again.
 */
#define CQ_WATCHED 4

struct cq {
	struct alock lock;   /* of the owner's threads */
	uint32_t size;	     /* entries in the ring, a power of two */
	uint32_t cqe;	     /* capacity granted; <= size */
	shared_flag overrun; /* no more is written after an overflow */
	ring_index head;
	aoff ring;
	uint64_t hold_ns; /* tell after this at the latest; 0: never */
	uint64_t user;	  /* cookie of the face, carried by events */
	uint32_t id;
	shared_flag is_collecting; /* from the list to the ring */
	uint32_t hold_count;	   /* tell after so many; 0, 1: of each */
	uint32_t is_silent;	   /* as created */
	uint64_t peer_at;	   /* of struct cq_far, bytes from here */
	_Alignas(HCA_APART) ring_index tail; /* the program's */
	/* Struct qp, under lock: so many, and the one that makes room next. */
	shared_u32 watching;
	uint32_t oldest;
	aoff watched[CQ_WATCHED];
};

/* What peers write. */
struct cq_far {
	_Atomic aoff incoming; /* struct qp, the next by qp_target.next */
	_Atomic uint32_t arm;  /* enum cq_arm, events, completions */
};

static inline struct cq_far *cq_far(const struct cq *cq)
{
	return (struct cq_far *)((uintptr_t)cq + cq->peer_at);
}

enum cq_push {
	CQ_QUIET,
	CQ_NOTIFY,
	CQ_LATER, /* cq_fire is owed in hold_ns */
	CQ_OVERRUN,
};

/* Silent: it has no channel, so to arm it has no effect. */
/* NULL: there is no memory, or HCA_MAX_CQ of them. */
struct cq *cq_new(struct hca *h, uint32_t cqe, uint64_t user, bool is_silent);
void cq_free(struct hca *h, struct cq *cq);
/* -EINVAL when more than `cqe` wait; -ENOMEM. */
int cq_resize(struct hca *h, struct cq *cq, uint32_t cqe);
/*
 * Append; CQ_NOTIFY means that an event may be owed (arming is one-shot), for
 * which cq_owed is asked.  Until it has been, whoever comes is told so: who
 * owes it may be stopped before he says so.
 */
enum cq_push cq_push(struct hca *h, struct cq *cq, const struct cqe *c,
		     bool solicited);
/* A peer: qp has `count` completions for it.  What that does to an armed
 * queue. */
enum cq_push cq_announce(struct hca *h, struct cq *cq, struct qp *qp,
			 bool solicited, bool failed, uint32_t count);
/* The owner: bring what peers have left into the ring; `also`, or NULL, has
 * perhaps left something without being on the list. */
void cq_collect(struct hca *h, struct cq *cq, struct qp *also);
/* The same, and no peer works for qp any more: it goes. */
void cq_forget(struct hca *h, struct cq *cq, struct qp *qp);
/* The events that are owed; they are the caller's to tell. */
uint32_t cq_owed(struct cq *cq);
/* Moderate events, IBTA 11.2.8.2. */
void cq_moderate(struct hca *h, struct cq *cq, uint32_t count,
		 uint64_t period_ns);
/* Has something been held back; and disarm for it. */
static inline bool cq_is_holding(const struct cq *cq)
{
	return atomic_load(&cq_far(cq)->arm) >= CQ_HELD_ONE;
}
void cq_fire(struct cq *cq);
/* Take up to n; frees work queue slots. */
uint32_t cq_poll(struct hca *h, struct cq *cq, struct cqe *out, uint32_t n);
/* Is there something to take?  To be asked again after arming. */
bool cq_has(const struct hca *h, struct cq *cq);
void cq_arm(struct cq *cq, bool solicited_only);
/* Drop what a dying QP left. */
void cq_purge(struct hca *h, struct cq *cq, uint32_t qpn);

#endif
