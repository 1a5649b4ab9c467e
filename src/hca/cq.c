/* SPDX-License-Identifier: BSD-2-Clause */
#include "hca/hca.h"

#include <errno.h>

#include "util/bits.h"
#include "util/prefetch.h"
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

static uint32_t count(const struct cq *cq)
{
	return ring_load(&cq->head) - ring_load(&cq->tail);
}

/* What leaves the list is seen as being collected, and then in the ring. */
bool cq_has(const struct cq *cq)
{
	return atomic_load_explicit(&cq->incoming, memory_order_acquire) ||
	       ring_load(&cq->is_collecting) || count(cq);
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

	atomic_store_explicit(&cq->held, 0, memory_order_relaxed);
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
	if (cq->hold_count > 1 && !failed) {
		uint32_t held = 1 + atomic_fetch_add_explicit(
					    &cq->held, 1, memory_order_relaxed);

		if (held < cq->hold_count)
			return held == 1 && cq->hold_ns ? CQ_LATER : CQ_QUIET;
	}
	return disarm(cq) ? CQ_NOTIFY : CQ_QUIET;
}

static void enter(struct cq *cq) ACQUIRE(&cq->lock)
{
	alock_take(&cq->lock);
}

static void leave(struct cq *cq) RELEASE(&cq->lock)
{
	alock_give(&cq->lock);
}

/* ---- what peers leave ---- */

/*
 * A peer adds a QP once; the owner takes the whole list, then each QP off it
 * before it looks what was left there.  What is left meanwhile is seen then,
 * or adds the QP again.
 */
static void enqueue(struct hca *h, struct cq *cq, struct qp *qp)
{
	aoff first;

	if (atomic_exchange(&qp->far.is_queued, 1))
		return;
	STEP("completions are about to be announced");
	first = atomic_load(&cq->incoming);
	do {
		qp->far.next = first;
	} while (!atomic_compare_exchange_weak(&cq->incoming, &first,
					       hca_off(h, qp)));
	STEP("completions are announced");
}

enum cq_push cq_announce(struct hca *h, struct cq *cq, struct qp *qp,
			 bool solicited, bool failed)
{
	enqueue(h, cq, qp);
	return tell(cq, solicited, failed);
}

/* Into the ring, unless that has overflowed: IBTA 11.6.3.2. */
static bool append(struct hca *h, struct cq *cq, const struct cqe *c)
{
	uint32_t head = ring_own(&cq->head);

	if (cq->overrun)
		return true;
	if (head - ring_load(&cq->tail) >= cq->cqe) {
		cq->overrun = CQ_OVERRUN_UNTOLD;
		return false;
	}
	*at(h, cq->ring, cq->size, head) = *c;
	/* who arms looks at head after that, and we now at arm */
	ring_publish(&cq->head, head + 1);
	return true;
}

static void collect_from(struct hca *h, struct cq *cq, struct qp *qp)
{
	struct cqe c;

	/* what a peer wrote is input: no more than there can be */
	for (uint32_t n = 0; n < qp->rq.size && rq_collect(h, qp, &c); n++) {
		STEP("a completion is collected");
		if (!append(h, cq, &c))
			mail_post(h, qp, QP_MAIL_FULL);
	}
}

static void collect(struct hca *h, struct cq *cq, struct qp *also)
	REQUIRES(&cq->lock)
{
	aoff next;

	ring_store(&cq->is_collecting, 1);
	STEP("completions are about to be collected");
	next = atomic_exchange(&cq->incoming, 0);
	STEP("the list is taken");
	for (uint32_t n = 0; n < HCA_MAX_QP && next &&
			     arena_has(&h->arena, next, sizeof(struct qp));
	     n++) {
		struct qp *qp = arena_at(&h->arena, next);

		prefetch(&qp->rq, sizeof qp->rq);
		next = qp->far.next;
		STEP("a queue pair is about to leave the list");
		ring_publish(&qp->far.is_queued, 0);
		STEP("a queue pair is off the list");
		collect_from(h, cq, qp);
	}
	if (also)
		collect_from(h, cq, also);
	ring_store(&cq->is_collecting, 0);
}

void cq_collect(struct hca *h, struct cq *cq, struct qp *also)
{
	enter(cq);
	collect(h, cq, also);
	leave(cq);
}

void cq_settle(struct hca *h, struct cq *cq, struct qp *qp)
{
	bool is_there;

	enter(cq);
	is_there = rq_is_behind(qp);
	collect(h, cq, qp);
	ring_store(&qp->far.is_queued, 0);
	if (is_there)
		tell(cq, true, true);
	leave(cq);
}

int cq_resize(struct hca *h, struct cq *cq, uint32_t cqe)
{
	uint32_t size = bits_pow2_up(cqe);
	aoff ring = arena_alloc(&h->arena, size * sizeof(struct cqe));
	int err = 0;

	if (!ring)
		return -ENOMEM;
	enter(cq);
	collect(h, cq, NULL);
	if (count(cq) > cqe) {
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
	enter(cq);
	cq->hold_count = count;
	cq->hold_ns = period_ns;
	leave(cq);
}

void cq_fire(struct hca *h, struct cq *cq)
{
	enter(cq);
	if (atomic_load(&cq->held))
		disarm(cq);
	leave(cq);
}

enum cq_push cq_push(struct hca *h, struct cq *cq, const struct cqe *c,
		     bool solicited)
{
	enum cq_push answer = CQ_QUIET;

	enter(cq);
	if (!append(h, cq, c))
		answer = CQ_OVERRUN;
	else if (!cq->overrun)
		answer = tell(cq, solicited, c->status != HCA_SUCCESS);
	leave(cq);
	return answer;
}

uint32_t cq_poll(struct hca *h, struct cq *cq, struct cqe *out, uint32_t n)
{
	uint32_t tail = ring_own(&cq->tail), there;

	if (atomic_load_explicit(&cq->incoming, memory_order_relaxed) ||
	    ring_load(&cq->is_collecting))
		cq_collect(h, cq, NULL);
	there = ring_load(&cq->head) - tail;
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

	enter(cq);
	collect(h, cq, NULL);
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
