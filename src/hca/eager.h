/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Eager messages: a message of few bytes stays in the slot of its receive, or
 * in a bounce buffer of the receive queue, until the owner, which is the
 * process of the QP, collects the completion and copies the message to the
 * receive's memory (docs/decisions/015).  A peer's request that reads or writes
 * that memory waits until the owner has collected the message; the peer asks
 * the owner by QP_NOTIFY_ROOM to collect the message.
 */
#ifndef HCA_EAGER_H
#define HCA_EAGER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "hca/adapter.h"
#include "hca/wq.h"

struct qp;
struct space_vec;

struct eager {
	uint64_t at; /* the owner's address for the message; 0: no message */
	/* The message, of wqe.bytes bytes, unless it is in a bounce buffer. */
	uint8_t bytes[WQE_EAGER_BYTES];
};

/* The most bytes of an eager message. */
#define EAGER_MAX WQ_BOUNCE_BYTES

/*
 * For a peer, under the responder lock: returns the bounce buffer for a message
 * of the receive that is held; NULL: there is none, or a message that was not
 * collected may be in it.  qp is the peer's copy, into which the caller has
 * read rq.collected (inside_see_collected); by now the owner may have collected
 * more.
 */
uint8_t *eager_bounce(const struct hca *h, const struct qp *qp);
/* For a peer in rq_complete, under the responder lock: copies @eager, of @bytes
 * bytes, into w, the slot of the receive that is held.  A message of more than
 * WQE_EAGER_BYTES is already in the buffer that eager_bounce has returned.  If
 * @eager is NULL or has no message, marks w as a slot without a message. */
void eager_leave(struct hca *h, struct qp *qp, struct wqe *w, uint32_t bytes,
		 const struct eager *eager);
/* Has a receive of qp a message that was not collected? */
bool eager_is_any(const struct hca *h, const struct qp *qp);
/* Has a receive of qp a message that was not collected and that belongs to
 * memory in vec[0..n)? */
bool eager_is_in_way(const struct hca *h, const struct qp *qp,
		     const struct space_vec *vec, size_t n);
/* For the owner in rq_collect: copies the message of the receive at @index,
 * whose slot is w, to the receive's memory.  Returns 0, or -EFAULT if the
 * memory is not registered or not mapped any more, or is shorter than the
 * message. */
int eager_place(struct hca *h, const struct qp *qp, struct wqe *w,
		uint32_t index);
/* For the owner, under the ctx lock (adapter.h), after a key was withdrawn or
 * has lost rights: collects the messages of all QPs, so that none is copied to
 * the key's memory later.  A message whose key is not valid any more fails its
 * receive (eager_place). */
void eager_settle(struct hca *h);

#endif
