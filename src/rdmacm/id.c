/* SPDX-License-Identifier: BSD-2-Clause */
/* Ids: making, binding, options, and what an id knows by itself. */
#include "rdmacm/explain.h"

#include <rdma/rdma_cma.h>

int rdma_create_id(struct rdma_event_channel *channel, struct rdma_cm_id **id,
		   void *context, enum rdma_port_space ps)
{
	return r_no_cm("rdma_create_id");
}

int rdma_destroy_id(struct rdma_cm_id *id)
{
	return r_no_cm("rdma_destroy_id");
}

int rdma_bind_addr(struct rdma_cm_id *id, struct sockaddr *addr)
{
	return r_no_cm("rdma_bind_addr");
}

int rdma_migrate_id(struct rdma_cm_id *id, struct rdma_event_channel *channel)
{
	return r_no_cm("rdma_migrate_id");
}

int rdma_set_option(struct rdma_cm_id *id, int level, int optname, void *optval,
		    size_t optlen)
{
	return r_no_cm("rdma_set_option");
}

/* Network order; 0 for an address family without ports. */
static __be16 port_of(const struct sockaddr *addr)
{
	switch (addr->sa_family) {
	case AF_INET:
		return ((const struct sockaddr_in *)addr)->sin_port;
	case AF_INET6:
		return ((const struct sockaddr_in6 *)addr)->sin6_port;
	default:
		return 0;
	}
}

__be16 rdma_get_src_port(struct rdma_cm_id *id)
{
	return port_of(&id->route.addr.src_addr);
}

__be16 rdma_get_dst_port(struct rdma_cm_id *id)
{
	return port_of(&id->route.addr.dst_addr);
}

struct ibv_context **rdma_get_devices(int *num_devices)
{
	if (num_devices)
		*num_devices = 0;
	r_no_cm("rdma_get_devices");
	return NULL;
}

void rdma_free_devices(struct ibv_context **list)
{
}
