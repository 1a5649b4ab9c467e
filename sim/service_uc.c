/* SPDX-License-Identifier: BSD-2-Clause */
/* UC: a receive completes without an error only if the whole message has come.
 * Some bytes of a lost message may have been written. */
#include <string.h>

#include "sim/loose.h"
#include "sim/subnet.h"

static const uint8_t opcodes[] = {HCA_WR_SEND, HCA_WR_SEND_IMM,
				  HCA_WR_RDMA_WRITE, HCA_WR_RDMA_WRITE_IMM};

static bool make_request(struct world *w, struct flow *f, bool defective)
{
	return loose_make(w, f, defective, opcodes, sizeof(opcodes), 65536, 0);
}

static void connect_qp(struct world *w, struct flow *f, struct hca_qp_attr *a)
{
	memcpy(a->ah.dgid, f->to->addr.ip, 16);
	a->ah.is_global = 1;
	a->ah.bursts = rng_chance(&w->rng, 500000);
	a->ah.local = w->kind.direct;
	if (w->subnet)
		subnet_draw_path(f, 1, &a->ah);
	a->port_num = 1;
	a->dest_qpn = f->back->qp->qpn;
	a->access_flags = HCA_REMOTE_WRITE;
	workload_modify(w, f, a, HCA_QP_INIT,
			HCA_QP_PKEY_INDEX | HCA_QP_PORT | HCA_QP_ACCESS_FLAGS);
	workload_modify(w, f, a, HCA_QP_RTR,
			HCA_QP_AV | HCA_QP_PATH_MTU | HCA_QP_DEST_QPN |
				HCA_QP_RQ_PSN);
	workload_modify(w, f, a, HCA_QP_RTS, HCA_QP_SQ_PSN);
}

static void connect_pair(struct world *w, struct flow *f)
{
	struct hca_qp_attr there = {0}, back = {0};

	there.path_mtu = back.path_mtu = 1 + workload_below(w, 5);
	there.sq_psn = back.rq_psn = workload_psn(w, &f[0]);
	there.rq_psn = back.sq_psn = workload_psn(w, &f[1]);
	connect_qp(w, &f[0], &there);
	connect_qp(w, &f[1], &back);
}

static void fill_wqe(const struct flow *f, const struct op *o, struct wqe *e)
{
	e->rkey = f->region[REGION_REMOTE].rkey ^ (o->defect == OP_BAD_RKEY);
	e->va = f->to->memory.va + o->remote;
}

static void check_receive(struct world *w, struct flow *f, uint32_t i,
			  const struct cqe *c)
{
	loose_received(w, f, i, c, 0);
}

static void replay_round(struct flow *f)
{
	loose_replay(f, 0);
}

const struct service service_uc = {
	.qp_type = HCA_QPT_UC,
	.is_lossy = true,
	.make = make_request,
	.connect = connect_pair,
	.fill = fill_wqe,
	.may_end = loose_may_end,
	.received = check_receive,
	.is_over = loose_is_over,
	.replay = replay_round,
};
