/* SPDX-License-Identifier: BSD-2-Clause */
#include "hca/peer_death.h"

#include "hca/hca.h"

bool peer_death_repair(struct hca *h)
{
	const aoff *rows = arena_at(&h->arena, h->shared->qps);
	bool settled = true;

	for (uint32_t i = 0; i < h->shared->qp_top; i++) {
		struct qp *qp = arena_at(&h->arena, rows[i]);

		if (!qp)
			continue;
		settled &= rq_settle(h, qp);
		notify_post(h, qp, QP_NOTIFY_ALL);
	}
	return settled;
}
