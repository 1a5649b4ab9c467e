/* SPDX-License-Identifier: BSD-2-Clause */
/* ibv_poll_cq, ibv_req_notify_cq and ibv_adverb_catch_up. */
#include "verbs/catch_up.h"

#include <errno.h>

#include "verbs/fail.h"
#include "verbs/object.h"
#include "verbs/ops.h"

enum {
	BATCH = 16, /* completions copied at a time */
	/* After so many successful polls in a row the next poll first makes
	 * progress (v_poll). */
	FOUND_MAX = 16,
};

static void show_entry(struct ibv_wc *wc, const struct cqe *c)
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
	wc->slid = c->slid;
	wc->sl = c->sl;
	wc->dlid_path_bits = c->dlid_path_bits;
}

uint32_t v_poll(struct host *h, struct v_cq *cq, struct cqe *out, uint32_t n)
{
	uint32_t found = shared_own(&cq->found), got = 0;

	host_before_poll(h, cq->cq);
	if (found < FOUND_MAX)
		got = cq_poll(host_hca(h), cq->cq, out, n);
	shared_store(&cq->found, got ? found + 1 : 0);
	if (!got) {
		host_poll(h, found < FOUND_MAX ? cq->cq : NULL, &cq->polls);
		got = cq_poll(host_hca(h), cq->cq, out, n);
	}
	host_polled(h, &cq->polls, !got);
	return got;
}

int v_poll_cq(struct ibv_cq *ibcq, int n, struct ibv_wc *wc)
{
	struct v_context *c = v_context(ibcq->context);
	struct v_cq *cq = v_cq(ibcq);
	struct cqe got[BATCH];
	uint32_t want, there;
	int all = 0;

	if (!v_is_ours(c))
		return -v_fail(EPERM, V_FORKED, "ibv_poll_cq");
	n = n < 0 ? 0 : n;
	do {
		want = n - all < BATCH ? (uint32_t)(n - all) : BATCH;
		there = all ? cq_poll(host_hca(c->host), cq->cq, got, want)
			    : v_poll(c->host, cq, got, want);
		for (uint32_t i = 0; i < there; i++)
			show_entry(&wc[all++], &got[i]);
	} while (there == BATCH && all < n);
	if (all)
		instrument_happens_after(c->host);
	/* v_poll has called host_polled for its own batch only. */
	if (all > BATCH)
		host_polled(c->host, &cq->polls, false);
	return all;
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

bool ibv_adverb_catch_up(struct ibv_context *context, uint32_t qpn)
{
	struct v_context *c = v_context(context);

	return v_is_ours(c) && host_catch_up(c->host, qpn);
}
