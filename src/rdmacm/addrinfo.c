/* SPDX-License-Identifier: BSD-2-Clause */
/* Address information as rdma_getaddrinfo(3) hands it out. */
#include "rdmacm/explain.h"
#include "rdmacm/newer.h"

#include <stdlib.h>

int rdma_getaddrinfo(const char *node, const char *service,
		     const struct rdma_addrinfo *hints,
		     struct rdma_addrinfo **res)
{
	return r_no_cm("rdma_getaddrinfo");
}

/* Every pointer of the list is its own allocation, or NULL. */
void rdma_freeaddrinfo(struct rdma_addrinfo *res)
{
	while (res) {
		struct rdma_addrinfo *next = res->ai_next;

		free(res->ai_src_addr);
		free(res->ai_dst_addr);
		free(res->ai_src_canonname);
		free(res->ai_dst_canonname);
		free(res->ai_route);
		free(res->ai_connect);
		free(res);
		res = next;
	}
}

int rdma_resolve_addrinfo(struct rdma_cm_id *id, const char *node,
			  const char *service,
			  const struct rdma_addrinfo *hints)
{
	return r_no_cm("rdma_resolve_addrinfo");
}

int rdma_query_addrinfo(struct rdma_cm_id *id, struct rdma_addrinfo **info)
{
	return r_no_cm("rdma_query_addrinfo");
}
