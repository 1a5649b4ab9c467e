/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A wait for a receive may begin and end without the progress lock
 * (ibt/rnr_wait.h).  Side 0 sends without packets to side 1, which has a
 * receive only when a test posts one.  A test posts and polls as a thread does
 * that has the post lock alone.  It calls two_hcas_run for the work of a holder
 * of the progress lock.
 */
#include "test.h"

#include <string.h>

#include "hdr/aeth.h"
#include "ibt/ibt.h"
#include "scenario/outcome.h"
#include "util/step.h"

#define FEW   40
#define AT    100000
#define TIMER 12 /* two_hcas's min_rnr_timer */

/* The target's process ends at the next step of this name; NULL: at none. */
static struct {
	struct two_hcas *d;
	const char *step;
} death;

/* The adapters whose target loses a receive to another QP at the end of the
 * next access; NULL: no receive is lost. */
static struct two_hcas *theft;

void step_at(const char *name)
{
	if (theft && !strcmp(name, "the access slot is cleared")) {
		struct wq *rq = &theft->side[1].qp->rq;

		shared_store(&rq->head, shared_own(&rq->head) - 1);
		theft = NULL;
	}
	if (!death.step || strcmp(name, death.step) != 0)
		return;
	death.step = NULL;
	two_hcas_end_process(death.d, 1);
}

static bool post_send(struct two_hcas *d, uint32_t bytes)
{
	struct two_hcas_side *s = &d->side[0];
	void *to_wake;

	two_hcas_send(d, 0, HCA_WR_SEND, 0, bytes, 0);
	wq_commit(&s->qp->sq);
	return engine_post_apart(s->engine, s->side, d->now_ns, &to_wake);
}

static bool is_waiting(const struct two_hcas *d)
{
	const struct two_hcas_side *s = &d->side[0];

	return engine_awaits_receive(s->engine, engine_qp_post_lock(s->side));
}

/* Returns whether a request was executed or *left is not NULL.  *left is set as
 * engine_resume_apart sets it. */
static bool poll_resumes(struct two_hcas *d, struct ibt_qp **left)
{
	struct two_hcas_side *s = &d->side[0];
	void *to_wake;

	return engine_resume_apart(s->engine, engine_qp_post_lock(s->side),
				   d->now_ns, left, &to_wake);
}

/* Ends the wait; no request is left. */
static void end_by_poll(struct two_hcas *d)
{
	struct ibt_qp *left;

	assert_true(poll_resumes(d, &left));
	assert_null(left);
	assert_true(engine_is_settled(d->side[0].engine));
}

static void ring_doorbell(struct two_hcas *d)
{
	engine_doorbell(d->side[0].engine, d->side[0].side, d->now_ns);
	two_hcas_run(d, d->now_ns);
}

/* Connects, executes a first request, and begins a wait for a receive under the
 * progress lock. */
static struct two_hcas *begin_wait(void)
{
	struct two_hcas *d = two_hcas_new(1, 16);

	two_hcas_post_row(d, 1, HCA_WR_RDMA_WRITE, FEW, AT);
	two_hcas_run(d, d->now_ns + LONG);
	assert_done(d, 0, HCA_SUCCESS);
	assert_false(is_waiting(d));
	assert_false(post_send(d, FEW));
	ring_doorbell(d);
	assert_true(is_waiting(d));
	return d;
}

/* Begins a wait, and ends it by a poll.  The poll leaves the timer set and the
 * QP on the list direct_queues.waiting (rnr_wait.h). */
static struct two_hcas *end_wait(void)
{
	struct two_hcas *d = begin_wait();

	two_hcas_recv(d, 1, AT, FEW);
	end_by_poll(d);
	assert_false(is_waiting(d));
	assert_done(d, 0, HCA_SUCCESS);
	assert_done(d, 1, HCA_SUCCESS);
	return d;
}

static uint64_t waits_of_device(const struct two_hcas *d)
{
	return engine_counters(d->side[0].engine, 0)->naks.rnr_rx;
}

static void free_idle(struct two_hcas *d)
{
	two_hcas_run(d, d->now_ns + LONG);
	assert_true(engine_is_idle(d->side[0].engine));
	assert_false(is_waiting(d));
	assert_true(list_is_empty(&d->side[0].side->direct.waiting));
	two_hcas_free(d);
}

static void a_poll_ends_a_wait_once_a_receive_is_posted(void **state)
{
	struct two_hcas *d = begin_wait();
	struct ibt_qp *left;
	struct cqe c;

	assert_false(poll_resumes(d, &left));
	assert_false(two_hcas_poll(d, 0, &c));
	two_hcas_recv(d, 1, AT, FEW);
	two_hcas_fill(d, 0, 0, FEW);
	end_by_poll(d);
	assert_done(d, 0, HCA_SUCCESS);
	assert_done(d, 1, HCA_SUCCESS);
	assert_memory_equal(d->side[0].memory.bytes,
			    d->side[1].memory.bytes + AT, FEW);
	assert_false(poll_resumes(d, &left));
	free_idle(d);
}

static void waits_begin_and_end_without_the_progress_lock(void **state)
{
	struct two_hcas *d = end_wait();

	for (uint32_t i = 0; i < 5; i++) {
		/* the second request is behind the one that waits */
		assert_true(post_send(d, FEW));
		assert_true(post_send(d, FEW));
		assert_true(is_waiting(d));
		assert_int_equal(d->side[0].qp->stats.rnr_waits, 2 + i);
		assert_int_equal(d->side[0].qp->stats.wait, QP_WAIT_RECEIVE);
		two_hcas_recv(d, 1, AT, FEW);
		two_hcas_recv(d, 1, AT, FEW);
		end_by_poll(d);
		assert_int_equal(d->side[0].qp->stats.wait, QP_WAIT_NONE);
		for (int k = 0; k < 2; k++) {
			assert_done(d, 0, HCA_SUCCESS);
			assert_done(d, 1, HCA_SUCCESS);
		}
	}
	assert_int_equal(waits_of_device(d), 1);
	two_hcas_run(d, d->now_ns + LONG);
	assert_int_equal(waits_of_device(d), 6);
	free_idle(d);
}

static void requests_between_two_waits_need_no_progress_lock(void **state)
{
	struct two_hcas *d = end_wait();
	struct two_hcas_side *s = &d->side[0];
	void *to_wake;

	two_hcas_send(d, 0, HCA_WR_RDMA_WRITE, 0, FEW, AT);
	wq_commit(&s->qp->sq);
	assert_true(engine_post_apart(s->engine, s->side, d->now_ns, &to_wake));
	assert_done(d, 0, HCA_SUCCESS);
	two_hcas_recv(d, 1, AT, FEW);
	assert_true(post_send(d, FEW));
	assert_done(d, 0, HCA_SUCCESS);
	free_idle(d);
}

/* A wait that began without the progress lock has its whole time, although the
 * timer of an earlier wait expires first. */
static void the_timer_of_an_old_wait_ends_no_later_wait(void **state)
{
	struct two_hcas *d = end_wait();
	uint64_t wait = aeth_rnr_timer_ns(TIMER), began;

	d->side[0].qp->attr.rnr_retry = 1;
	d->now_ns += wait / 2;
	began = d->now_ns;
	assert_true(post_send(d, FEW));
	two_hcas_run(d, began + wait - 1);
	assert_int_equal(d->side[0].qp->stats.rnr_waits, 2);
	assert_int_equal(d->side[0].qp->state, HCA_QP_RTS);
	two_hcas_run(d, d->now_ns + LONG);
	assert_done(d, 0, HCA_RNR_RETRY_EXC_ERR);
	assert_int_equal(d->side[0].explained.cause, EXPLAIN_RNR);
	assert_true(d->now_ns - began >= wait);
	free_idle(d);
}

/* Without polls, the holder of the progress lock ends a wait that began without
 * this lock. */
static void a_wait_without_polls_ends_when_its_timer_expires(void **state)
{
	struct two_hcas *d = end_wait();

	assert_true(post_send(d, FEW));
	two_hcas_recv(d, 1, AT, FEW);
	two_hcas_run(d, d->now_ns + LONG);
	assert_done(d, 0, HCA_SUCCESS);
	assert_done(d, 1, HCA_SUCCESS);
	free_idle(d);
}

/* The program sleeps after a poll, and the receive comes soon afterwards. */
static void a_wait_ends_soon_after_the_last_poll(void **state)
{
	struct two_hcas *d = begin_wait();
	uint64_t until = d->now_ns + aeth_rnr_timer_ns(TIMER) / 2;
	struct ibt_qp *left;

	assert_false(poll_resumes(d, &left));
	engine_tick(d->side[0].engine, d->now_ns);
	two_hcas_recv(d, 1, AT, FEW);
	two_hcas_run(d, until);
	assert_done(d, 0, HCA_SUCCESS);
	free_idle(d);
}

static void the_last_try_is_left_for_the_progress_lock(void **state)
{
	struct two_hcas *d = end_wait();

	d->side[0].qp->attr.rnr_retry = 0;
	assert_false(post_send(d, FEW));
	ring_doorbell(d);
	assert_done(d, 0, HCA_RNR_RETRY_EXC_ERR);
	assert_int_equal(d->side[0].qp->state, HCA_QP_ERR);
	free_idle(d);
}

/* After the timer of the last wait has expired without another wait, the next
 * wait begins under the progress lock, whose holder sets the timer. */
static void a_wait_without_a_timer_begins_under_the_progress_lock(void **state)
{
	struct two_hcas *d = end_wait();

	two_hcas_run(d, d->now_ns + LONG);
	assert_true(engine_is_idle(d->side[0].engine));
	assert_false(post_send(d, FEW));
	ring_doorbell(d);
	assert_true(is_waiting(d));
	two_hcas_recv(d, 1, AT, FEW);
	end_by_poll(d);
	assert_done(d, 0, HCA_SUCCESS);
	free_idle(d);
}

/* The peer has made its min_rnr_timer shorter than the time that the timer of
 * the earlier wait still runs. */
static void a_shorter_wait_begins_under_the_progress_lock(void **state)
{
	struct two_hcas *d = end_wait();

	d->side[1].qp->attr.min_rnr_timer = 1;
	d->side[1].qp->attr_serial++;
	assert_false(post_send(d, FEW));
	ring_doorbell(d);
	two_hcas_recv(d, 1, AT, FEW);
	end_by_poll(d);
	assert_done(d, 0, HCA_SUCCESS);
	free_idle(d);
}

/* A message that is too long for an eager message waits for a receive, too, but
 * no thread executes it under the post lock alone. */
static void a_long_message_is_left_for_the_progress_lock(void **state)
{
	struct two_hcas *d = end_wait();
	struct ibt_qp *left;

	assert_false(post_send(d, WQE_EAGER_BYTES + 1));
	ring_doorbell(d);
	two_hcas_recv(d, 1, AT, WQE_EAGER_BYTES + 1);
	assert_false(poll_resumes(d, &left));
	two_hcas_run(d, d->now_ns + LONG);
	assert_done(d, 0, HCA_SUCCESS);
	free_idle(d);
}

/* The lkey of the message becomes invalid while the message waits, as after
 * ibv_dereg_mr. */
static void a_message_without_memory_is_left_for_the_progress_lock(void **state)
{
	struct two_hcas *d = begin_wait();
	struct ibt_qp *left;

	wqe_sges(wq_at(&d->side[0].hca, &d->side[0].qp->sq,
		       d->side[0].side->req.wqe))
		->lkey ^= 1;
	two_hcas_recv(d, 1, AT, FEW);
	assert_true(poll_resumes(d, &left));
	assert_ptr_equal(left, d->side[0].side);
	ring_doorbell(d);
	assert_done(d, 0, HCA_LOC_PROT_ERR);
	free_idle(d);
}

/* Another QP takes the receive before the waiting QP can take it, as is
 * possible with a shared receive queue.  The wait ends when its timer expires,
 * and counts once. */
static void a_receive_that_is_taken_ends_no_wait(void **state)
{
	for (int polls = 0; polls < 2; polls++) {
		struct two_hcas *d = begin_wait();
		uint64_t wait = aeth_rnr_timer_ns(TIMER), began = d->now_ns;
		struct ibt_qp *left;

		d->side[0].qp->attr.rnr_retry = 1;
		d->now_ns += wait / 2;
		two_hcas_recv(d, 1, AT, FEW);
		theft = d;
		if (polls)
			assert_false(poll_resumes(d, &left));
		else
			engine_tick(d->side[0].engine, d->now_ns);
		assert_null(theft);
		two_hcas_run(d, began + wait / 4 * 3);
		assert_true(is_waiting(d));
		assert_int_equal(d->side[0].qp->stats.rnr_waits, 1);
		two_hcas_run(d, d->now_ns + LONG);
		assert_done(d, 0, HCA_RNR_RETRY_EXC_ERR);
		assert_true(d->now_ns - began >= wait);
		free_idle(d);
	}
}

/* The state changes during a wait that began without the progress lock, or
 * between two waits. */
static void a_change_of_the_state_ends_each_wait(void **state)
{
	static const uint32_t states[] = {HCA_QP_ERR, HCA_QP_RESET};

	for (size_t i = 0; i < TEST_COUNT(states); i++)
		for (int waits = 0; waits < 2; waits++) {
			struct two_hcas *d = end_wait();
			struct ibt_qp *left;
			struct cqe c;

			if (waits)
				assert_true(post_send(d, FEW));
			enter_state(d, 0, states[i]);
			assert_false(is_waiting(d));
			assert_false(poll_resumes(d, &left));
			if (waits && states[i] == HCA_QP_ERR)
				assert_done(d, 0, HCA_WR_FLUSH_ERR);
			assert_false(two_hcas_poll(d, 0, &c));
			assert_int_equal(waits_of_device(d), 1 + waits);
			assert_true(engine_is_idle(d->side[0].engine));
			free_idle(d);
		}
}

/* The message that waits has begun, so the queue is drained only when the
 * message is complete (IBTA 10.3.1). */
static void a_drained_queue_ends_its_wait(void **state)
{
	struct two_hcas *d = end_wait();

	assert_true(post_send(d, FEW));
	drain_sends(d, 0);
	two_hcas_run(d, d->now_ns);
	assert_draining(d, true);
	two_hcas_recv(d, 1, AT, FEW);
	two_hcas_run(d, d->now_ns + LONG);
	assert_done(d, 0, HCA_SUCCESS);
	assert_draining(d, false);
	free_idle(d);
}

/* The atomic that the target's process executes has begun; the WRITE behind the
 * atomic has not. */
static void a_drain_waits_for_an_atomic(void **state)
{
	struct two_hcas *d = end_wait();
	struct cqe c;

	d->side[1].is_stopped = true;
	two_hcas_send(d, 0, HCA_WR_ATOMIC_FADD, 8, 8, AT)->swap_add = 1;
	two_hcas_post(d, 0);
	two_hcas_send(d, 0, HCA_WR_RDMA_WRITE, 0, FEW, AT);
	two_hcas_post(d, 0);
	two_hcas_run(d, d->now_ns);
	drain_sends(d, 0);
	two_hcas_run(d, d->now_ns);
	assert_draining(d, true);
	d->side[1].is_stopped = false;
	two_hcas_run(d, d->now_ns + LONG);
	assert_done(d, 0, HCA_SUCCESS);
	assert_false(two_hcas_poll(d, 0, &c));
	assert_draining(d, false);
	enter_state(d, 0, HCA_QP_RTS);
	two_hcas_run(d, d->now_ns + LONG);
	assert_done(d, 0, HCA_SUCCESS);
	free_idle(d);
}

static void a_destroyed_queue_pair_leaves_nothing(void **state)
{
	for (int waits = 0; waits < 2; waits++) {
		struct two_hcas *d = end_wait();
		struct two_hcas_side *s = &d->side[0];
		uint32_t number = engine_qp_post_lock(s->side);

		if (waits)
			assert_true(post_send(d, FEW));
		engine_qp_remove(s->engine, s->side);
		assert_false(engine_awaits_receive(s->engine, number));
		assert_true(engine_is_idle(s->engine));
		s->side = engine_qp_add(s->engine, s->qp);
		two_hcas_free(d);
	}
}

/* The target's process ends before the poll looks for a receive, or between
 * that look and the request. */
static void a_target_that_ends_is_left_for_the_progress_lock(void **state)
{
	static const char *const at[] = {"the access slot is set",
					 "the access slot is cleared"};

	for (size_t i = 0; i < TEST_COUNT(at); i++) {
		struct two_hcas *d = end_wait();
		struct ibt_qp *left;

		assert_true(post_send(d, FEW));
		two_hcas_recv(d, 1, AT, FEW);
		death.d = d;
		death.step = at[i];
		assert_true(poll_resumes(d, &left));
		assert_null(death.step);
		assert_ptr_equal(left, d->side[0].side);
		ring_doorbell(d);
		two_hcas_run(d, d->now_ns + LONG);
		assert_done(d, 0, HCA_RETRY_EXC_ERR);
		assert_int_equal(d->side[0].explained.cause, EXPLAIN_PEER_GONE);
		two_hcas_free(d);
	}
}

/* An atomic waits for the target.  This wait begins under the progress lock
 * after a poll has ended a wait for a receive, and does not end with the timer
 * of the earlier wait. */
static void the_old_timer_ends_no_wait_of_another_kind(void **state)
{
	struct two_hcas *d = end_wait();

	d->side[1].is_stopped = true;
	two_hcas_send(d, 0, HCA_WR_ATOMIC_FADD, 8, 8, AT)->swap_add = 1;
	wq_commit(&d->side[0].qp->sq);
	ring_doorbell(d);
	two_hcas_run(d, d->now_ns + 4 * aeth_rnr_timer_ns(TIMER));
	assert_true(list_is_linked(&d->side[0].side->direct.waiting));
	d->side[1].is_stopped = false;
	two_hcas_run(d, d->now_ns + LONG);
	assert_done(d, 0, HCA_SUCCESS);
	free_idle(d);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_poll_ends_a_wait_once_a_receive_is_posted),
		cmocka_unit_test(waits_begin_and_end_without_the_progress_lock),
		cmocka_unit_test(
			requests_between_two_waits_need_no_progress_lock),
		cmocka_unit_test(the_timer_of_an_old_wait_ends_no_later_wait),
		cmocka_unit_test(
			a_wait_without_polls_ends_when_its_timer_expires),
		cmocka_unit_test(a_wait_ends_soon_after_the_last_poll),
		cmocka_unit_test(the_last_try_is_left_for_the_progress_lock),
		cmocka_unit_test(
			a_wait_without_a_timer_begins_under_the_progress_lock),
		cmocka_unit_test(a_shorter_wait_begins_under_the_progress_lock),
		cmocka_unit_test(a_long_message_is_left_for_the_progress_lock),
		cmocka_unit_test(
			a_message_without_memory_is_left_for_the_progress_lock),
		cmocka_unit_test(a_receive_that_is_taken_ends_no_wait),
		cmocka_unit_test(a_change_of_the_state_ends_each_wait),
		cmocka_unit_test(a_drained_queue_ends_its_wait),
		cmocka_unit_test(a_drain_waits_for_an_atomic),
		cmocka_unit_test(a_destroyed_queue_pair_leaves_nothing),
		cmocka_unit_test(
			a_target_that_ends_is_left_for_the_progress_lock),
		cmocka_unit_test(the_old_timer_ends_no_wait_of_another_kind),
	};
	static char *mode[] = {"test", "direct", "apart"};

	two_hcas_mode(3, mode);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
