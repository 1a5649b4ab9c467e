/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The send queues of UC and UD.  Each request is sent once, and completes when
 * the frame with its last packet is sent (IBTA Vol 1, 9.8.2.1, 9.8.3.1).
 *
 *	sq.completed                     req.wqe               sq.head
 *	   |---- in frames, not sent yet --->|---- to be made ---->|
 *
 * The cursor is req.wqe and req.packet (struct rc_req): the request, and its
 * packet or piece, that is made next.  The first req.packet packets or pieces
 * of that request were made already.  The requests after it have not begun.
 *
 * A request with a local error is completed in its turn.  The requests after it
 * are flushed, and the queue pair enters SQE, in which it still receives (IBTA
 * 10.3.1.6).  Owner: the engine.  Lock: the progress lock.
 */
#ifndef IBT_UNRELIABLE_TX_H
#define IBT_UNRELIABLE_TX_H

#include "ibt/ibt.h"

/* Executes the requests at the cursor that send nothing, and returns the
 * request after them.  If no packet of this request was made yet, zeroes the
 * request's struct req_note.  NULL: there is nothing to send now, or a request
 * has a local error. */
struct wqe *unreliable_tx_next(struct ibt *t, struct ibt_qp *q);
/* The packet or piece at the cursor was made: moves the cursor to the next. */
void unreliable_tx_advance(struct ibt *t, struct ibt_qp *q);
/* w, the request at the cursor, has a local error: w fails with `status` when
 * the requests before w are completed; *x says why. */
void unreliable_tx_stop(struct ibt *t, struct ibt_qp *q, const struct wqe *w,
			enum hca_status status, struct explain *x);
/* All frames made so far were sent: completes their requests. */
void unreliable_tx_sent_all(struct ibt *t);
/* All frames made so far were sent: calls unreliable_tx_sent_all if there are
 * requests to complete. */
static inline void unreliable_tx_sent(struct ibt *t)
{
	if (!list_is_empty(&t->handed))
		unreliable_tx_sent_all(t);
}
/* In SQD: raises ENGINE_SQ_DRAINED, once and only if en_sqd_async_notify is
 * set, when all requests that were begun are complete. */
void unreliable_tx_drained(struct ibt *t, struct ibt_qp *q);
/* The QP leaves SQE: sets the cursor after the flushed requests. */
void unreliable_tx_reset(struct ibt_qp *q);

#endif
