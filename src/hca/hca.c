/* SPDX-License-Identifier: BSD-2-Clause */
#include "hca/hca.h"

#include <errno.h>
#include <string.h>

#include "hca/access.h"
#include "hca/event.h"
#include "hca/share.h"

int hca_init(struct hca *h, struct arena arena, struct space *space,
	     uint64_t seed[4])
{
	struct arena_hdr *hdr = (struct arena_hdr *)(void *)arena.base;

	memset(h, 0, sizeof(*h));
	h->arena = arena;
	h->space = space;
	/* 5 means 4096 bytes, the greatest path_mtu.  The limit of each port is
	 * checked elsewhere: path_check_mtu (host/path_check.h) compares
	 * path_mtu with the active_mtu of the port. */
	h->active_mtu = 5;
	list_init(&h->share_looks);
	rng_init(&h->rng, seed[0] ^ seed[1]);
	hdr->root = arena_alloc(&h->arena, sizeof(*h->shared));
	h->shared = arena_at(&h->arena, hdr->root);
	if (!h->shared)
		return -ENOMEM;
	h->shared->key_secret[0] = seed[2];
	h->shared->key_secret[1] = seed[3];
	h->shared->mrs = arena_alloc(&h->arena, HCA_MAX_MR * sizeof(struct mr));
	h->mrs = arena_at(&h->arena, h->shared->mrs);
	if (!h->mrs)
		return -ENOMEM;
	h->shared->shape = HCA_SHAPE;
	h->shared->qps = arena_alloc(&h->arena, HCA_MAX_QP * sizeof(aoff));
	h->rows_taken = arena_at(
		&h->arena, arena_alloc(&h->arena, (HCA_MAX_QP + 63) / 64 *
							  sizeof(uint64_t)));
	h->shared->peer_area =
		arena_alloc_shared(&h->arena, sizeof(*h->peer_area));
	h->peer_area = arena_at(&h->arena, h->shared->peer_area);
	h->shared->counters = arena_alloc(
		&h->arena, HCA_MAX_DEVICES * sizeof(struct engine_counters));
	h->shared->suspects = arena_alloc(
		&h->arena, ENGINE_SUSPECTS * sizeof(struct engine_suspect));
	h->shared->accesses = arena_alloc_shared(
		&h->arena, ACCESS_MAX * sizeof(struct access));
	h->shared->shares =
		arena_alloc(&h->arena, SHARE_MAX * sizeof(struct share));
	if (!h->shared->qps || !h->rows_taken || !h->peer_area ||
	    !h->shared->counters || !h->shared->suspects ||
	    !h->shared->accesses || !h->shared->shares)
		return -ENOMEM;
	h->shared->mr_top = 1; /* no region has row 0: 0 means "no row" */
	return 0;
}

uint32_t hca_pd_new(struct hca *h)
{
	if (h->pds == HCA_MAX_PD)
		return 0;
	h->pds++;
	return ++h->shared->next_pd;
}

void hca_pd_free(struct hca *h)
{
	h->pds--;
}
