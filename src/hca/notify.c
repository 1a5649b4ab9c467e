/* SPDX-License-Identifier: BSD-2-Clause */
#include "hca/notify.h"

#include "hca/hca.h"
#include "util/step.h"

/*
 * A writer sets its bits, then the bit of the QP's row, then notify_pending;
 *the reader takes them in the other order, so nothing is left lying:
 *
 *	writer	qp.notify |= bits   row's bit = 1   pending = 1   asleep?
 *	reader	pending = 0	     row's bit = 0   qp.notify = 0
 */

bool notify_post(struct hca *h, struct qp *qp, uint32_t bits)
{
	uint32_t row = qp->stats.row;

	if (row >= HCA_MAX_QP)
		return false;
	atomic_fetch_or(&qp_target(qp)->notify, bits);
	STEP("a letter is written");
	atomic_fetch_or(&h->peer_area->notify[row / 64], 1ull << row % 64);
	STEP("a letter is addressed");
	shared_publish(&h->peer_area->notify_pending, 1);
	STEP("a letter is there");
	return shared_load(&h->shared->is_asleep);
}

/* The row of a QP with notify bits; its bit is cleared.  There are more bits
 * than rows. */
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
		if (*bits) { /* the caller comes back for the rest */
			shared_publish(&s->notify_pending, 1);
			return qp;
		}
	}
	return NULL;
}
