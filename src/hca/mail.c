/* SPDX-License-Identifier: BSD-2-Clause */
#include "hca/hca.h"

#include "util/step.h"

/*
 * A writer leaves its letters, then says whose, then that there are some; the
 * reader takes them in the other order, so nothing is left lying:
 *
 *	writer	qp.mail |= letters   row's bit = 1   is_there = 1   asleep?
 *	reader	is_there = 0	     row's bit = 0   qp.mail = 0
 */

bool mail_post(struct hca *h, struct qp *qp, uint32_t letters)
{
	uint32_t row = qp->stats.row;

	if (row >= HCA_MAX_QP)
		return false;
	atomic_fetch_or(&qp_far(qp)->mail, letters);
	STEP("a letter is written");
	atomic_fetch_or(&h->far->mail[row / 64], 1ull << row % 64);
	STEP("a letter is addressed");
	ring_publish(&h->far->mail_is_there, 1);
	STEP("a letter is there");
	return ring_load(&h->shared->is_asleep);
}

/* The row of a QP with letters; its bit is cleared.  There are more bits than
 * rows. */
static bool next_row(struct hca_far *s, uint32_t *row)
{
	for (uint32_t i = 0; i < sizeof s->mail / sizeof s->mail[0]; i++) {
		uint64_t bits = atomic_load(&s->mail[i]);
		uint32_t bit;

		if (!bits)
			continue;
		bit = (uint32_t)__builtin_ctzll(bits);
		atomic_fetch_and(&s->mail[i], ~(1ull << bit));
		*row = i * 64 + bit;
		return *row < HCA_MAX_QP;
	}
	return false;
}

struct qp *mail_take(struct hca *h, uint32_t *letters)
{
	struct hca_far *s = h->far;
	const aoff *rows = arena_at(&h->arena, h->shared->qps);
	uint32_t row;

	if (!mail_is_there(h))
		return NULL;
	ring_publish(&s->mail_is_there, 0);
	while (next_row(s, &row)) {
		struct qp *qp = arena_at(&h->arena, rows[row]);

		*letters = qp ? atomic_exchange(&qp_far(qp)->mail, 0) : 0;
		if (*letters) { /* the caller comes back for the rest */
			ring_publish(&s->mail_is_there, 1);
			return qp;
		}
	}
	return NULL;
}
