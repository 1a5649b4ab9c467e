/* SPDX-License-Identifier: BSD-2-Clause */
#include "hca/wq.h"

#include <errno.h>
#include <stdalign.h>
#include <string.h>

#include "hca/hca.h"
#include "util/bits.h"
#include "util/prefetch.h"

static void init_queue(struct wq *q, uint32_t depth, uint32_t max_sge,
		       uint32_t max_inline, uint32_t extra, uint32_t align)
{
	uint32_t payload = bits_max_u32(
		max_sge * (uint32_t)sizeof(struct wq_sge), max_inline);

	memset(q, 0, sizeof(*q));
	q->depth = depth;
	q->size = bits_pow2_up(depth ? depth : 1);
	q->max_sge = max_sge;
	q->max_inline = payload; /* inline data may use the room of the SGEs */
	q->stride = (uint32_t)bits_align_up(
		sizeof(struct wqe) + payload + extra, align);
}

static int make_slots(struct hca *h, struct wq *q)
{
	q->slots = arena_alloc(&h->arena, (uint64_t)q->size * q->stride);
	return q->slots ? 0 : -ENOMEM;
}

int wq_init(struct hca *h, struct wq *q, uint32_t depth, uint32_t max_sge,
	    uint32_t max_inline)
{
	init_queue(q, depth, max_sge, max_inline, 0, 16);
	return make_slots(h, q);
}

int wq_init_ud(struct hca *h, struct wq *q, uint32_t depth, uint32_t max_sge,
	       uint32_t max_inline)
{
	init_queue(q, depth, max_sge, max_inline, sizeof(struct wq_to), 16);
	return make_slots(h, q);
}

/* A queue also works without bounce buffers, only slower. */
static void make_bounces(struct hca *h, struct wq *q)
{
	uint32_t n = bits_min_u32(q->size, WQ_BOUNCES);

	q->bounce = arena_alloc_buffer(&h->arena, n * WQ_BOUNCE_BYTES);
	q->bounces = q->bounce ? n : 0;
}

int wq_init_recv(struct hca *h, struct wq *q, uint32_t depth, uint32_t max_sge)
{
	init_queue(q, depth, max_sge, 0, WQE_EAGER_BYTES, PREFETCH_LINE);
	q->slots = arena_alloc_shared(&h->arena, (uint64_t)q->size * q->stride);
	q->ids = arena_alloc(&h->arena, q->size * sizeof(uint64_t));
	if (q->slots && q->ids) {
		make_bounces(h, q);
		return 0;
	}
	wq_fini(h, q);
	return -ENOMEM;
}

void wq_fini(struct hca *h, struct wq *q)
{
	arena_free(&h->arena, q->slots, (uint64_t)q->size * q->stride);
	arena_free(&h->arena, q->ids, q->size * sizeof(uint64_t));
	arena_free(&h->arena, q->bounce, q->bounces * WQ_BOUNCE_BYTES);
	q->slots = q->ids = q->bounce = 0;
	q->bounces = 0;
}

bool wq_is_sound(const struct hca *h, const struct wq *q, uint32_t extra)
{
	return q->size && !(q->size & (q->size - 1)) &&
	       q->max_sge <= HCA_MAX_SGE &&
	       q->stride >= sizeof(struct wqe) +
				    q->max_sge * sizeof(struct wq_sge) +
				    extra &&
	       q->stride % alignof(struct wqe) == 0 &&
	       q->slots % alignof(struct wqe) == 0 &&
	       arena_has(&h->arena, q->slots, (uint64_t)q->size * q->stride);
}

struct wqe *wq_at(const struct hca *h, const struct wq *q, uint32_t index)
{
	uint64_t slot = index & (q->size - 1);

	return (struct wqe *)arena_at(&h->arena, q->slots + slot * q->stride);
}

struct wqe *wq_reserve(const struct hca *h, struct wq *q)
{
	return wq_reserve_after(h, q, 0);
}

struct wqe *wq_reserve_after(const struct hca *h, struct wq *q, uint32_t ahead)
{
	uint32_t head = shared_own(&q->head) + ahead;

	if (head - shared_load(&q->tail) >= q->depth)
		return NULL;
	return wq_at(h, q, head);
}
