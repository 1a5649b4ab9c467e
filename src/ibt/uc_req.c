/* SPDX-License-Identifier: BSD-2-Clause */
#include "hca/semantics.h"
#include "ibt/message.h"
#include "ibt/migration.h"
#include "ibt/uc.h"
#include "ibt/unreliable_tx.h"
#include "util/bits.h"

bool uc_req_start(struct ibt *t, struct ibt_qp *q, struct wqe *w, uint32_t unit)
{
	struct req_note *n = rc_req_note(q, q->req.wqe);
	struct explain x = {.cause = EXPLAIN_LOCAL_OP};
	enum hca_status status = HCA_LOC_QP_OP_ERR;

	if (hca_wr_is_message(w->opcode))
		status = sem_check(t->hca, q->qp->pd, w, 0, &x);
	else
		x.detail = "a UC queue pair sends only WRITEs and SENDs "
			   "without invalidate";
	if (status) {
		unreliable_tx_stop(t, q, w, status, &x);
		return false;
	}
	n->packets = w->bytes ? (uint32_t)bits_div_up(w->bytes, unit) : 1;
	return true;
}

size_t uc_req_tx(struct ibt *t, struct ibt_qp *q, uint8_t *buf)
{
	struct pkt p = {
		.bth = {.pkey = BTH_DEFAULT_PKEY, .migreq = migration_bit(q)}};
	struct explain x = {0};
	struct wqe *w = unreliable_tx_next(t, q);
	enum hca_status status;
	size_t len;

	if (!w || (!q->req.packet && !uc_req_start(t, q, w, q->mtu)))
		return 0;
	p.bth.psn = q->req.max.v;
	p.bth.dest_qpn = q->qp->attr.dest_qpn;
	message_fill(q, w, rc_req_note(q, q->req.wqe)->packets,
		     OPCODE_SERVICE_UC, &p);
	status = message_emit(t, q, w, &p, buf, &len, &x);
	if (status) {
		unreliable_tx_stop(t, q, w, status, &x);
		return 0;
	}
	unreliable_tx_advance(t, q);
	return len;
}
