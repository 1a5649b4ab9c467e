/* SPDX-License-Identifier: BSD-2-Clause */
/* The conversation: listen, connect, accept, reject, disconnect. */
#include "rdmacm/explain.h"

#include <rdma/rdma_cma.h>

int rdma_listen(struct rdma_cm_id *id, int backlog)
{
	return r_no_cm("rdma_listen");
}

int rdma_get_request(struct rdma_cm_id *listen, struct rdma_cm_id **id)
{
	return r_no_cm("rdma_get_request");
}

int rdma_connect(struct rdma_cm_id *id, struct rdma_conn_param *conn_param)
{
	return r_no_cm("rdma_connect");
}

int rdma_accept(struct rdma_cm_id *id, struct rdma_conn_param *conn_param)
{
	return r_no_cm("rdma_accept");
}

int rdma_reject(struct rdma_cm_id *id, const void *private_data,
		uint8_t private_data_len)
{
	return r_no_cm("rdma_reject");
}

int rdma_reject_ece(struct rdma_cm_id *id, const void *private_data,
		    uint8_t private_data_len)
{
	return r_no_cm("rdma_reject_ece");
}

int rdma_establish(struct rdma_cm_id *id)
{
	return r_no_cm("rdma_establish");
}

int rdma_notify(struct rdma_cm_id *id, enum ibv_event_type event)
{
	return r_no_cm("rdma_notify");
}

int rdma_disconnect(struct rdma_cm_id *id)
{
	return r_no_cm("rdma_disconnect");
}

int rdma_init_qp_attr(struct rdma_cm_id *id, struct ibv_qp_attr *qp_attr,
		      int *qp_attr_mask)
{
	return r_no_cm("rdma_init_qp_attr");
}

int rdma_set_local_ece(struct rdma_cm_id *id, struct ibv_ece *ece)
{
	return r_no_cm("rdma_set_local_ece");
}

int rdma_get_remote_ece(struct rdma_cm_id *id, struct ibv_ece *ece)
{
	return r_no_cm("rdma_get_remote_ece");
}
