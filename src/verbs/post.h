/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What both ways of posting share: a list of requests (post.c) and one
 * request field by field (wr.c).  Lock: the queue's, v_qp.send or .recv.
 */
#ifndef VERBS_POST_H
#define VERBS_POST_H

#include "util/prefetch.h"
#include "verbs/object.h"

#define V_POST_EACH 64 /* bytes that a request takes beside its payload */

extern struct prefetch_turn v_post_turn;

/* Ask for the memory of a queue pair whose turn it is. */
static inline void v_post_expect(const struct v_qp *q)
{
	if (!prefetch_is_due(&v_post_turn, q))
		return;
	engine_qp_expect(q->side);
	prefetch(q->qp, sizeof(*q->qp));
}

/* It has been; so many bytes were posted. */
static inline void v_post_done(const struct v_qp *q, uint64_t bytes)
{
	prefetch_passed(&v_post_turn, bytes);
	host_doorbell(q->host, q->side, bytes);
}
/* May work be posted to this queue?  0 or a positive errno, said. */
int v_post_state(const struct v_qp *q, uint32_t from);
/* The bytes that the elements name; UINT64_MAX when they are too many. */
uint64_t v_post_total(const struct ibv_sge *sge, size_t n, uint32_t max);
/* 0 or EINVAL, said. */
int v_post_check_total(uint64_t bytes);
void v_post_sges(struct wqe *w, const struct ibv_sge *sge, size_t n);
/*
 * The window's new key, w->rkey, and what it opens, as ibt/local_wr.c takes it.
 * The caller shows the key in mw->rkey when the request is posted: ibv_bind_mw
 * (3) wants it of type 1, and irdma does the same of type 2.  EINVAL, said.
 */
int v_post_bind(struct wqe *w, struct ibv_mw *mw, uint32_t rkey,
		const struct ibv_mw_bind_info *info);
/* Where a datagram goes; EINVAL without an address handle, said. */
int v_post_ud(struct v_qp *q, struct wqe *w, struct ibv_ah *ah, uint32_t qpn,
	      uint32_t qkey);
/* Checks that need the whole request: its opcode, flags and bytes. */
int v_post_check(const struct v_qp *q, struct wqe *w);

#endif
