/* SPDX-License-Identifier: BSD-2-Clause */
/* Makes ids and their path records, ends searches for routes, and frees results
 * of rdma_getaddrinfo. */
#include "rdmacm/object.h"

#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "util/random.h"

#define SELECT_EQUAL 2
/* Bytes: some 16 ids with their events.  Much larger blocks would have mappings
 * of their own. */
#define HEAP_STEP 60000

struct r_id *r_id_new(struct rdma_event_channel *channel, void *context,
		      enum rdma_port_space ps, enum ibv_qp_type type)
{
	struct r_id *id = calloc(1, sizeof(*id));
	uint32_t random;

	if (!id)
		return NULL;
	if (!random_fill(&random, sizeof(random), true)) {
		free(id);
		errno = ENOSYS;
		return NULL;
	}
	/* The PSN is needed early: a program with a queue pair of its own may
	 * call rdma_init_qp_attr before it connects. */
	id->own.psn = random & 0xffffff;
	id->base.channel = channel;
	id->base.context = context;
	id->base.ps = ps;
	id->base.qp_type = type;
	id->own.qkey = RDMA_UDP_QKEY;
	list_init(&id->by_handle);
	list_init(&id->multicasts);
	list_init(&id->taken);
	return id;
}

/* The block is never used.  With volatile the compiler must keep both calls. */
void r_grow_heap(void)
{
	void *volatile block = malloc(HEAP_STEP);

	free(block);
}

static void fill_record(struct ibv_sa_path_rec *p, const uint8_t local[16],
			const uint8_t peer[16], uint8_t mtu,
			const struct cmproto_path *path)
{
	memcpy(&p->sgid, local, 16);
	memcpy(&p->dgid, peer, 16);
	p->slid = htobe16(path->local_lid);
	p->dlid = htobe16(path->remote_lid);
	p->hop_limit = path->hop_limit;
	p->traffic_class = path->traffic_class;
	p->reversible = 1;
	p->numb_path = 1;
	p->pkey = htobe16(path->pkey);
	p->sl = path->sl;
	p->mtu_selector = p->rate_selector = SELECT_EQUAL;
	p->packet_life_time_selector = SELECT_EQUAL;
	p->mtu = mtu;
	p->rate = path->rate;
	p->packet_life_time = path->life_time;
}

int r_set_record(struct r_id *id, const struct cmproto_path *path)
{
	const struct cmproto_alternate *a = &id->path.alternate;
	int count = a->path.remote_lid ? 2 : 1;
	struct ibv_sa_path_rec *p = calloc((size_t)count, sizeof(*p));

	if (!p)
		return -ENOMEM;
	fill_record(p, id->path.local, id->path.peer, id->path.mtu, path);
	if (count == 2)
		fill_record(p + 1, a->local, a->peer, id->path.mtu, &a->path);
	free(id->base.route.path_rec);
	id->base.route.path_rec = p;
	id->base.route.num_paths = count;
	return 0;
}

void r_route_ended(struct r_id *id, int err)
{
	r_take();
	id->state.wants_route = err != 0;
	id->state.has_route = !err;
	r_give();
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
