/* SPDX-License-Identifier: BSD-2-Clause */
/* Shared receive queues: not built; the device says max_srq 0. */
#include <errno.h>

#include "verbs/fail.h"
#include "verbs/object.h"

struct ibv_srq *ibv_create_srq(struct ibv_pd *pd, struct ibv_srq_init_attr *a)
{
	return v_fail_null(EOPNOTSUPP, V_NOT_BUILT, "a shared receive queue");
}

int ibv_modify_srq(struct ibv_srq *srq, struct ibv_srq_attr *attr, int mask)
{
	return EOPNOTSUPP;
}

int ibv_query_srq(struct ibv_srq *srq, struct ibv_srq_attr *attr)
{
	return EOPNOTSUPP;
}

int ibv_destroy_srq(struct ibv_srq *srq)
{
	return EOPNOTSUPP;
}
