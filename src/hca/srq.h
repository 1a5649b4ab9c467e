/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Shared receive queues (IBTA Vol 1, 10.2.9).  Several processes take receives
 * from one queue for its QPs without a lock (srq.c).  A slot is free as soon as
 * a message has its receive.  The program posts at wq.head under a lock of the
 * front end, which resizing takes too.
 */
#ifndef HCA_SRQ_H
#define HCA_SRQ_H

#include <stdbool.h>
#include <stdint.h>

#include "hca/adapter.h"
#include "hca/wq.h"

struct qp;

/* In the arena, in the owner's part. */
struct srq {
	struct wq wq;	  /* tail: see srq_reserve; completed is not used */
	uint64_t peer_at; /* where srq_shared is, bytes from here */
	uint32_t pd;
	uint64_t user; /* the front end's cookie, which events carry */
};

/* In the arena, in the part that peers of this host write. */
struct srq_shared {
	/* The index of the receive to take next, the QP that took the receive
	 * before, and SRQ_SHUT (srq.c). */
	_Atomic uint64_t next;
	/* An event is raised when fewer receives than this are posted; 0: no
	 * event is armed.  SRQ_OWED: an event was raised and not reported. */
	_Atomic uint32_t limit;
};

/* The words of an SRQ of this process that peers write. */
static inline struct srq_shared *srq_shared(const struct srq *s)
{
	return (struct srq_shared *)((uintptr_t)s + s->peer_at);
}

/* Creates a queue of @depth receives.  NULL: there is no memory, or there are
 * HCA_MAX_SRQ already. */
struct srq *srq_new(struct hca *h, uint32_t pd, uint32_t depth,
		    uint32_t max_sge, uint64_t user);
/* Frees a queue that no QP uses. */
void srq_free(struct hca *h, struct srq *s);
/* Changes the depth.  0; -EINVAL if more than @depth receives are posted;
 * -ENOMEM.  The caller keeps threads from posting meanwhile. */
int srq_resize(struct hca *h, struct srq *s, uint32_t depth);
/* The slot to fill next, or NULL if the queue is full; then wq_commit. */
struct wqe *srq_reserve(const struct hca *h, struct srq *s);
/* The index of the receive that is taken next. */
uint32_t srq_next(const struct srq *s);
/* Asks for one event when fewer than @limit receives are posted.  True: fewer
 * are posted already, and the caller raises the event. */
bool srq_arm(struct hca *h, struct srq *s, uint32_t limit);
/* Takes the oldest receive; qp holds the copy of it.  False: no receive is
 * posted.  *low: a limit event has to be raised. */
bool srq_take(struct hca *h, struct srq *s, struct qp *qp, bool *low);
/* Takes the limit event that is due.  True: there was one, and the caller
 * raises it. */
bool srq_owed(struct srq *s);
/* Is a receive posted? */
bool srq_has(const struct hca *h, const struct srq *s);
/* Is the queue closed to takers while it is resized? */
bool srq_is_shut(const struct hca *h, const struct srq *s);
/* The limit that is armed, or 0. */
uint32_t srq_limit(const struct srq *s);
/* After a peer died at work for qp: gives qp the receive that the peer had
 * taken and not yet held. */
void srq_settle(struct hca *h, struct srq *s, struct qp *qp);
/* A row of the table of QPs has a new QP, which has taken nothing. */
void srq_forget(struct hca *h, uint32_t row);

#endif
