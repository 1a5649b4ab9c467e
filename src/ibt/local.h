/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Work requests that send nothing: they bind or invalidate a memory window in
 * their turn, between those that do (IBTA 10.6.7).  Lock: the lane's.
 */
#ifndef IBT_LOCAL_H
#define IBT_LOCAL_H

#include "hca/explain.h"
#include "hca/hca.h"

bool local_is(const struct wqe *w);
/* Execute w; with an error, x says why. */
enum hca_status local_run(struct hca *h, const struct qp *qp,
			  const struct wqe *w, struct explain *x);

#endif
