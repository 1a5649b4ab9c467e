/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Work requests that send nothing: they bind or invalidate a memory window.
 * They are executed in order with the other requests of the send queue (IBTA
 * 10.6.7).  Lock: the progress lock.
 */
#ifndef IBT_LOCAL_WR_H
#define IBT_LOCAL_WR_H

#include "ibt/ibt.h"

/* Is w a request that sends nothing? */
bool local_wr_is(const struct wqe *w);
/*
 * Executes w, the request at q's cursor.  True: w has ended with *status, and
 * if *status is an error, *x says why.  False: peers of this host still use the
 * key that w has withdrawn; q becomes active when no peer uses the key any
 * more, and the caller then calls again.
 */
bool local_wr_run(struct ibt *t, struct ibt_qp *q, const struct wqe *w,
		  enum hca_status *status, struct explain *x);

#endif
