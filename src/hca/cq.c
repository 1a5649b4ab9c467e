/* SPDX-License-Identifier: BSD-2-Clause */
#include "hca/cq.h"

#include <errno.h>
#include <stdalign.h>

#include "hca/hca.h"
#include "util/bits.h"
#include "util/step.h"

struct cq *cq_new(struct hca *h, uint32_t cqe, uint64_t user, bool is_silent)
{
	struct cq *cq;
	aoff shared_at;

	if (h->cqs == HCA_MAX_CQ)
		return NULL;
	cq = arena_at(&h->arena, arena_alloc(&h->arena, sizeof(*cq)));
	if (!cq)
		return NULL;
	cq->size = bits_pow2_up(cqe);
	cq->cqe = cqe;
	cq->user = user;
	cq->is_silent = is_silent;
	cq->id = ++h->shared->next_cq;
	cq->ring = arena_alloc(&h->arena, cq->size * sizeof(struct cqe));
	shared_at = arena_alloc_shared(&h->arena, HCA_APART);
	cq->peer_at = shared_at - hca_off(h, cq);
	if (!cq->ring || !shared_at) {
		arena_free(&h->arena, shared_at, HCA_APART);
		arena_free(&h->arena, cq->ring, cq->size * sizeof(struct cqe));
		arena_free(&h->arena, hca_off(h, cq), sizeof(*cq));
		return NULL;
	}
	h->cqs++;
	return cq;
}

void cq_free(struct hca *h, struct cq *cq)
{
	h->cqs--;
	arena_free(&h->arena, cq->ring, cq->size * sizeof(struct cqe));
	arena_free(&h->arena, hca_off(h, cq_shared(cq)), HCA_APART);
	arena_free(&h->arena, hca_off(h, cq), sizeof(*cq));
}

static struct cqe *entry_at(const struct hca *h, aoff ring, uint32_t size,
			    uint32_t index)
{
	struct cqe *base = arena_at(&h->arena, ring);

	return &base[index & (size - 1)];
}

static uint32_t count_entries(const struct cq *cq)
{
	return shared_load(&cq->head) - shared_load(&cq->tail);
}

static bool is_wanted(uint32_t arm, bool solicited)
{
	arm &= CQ_ARM_MASK;
	return arm == CQ_ARMED_ANY || (arm == CQ_ARMED_SOLICITED && solicited);
}

/* Returns the value that the word `arm` has after an event was raised: the
 * queue is disarmed, no completion is held back, and one more event waits to be
 * reported. */
static uint32_t add_event(uint32_t arm)
{
	uint32_t unreported = arm & CQ_UNREPORTED_MASK;

	return unreported == CQ_UNREPORTED_MASK
		       ? unreported
		       : unreported + CQ_UNREPORTED_ONE;
}

uint32_t cq_take_unreported(struct cq *cq)
{
	uint32_t arm =
		atomic_fetch_and(&cq_shared(cq)->arm, ~CQ_UNREPORTED_MASK);

	return (arm & CQ_UNREPORTED_MASK) / CQ_UNREPORTED_ONE;
}

/*
 * Called after `count` completions were written.  If the queue is armed, raises
 * an event or counts the completions as held back.  Either is one atomic
 * operation on `arm`, so a thread that is stopped here leaves no half change.
 *
 * The caller's fence orders its store of the completion before the load of
 * `arm` here.  cq_arm orders its store of `arm` before the loads of the poll
 * that follows.  So this load sees that the queue is armed, or the poll sees
 * the completion.  Without the fence each thread could miss the other's store,
 * and the program would sleep for an event that is never raised.
 *
 *	fire_event	the program
 *	head = n	arm = any
 *	load arm	load head
 */
static enum cq_push fire_event(const struct cq *cq, struct cq_shared *shared,
			       bool solicited, bool failed, uint32_t count)
{
	uint32_t arm, held;
	bool waits;

	if (cq->is_silent)
		return CQ_QUIET;
	arm = atomic_load(&shared->arm);
	do {
		if (!is_wanted(arm, solicited))
			return arm & CQ_UNREPORTED_MASK ? CQ_NOTIFY : CQ_QUIET;
		STEP("a queue is found armed");
		held = arm / CQ_HELD_ONE + count;
		waits = !failed && held < cq->hold_count;
	} while (!atomic_compare_exchange_weak(&shared->arm, &arm,
					       waits ? arm + count * CQ_HELD_ONE
						     : add_event(arm)));
	if (waits)
		return held == count && cq->hold_ns ? CQ_LATER : CQ_QUIET;
	STEP("an event is raised");
	return CQ_NOTIFY;
}

/* Orders the store of a completion that was just written before the load of
 * `arm` in fire_event, whose comment says what breaks without this order, and
 * calls fire_event.  A queue without a channel raises no event and needs no
 * fence. */
static enum cq_push fence_and_fire(struct cq *cq, bool solicited, bool failed)
{
	if (!cq->is_silent)
		shared_fence();
	return fire_event(cq, cq_shared(cq), solicited, failed, 1);
}

static void enter_cq(struct cq *cq) ACQUIRE(&cq->lock)
{
	alock_take(&cq->lock);
}

static void leave_cq(struct cq *cq) RELEASE(&cq->lock)
{
	alock_give(&cq->lock);
}

/* ---- completions that peers leave ---- */

/*
 * Puts a QP on the list, unless is_queued says that the QP is there or watched.
 * The owner takes the whole list, and watches the QPs that were on it.  To stop
 * watching a QP, the owner clears is_queued and then collects from the QP a
 * last time.  A peer writes its completion before it reads is_queued.  So the
 * last collection finds the completion, or the peer puts the QP on the list
 * again.
 */
static void enqueue_qp(struct cq_shared *shared, struct qp *qp)
{
	aoff first;

	if (shared_load(&qp_target(qp)->is_queued) ||
	    atomic_exchange(&qp_target(qp)->is_queued, 1))
		return;
	STEP("completions are about to be announced");
	first = atomic_load(&shared->incoming);
	do {
		qp_target(qp)->next = first;
	} while (!atomic_compare_exchange_weak(&shared->incoming, &first,
					       qp->self));
	STEP("completions are announced");
}

enum cq_push cq_announce(struct hca *h, struct cq *cq, struct qp *qp,
			 bool solicited, bool failed, uint32_t count)
{
	struct cq_shared *shared = hca_peer_area_at(h, cq, cq->peer_at);

	/* Orders the store of the completion before the loads of is_queued and
	 * of `arm`.  Without the fence the owner could clear is_queued, or the
	 * program could set `arm`, and miss the completion, while this thread
	 * misses that store. */
	shared_fence();
	enqueue_qp(shared, qp);
	return fire_event(cq, shared, solicited, failed, count);
}

/* Writes c into the ring, unless the ring has overflowed earlier: IBTA
 * 11.6.3.2.  False: the ring overflows by this completion. */
static bool append_entry(struct hca *h, struct cq *cq, const struct cqe *c)
{
	uint32_t head = shared_own(&cq->head);

	if (shared_own(&cq->overrun))
		return true;
	if (head - shared_load(&cq->tail) >= cq->cqe) {
		shared_store(&cq->overrun, CQ_OVERRUN_UNREPORTED);
		return false;
	}
	*entry_at(h, cq->ring, cq->size, head) = *c;
	shared_store(&cq->head, head + 1);
	return true;
}

/* Moves qp's completions into the ring: those that rq_has_left finds, or with
 * `all` those of all receives before the cursor. */
static void collect_from(struct hca *h, struct cq *cq, struct qp *qp, bool all)
{
	struct cqe c;

	/* Peers write the cursor, so this loop collects no more completions
	 * than the receive queue has slots. */
	for (uint32_t n = 0; n < qp->rq.size; n++) {
		if (all ? !rq_is_behind(qp) : !rq_has_left(h, qp))
			break;
		rq_collect(h, qp, &c);
		STEP("a completion is collected");
		if (!append_entry(h, cq, &c))
			notify_post(h, qp, QP_NOTIFY_FULL);
	}
}

/* Returns entry i of the watched QPs; NULL: there are no more. */
static struct qp *watched_qp(const struct hca *h, const struct cq *cq,
			     uint32_t i)
{
	if (i >= CQ_WATCHED || i >= shared_own(&cq->watching) ||
	    !arena_has(&h->arena, cq->watched[i], sizeof(struct qp)))
		return NULL;
	return arena_at(&h->arena, cq->watched[i]);
}

static bool is_watched(const struct hca *h, const struct cq *cq,
		       const struct qp *qp)
{
	const struct qp *other;

	for (uint32_t i = 0; (other = watched_qp(h, cq, i)); i++)
		if (other == qp)
			return true;
	return false;
}

static void unwatch_qp(struct hca *h, struct cq *cq, struct qp *qp)
{
	STEP("a queue pair is about to leave the list");
	/* Orders the store of is_queued before the loads in collect_from.
	 * Without this order a peer could find is_queued set, while this thread
	 * misses the peer's completion (enqueue_qp). */
	shared_publish(&qp_target(qp)->is_queued, 0);
	STEP("a queue pair is off the list");
	collect_from(h, cq, qp, false);
}

/* Watches a QP that was on the list.  If there is no room, stops watching the
 * QP that has been watched for the longest time. */
static void watch_qp(struct hca *h, struct cq *cq, struct qp *qp)
{
	uint32_t n = shared_own(&cq->watching);
	struct qp *other = NULL;

	if (is_watched(h, cq, qp))
		return;
	if (n >= CQ_WATCHED) {
		n = cq->oldest++ % CQ_WATCHED;
		other = watched_qp(h, cq, n);
	} else {
		shared_store(&cq->watching, n + 1);
	}
	cq->watched[n] = hca_off(h, qp);
	if (other)
		unwatch_qp(h, cq, other);
}

/* Returns the QP at an offset that a peer has written.  NULL: the offset is not
 * that of a QP in the part of the arena that peers do not write, or the QP does
 * not use this queue. */
static struct qp *qp_named(const struct hca *h, const struct cq *cq, aoff at)
{
	struct qp *qp;

	if (!at || at % alignof(struct qp) ||
	    at > h->arena.shared - sizeof(*qp))
		return NULL;
	qp = arena_at(&h->arena, at);
	return qp->self == at && qp->recv_cq == hca_off(h, cq) ? qp : NULL;
}

static void take_list(struct hca *h, struct cq *cq) REQUIRES(&cq->lock)
{
	aoff next = atomic_exchange(&cq_shared(cq)->incoming, 0);
	struct qp *qp;

	STEP("the list is taken");
	for (uint32_t n = 0; n < HCA_MAX_QP && (qp = qp_named(h, cq, next));
	     n++) {
		next = __atomic_load_n(&qp_target(qp)->next, __ATOMIC_RELAXED);
		watch_qp(h, cq, qp);
	}
}

static void collect_qps(struct hca *h, struct cq *cq, struct qp *also)
	REQUIRES(&cq->lock)
{
	struct qp *qp;

	shared_store(&cq->is_collecting, 1);
	STEP("completions are about to be collected");
	if (atomic_load(&cq_shared(cq)->incoming))
		take_list(h, cq);
	for (uint32_t i = 0; (qp = watched_qp(h, cq, i)); i++)
		collect_from(h, cq, qp, false);
	if (also)
		collect_from(h, cq, also, true);
	shared_store(&cq->is_collecting, 0);
}

static bool is_any_behind(const struct hca *h, struct cq *cq)
{
	bool any = false;
	struct qp *qp;

	enter_cq(cq);
	for (uint32_t i = 0; !any && (qp = watched_qp(h, cq, i)); i++)
		any = rq_has_left(h, qp);
	leave_cq(cq);
	return any;
}

/*
 * Is there a completion?  @may_lock: looks at the watched QPs, under the lock;
 * else answers true if any QP is watched.
 *
 * While is_collecting is set, a completion moves from the list or from its
 * receive into the ring.  The checks follow the same order, and the ring is
 * checked last, so a completion that moves meanwhile is seen by a later check.
 * The load of `watching` is relaxed, but the load of is_collecting acquires: if
 * it returns the 0 that ended a collection, the caller sees `watching` as that
 * collection stored it.  Otherwise the caller could read an old 0, and miss a
 * completion of a QP that was taken from the list and is watched now.
 */
static bool has_entry(const struct hca *h, struct cq *cq, bool may_lock)
{
	bool is_there;

	STEP("a completion queue is looked at");
	is_there = atomic_load_explicit(&cq_shared(cq)->incoming,
					memory_order_acquire);
	STEP("a completion queue is looked at");
	is_there |= shared_load(&cq->is_collecting);
	STEP("a completion queue is looked at");
	is_there |= shared_own(&cq->watching) &&
		    (!may_lock || is_any_behind(h, cq));
	STEP("a completion queue is looked at");
	is_there |= count_entries(cq) > 0;
	return is_there;
}

bool cq_has(const struct hca *h, struct cq *cq)
{
	return has_entry(h, cq, true);
}

void cq_collect(struct hca *h, struct cq *cq, struct qp *also)
{
	enter_cq(cq);
	collect_qps(h, cq, also);
	leave_cq(cq);
}

/* Does the ring hold a completion of qp that the program has not polled? */
static bool waits_there(const struct hca *h, const struct cq *cq,
			const struct qp *qp) REQUIRES(&cq->lock)
{
	uint32_t i = shared_load(&cq->tail);

	while (i != shared_own(&cq->head) &&
	       entry_at(h, cq->ring, cq->size, i)->qpn != qp->qpn)
		i++;
	return i != shared_own(&cq->head);
}

bool cq_has_of(const struct hca *h, struct cq *cq, const struct qp *qp)
{
	bool has;

	enter_cq(cq);
	has = waits_there(h, cq, qp) ||
	      (arena_at(&h->arena, qp->recv_cq) == cq && rq_has_left(h, qp));
	leave_cq(cq);
	return has;
}

void cq_settle(struct hca *h, struct cq *cq, struct qp *qp)
{
	enter_cq(cq);
	collect_qps(h, cq, qp);
	if (!is_watched(h, cq, qp))
		shared_store(&qp_target(qp)->is_queued, 0);
	/* The thread that moved the QP to ERR may have collected the completion
	 * already, without an event for the program. */
	if (waits_there(h, cq, qp))
		fence_and_fire(cq, true, true);
	leave_cq(cq);
}

void cq_forget(struct hca *h, struct cq *cq, struct qp *qp)
{
	const struct qp *at;
	uint32_t last;

	enter_cq(cq);
	collect_qps(h, cq, qp);
	last = bits_min_u32(shared_own(&cq->watching), CQ_WATCHED) - 1;
	for (uint32_t i = 0; (at = watched_qp(h, cq, i)); i++)
		if (at == qp) {
			cq->watched[i] = cq->watched[last];
			shared_store(&cq->watching, last);
			shared_store(&qp_target(qp)->is_queued, 0);
			break;
		}
	leave_cq(cq);
}

int cq_resize(struct hca *h, struct cq *cq, uint32_t cqe)
{
	uint32_t size = bits_pow2_up(cqe);
	aoff ring = arena_alloc(&h->arena, size * sizeof(struct cqe));
	int err = 0;

	if (!ring)
		return -ENOMEM;
	enter_cq(cq);
	collect_qps(h, cq, NULL);
	if (count_entries(cq) > cqe) {
		err = -EINVAL;
	} else {
		aoff old = cq->ring;
		uint32_t old_size = cq->size;

		for (uint32_t i = shared_own(&cq->tail);
		     i != shared_own(&cq->head); i++)
			*entry_at(h, ring, size, i) =
				*entry_at(h, old, old_size, i);
		cq->ring = ring;
		cq->size = size;
		cq->cqe = cqe;
		ring = old;
		size = old_size;
	}
	leave_cq(cq);
	arena_free(&h->arena, ring, size * sizeof(struct cqe));
	return err;
}

void cq_moderate(struct hca *h, struct cq *cq, uint32_t count,
		 uint64_t period_ns)
{
	enter_cq(cq);
	cq->hold_count = bits_min_u32(count, CQ_HELD_MAX);
	cq->hold_ns = period_ns;
	leave_cq(cq);
}

void cq_fire(struct cq *cq)
{
	uint32_t arm = atomic_load(&cq_shared(cq)->arm);

	while (arm >= CQ_HELD_ONE &&
	       !atomic_compare_exchange_weak(&cq_shared(cq)->arm, &arm,
					     add_event(arm)))
		;
}

enum cq_push cq_push(struct hca *h, struct cq *cq, const struct cqe *c,
		     bool solicited)
{
	enum cq_push answer = CQ_QUIET;

	enter_cq(cq);
	if (!append_entry(h, cq, c))
		answer = CQ_OVERRUN;
	else if (!shared_own(&cq->overrun))
		answer =
			fence_and_fire(cq, solicited, c->status != HCA_SUCCESS);
	leave_cq(cq);
	return answer;
}

/* Takes n entries of the ring into out, and frees the slots of their
 * requests. */
static void take_entries(struct hca *h, struct cq *cq, struct cqe *out,
			 uint32_t n) REQUIRES(&cq->lock)
{
	uint32_t tail = shared_own(&cq->tail);

	for (uint32_t i = 0; i < n; i++) {
		struct wq *q;

		out[i] = *entry_at(h, cq->ring, cq->size, tail + i);
		q = arena_at(&h->arena, out[i].wq);
		if (q)
			shared_store(&q->tail, out[i].wq_index + 1);
	}
	shared_store(&cq->tail, tail + n);
}

uint32_t cq_poll(struct hca *h, struct cq *cq, struct cqe *out, uint32_t n)
{
	if (!has_entry(h, cq, false)) /* an empty queue costs no lock */
		return 0;
	enter_cq(cq);
	if (count_entries(cq) < n)
		collect_qps(h, cq, NULL);
	n = bits_min_u32(n, count_entries(cq));
	take_entries(h, cq, out, n);
	leave_cq(cq);
	return n;
}

void cq_arm(struct cq *cq, bool solicited_only)
{
	uint32_t want = solicited_only ? CQ_ARMED_SOLICITED : CQ_ARMED_ANY;
	uint32_t arm = atomic_load(&cq_shared(cq)->arm);

	/* CQ_ARMED_ANY includes solicited completions, so CQ_ARMED_SOLICITED
	 * does not replace CQ_ARMED_ANY. */
	while ((arm & CQ_ARM_MASK) < want &&
	       !atomic_compare_exchange_weak(&cq_shared(cq)->arm, &arm,
					     (arm & ~CQ_ARM_MASK) | want))
		;
	/* Orders the store of `arm` before the loads of the poll that follows.
	 * Without this order that poll could miss a completion whose writer has
	 * loaded the old `arm` (fire_event), and no event would be raised. */
	shared_fence_after_exchange();
}

void cq_purge(struct hca *h, struct cq *cq, uint32_t qpn)
{
	uint32_t from, to, keep;

	enter_cq(cq);
	collect_qps(h, cq, NULL);
	from = shared_own(&cq->tail);
	to = shared_own(&cq->head);
	keep = to;
	/* Moves the completions of other QPs up to the head, the newest
	 * first. */
	for (uint32_t i = to; i != from; i--) {
		struct cqe *c = entry_at(h, cq->ring, cq->size, i - 1);

		if (c->qpn != qpn)
			*entry_at(h, cq->ring, cq->size, --keep) = *c;
	}
	shared_store(&cq->tail, keep);
	leave_cq(cq);
}
