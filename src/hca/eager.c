/* SPDX-License-Identifier: BSD-2-Clause */
#include "hca/eager.h"

#include <errno.h>
#include <string.h>

#include "hca/hca.h"
#include "hca/semantics.h"
#include "util/bits.h"

/* Returns the place of an eager message of `bytes` bytes in the slot w.  A
 * message that fits into w->few lies in the same cache line as the
 * completion. */
static uint8_t *place_in(const struct qp *qp, struct wqe *w, uint32_t bytes)
{
	return bytes <= sizeof(w->few) ? w->few : wq_eager_bytes(&qp->rq, w);
}

/* Receive i uses buffer i modulo the number of buffers.  No other receive can
 * have a message in this buffer if there are at least as many buffers as
 * receives from `collected` to the cursor, both included. */
uint8_t *eager_bounce(const struct hca *h, const struct qp *qp)
{
	uint32_t i = rq_cursor(qp);

	return i - shared_load(&qp->rq.collected) < qp->rq.bounces
		       ? wq_bounce(h, &qp->rq, i)
		       : NULL;
}

void eager_leave(struct hca *h, struct qp *qp, struct wqe *w, uint32_t bytes,
		 const struct eager *eager)
{
	w->at = eager ? eager->at : 0;
	if (!eager || !eager->at)
		return;
	if (bytes <= WQE_EAGER_BYTES)
		memcpy(place_in(qp, w, bytes), eager->bytes, bytes);
	/* rq_complete then stores `completed` and wqe.left.  Both are release
	 * stores, which order the stores of this function before them, for the
	 * acquires in rq_cursor and rq_has_left: otherwise a thread could find
	 * the receive completed and miss its message. */
	shared_store(&qp_target(qp)->eager_end, rq_cursor(qp) + 1);
	if (!shared_load(&h->peer_area->has_eager))
		shared_store(&h->peer_area->has_eager, 1);
}

/* May an uncollected receive of qp have an eager message?  This test costs two
 * loads.  False: none has. */
static bool may_be_any(const struct qp *qp)
{
	return (int32_t)(shared_load(&qp_target(qp)->eager_end) -
			 shared_load(&qp->rq.collected)) > 0;
}

/* Returns the end of the receives, from index i on, that may have an eager
 * message.  The end is the cursor, but at most i + rq.size, because a peer can
 * write any value to the cursor. */
static uint32_t end_of_eager(const struct qp *qp, uint32_t i)
{
	int32_t ahead = (int32_t)(rq_cursor(qp) - i);

	return ahead > 0 ? i + bits_min_u32((uint32_t)ahead, qp->rq.size) : i;
}

/* Returns the first receive from index *i up to `end` that has an eager
 * message, in its slot or in a bounce buffer, and sets *i to the index after
 * this receive; NULL: there is none. */
static const struct wqe *next_eager(const struct hca *h, const struct qp *qp,
				    uint32_t *i, uint32_t end)
{
	while (*i != end) {
		const struct wqe *w = wq_at(h, &qp->rq, (*i)++);

		if (w->at)
			return w;
	}
	return NULL;
}

bool eager_is_any(const struct hca *h, const struct qp *qp)
{
	uint32_t i = shared_load(&qp->rq.collected);

	return may_be_any(qp) && next_eager(h, qp, &i, end_of_eager(qp, i));
}

bool eager_is_in_way(const struct hca *h, const struct qp *qp,
		     const struct space_vec *vec, size_t n)
{
	uint32_t at = shared_load(&qp->rq.collected);
	uint32_t end = end_of_eager(qp, at);
	const struct wqe *w;

	if (!may_be_any(qp))
		return false;
	while ((w = next_eager(h, qp, &at, end)))
		for (size_t i = 0; i < n; i++)
			if (w->at < vec[i].va + vec[i].bytes &&
			    vec[i].va < w->at + w->bytes)
				return true;
	return false;
}

static uint32_t longest_message(const struct wq *q)
{
	return q->bounces ? WQ_BOUNCE_BYTES : WQE_EAGER_BYTES;
}

/*
 * The lkey of the receive's memory may have been withdrawn since the peer
 * looked that key up: ibv_dereg_mr collects the eager messages that exist
 * (eager_settle), but does not wait for a peer that is about to write another
 * one.  So sem_scatter looks the key up again.
 */
int eager_place(struct hca *h, const struct qp *qp, struct wqe *w,
		uint32_t index)
{
	/* A peer has written the length, so it is read once and limited. */
	uint32_t given = __atomic_load_n(&w->bytes, __ATOMIC_RELAXED);
	uint32_t bytes = bits_min_u32(given, longest_message(&qp->rq));
	const uint8_t *from = bytes > WQE_EAGER_BYTES
				      ? wq_bounce(h, &qp->rq, index)
				      : place_in(qp, w, bytes);
	struct explain x;

	return sem_scatter(h, qp->recv_pd, w, 0, from, bytes, &x) ? -EFAULT : 0;
}

void eager_settle(struct hca *h)
{
	const aoff *rows = arena_at(&h->arena, h->shared->qps);

	if (!shared_load(&h->peer_area->has_eager))
		return;
	for (uint32_t i = 0; i < h->shared->qp_top; i++) {
		/* A QP may be withdrawn meanwhile, without the ctx lock, but is
		 * freed only under it.  The acquire orders this load of the row
		 * before the loads of the QP's members; the release store in
		 * publish_row orders the stores of qp_new to the QP before the
		 * store of the row.  Without this order a new QP could be read
		 * with the contents that its memory had before. */
		aoff row = __atomic_load_n(&rows[i], __ATOMIC_ACQUIRE);
		struct qp *qp = arena_at(&h->arena, row);

		if (qp && eager_is_any(h, qp))
			cq_collect(h, arena_at(&h->arena, qp->recv_cq), qp);
	}
}
