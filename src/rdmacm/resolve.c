/* SPDX-License-Identifier: BSD-2-Clause */
/* From an address to a device and a path, and multicast groups. */
#include "rdmacm/explain.h"

#include <rdma/rdma_cma.h>

int rdma_resolve_addr(struct rdma_cm_id *id, struct sockaddr *src_addr,
		      struct sockaddr *dst_addr, int timeout_ms)
{
	return r_no_cm("rdma_resolve_addr");
}

int rdma_resolve_route(struct rdma_cm_id *id, int timeout_ms)
{
	return r_no_cm("rdma_resolve_route");
}

int rdma_join_multicast(struct rdma_cm_id *id, struct sockaddr *addr,
			void *context)
{
	return r_no_cm("rdma_join_multicast");
}

int rdma_join_multicast_ex(struct rdma_cm_id *id,
			   struct rdma_cm_join_mc_attr_ex *mc_join_attr,
			   void *context)
{
	return r_no_cm("rdma_join_multicast_ex");
}

int rdma_leave_multicast(struct rdma_cm_id *id, struct sockaddr *addr)
{
	return r_no_cm("rdma_leave_multicast");
}
