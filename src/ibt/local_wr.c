/* SPDX-License-Identifier: BSD-2-Clause */
#include "ibt/local_wr.h"

bool local_wr_is(const struct wqe *w)
{
	return w->opcode == HCA_WR_BIND_MW || w->opcode == HCA_WR_LOCAL_INV;
}

/* Returns the words that tell the user why w, a bind or an invalidation, is
 * refused. */
static const char *bind_cause(const struct wqe *w, enum mr_verdict v)
{
	bool binds = w->opcode == HCA_WR_BIND_MW;

	switch (v) {
	case MR_OK:
		break;
	case MR_BAD_KEY:
		return binds ? "there is no such window or region; check "
			       "whether it was deallocated or deregistered"
			     : "no window is bound under this key; check "
			       "whether it was invalidated already";
	case MR_BAD_PD:
		return "the window, the region and the queue pair belong to "
		       "different protection domains; create them in one";
	case MR_NO_RIGHT:
		return binds ? "the region lacks IBV_ACCESS_MW_BIND, or lacks "
			       "IBV_ACCESS_LOCAL_WRITE, which a window with "
			       "write access needs"
			     : "only windows of type 2 can be invalidated";
	case MR_OUTSIDE:
		return "the window would extend beyond its region; bind it "
		       "to a range within the region";
	case MR_BAD_QP:
		return "the window is bound through another queue pair; "
		       "use that queue pair";
	case MR_NO_BYTES:
		return "a window of type 2 cannot be bound to zero bytes; "
		       "unbind it by IBV_WR_LOCAL_INV";
	case MR_ZERO_BASED:
		return "IBV_ACCESS_ZERO_BASED is allowed neither for a window "
		       "of type 1 nor for the region of a window";
	case MR_IS_BOUND:
		return "the window of type 2 is bound already; invalidate it "
		       "before it is bound again";
	}
	return NULL;
}

static enum hca_status run_bind(struct hca *h, const struct qp *qp,
				const struct wqe *w, struct explain *x)
{
	struct mw_bind b = {
		.window = w->imm_be,
		.rkey = w->rkey,
		.va = w->va,
		.bytes = w->compare,
		.region = (uint32_t)(w->swap_add >> 32),
		.access = (uint32_t)w->swap_add,
	};
	enum mr_verdict v = w->opcode == HCA_WR_BIND_MW
				    ? mw_bind(h, qp, &b)
				    : mw_invalidate(h, qp, w->imm_be);

	if (v == MR_OK)
		return HCA_SUCCESS;
	x->cause = EXPLAIN_LOCAL_OP;
	x->detail = bind_cause(w, v);
	return HCA_MW_BIND_ERR;
}

bool local_wr_run(struct ibt *t, struct ibt_qp *q, const struct wqe *w,
		  enum hca_status *status, struct explain *x)
{
	*status = HCA_SUCCESS;
	if (!q->direct.awaits_accesses) {
		*status = run_bind(t->hca, q->qp, w, x);
		if (*status)
			return true;
		access_scan_begin(&q->direct.scan, access_key(w->imm_be));
		q->direct.awaits_accesses = true;
	}
	q->direct.awaits_accesses = !access_scan_done(t->hca, &q->direct.scan);
	if (q->direct.awaits_accesses)
		ibt_qp_await_accesses(t, q);
	return !q->direct.awaits_accesses;
}
