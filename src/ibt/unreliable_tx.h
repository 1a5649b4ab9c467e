/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The send queues of UC and UD: each request is sent once, and has ended when
 * its last packet was handed to the wire (IBTA Vol 1, 9.8.2.1, 9.8.3.1).
 *
 *	sq.completed     handed out, not yet on the wire     req.wqe     sq.head
 *	   |---------------------------------------------->|----------->|
 *
 * A request with a local error is completed in its turn; the requests behind it
 * are flushed, and the queue pair enters SQE, in which it still receives (IBTA
 * 10.3.1.6).  Owner and lock: as struct ibt_qp.
 */
#ifndef IBT_UNRELIABLE_TX_H
#define IBT_UNRELIABLE_TX_H

#include "ibt/ibt.h"

/* Executes the requests at the cursor that send nothing, and returns the next
 * request, with a zeroed note if none of its packets was made; NULL: there is
 * nothing to send now. */
struct wqe *unreliable_tx_next(struct ibt *t, struct ibt_qp *q);
/* The packet or piece at the cursor was made: moves the cursor to the next. */
void unreliable_tx_advance(struct ibt *t, struct ibt_qp *q);
/* w, the request at the cursor, has a local error: w fails with this status
 * when the requests before w are completed; *x says why. */
void unreliable_tx_stop(struct ibt *t, struct ibt_qp *q, const struct wqe *w,
			enum hca_status status, struct explain *x);
/* All frames made so far were handed to the wire: completes their requests. */
void unreliable_tx_sent_all(struct ibt *t);
/* Calls unreliable_tx_sent_all if there are requests to complete. */
static inline void unreliable_tx_sent(struct ibt *t)
{
	if (!list_is_empty(&t->handed))
		unreliable_tx_sent_all(t);
}
/* In SQD: raises ENGINE_SQ_DRAINED, once, when all requests that were begun are
 * complete. */
void unreliable_tx_drained(struct ibt *t, struct ibt_qp *q);
/* Leaving SQE: sets the cursor behind the flushed requests. */
void unreliable_tx_reset(struct ibt_qp *q);

#endif
