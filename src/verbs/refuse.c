/* SPDX-License-Identifier: BSD-2-Clause */
#include "verbs/refuse.h"

#include <errno.h>

#include "verbs/fail.h"

#define MAKER(name, feature)                                                   \
	void *v_refuse_##name(void)                                            \
	{                                                                      \
		return v_fail_null(EOPNOTSUPP, V_NOT_SUPPORTED, feature);      \
	}

MAKER(null_mr, "a memory region without memory (ibv_alloc_null_mr)")
MAKER(counters, "counters of flows (ibv_create_counters)")
MAKER(flow, "steering of raw packets (ibv_create_flow)")
MAKER(flow_action, "encryption of flows (ibv_create_flow_action_esp)")
MAKER(rss, "receive side scaling (ibv_create_rwq_ind_table)")
MAKER(wq, "a receive queue without a queue pair (ibv_create_wq)")
MAKER(xrc, "XRC (ibv_open_xrcd, ibv_open_qp)")

int v_refuse_advice(void)
{
	return v_fail(EOPNOTSUPP, V_NOT_SUPPORTED,
		      "fetching memory ahead (ibv_advise_mr, ODP)");
}
