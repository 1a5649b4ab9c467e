/* SPDX-License-Identifier: BSD-2-Clause */
#include "ibt/migration.h"

/* Swaps a value of the path with that of the alternate path. */
#define SWAP(one, two)                                                         \
	do {                                                                   \
		__auto_type kept = (one);                                      \
		(one) = (two);                                                 \
		(two) = kept;                                                  \
	} while (0)

static void swap_paths(struct hca_qp_attr *a)
{
	SWAP(a->ah, a->alt_ah);
	SWAP(a->port_num, a->alt_port_num);
	SWAP(a->pkey_index, a->alt_pkey_index);
	SWAP(a->timeout, a->alt_timeout);
}

void migration_go(struct ibt *t, struct ibt_qp *q)
{
	swap_paths(&q->qp->attr);
	q->qp->attr.path_mig_state = HCA_MIG_MIGRATED;
	ibt_qp_set_lids(t, q);
	ibt_event(t, q, ENGINE_PATH_MIG);
	if (q->qp->type == HCA_QPT_RC)
		rc_comp_resend(t, q);
}

bool migration_fail_over(struct ibt *t, struct ibt_qp *q)
{
	if (q->qp->attr.path_mig_state != HCA_MIG_ARMED)
		return false;
	migration_go(t, q);
	return true;
}

void migration_modified(struct ibt *t, struct ibt_qp *q, uint32_t old)
{
	bool is_migrated = q->qp->attr.path_mig_state == HCA_MIG_MIGRATED;

	if (is_migrated && old == HCA_MIG_ARMED)
		migration_go(t, q);
	q->resp.migration_refused = false;
}

void migration_heard(struct ibt_qp *q)
{
	if (q->qp->attr.path_mig_state == HCA_MIG_REARM)
		q->qp->attr.path_mig_state = HCA_MIG_ARMED;
}

void migration_refuse(struct ibt *t, struct ibt_qp *q)
{
	struct explain x = {.cause = EXPLAIN_MIGRATION};

	if (q->resp.migration_refused)
		return;
	q->resp.migration_refused = true;
	ibt_explain(t, q, &x);
	ibt_event(t, q, ENGINE_PATH_MIG_ERR);
}
