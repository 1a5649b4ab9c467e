/* SPDX-License-Identifier: BSD-2-Clause */
#include "hca/srq.h"

#include <errno.h>
#include <string.h>

#include "hca/hca.h"
#include "util/bits.h"
#include "util/step.h"

struct srq *srq_new(struct hca *h, uint32_t pd, uint32_t depth,
		    uint32_t max_sge, uint64_t user)
{
	struct srq *s;
	aoff shared_at;

	if (h->srqs == HCA_MAX_SRQ)
		return NULL;
	s = arena_at(&h->arena, arena_alloc(&h->arena, sizeof(*s)));
	if (!s)
		return NULL;
	shared_at = arena_alloc_shared(&h->arena, HCA_APART);
	s->peer_at = shared_at - hca_off(h, s);
	if (!shared_at || wq_init(h, &s->wq, depth, max_sge, 0)) {
		arena_free(&h->arena, shared_at, HCA_APART);
		arena_free(&h->arena, hca_off(h, s), sizeof(*s));
		return NULL;
	}
	s->pd = pd;
	s->user = user;
	h->srqs++;
	return s;
}

void srq_free(struct hca *h, struct srq *s)
{
	h->srqs--;
	wq_fini(h, &s->wq);
	arena_free(&h->arena, hca_off(h, srq_shared(s)), HCA_APART);
	arena_free(&h->arena, hca_off(h, s), sizeof(*s));
}

/*
 * To take a receive, a thread copies it into the slot of its QP and then moves
 * `next` by one compare-and-exchange.  The receive is taken if this exchange
 * succeeds.  No thread waits for another.
 *
 *	next	63: SRQ_RESIZING	62-48: generation
 *		47-32: 1 + the row of the QP that took the last receive
 *		31-0: the index of the receive to take
 *
 * At first only `next` names the QP that took the last receive, and the thread
 * that took it may be stopped or dead before the receive is held.  So each
 * thread that is about to move `next` first records the last take in the word
 * of that QP's row in peer_area.takes, which every thread may write:
 *
 *	WANTS | index	the QP is about to take the receive at index
 *	TAKES | index	the receive was taken, and is not held yet
 *	0		neither
 *
 * The generation changes when the queue is resized.  So the
 * compare-and-exchange fails in a thread that copied its receive before the
 * resize.
 */
#define SRQ_RESIZING   (1ull << 63)
#define GENERATION     (1ull << 48)
#define TAKER	       (1ull << 32)
#define WANTS	       (1ull << 32)
#define TAKES	       (2ull << 32)
#define SRQ_UNREPORTED (1u << 31)

static uint32_t index_of(uint64_t next)
{
	return (uint32_t)next;
}

/* Returns the row of the QP that took the last receive, or UINT32_MAX. */
static uint32_t taker_of(uint64_t next)
{
	return ((uint32_t)(next / TAKER) & 0xffff) - 1;
}

static uint64_t taken_by(uint64_t next, uint32_t row)
{
	uint64_t generation = next / GENERATION * GENERATION;

	return generation + (row + 1) * TAKER + (index_of(next) + 1u);
}

/* Returns the word of a row in peer_area.takes; NULL: there is no such row. */
static _Atomic uint64_t *word_of(const struct hca *h, uint32_t row)
{
	return row < HCA_MAX_QP ? &h->peer_area->takes[row] : NULL;
}

/* Returns the words of a queue that peers write.  Another process may own the
 * queue. */
static struct srq_shared *shared_of(const struct hca *h, const struct srq *s)
{
	return hca_peer_area_at(h, s,
				__atomic_load_n(&s->peer_at, __ATOMIC_RELAXED));
}

static uint32_t count_posted(const struct srq *s,
			     const struct srq_shared *shared)
{
	return shared_load(&s->wq.head) - index_of(atomic_load(&shared->next));
}

bool srq_has(const struct hca *h, const struct srq *s)
{
	return count_posted(s, shared_of(h, s)) != 0;
}

bool srq_is_resizing(const struct hca *h, const struct srq *s)
{
	return atomic_load(&shared_of(h, s)->next) & SRQ_RESIZING;
}

uint32_t srq_limit(const struct srq *s)
{
	return atomic_load(&srq_shared(s)->limit) & ~SRQ_UNREPORTED;
}

/* If fewer receives are posted than the limit, disarms the limit and raises its
 * event.  True: an event was raised and was not reported yet.  Another thread
 * may have raised the event, and may be stopped before it reports the event. */
static bool is_low(const struct srq *s, struct srq_shared *shared)
{
	uint32_t limit = atomic_load(&shared->limit);

	do {
		if (!(limit & ~SRQ_UNREPORTED) ||
		    count_posted(s, shared) >= (limit & ~SRQ_UNREPORTED))
			return limit & SRQ_UNREPORTED;
	} while (!atomic_compare_exchange_weak(&shared->limit, &limit,
					       SRQ_UNREPORTED));
	STEP("a limit's event is raised");
	return true;
}

/* Records the last take as TAKES in the word of the QP that took the last
 * receive, if the thread that took the receive has not marked it as held yet.
 * That thread may be stopped or dead. */
static void note_taker(const struct hca *h, uint64_t next)
{
	_Atomic uint64_t *word = word_of(h, taker_of(next));
	uint32_t index = index_of(next) - 1;
	uint64_t wants = WANTS + index;

	if (word)
		atomic_compare_exchange_strong(word, &wants, TAKES + index);
}

/* Called when the receive in qp's slot is taken: marks it as held by qp, and
 * then clears the word of qp's row.  The store of the word (seq_cst, so also
 * release) comes after that of the mark: in the other order a thread that dies
 * between the two would lose the receive, which srq_settle finds by the
 * word. */
static void keep_receive(struct qp *qp, _Atomic uint64_t *word)
{
	rq_hold(qp);
	STEP("a shared receive is held");
	atomic_store(word, 0);
	STEP("a shared receive is its own");
}

uint32_t srq_next(const struct srq *s)
{
	return index_of(atomic_load(&srq_shared(s)->next));
}

/* The slots of the receives before `next` are free: these receives are taken
 * and copied, and a thread that still copies one of them fails to move `next`.
 * Peers write `next`, so the tail moves only to an index between the tail and
 * the head. */
struct wqe *srq_reserve(const struct hca *h, struct srq *s)
{
	uint32_t head = shared_own(&s->wq.head), tail = shared_own(&s->wq.tail);
	uint32_t next;

	if (head - tail >= s->wq.depth) {
		next = srq_next(s);
		if (next - tail <= head - tail)
			shared_store(&s->wq.tail, next);
	}
	return wq_reserve(h, &s->wq);
}

void srq_settle(struct hca *h, struct srq *s, struct qp *qp)
{
	_Atomic uint64_t *word = word_of(h, qp->stats.row);
	struct srq_shared *shared = shared_of(h, s);
	uint64_t next = atomic_load(&shared->next), note;

	if (!word)
		return;
	note_taker(h, next);
	note = atomic_load(word);
	if (note & TAKES)
		keep_receive(qp, word);
	else
		atomic_store(word, 0);
	is_low(s, shared);
}

void srq_forget(struct hca *h, uint32_t row)
{
	atomic_store(word_of(h, row), 0);
}

/* For the owner: sets SRQ_RESIZING, so that no thread takes a receive.  Returns
 * `next` without SRQ_RESIZING. */
static uint64_t shut_queue(struct hca *h, struct srq *s)
{
	uint64_t next = atomic_load(&srq_shared(s)->next);

	do {
		note_taker(h, next);
	} while (!atomic_compare_exchange_weak(&srq_shared(s)->next, &next,
					       next | SRQ_RESIZING));
	note_taker(h, next);
	return next;
}

int srq_resize(struct hca *h, struct srq *s, uint32_t depth)
{
	struct wq old = s->wq, new;
	uint32_t head = shared_own(&old.head), tail;
	uint64_t next;
	int err = wq_init(h, &new, depth, s->wq.max_sge, 0);

	if (err)
		return err;
	next = shut_queue(h, s);
	tail = index_of(next);
	if (head - tail > depth) {
		atomic_store(&srq_shared(s)->next, next);
		wq_fini(h, &new);
		return -EINVAL;
	}
	for (uint32_t i = tail; i != head; i++)
		memcpy(wq_at(h, &new, i), wq_at(h, &old, i), old.stride);
	shared_store(&new.head, head);
	shared_store(&new.tail, tail);
	s->wq = new;
	/* Stored after s->wq: a thread that loads this `next` then reads the
	 * new queue.  In the other order the thread could copy a receive out of
	 * the old queue, which is freed below, and take it. */
	atomic_store(&srq_shared(s)->next, (next + GENERATION) & ~SRQ_RESIZING);
	wq_fini(h, &old);
	return 0;
}

bool srq_arm(struct hca *h, struct srq *s, uint32_t limit)
{
	uint32_t old = atomic_load(&srq_shared(s)->limit);

	while (!atomic_compare_exchange_weak(&srq_shared(s)->limit, &old,
					     (old & SRQ_UNREPORTED) | limit))
		;
	is_low(s, srq_shared(s));
	return srq_owed(s);
}

bool srq_owed(struct srq *s)
{
	return atomic_fetch_and(&srq_shared(s)->limit, ~SRQ_UNREPORTED) &
	       SRQ_UNREPORTED;
}

/* Copies the receive at index into qp's slot.  Called before the receive is
 * taken.  False: no receive is posted there, or srq_resize is replacing the
 * queue. */
static bool copy_receive(struct hca *h, const struct srq *s,
			 const struct qp *qp, uint32_t index)
{
	struct wq q; /* a copy, since srq_resize may replace the queue */
	const struct wqe *w;
	struct wqe *to = rq_slot(h, qp);
	uint32_t sges;

	wq_copy_places(&q, &s->wq);
	shared_store(&q.head, shared_load(&s->wq.head));

	if (index == shared_own(&q.head) || !wq_is_sound(h, &q, 0))
		return false;
	w = wq_at(h, &q, index);
	sges = bits_min_u32(wqe_sge_count(w),
			    bits_min_u32(q.max_sge, qp->rq.max_sge));
	memcpy(to, w, sizeof(*w) + sges * sizeof(struct wq_sge));
	to->num_sge = (uint8_t)sges;
	return true;
}

bool srq_take(struct hca *h, struct srq *s, struct qp *qp, bool *low)
{
	_Atomic uint64_t *word = word_of(h, qp->stats.row);
	struct srq_shared *shared = shared_of(h, s);
	uint64_t next = atomic_load(&shared->next);

	do {
		if (!word || (next & SRQ_RESIZING) ||
		    !copy_receive(h, s, qp, index_of(next)))
			return false;
		note_taker(h, next);
		/* Stored before the exchange of `next`.  In the other order a
		 * thread that dies between the two would have taken a receive
		 * that its word does not name: note_taker and srq_settle would
		 * not find the take, and the receive would be lost. */
		atomic_store(word, WANTS + index_of(next));
		STEP("a shared receive is about to be taken");
	} while (!atomic_compare_exchange_weak(&shared->next, &next,
					       taken_by(next, qp->stats.row)));
	STEP("a shared receive is taken");
	keep_receive(qp, word);
	*low = is_low(s, shared);
	return true;
}
