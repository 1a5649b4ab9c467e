/* SPDX-License-Identifier: BSD-2-Clause */
#include "hca/notify.h"

#include "hca/hca.h"
#include "util/step.h"

/*
 * A writer sets its bits, then the bit of the QP's row, then notify_pending.
 * The reader clears notify_pending, then the bit of the row, then the QP's
 * bits.  All these accesses are sequentially consistent.  So if the reader
 * misses a bit, the writer sets the bit of the row, or notify_pending, after
 * the reader has cleared it, and the reader looks again.  In another order a
 * bit could stay set and unseen.  After these stores the writer loads
 * is_asleep; engine_asleep (engine/direct_path.c) says why that order matters.
 *
 *	writer	qp.notify |= bits   row's bit = 1   pending = 1   is_asleep?
 *	reader	pending = 0	    row's bit = 0   qp.notify = 0
 */

bool notify_post(struct hca *h, struct qp *qp, uint32_t bits)
{
	uint32_t row = qp->stats.row;

	if (row >= HCA_MAX_QP)
		return false;
	atomic_fetch_or(&qp_target(qp)->notify, bits);
	STEP("notify bits are set");
	atomic_fetch_or(&h->peer_area->notify[row / 64], 1ull << row % 64);
	STEP("a row's notify bit is set");
	shared_publish(&h->peer_area->notify_pending, 1);
	STEP("notify bits are pending");
	return shared_load(&h->shared->is_asleep);
}

/* Finds a row of the table of QPs whose bit is set, and clears the bit.  False:
 * no bit is set, or the bit belongs to no row (a peer may write any bit). */
static bool next_row(struct hca_peer_area *s, uint32_t *row)
{
	for (uint32_t i = 0; i < sizeof(s->notify) / sizeof(s->notify[0]);
	     i++) {
		uint64_t bits = atomic_load(&s->notify[i]);
		uint32_t bit;

		if (!bits)
			continue;
		bit = (uint32_t)__builtin_ctzll(bits);
		atomic_fetch_and(&s->notify[i], ~(1ull << bit));
		*row = i * 64 + bit;
		return *row < HCA_MAX_QP;
	}
	return false;
}

struct qp *notify_take(struct hca *h, uint32_t *bits)
{
	struct hca_peer_area *s = h->peer_area;
	const aoff *rows = arena_at(&h->arena, h->shared->qps);
	uint32_t row;

	if (!notify_pending(h))
		return NULL;
	shared_publish(&s->notify_pending, 0);
	while (next_row(s, &row)) {
		struct qp *qp = arena_at(&h->arena, rows[row]);

		*bits = qp ? atomic_exchange(&qp_target(qp)->notify, 0) : 0;
		if (*bits) { /* the caller's next call takes the rest */
			shared_publish(&s->notify_pending, 1);
			return qp;
		}
	}
	return NULL;
}
