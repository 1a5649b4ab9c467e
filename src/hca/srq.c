/* SPDX-License-Identifier: BSD-2-Clause */
#include "hca/hca.h"

#include <errno.h>
#include <string.h>

#include "util/bits.h"

struct srq *srq_new(struct hca *h, uint32_t pd, uint32_t depth,
		    uint32_t max_sge, uint64_t user)
{
	struct srq *s = arena_at(&h->arena, arena_alloc(&h->arena, sizeof *s));

	if (!s)
		return NULL;
	if (wq_init(h, &s->wq, depth, max_sge, 0)) {
		arena_free(&h->arena, hca_off(h, s), sizeof *s);
		return NULL;
	}
	s->pd = pd;
	s->user = user;
	return s;
}

void srq_free(struct hca *h, struct srq *s)
{
	wq_fini(h, &s->wq);
	arena_free(&h->arena, hca_off(h, s), sizeof *s);
}

static uint32_t count(const struct srq *s)
{
	return ring_load(&s->wq.head) - ring_load(&s->wq.tail);
}

int srq_resize(struct hca *h, struct srq *s, uint32_t depth)
{
	struct wq old, new;
	uint32_t n = 0;
	int err = wq_init(h, &new, depth, s->wq.max_sge, 0);

	if (err)
		return err;
	alock_take(&s->lock);
	old = s->wq;
	if (count(s) > depth) {
		alock_give(&s->lock);
		wq_fini(h, &new);
		return -EINVAL;
	}
	for (uint32_t i = ring_own(&old.tail); i != ring_own(&old.head); i++)
		memcpy(wq_at(h, &new, n++), wq_at(h, &old, i), old.stride);
	ring_store(&new.head, n);
	s->wq = new;
	alock_give(&s->lock);
	wq_fini(h, &old);
	return 0;
}

static bool is_low(struct srq *s)
{
	if (!s->limit || count(s) >= s->limit)
		return false;
	s->limit = 0;
	return true;
}

bool srq_arm(struct srq *s, uint32_t limit)
{
	bool low;

	alock_take(&s->lock);
	s->limit = limit;
	low = is_low(s);
	alock_give(&s->lock);
	return low;
}

bool srq_take(struct hca *h, struct srq *s, struct wqe *out, bool *low)
{
	uint32_t i;
	bool got;

	alock_take(&s->lock);
	i = ring_own(&s->wq.tail);
	got = i != ring_load(&s->wq.head) && wq_is_sound(h, &s->wq);
	if (got) {
		const struct wqe *w = wq_at(h, &s->wq, i);

		memcpy(out, w,
		       sizeof *w + bits_min_u32(w->num_sge, s->wq.max_sge) *
					   sizeof(struct wq_sge));
		ring_store(&s->wq.tail, i + 1);
		*low = is_low(s);
	}
	alock_give(&s->lock);
	return got;
}
