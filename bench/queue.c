/* SPDX-License-Identifier: BSD-2-Clause */
#include "queue.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "raw.h"

#define GID_INDEX 1 /* a RoCEv2 GID: the IPv4 address, if there is one */

void queue_check(bool good, const char *what)
{
	if (!good)
		raw_die(what);
}

void queue_check_result(int err, const char *what)
{
	if (!err)
		return;
	errno = err;
	raw_die(what);
}

void queue_die(const char *sentence)
{
	fprintf(stderr, "%s\n", sentence);
	exit(1);
}

void queue_require(bool good, const char *sentence)
{
	if (!good)
		queue_die(sentence);
}

struct queue_device queue_open(void)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct queue_device d;

	queue_check(list, "ibv_get_device_list");
	queue_require(list[0], "bench: there is no RDMA device; run the "
			       "program under adverb run");
	d.context = ibv_open_device(list[0]);
	queue_check(d.context, "ibv_open_device");
	ibv_free_device_list(list);
	queue_check(!ibv_query_gid(d.context, 1, GID_INDEX, &d.gid),
		    "ibv_query_gid");
	return d;
}

struct ibv_qp *queue_create(struct ibv_pd *pd, struct ibv_cq *cq,
			    uint32_t depth)
{
	struct ibv_qp_init_attr init = {
		.send_cq = cq,
		.recv_cq = cq,
		.qp_type = IBV_QPT_RC,
		.cap = {.max_send_wr = depth,
			.max_recv_wr = depth,
			.max_send_sge = 1,
			.max_recv_sge = 1},
	};
	struct ibv_qp *qp = ibv_create_qp(pd, &init);

	queue_check(qp, "ibv_create_qp");
	return qp;
}

static int modify_qp(struct ibv_qp *qp, struct ibv_qp_attr a, int mask)
{
	return ibv_modify_qp(qp, &a, mask | IBV_QP_STATE);
}

void queue_connect(const struct queue_device *d, struct ibv_qp *qp,
		   uint32_t qpn)
{
	struct ibv_qp_attr init = {.qp_state = IBV_QPS_INIT,
				   .port_num = 1,
				   .qp_access_flags = QUEUE_RIGHTS};
	struct ibv_qp_attr rtr = {
		.qp_state = IBV_QPS_RTR,
		.path_mtu = IBV_MTU_1024,
		.dest_qp_num = qpn,
		.max_dest_rd_atomic = 16,
		.min_rnr_timer = 12,
		.ah_attr = {.is_global = 1,
			    .port_num = 1,
			    .grh = {.dgid = d->gid,
				    .sgid_index = GID_INDEX,
				    .hop_limit = 64}},
	};
	struct ibv_qp_attr rts = {.qp_state = IBV_QPS_RTS,
				  .timeout = 14,
				  .retry_cnt = 7,
				  .rnr_retry = 7,
				  .max_rd_atomic = 16};

	queue_check_result(modify_qp(qp, init,
				     IBV_QP_PKEY_INDEX | IBV_QP_PORT |
					     IBV_QP_ACCESS_FLAGS),
			   "ibv_modify_qp to INIT");
	queue_check_result(modify_qp(qp, rtr,
				     IBV_QP_AV | IBV_QP_PATH_MTU |
					     IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
					     IBV_QP_MAX_DEST_RD_ATOMIC |
					     IBV_QP_MIN_RNR_TIMER),
			   "ibv_modify_qp to RTR");
	queue_check_result(modify_qp(qp, rts,
				     IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
					     IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
					     IBV_QP_MAX_QP_RD_ATOMIC),
			   "ibv_modify_qp to RTS");
}
