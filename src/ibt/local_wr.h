/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Work requests that send nothing: they bind or invalidate a memory window in
 * their turn, between those that do (IBTA 10.6.7).  Lock: the progress lock.
 */
#ifndef IBT_LOCAL_WR_H
#define IBT_LOCAL_WR_H

#include "ibt/ibt.h"

bool local_wr_is(const struct wqe *w);
/*
 * Execute w; with an error, x says why.  False: peers of this host are at work
 * by the key it took away, so it has not ended; q becomes active when they have
 * left, and then again.
 */
bool local_wr_run(struct ibt *t, struct ibt_qp *q, const struct wqe *w,
		  enum hca_status *status, struct explain *x);

#endif
