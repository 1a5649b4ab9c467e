/* SPDX-License-Identifier: BSD-2-Clause */
/* Endpoints: an id with its queues, made in one call or piece by piece. */
#include "rdmacm/explain.h"

#include <rdma/rdma_verbs.h>

int rdma_create_ep(struct rdma_cm_id **id, struct rdma_addrinfo *res,
		   struct ibv_pd *pd, struct ibv_qp_init_attr *qp_init_attr)
{
	return r_no_cm("rdma_create_ep");
}

void rdma_destroy_ep(struct rdma_cm_id *id)
{
}

int rdma_create_qp(struct rdma_cm_id *id, struct ibv_pd *pd,
		   struct ibv_qp_init_attr *qp_init_attr)
{
	return r_no_cm("rdma_create_qp");
}

int rdma_create_qp_ex(struct rdma_cm_id *id,
		      struct ibv_qp_init_attr_ex *qp_init_attr)
{
	return r_no_cm("rdma_create_qp_ex");
}

void rdma_destroy_qp(struct rdma_cm_id *id)
{
}

int rdma_create_srq(struct rdma_cm_id *id, struct ibv_pd *pd,
		    struct ibv_srq_init_attr *attr)
{
	return r_no_cm("rdma_create_srq");
}

int rdma_create_srq_ex(struct rdma_cm_id *id, struct ibv_srq_init_attr_ex *attr)
{
	return r_no_cm("rdma_create_srq_ex");
}

void rdma_destroy_srq(struct rdma_cm_id *id)
{
}
