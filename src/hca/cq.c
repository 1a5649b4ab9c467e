/* SPDX-License-Identifier: BSD-2-Clause */
#include "hca/hca.h"

#include <errno.h>

#include "util/bits.h"
#include "util/step.h"

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
	uint32_t arm = atomic_fetch_or(&cq->arm, 0) & CQ_ARM_MASK;

	return arm == CQ_ARMED_ANY || (arm == CQ_ARMED_SOLICITED && solicited);
}

/* By one store: whoever does it, from there on the event is owed. */
static bool disarm(struct cq *cq)
{
	uint32_t arm = atomic_load(&cq->arm);

	cq->held = 0;
	do {
		if (!(arm & CQ_ARM_MASK))
			return false;
	} while (!atomic_compare_exchange_weak(
		&cq->arm, &arm, (arm & ~CQ_ARM_MASK) + CQ_OWED_ONE));
	STEP("an event is owed");
	return true;
}

uint32_t cq_owed(struct cq *cq)
{
	return atomic_fetch_and(&cq->arm, CQ_ARM_MASK) / CQ_OWED_ONE;
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

/* Peers on this host push too: does it lie inside the arena? */
static bool is_sound(const struct hca *h, const struct cq *cq)
{
	return !(cq->size & (cq->size - 1)) &&
	       arena_has(&h->arena, cq->ring,
			 (uint64_t)cq->size * sizeof(struct cqe));
}

/*
 * A peer died while it pushed.  With head stored the completion is there, and
 * the receive's QP is to know (rq.c); the event may be owed.  Without, nothing
 * has happened.
 */
static void mend(struct hca *h, struct cq *cq)
{
	uint32_t head = ring_own(&cq->head);
	bool is_there = cq->told != head;

	if (is_there && arena_has(&h->arena, cq->completer, sizeof(struct qp)))
		((struct qp *)arena_at(&h->arena, cq->completer))
			->far.completing = 0;
	cq->completer = 0;
	if (is_there && is_sound(h, cq)) {
		const struct cqe *c = at(h, cq->ring, cq->size, head - 1);

		tell(cq, c->solicited, c->status != HCA_SUCCESS);
	}
	cq->told = head;
}

/* True: inherited, and an event may be owed. */
static bool enter(struct hca *h, struct cq *cq) ACQUIRE(&cq->producer)
{
	bool inherited = alock_take(&cq->producer);

	if (inherited)
		mend(h, cq);
	STEP("the queue of completions is locked");
	return inherited;
}

static void leave(struct cq *cq) RELEASE(&cq->producer)
{
	STEP("the queue of completions is about to be unlocked");
	alock_give(&cq->producer);
	STEP("the queue of completions is unlocked");
}

void cq_settle(struct hca *h, struct cq *cq)
{
	if (!alock_holder(&cq->producer))
		return;
	enter(h, cq);
	leave(cq);
}

int cq_resize(struct hca *h, struct cq *cq, uint32_t cqe)
{
	uint32_t size = bits_pow2_up(cqe);
	aoff ring = arena_alloc(&h->arena, size * sizeof(struct cqe));
	int err = 0;

	if (!ring)
		return -ENOMEM;
	enter(h, cq);
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
	leave(cq);
	arena_free(&h->arena, ring, size * sizeof(struct cqe));
	return err;
}

void cq_moderate(struct hca *h, struct cq *cq, uint32_t count,
		 uint64_t period_ns)
{
	enter(h, cq);
	cq->hold_count = count;
	cq->hold_ns = period_ns;
	leave(cq);
}

void cq_fire(struct hca *h, struct cq *cq)
{
	enter(h, cq);
	if (cq->held)
		disarm(cq);
	leave(cq);
}

/* The completion is in its slot; done: of the receive that `qp` completes. */
static enum cq_push publish(struct hca *h, struct cq *cq, const struct cqe *c,
			    struct qp *done)
{
	uint32_t head = ring_own(&cq->head);
	enum cq_push answer;

	cq->completer = hca_off(h, done);
	STEP("a completion is written");
	/* who arms looks at head after that, and we now at arm */
	ring_publish(&cq->head, head + 1);
	STEP("a completion is there");
	if (done)
		done->far.completing = 0;
	cq->completer = 0;
	answer = tell(cq, c->solicited, c->status != HCA_SUCCESS);
	cq->told = head + 1;
	return answer;
}

static enum cq_push push(struct hca *h, struct cq *cq, const struct cqe *c,
			 bool solicited, struct qp *done)
{
	bool inherited = enter(h, cq);
	enum cq_push answer = CQ_QUIET;
	uint32_t head = ring_own(&cq->head);

	if (cq->overrun || !is_sound(h, cq)) {
		/* IBTA 11.6.3.2: nothing after the overflow can be trusted */
	} else if (head - ring_load(&cq->tail) >= cq->cqe) {
		cq->overrun = CQ_OVERRUN_UNTOLD;
		answer = CQ_OVERRUN;
	} else {
		struct cqe *to = at(h, cq->ring, cq->size, head);

		*to = *c;
		to->solicited = solicited;
		answer = publish(h, cq, to, done);
	}
	if (inherited && answer == CQ_QUIET)
		answer = CQ_NOTIFY;
	leave(cq);
	return answer;
}

enum cq_push cq_push(struct hca *h, struct cq *cq, const struct cqe *c,
		     bool solicited)
{
	return push(h, cq, c, solicited, NULL);
}

enum cq_push cq_complete(struct hca *h, struct cq *cq, const struct cqe *c,
			 bool solicited, struct qp *done)
{
	return push(h, cq, c, solicited, done);
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
	while ((arm & CQ_ARM_MASK) < want &&
	       !atomic_compare_exchange_weak(&cq->arm, &arm,
					     (arm & ~CQ_ARM_MASK) | want))
		;
}

void cq_purge(struct hca *h, struct cq *cq, uint32_t qpn)
{
	uint32_t from, to, keep;

	enter(h, cq);
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
	leave(cq);
}
