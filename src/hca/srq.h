/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Shared receive queues (IBTA Vol 1, 10.2.9).  Several processes take receives
 * from one queue, for its QPs, without a lock (srq.c).  A slot is free as soon
 * as its receive was taken.  The program posts at wq.head under a lock of the
 * front end; that lock also covers srq_reserve and srq_resize.
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
	/* srq_reserve moves wq.tail; wq.completed and wq.collected are not
	 * used. */
	struct wq wq;
	/* Where srq_shared is, in bytes from the start of this struct. */
	uint64_t peer_at;
	uint32_t pd;   /* the number of its protection domain */
	uint64_t user; /* the front end's cookie, which events carry */
};

/* In the arena, in the part that peers of this host write. */
struct srq_shared {
	/* Four fields (srq.c): the index of the receive to take next, the row
	 * of the QP that took the last receive, the generation, which changes
	 * when the queue is resized, and SRQ_RESIZING. */
	_Atomic uint64_t next;
	/* The limit that is armed: an event is raised when fewer receives are
	 * posted; 0: none is armed.  Bit SRQ_UNREPORTED (srq.c): an event was
	 * raised and not reported yet. */
	_Atomic uint32_t limit;
};

/* Returns the words of an SRQ of this process that peers write. */
static inline struct srq_shared *srq_shared(const struct srq *s)
{
	return (struct srq_shared *)((uintptr_t)s + s->peer_at);
}

/* Creates a queue of @depth receives with @max_sge elements each.  @pd: the
 * number of its protection domain; @user: the front end's cookie.  NULL: there
 * is no memory, or there are HCA_MAX_SRQ already.  Under the ctx lock. */
struct srq *srq_new(struct hca *h, uint32_t pd, uint32_t depth,
		    uint32_t max_sge, uint64_t user);
/* Frees a queue that no QP uses.  Under the ctx lock. */
void srq_free(struct hca *h, struct srq *s);
/* Changes the depth to @depth receives.  Returns 0; -EINVAL if more are posted;
 * or -ENOMEM.  After an error the depth is as before.  The caller keeps threads
 * from posting meanwhile. */
int srq_resize(struct hca *h, struct srq *s, uint32_t depth);
/* Returns the slot that the caller fills next and then posts by wq_commit;
 * NULL: the queue is full. */
struct wqe *srq_reserve(const struct hca *h, struct srq *s);
/* Returns the index of the receive that is taken next. */
uint32_t srq_next(const struct srq *s);
/* Arms one limit event for the time when fewer than @limit receives are posted;
 * @limit 0 disarms it.  True: fewer are posted already, or an earlier limit
 * event was not reported yet; the caller then reports one event. */
bool srq_arm(struct hca *h, struct srq *s, uint32_t limit);
/* Takes the oldest receive for qp: copies it to rq_slot, where it is held.
 * False: no receive is posted, or the queue is being resized.  Else *low is set
 * to true if a limit event was raised and not reported yet, and to false
 * otherwise.  If *low is true, the owner calls srq_owed and reports the event,
 * and a peer notifies the owner (QP_NOTIFY_LIMIT). */
bool srq_take(struct hca *h, struct srq *s, struct qp *qp, bool *low);
/* Takes the limit event that was raised.  True: there was one, and the caller
 * reports it. */
bool srq_owed(struct srq *s);
/* Is a receive posted? */
bool srq_has(const struct hca *h, const struct srq *s);
/* Can no receive be taken, because the queue is being resized? */
bool srq_is_resizing(const struct hca *h, const struct srq *s);
/* Returns the limit that is armed, or 0. */
uint32_t srq_limit(const struct srq *s);
/* Called after a process that had the responder lock of qp has died, or was
 * stopped and has lost the lock.  If that process had taken a receive for qp
 * that was not held yet, qp holds the receive from now on. */
void srq_settle(struct hca *h, struct srq *s, struct qp *qp);
/* Clears the word in peer_area.takes that belongs to this row of the table of
 * QPs.  Called when the row gets a new QP, which has taken nothing. */
void srq_forget(struct hca *h, uint32_t row);

#endif
