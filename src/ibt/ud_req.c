/* SPDX-License-Identifier: BSD-2-Clause */
#include <string.h>

#include "hca/semantics.h"
#include "ibt/message.h"
#include "ibt/ud.h"
#include "ibt/unreliable_tx.h"
#include "util/bits.h"

/* A Q_Key with this bit in a work request stands for the Q_Key of the sending
 * queue pair (IBTA 10.2.5). */
#define QKEY_OWN 0x80000000u

/* Returns how many bytes w may have: the smaller of the MTUs of the QP and of
 * the port from which the address handle sends. */
static uint32_t max_message_bytes(const struct ibt_qp *q, struct wqe *w)
{
	const struct wq_to *to = wq_to(&q->qp->sq, w);

	return to->mtu ? bits_min_u32(q->mtu, 128u << to->mtu) : q->mtu;
}

/* By LID: is the address handle of w for another port than that of q?  The path
 * bits and the source GID of an address handle are those of one port, and a
 * datagram leaves by the port of its QP. */
static bool has_other_port(const struct ibt_qp *q, struct wqe *w)
{
	return q->qp->is_by_lid &&
	       wq_to(&q->qp->sq, w)->lid.port_num != q->qp->attr.port_num;
}

bool ud_req_start(struct ibt *t, struct ibt_qp *q, struct wqe *w)
{
	struct explain x = {.cause = EXPLAIN_LOCAL_OP};
	enum hca_status status = HCA_LOC_QP_OP_ERR;

	if (!hca_wr_is_send(w->opcode)) {
		x.detail =
			"a UD queue pair sends only SENDs without invalidate";
	} else if (has_other_port(q, w)) {
		x.detail = "the address handle belongs to another port than "
			   "the queue pair; create it with an ah_attr.port_num "
			   "that is the port_num of the queue pair";
	} else if (w->bytes > max_message_bytes(q, w)) {
		status = HCA_LOC_LEN_ERR;
		x.detail = "a UD message may not be longer than the port's "
			   "MTU; send it in parts, or use RC or UC";
	} else {
		status = sem_check(t->hca, q->qp->pd, w, 0, &x);
	}
	if (!status) {
		rc_req_note(q, q->req.wqe)->packets = 1;
		return true;
	}
	unreliable_tx_stop(t, q, w, status, &x);
	return false;
}

uint32_t ud_req_qkey(const struct ibt_qp *q, const struct wq_to *to)
{
	return to->qkey & QKEY_OWN ? q->qp->attr.qkey : to->qkey;
}

/*
 * Is it known that the request at the cursor goes by packets?  It is if the
 * destination is not on this host, if q has no table of targets, or if the
 * destination's QPN is the last for which initiator_ud_turn looked up a path.
 * That path is by packets, since otherwise the engine does not call ud_req_tx.
 */
static bool is_for_packets(const struct ibt_qp *q, const struct wq_to *to)
{
	return !q->direct.targets || !to->local ||
	       to->qpn == q->direct.packets_to;
}

size_t ud_req_tx(struct ibt *t, struct ibt_qp *q, uint8_t *buf,
		 struct wq_to *to)
{
	struct pkt p = {.bth = {.pkey = BTH_DEFAULT_PKEY, .migreq = true}};
	struct explain x = {0};
	struct wqe *w = unreliable_tx_next(t, q);
	enum hca_status status;
	size_t len;

	if (!w)
		return 0;
	*to = *wq_to(&q->qp->sq, w);
	if (!is_for_packets(q, to)) {
		ibt_qp_activate(t, q);
		return 0;
	}
	if (!ud_req_start(t, q, w))
		return 0;
	memcpy(q->self.ip, to->from, 16);
	p.bth.psn = q->req.max.v;
	p.bth.dest_qpn = to->qpn;
	message_fill(q, w, 1, OPCODE_SERVICE_UD, &p);
	p.deth.src_qpn = q->qp->qpn;
	p.deth.qkey = ud_req_qkey(q, to);
	status = message_emit(t, q, w, &p, buf, &len, &x);
	if (status) {
		unreliable_tx_stop(t, q, w, status, &x);
		return 0;
	}
	unreliable_tx_advance(t, q);
	return len;
}
