/* SPDX-License-Identifier: BSD-2-Clause */
/* hca/cq: completions are polled in order, an armed CQ gets its event, resizing
 * and purging keep the other completions, and an overflow is reported; also for
 * completions that peers of this host leave for a CQ. */
#include "test.h"

#include <errno.h>

#include "hca/hca.h"

#define ARENA_BYTES (16u << 20)
#define CQE	    5u

static void *memory;
static struct hca h;
static struct cq *cq;

static int set_up(void **state)
{
	uint64_t seed[4] = {1, 2, 3, 4};
	struct arena a;

	memory = aligned_alloc(4096, ARENA_BYTES);
	memset(memory, 0, ARENA_BYTES);
	arena_init(&a, memory, ARENA_BYTES);
	assert_int_equal(hca_init(&h, a, NULL, seed), 0);
	cq = cq_new(&h, CQE, 9, false);
	return cq ? 0 : -1;
}

static int tear_down(void **state)
{
	cq_free(&h, cq);
	free(memory);
	return 0;
}

static enum cq_push push_cqe(uint64_t wr_id, uint32_t qpn, bool solicited)
{
	struct cqe c = {.wr_id = wr_id, .qpn = qpn};

	return cq_push(&h, cq, &c, solicited);
}

static uint32_t count_cqes(void)
{
	return shared_load(&cq->head) - shared_load(&cq->tail);
}

static uint64_t pop_cqe(void)
{
	struct cqe c;

	return cq_poll(&h, cq, &c, 1) ? c.wr_id : 0;
}

static void completions_come_out_in_order_past_every_wrap(void **state)
{
	for (uint64_t i = 1; i < 1000; i += 3) {
		for (uint64_t k = 0; k < 3; k++)
			assert_int_equal(push_cqe(i + k, 1, false), CQ_QUIET);
		assert_int_equal(count_cqes(), 3);
		for (uint64_t k = 0; k < 3; k++)
			assert_int_equal(pop_cqe(), i + k);
		assert_int_equal(pop_cqe(), 0);
	}
}

static void a_poll_takes_what_is_there_and_no_more(void **state)
{
	struct cqe c[8];

	push_cqe(1, 1, false);
	push_cqe(2, 1, false);
	push_cqe(3, 1, false);
	assert_int_equal(cq_poll(&h, cq, c, 2), 2);
	assert_int_equal(cq_poll(&h, cq, c, 8), 1);
	assert_int_equal(c[0].wr_id, 3);
	assert_int_equal(cq_poll(&h, cq, c, 8), 0);
}

static void one_completion_too_many_is_an_overrun_for_good(void **state)
{
	for (uint64_t i = 1; i <= CQE; i++)
		assert_int_equal(push_cqe(i, 1, false), CQ_QUIET);
	assert_int_equal(push_cqe(6, 1, false), CQ_OVERRUN);
	assert_int_equal(push_cqe(7, 1, false),
			 CQ_QUIET); /* CQ_OVERRUN comes once */
	for (uint64_t i = 1; i <= CQE; i++)
		assert_int_equal(pop_cqe(), i);
	assert_int_equal(push_cqe(8, 1, false), CQ_QUIET);
	assert_int_equal(pop_cqe(), 0);
}

static void arming_is_for_one_event(void **state)
{
	assert_int_equal(push_cqe(1, 1, true), CQ_QUIET);
	cq_arm(cq, false);
	assert_int_equal(push_cqe(2, 1, false), CQ_NOTIFY);
	assert_int_equal(cq_take_unreported(cq), 1);
	assert_int_equal(push_cqe(3, 1, false), CQ_QUIET);
	cq_arm(cq, true);
	assert_int_equal(push_cqe(4, 1, false), CQ_QUIET);
	assert_int_equal(push_cqe(5, 1, true), CQ_NOTIFY);
}

static void
arming_for_all_completions_overrides_arming_for_solicited(void **state)
{
	cq_arm(cq, false);
	cq_arm(cq, true);
	assert_int_equal(push_cqe(1, 1, false), CQ_NOTIFY);
	cq_arm(cq, true);
	cq_arm(cq, false);
	assert_int_equal(push_cqe(2, 1, false), CQ_NOTIFY);
}

static void resizing_keeps_what_waits_or_is_refused(void **state)
{
	/* after these, the next CQE completions pass the end of the ring */
	for (uint64_t i = 1; i <= 4; i++)
		push_cqe(i, 1, false), pop_cqe();
	for (uint64_t i = 1; i <= CQE; i++)
		push_cqe(i, 1, false);
	assert_int_equal(cq_resize(&h, cq, 4), -EINVAL);
	assert_int_equal(cq_resize(&h, cq, 100), 0);
	for (uint64_t i = CQE + 1; i <= 100; i++)
		assert_int_equal(push_cqe(i, 1, false), CQ_QUIET);
	assert_int_equal(push_cqe(101, 1, false), CQ_OVERRUN);
	for (uint64_t i = 1; i <= 100; i++)
		assert_int_equal(pop_cqe(), i);
	assert_int_equal(cq_resize(&h, cq, 1), 0);
}

static void purging_leaves_other_completions_in_order(void **state)
{
	push_cqe(1, 10, false);
	push_cqe(2, 20, false);
	push_cqe(3, 10, false);
	push_cqe(4, 30, false);
	push_cqe(5, 10, false);
	cq_purge(&h, cq, 10);
	assert_int_equal(count_cqes(), 2);
	assert_int_equal(pop_cqe(), 2);
	assert_int_equal(pop_cqe(), 4);
	cq_purge(&h, cq, 10);
	assert_int_equal(pop_cqe(), 0);
	assert_int_equal(push_cqe(6, 10, false), CQ_QUIET);
	assert_int_equal(pop_cqe(), 6);
}

static void moderated_events_wait_for_more_completions(void **state)
{
	cq_moderate(&h, cq, 3, 1000);
	cq_arm(cq, false);
	assert_int_equal(push_cqe(1, 1, false), CQ_LATER);
	assert_int_equal(push_cqe(2, 1, false), CQ_QUIET);
	assert_int_equal(push_cqe(3, 1, false), CQ_NOTIFY);
	cq_fire(cq);
	assert_int_equal(cq_take_unreported(cq), 1);
	cq_arm(cq, false);
	assert_int_equal(push_cqe(4, 1, false), CQ_LATER);
	assert_true(cq_is_holding(cq));
	cq_fire(cq);
	assert_false(cq_is_holding(cq));
	assert_int_equal(cq_take_unreported(cq), 1);
	cq_fire(cq);
	assert_int_equal(cq_take_unreported(cq), 0);
}

static void events_that_are_not_reported_do_not_wrap(void **state)
{
	for (uint32_t i = 0; i < 20000; i++) {
		cq_arm(cq, false);
		push_cqe(1, 1, false);
		pop_cqe();
	}
	assert_false(cq_is_holding(cq));
	assert_int_equal(cq_take_unreported(cq),
			 CQ_UNREPORTED_MASK / CQ_UNREPORTED_ONE);
}

/* ---- completions that peers leave ---- */

enum { STOPPED = 100, DEAD, LIVING }; /* owners of a lock */

static bool is_dead(alock_owner owner)
{
	return owner == DEAD;
}

static bool wait_for(alock_owner owner)
{
	return is_dead(owner);
}

static const struct alock_judge judge = {is_dead, NULL, NULL, wait_for};

static struct qp *new_qp(uint32_t qpn)
{
	struct hca_qp_cap cap = {1, 4, 1, 1, 0, NULL};
	struct qp *qp = qp_new(&h, qpn, HCA_QPT_RC, 1, cq, cq, &cap, false);

	assert_non_null(qp);
	return qp;
}

/* A peer that found the queue pair in the table would use memory that qp_new
 * has freed. */
static void a_qp_for_which_no_memory_is_left_is_never_in_the_table(void **state)
{
	struct hca_qp_cap cap = {1, 1u << 20, 1, 1, 0, NULL};
	uint32_t top = h.shared->qp_top;

	assert_null(qp_new(&h, 7, HCA_QPT_RC, 1, cq, cq, &cap, false));
	assert_int_equal(h.shared->qp_top, top);
}

static void end_qp(struct qp *qp)
{
	qp_withdraw(&h, qp);
	qp_free(&h, qp);
}

/* A peer that still works at a withdrawn queue pair uses the word of the queue
 * pair's row in hca_peer_area.takes. */
static void the_row_of_a_withdrawn_qp_is_free_after_qp_free(void **state)
{
	struct qp *first = new_qp(7), *second;
	uint32_t row = first->stats.row;

	qp_withdraw(&h, first);
	second = new_qp(8);
	assert_int_not_equal(second->stats.row, row);
	qp_free(&h, first);
	first = new_qp(9);
	assert_int_equal(first->stats.row, row);
	end_qp(first);
	end_qp(second);
}

/* The owner posts a receive, and a peer takes it. */
static void take_receive(struct qp *qp, uint64_t wr_id)
{
	struct wqe *w = wq_reserve(&h, &qp->rq);
	bool low;

	assert_non_null(w);
	w->wr_id = wr_id;
	wq_commit_recv(&h, &qp->rq, w->wr_id);
	assert_ptr_equal(rq_take(&h, qp, &low), w);
}

static enum cq_push leave_completion(struct qp *qp, uint64_t wr_id)
{
	struct cqe c = {.opcode = HCA_WC_RECV, .byte_len = (uint32_t)wr_id};

	take_receive(qp, wr_id);
	return rq_leave_done(&h, qp, cq, &c, false, NULL);
}

static void left_completions_are_polled_with_the_rest(void **state)
{
	struct qp *a = new_qp(7), *b = new_qp(8);
	struct cqe c;

	assert_false(cq_has(&h, cq));
	for (uint64_t round = 0; round < 10; round++) {
		assert_int_equal(leave_completion(a, 10 * round + 1), CQ_QUIET);
		assert_int_equal(leave_completion(a, 10 * round + 2), CQ_QUIET);
		assert_true(cq_has(&h, cq));
		assert_int_equal(pop_cqe(), 10 * round + 1);
		assert_int_equal(leave_completion(b, 10 * round + 3), CQ_QUIET);
		assert_int_equal(pop_cqe(), 10 * round + 2);
		assert_int_equal(cq_poll(&h, cq, &c, 1), 1);
		assert_int_equal(c.wr_id, 10 * round + 3);
		assert_int_equal(c.qpn, 8);
		assert_int_equal(c.byte_len, c.wr_id);
		assert_int_equal(c.opcode, HCA_WC_RECV);
		assert_false(cq_has(&h, cq));
	}
	end_qp(a);
	end_qp(b);
}

static void left_completions_fire_an_armed_queue_once(void **state)
{
	struct qp *a = new_qp(7), *b = new_qp(8);

	cq_arm(cq, false);
	assert_int_equal(leave_completion(a, 1), CQ_NOTIFY);
	/* the peer that got CQ_NOTIFY first may be stopped before it reports
	 * the event */
	assert_int_equal(leave_completion(b, 2), CQ_NOTIFY);
	assert_int_equal(cq_take_unreported(cq), 1);
	assert_int_equal(leave_completion(b, 3), CQ_QUIET);
	cq_arm(cq, true);
	assert_int_equal(leave_completion(a, 4), CQ_QUIET); /* not solicited */
	end_qp(a);
	end_qp(b);
}

/* A peer is stopped after it has set is_queued, and before it has put the queue
 * pair on the list. */
static void a_peer_stopped_while_it_announces_excludes_no_peer(void **state)
	NO_LOCK_ANALYSIS
{
	struct qp *a = new_qp(7), *b = new_qp(8);

	alock_open(LIVING, &judge);
	shared_store(&qp_target(a)->is_queued, 1);
	leave_completion(a, 1);
	assert_false(cq_has(&h, cq));
	leave_completion(b, 2);
	assert_int_equal(push_cqe(3, 9, false), CQ_QUIET);
	assert_int_equal(pop_cqe() + pop_cqe(), 2 + 3); /* in either order */
	assert_false(cq_has(&h, cq));
	/* the peer lives: no repair is done */
	cq_arm(cq, false);
	atomic_store(&qp_target(a)->lock.owner, STOPPED);
	assert_false(peer_death_repair(&h));
	assert_int_equal(shared_load(&qp_target(a)->is_queued), 1);
	assert_int_equal(cq_take_unreported(cq), 0);
	/* the peer is dead, and another process has entered since */
	atomic_store(&qp_target(a)->lock.owner, DEAD);
	assert_true(rq_enter(&h, a));
	assert_false(peer_death_repair(&h));
	rq_leave(a);
	assert_true(peer_death_repair(&h));
	assert_int_equal(cq_take_unreported(cq), 1);
	assert_int_equal(pop_cqe(), 1);
	assert_int_equal(leave_completion(a, 4), CQ_QUIET);
	assert_int_equal(pop_cqe(), 4);
	end_qp(a);
	end_qp(b);
}

static void a_completion_that_does_not_fit_is_an_overrun(void **state)
{
	struct qp *a = new_qp(7), *b = new_qp(8);
	uint32_t bits;

	for (uint64_t i = 1; i < CQE; i++)
		leave_completion(a, i);
	leave_completion(b, 5);
	leave_completion(b, 6);
	cq_collect(&h, cq, NULL);
	assert_int_equal(cq->overrun, CQ_OVERRUN_UNREPORTED);
	assert_non_null(notify_take(&h, &bits));
	assert_int_equal(bits, QP_NOTIFY_FULL);
	end_qp(a);
	end_qp(b);
}

static void a_destroyed_queue_pair_leaves_the_list(void **state)
{
	struct qp *a = new_qp(7), *b = new_qp(8);

	leave_completion(a, 1);
	leave_completion(b, 2);
	end_qp(a);
	cq_purge(&h, cq, 7);
	assert_int_equal(pop_cqe(), 2);
	assert_false(cq_has(&h, cq));
	leave_completion(b, 3);
	assert_int_equal(pop_cqe(), 3);
	end_qp(b);
}

enum { MANY = CQ_WATCHED + 3 };

static void completions_of_unwatched_queue_pairs_are_found(void **state)
{
	struct qp *qp[MANY];
	uint64_t sum = 0;

	for (uint32_t i = 0; i < MANY; i++)
		qp[i] = new_qp(7 + i);
	for (uint64_t round = 0; round < 20; round++) {
		/* completions of several queue pairs, then one of a queue pair
		 * that in some rounds is not watched */
		for (uint32_t i = 0; i < CQE - 1; i++)
			leave_completion(qp[(round * 3 + i) % MANY], i);
		for (uint32_t i = 0; i < CQE - 1; i++)
			sum += pop_cqe();
		assert_int_equal(sum, (round + 1) * (CQE - 1) * (CQE - 2) / 2);
		assert_false(cq_has(&h, cq));
		assert_int_equal(leave_completion(qp[round % MANY], 77),
				 CQ_QUIET);
		assert_true(cq_has(&h, cq));
		assert_int_equal(pop_cqe(), 77);
	}
	/* the CQ no longer looks at a destroyed queue pair, but still at the
	 * others */
	for (uint32_t i = 0; i < MANY; i++) {
		end_qp(qp[i]);
		for (uint32_t k = i + 1; k < MANY; k++) {
			leave_completion(qp[k], k);
			assert_int_equal(pop_cqe(), k);
		}
		assert_false(cq_has(&h, cq));
	}
}

/* Without a channel no event is due, and none is held back by moderation. */
static void without_a_channel_no_event_is_due(void **state)
{
	struct qp *a;

	cq_free(&h, cq);
	cq = cq_new(&h, CQE, 9, true);
	a = new_qp(7);
	cq_moderate(&h, cq, 2, 1000);
	for (uint64_t i = 0; i < 3; i++) {
		cq_arm(cq, false);
		assert_int_equal(push_cqe(i, 1, true), CQ_QUIET);
		assert_int_equal(leave_completion(a, 10 + i), CQ_QUIET);
		assert_int_equal(pop_cqe(), i);
		assert_int_equal(pop_cqe(), 10 + i);
	}
	assert_int_equal(cq_take_unreported(cq), 0);
	assert_false(cq_is_holding(cq));
	end_qp(a);
}

static void a_destroyed_queue_pair_leaves_no_completions(void **state)
{
	struct qp *a = new_qp(7);

	push_cqe(1, 7, false);
	push_cqe(2, 8, false);
	leave_completion(a, 3);
	end_qp(a);
	assert_int_equal(pop_cqe(), 2);
	assert_false(cq_has(&h, cq));
}

/* A slow peer sets the mark of an earlier round, whose completion the owner has
 * polled already. */
static void a_late_mark_counts_only_for_its_own_round(void **state)
{
	struct qp *a = new_qp(7);
	struct wqe *w = wq_at(&h, &a->rq, 0);
	struct cqe c = {.opcode = HCA_WC_RECV};
	uint8_t mark;

	for (uint64_t i = 0; i < 4; i++) {
		leave_completion(a, i);
		assert_int_equal(pop_cqe(), i);
	}
	mark = w->left;
	assert_int_not_equal(mark, 0);
	take_receive(a, 4);
	atomic_store(&w->left, mark);
	assert_false(cq_has(&h, cq));
	rq_leave_done(&h, a, cq, &c, false, NULL);
	assert_int_equal(pop_cqe(), 4);
	end_qp(a);
}

/* ---- the arena ---- */

/* Each page costs memory and a page fault, and queue pairs allocate small and
 * large blocks in turns. */
static void small_blocks_share_a_page_across_large_ones(void **state)
{
	const uint64_t page = 4096;
	aoff one = arena_alloc_shared(&h.arena, page / 4), two;

	assert_true(one != 0);
	assert_int_equal(one % (page / 4), 0);
	for (int i = 0; i < 3; i++) {
		aoff large = arena_alloc_buffer(&h.arena, 2 * page);

		assert_int_equal(large % page, 0);
		two = arena_alloc_shared(&h.arena, page / 4);
		assert_true(two / page == one / page ||
			    two % page == 0); /* a page may have been full */
		assert_true(two / page != large / page &&
			    two / page != large / page + 1);
		one = two;
	}
	assert_int_equal(arena_alloc(&h.arena, page) % page, 0);
}

/* The last small block that there is room for is allocated, and no block lies
 * outside its part of the arena. */
static void small_blocks_fill_an_arena(void **state)
{
	enum { BYTES = 5 * 4096, SMALL = 1024 };
	uint8_t *room = aligned_alloc(4096, BYTES);
	struct arena a;
	aoff off;
	int n = 0, shared = 0;

	memset(room, 0, BYTES);
	arena_init(&a, room, BYTES);
	for (; (off = arena_alloc(&a, SMALL)); n++)
		assert_true(off >= 4096 && off + SMALL <= a.shared);
	for (; (off = arena_alloc_shared(&a, SMALL)); shared++)
		assert_true(off >= a.shared && arena_has(&a, off, SMALL));
	assert_int_equal(n, 4);
	assert_int_equal(shared, 8);
	free(room);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(the_row_of_a_withdrawn_qp_is_free_after_qp_free),
		CASE(a_qp_for_which_no_memory_is_left_is_never_in_the_table),
		CASE(completions_come_out_in_order_past_every_wrap),
		CASE(a_poll_takes_what_is_there_and_no_more),
		CASE(one_completion_too_many_is_an_overrun_for_good),
		CASE(arming_is_for_one_event),
		CASE(arming_for_all_completions_overrides_arming_for_solicited),
		CASE(resizing_keeps_what_waits_or_is_refused),
		CASE(purging_leaves_other_completions_in_order),
		CASE(moderated_events_wait_for_more_completions),
		CASE(events_that_are_not_reported_do_not_wrap),
		CASE(left_completions_are_polled_with_the_rest),
		CASE(left_completions_fire_an_armed_queue_once),
		CASE(a_peer_stopped_while_it_announces_excludes_no_peer),
		CASE(a_completion_that_does_not_fit_is_an_overrun),
		CASE(a_destroyed_queue_pair_leaves_the_list),
		CASE(completions_of_unwatched_queue_pairs_are_found),
		CASE(without_a_channel_no_event_is_due),
		CASE(a_destroyed_queue_pair_leaves_no_completions),
		CASE(a_late_mark_counts_only_for_its_own_round),
		CASE(small_blocks_share_a_page_across_large_ones),
		CASE(small_blocks_fill_an_arena),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
