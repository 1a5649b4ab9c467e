/* SPDX-License-Identifier: BSD-2-Clause */
#include "hca/hca.h"

#include <errno.h>

#include "util/bits.h"

struct cq *cq_new(struct hca *h, uint32_t cqe, uint64_t user)
{
	struct cq *cq = arena_at(&h->arena, arena_alloc(&h->arena, sizeof *cq));

	if (!cq)
		return NULL;
	cq->size = bits_pow2_up(cqe);
	cq->cqe = cqe;
	cq->user = user;
	cq->id = ++h->shared->next_cq;
	cq->ring = arena_alloc(&h->arena, cq->size * sizeof(struct cqe));
	if (!cq->ring) {
		arena_free(&h->arena, hca_off(h, cq), sizeof *cq);
		return NULL;
	}
	return cq;
}

void cq_free(struct hca *h, struct cq *cq)
{
	arena_free(&h->arena, cq->ring, cq->size * sizeof(struct cqe));
	arena_free(&h->arena, hca_off(h, cq), sizeof *cq);
}

static struct cqe *at(const struct hca *h, aoff ring, uint32_t size,
		      uint32_t index)
{
	struct cqe *base = arena_at(&h->arena, ring);

	return &base[index & (size - 1)];
}

uint32_t cq_count(const struct cq *cq)
{
	return ring_load(&cq->head) - ring_load(&cq->tail);
}

int cq_resize(struct hca *h, struct cq *cq, uint32_t cqe)
{
	uint32_t size = bits_pow2_up(cqe);
	aoff ring = arena_alloc(&h->arena, size * sizeof(struct cqe));
	int err = 0;

	if (!ring)
		return -ENOMEM;
	alock_take(&cq->producer);
	if (cq_count(cq) > cqe) {
		err = -EINVAL;
	} else {
		aoff old = cq->ring;
		uint32_t old_size = cq->size;

		for (uint32_t i = ring_own(&cq->tail); i != ring_own(&cq->head);
		     i++)
			*at(h, ring, size, i) = *at(h, old, old_size, i);
		cq->ring = ring;
		cq->size = size;
		cq->cqe = cqe;
		ring = old;
		size = old_size;
	}
	alock_give(&cq->producer);
	arena_free(&h->arena, ring, size * sizeof(struct cqe));
	return err;
}

/*
 * A read that writes: after it the program's arming is seen here, or the
 * completion just written by the poll that follows its arming.  A plain load
 * may be done before the store of the completion, and then neither is.
 *
 *	here		the program
 *	head = n	arm = any
 *	arm?		head?
 */
static bool is_wanted(struct cq *cq, bool solicited)
{
	uint32_t arm = atomic_fetch_or(&cq->arm, 0);

	return arm == CQ_ARMED_ANY || (arm == CQ_ARMED_SOLICITED && solicited);
}

static bool disarm(struct cq *cq)
{
	cq->held = 0;
	return atomic_exchange(&cq->arm, CQ_DISARMED) != CQ_DISARMED;
}

/* What a completion just written does to an armed queue. */
static enum cq_push tell(struct cq *cq, bool solicited, bool failed)
{
	if (!is_wanted(cq, solicited))
		return CQ_QUIET;
	if (cq->hold_count > 1 && !failed && ++cq->held < cq->hold_count)
		return cq->held == 1 && cq->hold_ns ? CQ_LATER : CQ_QUIET;
	return disarm(cq) ? CQ_NOTIFY : CQ_QUIET;
}

void cq_moderate(struct cq *cq, uint32_t count, uint64_t period_ns)
{
	alock_take(&cq->producer);
	cq->hold_count = count;
	cq->hold_ns = period_ns;
	alock_give(&cq->producer);
}

bool cq_fire(struct cq *cq)
{
	bool owed;

	alock_take(&cq->producer);
	owed = cq->held && disarm(cq);
	alock_give(&cq->producer);
	return owed;
}

/* Peers on this host push too: does it lie inside the arena? */
static bool is_sound(const struct hca *h, const struct cq *cq)
{
	return !(cq->size & (cq->size - 1)) &&
	       arena_has(&h->arena, cq->ring,
			 (uint64_t)cq->size * sizeof(struct cqe));
}

enum cq_push cq_push(struct hca *h, struct cq *cq, const struct cqe *c,
		     bool solicited)
{
	enum cq_push answer = CQ_QUIET;
	uint32_t head;

	alock_take(&cq->producer);
	head = ring_own(&cq->head);
	if (cq->overrun || !is_sound(h, cq)) {
		/* IBTA 11.6.3.2: nothing after the overflow can be trusted */
	} else if (head - ring_load(&cq->tail) >= cq->cqe) {
		cq->overrun = 1;
		answer = CQ_OVERRUN;
	} else {
		*at(h, cq->ring, cq->size, head) = *c;
		/* who arms looks at head after that, and we now at arm */
		ring_publish(&cq->head, head + 1);
		answer = tell(cq, solicited, c->status != HCA_SUCCESS);
	}
	alock_give(&cq->producer);
	return answer;
}

bool cq_has(struct hca *h, struct cq *cq, aoff wq, uint32_t wq_index)
{
	bool found = false;

	alock_take(&cq->producer);
	for (uint32_t i = ring_load(&cq->tail);
	     is_sound(h, cq) && i != ring_own(&cq->head) && !found; i++) {
		const struct cqe *c = at(h, cq->ring, cq->size, i);

		found = c->wq == wq && c->wq_index == wq_index;
	}
	alock_give(&cq->producer);
	return found;
}

uint32_t cq_poll(struct hca *h, struct cq *cq, struct cqe *out, uint32_t n)
{
	uint32_t tail = ring_own(&cq->tail);
	uint32_t there = ring_load(&cq->head) - tail;

	n = bits_min_u32(n, there);
	for (uint32_t i = 0; i < n; i++) {
		struct wq *q;

		out[i] = *at(h, cq->ring, cq->size, tail + i);
		q = arena_at(&h->arena, out[i].wq);
		if (q)
			ring_store(&q->tail, out[i].wq_index + 1);
	}
	if (n)
		ring_store(&cq->tail, tail + n);
	return n;
}

void cq_arm(struct cq *cq, bool solicited_only)
{
	uint32_t want = solicited_only ? CQ_ARMED_SOLICITED : CQ_ARMED_ANY;
	uint32_t arm = atomic_load(&cq->arm);

	/* "any" is the stronger wish and stays until the event */
	while (arm < want &&
	       !atomic_compare_exchange_weak(&cq->arm, &arm, want))
		;
}

void cq_purge(struct hca *h, struct cq *cq, uint32_t qpn)
{
	uint32_t from, to, keep;

	alock_take(&cq->producer);
	from = ring_own(&cq->tail);
	to = ring_own(&cq->head);
	keep = to;
	/* move the survivors up against the head, newest first */
	for (uint32_t i = to; i != from; i--) {
		struct cqe *c = at(h, cq->ring, cq->size, i - 1);

		if (c->qpn != qpn)
			*at(h, cq->ring, cq->size, --keep) = *c;
	}
	ring_store(&cq->tail, keep);
	alock_give(&cq->producer);
}
