/* SPDX-License-Identifier: BSD-2-Clause */
#include "ibt/message.h"
#include "ibt/uc.h"

/* Drops the message that has begun or, if none has begun, the message of the
 * present packet. */
static void drop_message(struct ibt *t, struct ibt_qp *q, struct explain *x,
			 enum ibt_drop why)
{
	q->resp.in_message = false;
	ibt_dropped(t, q, x, why, q->qp->attr.dest_qpn);
}

/*
 * Does p begin a message, or continue the message that has begun?  After a
 * missing PSN, packets are dropped until a message begins (IBTA 9.8.2.2.2).
 */
static bool is_in_turn(struct ibt *t, struct ibt_qp *q, const struct pkt *p)
{
	struct explain x = {.opcode = p->bth.opcode};
	struct rc_resp *r = &q->resp;
	struct serial24 psn = serial24(p->bth.psn);
	bool gap = !serial24_is_equal(psn, r->epsn);

	r->epsn = serial24_add(psn, 1);
	if (gap)
		q->counters->rx_out_of_order++;
	/* A gap, or the beginning of the next message, drops the message that
	 * has begun.  If none has begun, a gap before a packet that begins no
	 * message drops that packet's message.  So a message with two gaps is
	 * counted twice. */
	if (r->in_message ? gap || opcode_starts(p->info)
			  : gap && !opcode_starts(p->info))
		drop_message(t, q, &x, IBT_DROP_LOST);
	return opcode_starts(p->info) || r->in_message;
}

/* Acts on v, the verdict on p.  V_OK: does nothing.  V_RECV_MEMORY: completes
 * the receive with an error, and fails the QP.  Any other verdict: drops the
 * message of p.  The requester never gets an answer (IBTA 9.9.3). */
static void refuse_message(struct ibt *t, struct ibt_qp *q, const struct pkt *p,
			   enum verdict v, struct explain *x)
{
	switch (v) {
	case V_OK:
		break;
	case V_RNR:
		drop_message(t, q, x, IBT_DROP_RECEIVE);
		break;
	case V_INVALID:
	case V_INVALIDATE:
		/* x->cause is set if q does not permit WRITEs (message_key) */
		if (x->cause)
			ibt_explain(t, q, x);
		drop_message(t, q, x,
			     x->cause ? IBT_DROP_KEY : IBT_DROP_INVALID);
		break;
	case V_TOO_LONG:
		drop_message(t, q, x, IBT_DROP_LENGTH);
		break;
	case V_ACCESS:
		t->sign = ENGINE_SIGN_KEY;
		ibt_explain(t, q, x);
		drop_message(t, q, x, IBT_DROP_KEY);
		break;
	case V_REMOTE_FAULT:
		ibt_explain(t, q, x);
		drop_message(t, q, x, IBT_DROP_KEY);
		break;
	case V_RECV_MEMORY:
		ibt_explain(t, q, x);
		message_complete(t, q, p, HCA_LOC_PROT_ERR);
		if (q->qp->state != HCA_QP_ERR)
			ibt_qp_fail(t, q, ENGINE_EXPLAIN);
		break;
	}
}

void uc_resp_rx(struct ibt *t, struct ibt_qp *q, const struct pkt *p)
{
	struct explain x = {.opcode = p->bth.opcode};
	uint32_t state = q->qp->state;
	enum verdict v;

	if (state < HCA_QP_RTR || state > HCA_QP_SQE)
		return;
	if (!q->heard) {
		q->heard = true;
		if (state == HCA_QP_RTR)
			ibt_event(t, q, ENGINE_COMM_EST);
	}
	if (!is_in_turn(t, q, p))
		return;
	if (opcode_starts(p->info))
		q->resp.offset = 0;
	v = message_order(q, p, &x);
	if (!v && p->info->kind == OPCODE_KIND_WRITE)
		v = message_write(t, q, p, &x);
	if (!v) {
		x.detail = NULL;
		v = message_receive(t, q, p, &x);
	}
	if (!v)
		v = message_apply(t, q, p, &x);
	if (!v)
		message_count(q, p);
	refuse_message(t, q, p, v, &x);
}
