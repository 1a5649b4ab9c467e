/* SPDX-License-Identifier: BSD-2-Clause */
/* UD: a message is one packet; a receive begins with 40 bytes for a GRH. */
#include <string.h>

#include "ibt/ud.h"
#include "sim/loose.h"
#include "sim/pair.h"
#include "sim/subnet.h"

static const uint8_t opcodes[] = {HCA_WR_SEND, HCA_WR_SEND_IMM};

static bool make_request(struct world *w, struct flow *f, bool defective)
{
	return loose_make(w, f, defective, opcodes, sizeof(opcodes), 4096,
			  UD_GRH_BYTES);
}

/* Both QPs of a pair have this Q_Key. */
static uint32_t qkey_of(const struct flow *f)
{
	return 0x10000u + f->pair->flow[0].id;
}

static void connect_qp(struct world *w, struct flow *f)
{
	struct hca_qp_attr a = {.port_num = 1, .qkey = qkey_of(f)};

	workload_modify(w, f, &a, HCA_QP_INIT,
			HCA_QP_PKEY_INDEX | HCA_QP_PORT | HCA_QP_QKEY);
	workload_modify(w, f, &a, HCA_QP_RTR, 0);
	a.sq_psn = workload_psn(w, f);
	workload_modify(w, f, &a, HCA_QP_RTS, HCA_QP_SQ_PSN);
}

static void connect_pair(struct world *w, struct flow *f)
{
	connect_qp(w, &f[0]);
	connect_qp(w, &f[1]);
}

/* Must the completions of the pair's datagrams have HCA_WC_GRH?  RoCEv2 has an
 * IP header in place of the GRH, and all its completions have HCA_WC_GRH. */
static bool has_grh(const struct flow *f)
{
	return !f->from->world->subnet || f->pair->flow[0].id / 2 % 2;
}

/* Sets the path by LID, whether there is a GRH, and the GIDs of both ends. */
static void address_by_lid(const struct flow *f, struct wq_to *to)
{
	struct hca_ah ah = {.dlid = 0};

	subnet_address(f, 1, &ah);
	to->lid = (struct wq_lid){.dlid = ah.dlid, .sl = ah.sl, .port_num = 1};
	to->local = 0;
	to->has_grh = has_grh(f);
	memcpy(to->from, ah.sgid, 16);
	memcpy(to->to, ah.dgid, 16);
}

static void fill_wqe(const struct flow *f, const struct op *o, struct wqe *e)
{
	struct wq_to *to = wq_to(&f->qp->sq, e);

	/* OP_BAD_RKEY means a bad Q_Key here.  One request in four has a Q_Key
	 * with the high-order bit set: then the QP's own Q_Key is sent. */
	*to = (struct wq_to){
		.qpn = f->back->qp ? f->back->qp->qpn : 2, /* 2: no QP */
		.qkey = o->defect == OP_BAD_RKEY ? 1
			: o->imm % 4		 ? qkey_of(f)
						 : 0x80000000u,
		.bursts = o->imm % 2,
		/* if faults may reorder messages, one in eight uses packets */
		.local = f->from->world->kind.direct &&
			 (!f->pair->rough || o->imm / 8 % 8),
	};
	memcpy(to->from, f->from->addr.ip, 16);
	memcpy(to->to, f->to->addr.ip, 16);
	if (f->from->world->subnet)
		address_by_lid(f, to);
}

static void check_receive(struct world *w, struct flow *f, uint32_t i,
			  const struct cqe *c)
{
	bool has = c->wc_flags & HCA_WC_GRH;

	/* round.dead: the sender's process has ended, and the QP of a new
	 * process has another QPN */
	if (!c->status && !f->round.dead && c->src_qpn != f->qp->qpn)
		world_fail(w,
			   "flow %u receive %u: the completion names QPN 0x%x "
			   "as the source, and QPN 0x%x has sent the datagram",
			   f->id, i, c->src_qpn, f->qp->qpn);
	if (!c->status && has != has_grh(f))
		world_fail(w,
			   "flow %u receive %u: the completion says %s, and "
			   "the datagram was sent %s",
			   f->id, i, has ? "a GRH" : "no GRH",
			   has ? "without one" : "with one");
	loose_received(w, f, i, c, UD_GRH_BYTES);
}

static void replay_round(struct flow *f)
{
	loose_replay(f, UD_GRH_BYTES);
}

const struct service service_ud = {
	.qp_type = HCA_QPT_UD,
	.is_lossy = true,
	.make = make_request,
	.connect = connect_pair,
	.fill = fill_wqe,
	.may_end = loose_may_end,
	.received = check_receive,
	.is_over = loose_is_over,
	.replay = replay_round,
};
