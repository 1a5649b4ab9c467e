/* SPDX-License-Identifier: BSD-2-Clause */
/* Makes ids, and frees the addresses that an id may own. */
#include "rdmacm/object.h"

#include <stdlib.h>

#include "util/random.h"

struct r_id *r_id_new(struct rdma_event_channel *channel, void *context,
		      enum rdma_port_space ps, enum ibv_qp_type type)
{
	struct r_id *id = calloc(1, sizeof(*id));
	uint32_t random = 0;

	if (!id)
		return NULL;
	/* The PSN is needed early: a program with a queue pair of its own may
	 * call rdma_init_qp_attr before it connects. */
	if (random_fill(&random, sizeof(random), true))
		id->own.psn = random & 0xffffff;
	id->base.channel = channel;
	id->base.context = context;
	id->base.ps = ps;
	id->base.qp_type = type;
	id->own.qkey = RDMA_UDP_QKEY;
	list_init(&id->by_handle);
	list_init(&id->multicasts);
	return id;
}

/* Each pointer is NULL or an allocation of its own. */
static void free_one(struct rdma_addrinfo *r)
{
	free(r->ai_src_addr);
	free(r->ai_dst_addr);
	free(r->ai_src_canonname);
	free(r->ai_dst_canonname);
	free(r->ai_route);
	free(r->ai_connect);
	free(r);
}

void r_free_info(struct rdma_addrinfo *res)
{
	while (res) {
		struct rdma_addrinfo *next = res->ai_next;

		free_one(res);
		res = next;
	}
}
