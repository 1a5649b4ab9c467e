/* SPDX-License-Identifier: BSD-2-Clause */
/* hca/srq: receives that several queue pairs share. */
#include "test.h"

#include <errno.h>

#include "hca/hca.h"

#define ARENA_BYTES (16u << 20)

struct world {
	void *memory;
	struct hca h;
	struct srq *s;
	struct qp *qp;
};

static void begin_world(struct world *w, uint32_t depth)
{
	struct hca_qp_cap cap = {1, 0, 1, 0, 0, NULL};
	uint64_t seed[4] = {1, 2, 3, 4};
	struct arena a;

	w->memory = aligned_alloc(4096, ARENA_BYTES);
	memset(w->memory, 0, ARENA_BYTES);
	arena_init(&a, w->memory, ARENA_BYTES);
	assert_int_equal(hca_init(&w->h, a, NULL, seed), 0);
	w->s = srq_new(&w->h, 1, depth, 2, 5);
	assert_non_null(w->s);
	cap.srq = w->s;
	w->qp = qp_new(&w->h, 17, HCA_QPT_RC, 1, NULL, NULL, &cap, false);
	assert_non_null(w->qp);
}

static void end_world(struct world *w)
{
	srq_free(&w->h, w->s);
	free(w->memory);
}

static bool post_receive(struct world *w, uint64_t wr_id)
{
	struct wqe *e = srq_reserve(&w->h, w->s);

	if (!e)
		return false;
	memset(e, 0, sizeof(*e));
	e->wr_id = wr_id;
	e->num_sge = 2;
	wqe_sges(e)[1].bytes = (uint32_t)wr_id;
	wq_commit(&w->s->wq);
	return true;
}

static uint64_t take_receive(struct world *w, bool *low)
{
	struct wqe *got = wq_at(&w->h, &w->qp->rq, 0);

	if (!srq_take(&w->h, w->s, w->qp, low))
		return 0;
	assert_int_equal(qp_target(w->qp)->held, 1);
	qp_target(w->qp)->held = 0;
	assert_int_equal(wqe_sges(got)[1].bytes, got->wr_id);
	return got->wr_id;
}

static void receives_come_out_in_the_order_posted(void **state)
{
	struct world w;
	bool low;

	begin_world(&w, 5);
	for (uint64_t round = 0; round < 7; round++) {
		for (uint64_t i = 1; i <= 5; i++)
			assert_true(post_receive(&w, i));
		assert_false(post_receive(&w, 6)); /* the depth is 5, not 8 */
		for (uint64_t i = 1; i <= 5; i++)
			assert_int_equal(take_receive(&w, &low), i);
		assert_int_equal(take_receive(&w, &low), 0);
	}
	end_world(&w);
}

static void a_resize_keeps_what_is_posted(void **state)
{
	struct world w;
	bool low;

	begin_world(&w, 4);
	for (uint64_t i = 1; i <= 3; i++)
		post_receive(&w, i);
	assert_int_equal(take_receive(&w, &low), 1);
	post_receive(&w, 4);
	assert_int_equal(srq_resize(&w.h, w.s, 2), -EINVAL);
	assert_int_equal(w.s->wq.depth, 4);
	assert_int_equal(srq_resize(&w.h, w.s, 3), 0);
	assert_false(post_receive(&w, 5));
	assert_int_equal(srq_resize(&w.h, w.s, 100), 0);
	for (uint64_t i = 5; i <= 50; i++)
		assert_true(post_receive(&w, i));
	for (uint64_t i = 2; i <= 50; i++)
		assert_int_equal(take_receive(&w, &low), i);
	end_world(&w);
}

static void a_limit_above_the_count_raises_its_event_at_once(void **state)
{
	struct world w;
	bool low;

	begin_world(&w, 8);
	for (uint64_t i = 1; i <= 4; i++)
		post_receive(&w, i);
	assert_true(srq_arm(&w.h, w.s, 5));
	take_receive(&w, &low);
	assert_false(low);
	assert_false(srq_arm(&w.h, w.s, 3));
	take_receive(&w, &low);
	assert_true(low);
	take_receive(&w, &low);
	/* the previous taker may be stopped before it reports the event */
	assert_true(low);
	assert_true(srq_owed(w.s));
	post_receive(&w, 5);
	take_receive(&w, &low);
	assert_false(low);
	end_world(&w);
}

/* Returns a second queue pair that uses the shared receive queue. */
static struct qp *second_qp(struct world *w)
{
	struct hca_qp_cap cap = {1, 0, 1, 0, 0, w->s};

	return qp_new(&w->h, 18, HCA_QPT_RC, 1, NULL, NULL, &cap, false);
}

/* Returns the word in which a process records the take of a receive for the
 * queue pair, before the receive is held (srq.c). */
static _Atomic uint64_t *word_of(struct world *w, const struct qp *qp)
{
	_Atomic uint64_t *words = w->h.peer_area->takes;

	return &words[qp->stats.row];
}

/* A process dies after it has taken a receive, and before it has set `held`. */
static void
a_receive_that_a_dead_process_took_is_held_by_its_queue_pair(void **state)
{
	for (int others = 0; others < 3; others++) {
		struct world w;
		struct qp *other;
		bool low;

		begin_world(&w, 8);
		other = second_qp(&w);
		for (uint64_t i = 1; i <= 5; i++)
			post_receive(&w, i);
		assert_true(srq_take(&w.h, w.s, w.qp, &low));
		/* the state before `held` was set: WANTS | 0 (srq.c) */
		qp_target(w.qp)->held = 0;
		atomic_store(word_of(&w, w.qp), 1ull << 32);
		for (int i = 0; i < others; i++) {
			assert_true(srq_take(&w.h, w.s, other, &low));
			assert_int_equal(rq_slot(&w.h, other)->wr_id, 2 + i);
			qp_target(other)->held = 0;
		}
		srq_settle(&w.h, w.s, w.qp);
		assert_non_null(rq_held(&w.h, w.qp));
		assert_int_equal(rq_held(&w.h, w.qp)->wr_id, 1);
		end_world(&w);
	}
}

/* A process wants a receive, and dies after another process has taken this
 * receive. */
static void a_receive_that_a_dead_process_did_not_take_is_not_held(void **state)
{
	struct world w;
	struct qp *other;
	bool low;

	begin_world(&w, 8);
	other = second_qp(&w);
	post_receive(&w, 1);
	post_receive(&w, 2);
	atomic_store(word_of(&w, w.qp), 1ull << 32);
	assert_true(srq_take(&w.h, w.s, other, &low));
	assert_int_equal(rq_held(&w.h, other)->wr_id, 1);
	srq_settle(&w.h, w.s, w.qp);
	assert_null(rq_held(&w.h, w.qp));
	assert_true(srq_take(&w.h, w.s, w.qp, &low));
	assert_int_equal(rq_held(&w.h, w.qp)->wr_id, 2);
	end_world(&w);
}

/* Another process may describe a queue whose slots are not aligned.  An atomic
 * access to such a slot raises SIGBUS on arm64. */
static void a_queue_of_misaligned_slots_is_not_sound(void **state)
{
	struct world w;
	struct wq q = {.size = 2, .stride = 2 * sizeof(struct wqe)};

	begin_world(&w, 4);
	q.slots = 4096;
	assert_true(wq_is_sound(&w.h, &q, 0));
	q.slots++;
	assert_false(wq_is_sound(&w.h, &q, 0));
	q.slots--;
	q.stride++;
	assert_false(wq_is_sound(&w.h, &q, 0));
	end_world(&w);
}

/* Another process may describe a queue that lies in the last bytes of its
 * arena, and whose slot names more elements than the queue has.  The loads of
 * these elements must not leave the arena. */
static void a_queue_at_the_end_of_the_arena_is_not_sound(void **state)
{
	struct world w;
	struct wq q = {.size = 1, .stride = sizeof(struct wqe)};

	begin_world(&w, 4);
	q.slots = ARENA_BYTES - q.stride;
	assert_false(wq_is_sound(&w.h, &q, 0));
	q.slots = ARENA_BYTES - q.stride - HCA_MAX_SGE * sizeof(struct wq_sge);
	assert_false(wq_is_sound(&w.h, &q, 0));
	assert_false(arena_shares(&w.h.arena, ARENA_BYTES - 512, 512));
	q.slots = ARENA_BYTES - ARENA_UNUSED - q.stride;
	assert_true(wq_is_sound(&w.h, &q, 0));
	end_world(&w);
}

/* A slot of the queue pair has room for more elements than a slot of the SRQ.
 */
static void a_taken_receive_has_the_elements_of_its_queue_alone(void **state)
{
	struct world w;
	struct wqe *to;
	bool low;

	begin_world(&w, 4);
	assert_true(post_receive(&w, 7));
	wq_at(&w.h, &w.s->wq, 0)->num_sge = HCA_MAX_SGE;
	w.qp->rq.max_sge = HCA_MAX_SGE;
	w.s->wq.max_sge = 1;
	assert_true(srq_take(&w.h, w.s, w.qp, &low));
	to = rq_slot(&w.h, w.qp);
	assert_int_equal(to->num_sge, 1);
	w.s->wq.max_sge = 2;
	end_world(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_queue_of_misaligned_slots_is_not_sound),
		cmocka_unit_test(a_queue_at_the_end_of_the_arena_is_not_sound),
		cmocka_unit_test(
			a_taken_receive_has_the_elements_of_its_queue_alone),
		cmocka_unit_test(receives_come_out_in_the_order_posted),
		cmocka_unit_test(a_resize_keeps_what_is_posted),
		cmocka_unit_test(
			a_limit_above_the_count_raises_its_event_at_once),
		cmocka_unit_test(
			a_receive_that_a_dead_process_took_is_held_by_its_queue_pair),
		cmocka_unit_test(
			a_receive_that_a_dead_process_did_not_take_is_not_held),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
