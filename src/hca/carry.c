/* SPDX-License-Identifier: BSD-2-Clause */
#include "hca/hca.h"

#include <errno.h>
#include <string.h>

#include "hca/semantics.h"
#include "util/bits.h"

/* What is not more than that comes with the completion's own cache line. */
static uint8_t *place_in(const struct qp *qp, struct wqe *w, uint32_t bytes)
{
	return bytes <= sizeof w->few ? w->few : wq_room(&qp->rq, w);
}

void carry_leave(struct hca *h, struct qp *qp, struct wqe *w,
		 const struct carry *carry)
{
	uint32_t bytes = bits_min_u32(w->bytes, WQE_ROOM);

	w->at = carry ? carry->at : 0;
	if (!carry || !carry->at)
		return;
	memcpy(place_in(qp, w, bytes), carry->bytes, bytes);
	ring_store(&qp_far(qp)->carried, rq_cursor(qp) + 1);
	if (!ring_load(&h->far->carries))
		ring_store(&h->far->carries, 1);
}

/* False for all that have carried nothing of late, and for few others. */
static bool may_be_any(const struct qp *qp)
{
	return (int32_t)(ring_load(&qp_far(qp)->carried) -
			 ring_load(&qp->rq.told)) > 0;
}

/* The next from *i on that lies in its slot; NULL: none does. */
static const struct wqe *next(const struct hca *h, const struct qp *qp,
			      uint32_t *i)
{
	while ((int32_t)(rq_cursor(qp) - *i) > 0) {
		const struct wqe *w = wq_at(h, &qp->rq, (*i)++);

		if (w->at)
			return w;
	}
	return NULL;
}

bool carry_is_any(const struct hca *h, const struct qp *qp)
{
	uint32_t i = ring_load(&qp->rq.told);

	return may_be_any(qp) && next(h, qp, &i);
}

bool carry_is_in_way(const struct hca *h, const struct qp *qp,
		     const struct space_vec *vec, size_t n)
{
	uint32_t at = ring_load(&qp->rq.told);
	const struct wqe *w;

	if (!may_be_any(qp))
		return false;
	while ((w = next(h, qp, &at)))
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
int carry_place(struct hca *h, const struct qp *qp, struct wqe *w)
{
	/* what a peer wrote is input */
	uint32_t said = __atomic_load_n(&w->bytes, __ATOMIC_RELAXED);
	uint32_t bytes = bits_min_u32(said, WQE_ROOM);
	struct explain x;

	return sem_scatter(h, qp->recv_pd, w, 0, place_in(qp, w, bytes), bytes,
			   &x)
		       ? -EFAULT
		       : 0;
}

void carry_settle(struct hca *h)
{
	const aoff *rows = arena_at(&h->arena, h->shared->qps);

	if (!ring_load(&h->far->carries))
		return;
	for (uint32_t i = 0; i < h->shared->qp_top; i++) {
		/* withdrawn without that lock, freed under it */
		aoff row = __atomic_load_n(&rows[i], __ATOMIC_ACQUIRE);
		struct qp *qp = arena_at(&h->arena, row);

		if (qp && carry_is_any(h, qp))
			cq_collect(h, arena_at(&h->arena, qp->recv_cq), qp);
	}
}
