/* SPDX-License-Identifier: BSD-2-Clause */
/* The state and attributes of a queue pair. */
#include <errno.h>
#include <string.h>

#include "verbs/ah.h"
#include "verbs/fail.h"
#include "verbs/object.h"

static void ah_out(struct ibv_ah_attr *to, const struct hca_ah *from)
{
	memcpy(to->grh.dgid.raw, from->dgid, sizeof(from->dgid));
	to->grh.flow_label = from->flow_label;
	to->grh.sgid_index = from->sgid_index;
	to->grh.hop_limit = from->hop_limit;
	to->grh.traffic_class = from->traffic_class;
	to->dlid = from->dlid;
	to->sl = from->sl;
	to->src_path_bits = from->src_path_bits;
	to->static_rate = from->static_rate;
	to->is_global = from->is_global;
	to->port_num = from->port_num;
}

/* Copies fields of the same name and meaning in both structs. */
#define COPY_PLAIN(to, from)                                                   \
	do {                                                                   \
		(to)->qkey = (from)->qkey;                                     \
		(to)->rq_psn = (from)->rq_psn;                                 \
		(to)->sq_psn = (from)->sq_psn;                                 \
		(to)->pkey_index = (from)->pkey_index;                         \
		(to)->alt_pkey_index = (from)->alt_pkey_index;                 \
		(to)->en_sqd_async_notify = (from)->en_sqd_async_notify;       \
		(to)->sq_draining = (from)->sq_draining;                       \
		(to)->max_rd_atomic = (from)->max_rd_atomic;                   \
		(to)->max_dest_rd_atomic = (from)->max_dest_rd_atomic;         \
		(to)->min_rnr_timer = (from)->min_rnr_timer;                   \
		(to)->port_num = (from)->port_num;                             \
		(to)->timeout = (from)->timeout;                               \
		(to)->retry_cnt = (from)->retry_cnt;                           \
		(to)->rnr_retry = (from)->rnr_retry;                           \
		(to)->alt_port_num = (from)->alt_port_num;                     \
		(to)->alt_timeout = (from)->alt_timeout;                       \
	} while (0)

/* Copies ah_attr, alt_ah_attr and rate_limit only if the mask names them: the
 * struct of an old program has no rate_limit, and a program may leave ah_attr
 * and alt_ah_attr uninitialised. */
static void attr_in(struct hca_qp_attr *to, const struct ibv_qp_attr *from,
		    int mask)
{
	memset(to, 0, sizeof(*to));
	COPY_PLAIN(to, from);
	to->qp_state = from->qp_state;
	to->cur_qp_state = from->cur_qp_state;
	to->path_mtu = from->path_mtu;
	to->path_mig_state = from->path_mig_state;
	to->dest_qpn = from->dest_qp_num;
	to->access_flags = from->qp_access_flags;
	if (mask & IBV_QP_AV)
		v_ah_in(&to->ah, &from->ah_attr);
	if (mask & IBV_QP_ALT_PATH)
		v_ah_in(&to->alt_ah, &from->alt_ah_attr);
	if (mask & IBV_QP_RATE_LIMIT)
		to->rate_limit = from->rate_limit;
}

/* Leaves rate_limit unchanged: an old program's struct lacks that field. */
static void attr_out(struct ibv_qp_attr *to, const struct hca_qp_attr *from)
{
	memset(to, 0, offsetof(struct ibv_qp_attr, rate_limit));
	COPY_PLAIN(to, from);
	to->qp_state = (enum ibv_qp_state)from->qp_state;
	to->cur_qp_state = to->qp_state;
	to->path_mtu = (enum ibv_mtu)from->path_mtu;
	to->path_mig_state = (enum ibv_mig_state)from->path_mig_state;
	to->dest_qp_num = from->dest_qpn;
	to->qp_access_flags = from->access_flags;
	ah_out(&to->ah_attr, &from->ah);
	ah_out(&to->alt_ah_attr, &from->alt_ah);
}

int ibv_modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int attr_mask)
{
	struct v_qp *q = v_qp(qp);
	const struct device *dev = v_context(qp->context)->dev;
	const char *why = "the adapter gives no reason";
	struct alock_wait wait = {0};
	uint32_t mask = (uint32_t)attr_mask;
	struct hca_qp_attr a;
	int err;

	if (q->process != v_process())
		return v_fail(EPERM, V_FORKED, "ibv_modify_qp");
	attr_in(&a, attr, attr_mask);
	while ((err = host_qp_modify(q->host, dev, q->side, &a, mask, &why)) ==
	       -EBUSY) {
		/* The first call has compared the state with cur_qp_state.  It
		 * may then have ended the QP's stream, which moves the QP to
		 * ERR: the next call must not compare the state again. */
		if (a.qp_state == HCA_QP_RESET)
			mask &= ~(uint32_t)HCA_QP_CUR_STATE;
		host_qp_wait(q->side, &wait);
	}
	if (err)
		return v_fail(-err, V_MODIFY, why);
	if (attr_mask & IBV_QP_STATE)
		qp->state = attr->qp_state;
	return 0;
}

int ibv_query_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int attr_mask,
		 struct ibv_qp_init_attr *init)
{
	struct v_qp *q = v_qp(qp);
	struct hca_qp_attr a;

	if (q->process != v_process())
		return v_fail(EPERM, V_FORKED, "ibv_query_qp");
	host_qp_query(q->host, q->side, &a);
	attr_out(attr, &a);
	attr->cap = q->cap;
	*init = (struct ibv_qp_init_attr){
		.qp_context = qp->qp_context,
		.send_cq = qp->send_cq,
		.recv_cq = qp->recv_cq,
		.srq = qp->srq,
		.cap = q->cap,
		.qp_type = qp->qp_type,
		.sq_sig_all = (int)q->qp->sq_sig_all,
	};
	if (attr_mask & IBV_QP_STATE)
		qp->state = attr->qp_state;
	return 0;
}

int ibv_query_qp_data_in_order(struct ibv_qp *qp, enum ibv_wr_opcode op,
			       uint32_t flags)
{
	return 0;
}

int ibv_query_ece(struct ibv_qp *qp, struct ibv_ece *ece)
{
	return EOPNOTSUPP;
}

int ibv_set_ece(struct ibv_qp *qp, struct ibv_ece *ece)
{
	return EOPNOTSUPP;
}
