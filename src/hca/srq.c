/* SPDX-License-Identifier: BSD-2-Clause */
#include "hca/hca.h"

#include <errno.h>
#include <string.h>

#include "util/bits.h"
#include "util/step.h"

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

static bool is_low(struct srq *s)
{
	if (!s->limit || count(s) >= s->limit)
		return false;
	atomic_store(&s->owed, 1);
	STEP("a limit's event is owed");
	s->limit = 0;
	return true;
}

/* A peer died while it took a receive: with its QP holding it it is taken. */
static void mend(struct hca *h, struct srq *s)
{
	const struct qp *qp = arena_at(&h->arena, s->taker);

	if (qp && arena_has(&h->arena, s->taker, sizeof *qp) &&
	    rq_held(h, qp)) {
		ring_store(&s->wq.tail, s->taken);
		is_low(s);
	}
	s->taker = 0;
}

static void enter(struct hca *h, struct srq *s) ACQUIRE(&s->lock)
{
	if (alock_take(&s->lock))
		mend(h, s);
	STEP("the shared receives are locked");
}

static void leave(struct srq *s) RELEASE(&s->lock)
{
	STEP("the shared receives are about to be unlocked");
	alock_give(&s->lock);
	STEP("the shared receives are unlocked");
}

void srq_settle(struct hca *h, struct srq *s)
{
	if (!alock_holder(&s->lock))
		return;
	enter(h, s);
	leave(s);
}

int srq_resize(struct hca *h, struct srq *s, uint32_t depth)
{
	struct wq old, new;
	uint32_t n = 0;
	int err = wq_init(h, &new, depth, s->wq.max_sge, 0);

	if (err)
		return err;
	enter(h, s);
	old = s->wq;
	if (count(s) > depth) {
		leave(s);
		wq_fini(h, &new);
		return -EINVAL;
	}
	for (uint32_t i = ring_own(&old.tail); i != ring_own(&old.head); i++)
		memcpy(wq_at(h, &new, n++), wq_at(h, &old, i), old.stride);
	ring_store(&new.head, n);
	s->wq = new;
	leave(s);
	wq_fini(h, &old);
	return 0;
}

bool srq_arm(struct hca *h, struct srq *s, uint32_t limit)
{
	enter(h, s);
	s->limit = limit;
	is_low(s);
	leave(s);
	return srq_owed(s);
}

bool srq_owed(struct srq *s)
{
	return atomic_exchange(&s->owed, 0);
}

bool srq_take(struct hca *h, struct srq *s, struct qp *qp, bool *low)
{
	uint32_t i;
	bool got;

	enter(h, s);
	i = ring_own(&s->wq.tail);
	got = i != ring_load(&s->wq.head) && wq_is_sound(h, &s->wq);
	if (got) {
		const struct wqe *w = wq_at(h, &s->wq, i);
		uint32_t sges = bits_min_u32(w->num_sge, s->wq.max_sge);

		memcpy(rq_slot(h, qp), w,
		       sizeof *w + sges * sizeof(struct wq_sge));
		s->taken = i + 1;
		s->taker = hca_off(h, qp);
		STEP("a shared receive is about to be taken");
		rq_hold(qp);
		STEP("a shared receive is held");
		ring_store(&s->wq.tail, i + 1);
		STEP("a shared receive is taken");
		*low = is_low(s);
		s->taker = 0;
	}
	leave(s);
	return got;
}
