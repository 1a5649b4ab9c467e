/* SPDX-License-Identifier: BSD-2-Clause */
#include "hca/eager.h"

#include <errno.h>
#include <string.h>

#include "hca/hca.h"
#include "hca/semantics.h"
#include "util/bits.h"

/* What is not more than that comes with the completion's own cache line. */
static uint8_t *place_in(const struct qp *qp, struct wqe *w, uint32_t bytes)
{
	return bytes <= sizeof(w->few) ? w->few : wq_eager_bytes(&qp->rq, w);
}

void eager_leave(struct hca *h, struct qp *qp, struct wqe *w,
		 const struct eager *eager)
{
	uint32_t bytes = bits_min_u32(w->bytes, WQE_EAGER_BYTES);

	w->at = eager ? eager->at : 0;
	if (!eager || !eager->at)
		return;
	memcpy(place_in(qp, w, bytes), eager->bytes, bytes);
	shared_store(&qp_target(qp)->eager_end, rq_cursor(qp) + 1);
	if (!shared_load(&h->peer_area->has_eager))
		shared_store(&h->peer_area->has_eager, 1);
}

/* False for all that have carried nothing of late, and for few others. */
static bool may_be_any(const struct qp *qp)
{
	return (int32_t)(shared_load(&qp_target(qp)->eager_end) -
			 shared_load(&qp->rq.collected)) > 0;
}

/* The next from *i on that lies in its slot; NULL: none does. */
static const struct wqe *next_eager(const struct hca *h, const struct qp *qp,
				    uint32_t *i)
{
	while ((int32_t)(rq_cursor(qp) - *i) > 0) {
		const struct wqe *w = wq_at(h, &qp->rq, (*i)++);

		if (w->at)
			return w;
	}
	return NULL;
}

bool eager_is_any(const struct hca *h, const struct qp *qp)
{
	uint32_t i = shared_load(&qp->rq.collected);

	return may_be_any(qp) && next_eager(h, qp, &i);
}

bool eager_is_in_way(const struct hca *h, const struct qp *qp,
		     const struct space_vec *vec, size_t n)
{
	uint32_t at = shared_load(&qp->rq.collected);
	const struct wqe *w;

	if (!may_be_any(qp))
		return false;
	while ((w = next_eager(h, qp, &at)))
		for (size_t i = 0; i < n; i++)
			if (w->at < vec[i].va + vec[i].bytes &&
			    vec[i].va < w->at + w->bytes)
				return true;
	return false;
}

/*
 * The key may have gone since the peer looked at it: who withdraws one settles
 * what lies with receives, and does not wait for who is about to leave more.
 */
int eager_place(struct hca *h, const struct qp *qp, struct wqe *w)
{
	/* what a peer wrote is input */
	uint32_t said = __atomic_load_n(&w->bytes, __ATOMIC_RELAXED);
	uint32_t bytes = bits_min_u32(said, WQE_EAGER_BYTES);
	struct explain x;

	return sem_scatter(h, qp->recv_pd, w, 0, place_in(qp, w, bytes), bytes,
			   &x)
		       ? -EFAULT
		       : 0;
}

void eager_settle(struct hca *h)
{
	const aoff *rows = arena_at(&h->arena, h->shared->qps);

	if (!shared_load(&h->peer_area->has_eager))
		return;
	for (uint32_t i = 0; i < h->shared->qp_top; i++) {
		/* withdrawn without that lock, freed under it */
		aoff row = __atomic_load_n(&rows[i], __ATOMIC_ACQUIRE);
		struct qp *qp = arena_at(&h->arena, row);

		if (qp && eager_is_any(h, qp))
			cq_collect(h, arena_at(&h->arena, qp->recv_cq), qp);
	}
}
