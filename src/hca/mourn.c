/* SPDX-License-Identifier: BSD-2-Clause */
#include "hca/hca.h"

static bool settle(struct hca *h, struct qp *qp)
{
	if (!rq_settle(h, qp))
		return false;
	cq_settle(h, arena_at(&h->arena, qp->recv_cq), qp);
	return true;
}

bool mourn_dead(struct hca *h)
{
	const aoff *rows = arena_at(&h->arena, h->shared->qps);
	bool settled = true;

	for (uint32_t i = 0; i < h->shared->qp_top; i++) {
		struct qp *qp = arena_at(&h->arena, rows[i]);

		if (!qp)
			continue;
		settled &= settle(h, qp);
		mail_post(h, qp, QP_MAIL_ALL);
	}
	return settled;
}
