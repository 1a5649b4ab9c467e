/* SPDX-License-Identifier: BSD-2-Clause */
/* Taking completions, and asking to be told of the next. */
#include <errno.h>

#include "verbs/fail.h"
#include "verbs/object.h"
#include "verbs/ops.h"

enum {
	BATCH = 16,	/* completions copied at a time */
	STILL_MAX = 16, /* polls in a row without a turn of the lane */
};

static void show(struct ibv_wc *wc, const struct cqe *c)
{
	wc->wr_id = c->wr_id;
	wc->status = (enum ibv_wc_status)c->status;
	wc->opcode = (enum ibv_wc_opcode)c->opcode;
	wc->vendor_err = c->vendor_err;
	wc->byte_len = c->byte_len;
	wc->imm_data = c->imm_be;
	wc->qp_num = c->qpn;
	wc->src_qp = c->src_qpn;
	wc->wc_flags = c->wc_flags;
	wc->pkey_index = 0;
	wc->slid = 0;
	wc->sl = (uint8_t)c->sl;
	wc->dlid_path_bits = 0;
}

static int take(struct hca *h, struct v_cq *cq, int n, struct ibv_wc *wc)
{
	struct cqe got[BATCH];
	int all = 0;

	while (all < n) {
		uint32_t want = n - all < BATCH ? (uint32_t)(n - all) : BATCH;
		uint32_t there = cq_poll(h, cq->cq, got, want);

		for (uint32_t i = 0; i < there; i++)
			show(&wc[all++], &got[i]);
		if (there < want)
			break;
	}
	return all;
}

/*
 * Drive the lane, but for completions that are there already: they are taken
 * at once, and the lane has its turn with the poll that finds none.
 */
void v_poll_drive(struct host *h, struct v_cq *cq)
{
	uint32_t still = ring_own(&cq->still);

	if (still < STILL_MAX && cq_has(host_hca(h), cq->cq)) {
		ring_store(&cq->still, still + 1);
		return;
	}
	ring_store(&cq->still, 0);
	host_poll(h, ring_own(&cq->empty));
}

static int nothing(struct host *h, struct v_cq *cq)
{
	ring_store(&cq->empty, ring_own(&cq->empty) + 1);
	host_polled(h, true);
	return 0;
}

int v_poll_cq(struct ibv_cq *ibcq, int n, struct ibv_wc *wc)
{
	struct v_context *c = v_context(ibcq->context);
	struct v_cq *cq = v_cq(ibcq);
	int got;

	if (!v_is_ours(c))
		return -v_fail(EPERM, V_FORKED, "ibv_poll_cq");
	v_poll_drive(c->host, cq);
	if (!cq_has(host_hca(c->host), cq->cq))
		return nothing(c->host, cq);
	lock_take(&cq->face);
	got = take(host_hca(c->host), cq, n, wc);
	ring_store(&cq->empty, got ? 0 : ring_own(&cq->empty) + 1);
	host_polled(c->host, !got);
	lock_give(&cq->face);
	return got;
}

int v_req_notify_cq(struct ibv_cq *ibcq, int solicited_only)
{
	struct v_context *c = v_context(ibcq->context);

	if (!v_is_ours(c))
		return v_fail(EPERM, V_FORKED, "ibv_req_notify_cq");
	cq_arm(v_cq(ibcq)->cq, solicited_only);
	host_armed(c->host);
	return 0;
}
