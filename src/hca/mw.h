/* SPDX-License-Identifier: BSD-2-Clause */
/* Memory windows of types 1 and 2B (IBTA Vol 1, 10.6.7): rows of the table of
 * regions (mr.h).  The functions take the table's lock (mr_enter) themselves,
 * unless their comment says otherwise. */
#ifndef HCA_MW_H
#define HCA_MW_H

#include <stdint.h>

#include "hca/adapter.h"
#include "hca/mr.h"

struct qp;

/* A bind request. */
struct mw_bind {
	uint32_t window;    /* the window's lkey */
	uint32_t rkey;	    /* its lower 8 bits are those of the new rkey */
	uint32_t region;    /* the region's lkey */
	uint32_t access;    /* HCA_REMOTE_*, HCA_ZERO_BASED */
	uint64_t va, bytes; /* inside the region; 0 bytes unbind type 1 */
};

/* Creates an unbound window of @type 1 or 2 (2B) in the protection domain with
 * the number @pd.  Returns NULL if the table is full. */
struct mr *mw_new(struct hca *h, uint32_t pd, uint32_t type);
/* Frees a window, bound or not.  The caller then waits for the peers that copy
 * by its key (access_wait). */
void mw_free(struct hca *h, struct mr *w);
/* Judges and executes a bind request of qp.  A window is changed only if the
 * verdict is MR_OK; then the caller waits for the peers that copy by the
 * window's former key (access_scan_begin). */
enum mr_verdict mw_bind(struct hca *h, const struct qp *qp,
			const struct mw_bind *b);
/* Unbinds from their regions the windows that were invalidated since the last
 * call.  Called under mr_enter. */
void mw_settle(struct hca *h) REQUIRES(&h->shared->mr_lock);
/*
 * Invalidates the window of type 2 that has this rkey, for qp itself
 * (LOCAL_INV) or for qp's peer (SEND with Invalidate).  Returns MR_OK; or
 * MR_BAD_KEY, MR_NO_RIGHT, MR_BAD_PD or MR_BAD_QP: the key is not that of a
 * window of type 2 that is bound to qp.  For qp itself, the caller then waits
 * for the peers that copy by the key (access_scan_begin).  Takes no lock.
 */
enum mr_verdict mw_invalidate(struct hca *h, const struct qp *qp,
			      uint32_t rkey);

#endif
