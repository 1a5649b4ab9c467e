/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Functions that both interfaces for posting use: ibv_post_send with a list of
 * requests (post.c) and ibv_wr_* with one field at a time (wr.c).  Lock: except
 * for v_post_expect, v_post_done and v_post_state the caller holds the lock of
 * the queue, v_qp.send or v_qp.recv.
 */
#ifndef VERBS_POST_H
#define VERBS_POST_H

#include "util/prefetch.h"
#include "verbs/object.h"

/* Bytes of headers that a request is taken to cause, for host_doorbell. */
#define V_POST_EACH 64

/* The queue pair that this thread posted to last. */
extern _Thread_local struct prefetch_turn v_post_turn
	__attribute__((tls_model("initial-exec")));

/* Prefetches the memory of a queue pair, unless it was posted to last. */
static inline void v_post_expect(const struct v_qp *q)
{
	if (!prefetch_is_due(&v_post_turn, q))
		return;
	engine_qp_expect(q->side);
	prefetch(q->qp, sizeof(*q->qp));
}

/* Rings the doorbell after requests of `bytes` bytes, headers included, were
 * posted. */
static inline void v_post_done(const struct v_qp *q, uint64_t bytes)
{
	prefetch_passed(&v_post_turn, bytes);
	host_doorbell(q->host, q->side, bytes);
}
/* Checks that the QP is in state `from` (HCA_QP_*) or a later one.  Returns 0
 * or a positive errno, with a message. */
int v_post_state(const struct v_qp *q, uint32_t from);
/* Returns the sum of the elements' bytes, or UINT64_MAX if n exceeds max. */
uint64_t v_post_total(const struct ibv_sge *sge, size_t n, uint32_t max);
/* Checks a result of v_post_total.  Returns 0 or EINVAL, with a message. */
int v_post_check_total(uint64_t bytes);
/* Copies the elements into the slot, without those of no bytes.  The slot has
 * room: v_post_check_total has accepted them. */
void v_post_sges(struct wqe *w, const struct ibv_sge *sge, size_t n);
/*
 * Fills in a request that binds the window, as ibt/local_wr.c reads the fields;
 * w->rkey is the window's new key.  Returns 0 or EINVAL, with a message.  The
 * caller stores the key in mw->rkey when the request is posted, which
 * ibv_bind_mw(3) requires for type 1 and drivers also do for type 2.
 */
int v_post_bind(struct wqe *w, struct ibv_mw *mw, uint32_t rkey,
		const struct ibv_mw_bind_info *info);
/* Fills in the destination of a datagram; does nothing if the QP is not UD.
 * Returns 0, or EINVAL with a message if there is no address handle. */
int v_post_ud(struct v_qp *q, struct wqe *w, struct ibv_ah *ah, uint32_t qpn,
	      uint32_t qkey);
/* Checks opcode, flags and bytes of a complete request together.  Returns 0 or
 * EINVAL, with a message. */
int v_post_check(const struct v_qp *q, struct wqe *w);

#endif
