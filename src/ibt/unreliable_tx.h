/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The send queues of UC and UD: each request is sent once, and has ended when
 * its last packet was handed to the wire (IBTA Vol 1, 9.8.2.1, 9.8.3.1).
 *
 *	sq.completed     handed out, not yet on the wire     req.wqe     sq.head
 *	   |---------------------------------------------->|----------->|
 *
 * A local error is told in its turn, flushes what follows and leaves the
 * queue pair in SQE, where it still receives (IBTA 10.3.1.6).  Owner and
 * lock: the QP's.
 */
#ifndef IBT_UNRELIABLE_TX_H
#define IBT_UNRELIABLE_TX_H

#include "ibt/ibt.h"

/* The request to go on with, its note begun; NULL: nothing to send now. */
struct wqe *unreliable_tx_next(struct ibt *t, struct ibt_qp *q);
/* The packet of the request at the cursor is in a frame. */
void unreliable_tx_advance(struct ibt *t, struct ibt_qp *q);
/* The request at the cursor fails with a local error. */
void unreliable_tx_stop(struct ibt *t, struct ibt_qp *q, const struct wqe *w,
			enum hca_status status, struct explain *x);
/* Every frame made so far was handed to the wire. */
void unreliable_tx_sent_all(struct ibt *t);
static inline void unreliable_tx_sent(struct ibt *t)
{
	if (!list_is_empty(&t->handed))
		unreliable_tx_sent_all(t);
}
void unreliable_tx_drained(struct ibt *t, struct ibt_qp *q);
/* After SQE: go on behind what was flushed. */
void unreliable_tx_reset(struct ibt_qp *q);

#endif
