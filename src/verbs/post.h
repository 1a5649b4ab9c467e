/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Functions that both interfaces for posting use: ibv_post_send with a list of
 * requests (post.c) and ibv_wr_* with one field at a time (wr.c).
 *
 * Lock: the caller holds v_srq.post, or has called v_enter_queue for v_qp.send
 * or v_qp.recv.  v_post_expect, v_post_done and v_post_state need no lock.
 */
#ifndef VERBS_POST_H
#define VERBS_POST_H

#include "util/prefetch.h"
#include "verbs/object.h"

/* An estimate of the bytes of headers that one request causes, for
 * host_doorbell. */
#define V_POST_EACH 64

/* The queue pair for which this thread has last called v_post_expect; none
 * after a post of more than PREFETCH_MUCH bytes (v_post_done). */
extern _Thread_local struct prefetch_turn v_post_turn
	__attribute__((tls_model("initial-exec")));

/* Prefetches the memory of a queue pair, before send requests are posted to it.
 * Does nothing if this thread's last call was for that queue pair, too, and no
 * post of more than PREFETCH_MUCH bytes has followed that call. */
static inline void v_post_expect(const struct v_qp *q)
{
	if (!prefetch_is_due(&v_post_turn, q))
		return;
	engine_qp_expect(q->side);
	prefetch(q->qp, sizeof(*q->qp));
}

/* Rings the doorbell after requests were posted.  bytes: the sum of the
 * requests' data, plus V_POST_EACH for each request. */
static inline void v_post_done(const struct v_qp *q, uint64_t bytes)
{
	prefetch_passed(&v_post_turn, bytes);
	host_doorbell(q->host, q->side, bytes);
}
/* Checks that this process has created the QP, and that the QP is in state
 * `from` (HCA_QP_*) or a later state.  Returns 0, or a positive errno with a
 * message. */
int v_post_state(const struct v_qp *q, uint32_t from);
/* Returns the sum of the bytes of n elements, or UINT64_MAX if n exceeds max.
 */
uint64_t v_post_total(const struct ibv_sge *sge, size_t n, uint32_t max);
/* Checks a result of v_post_total.  Returns 0, or EINVAL with a message. */
int v_post_check_total(uint64_t bytes);
/* Copies n elements into the slot, except those of length 0.  The slot has
 * room: the caller has found by v_post_total that n does not exceed the queue's
 * max_sge. */
void v_post_sges(struct wqe *w, const struct ibv_sge *sge, size_t n);
/*
 * Fills in a request that binds the window, in the form that ibt/local_wr.c
 * reads; w->rkey is the window's new key.  Returns 0, or EINVAL with a message
 * if mw is NULL.  When the request is posted, the caller stores w->rkey in
 * mw->rkey: ibv_bind_mw(3) requires this for type 1, and some drivers, such as
 * irdma, do it for type 2, too.
 */
int v_post_bind(struct wqe *w, struct ibv_mw *mw, uint32_t rkey,
		const struct ibv_mw_bind_info *info);
/* Fills in the destination of a datagram; does nothing if the QP is not UD.
 * Returns 0, or EINVAL with a message if `ah` is NULL. */
int v_post_ud(struct v_qp *q, struct wqe *w, struct ibv_ah *ah, uint32_t qpn,
	      uint32_t qkey);
/* Checks whether opcode, flags and bytes of a complete request fit each other
 * and the QP.  Returns 0, or EINVAL with a message. */
int v_post_check(const struct v_qp *q, struct wqe *w);

#endif
