/* SPDX-License-Identifier: BSD-2-Clause */
/* RC QPs take receives from a shared receive queue in order, and flush only the
 * receives that they have taken. */
#include "test.h"

#include "scenario/outcome.h"
#include "scenario/two_hcas.h"

static void post_send(struct two_hcas *d, uint32_t bytes)
{
	two_hcas_send(d, 0, HCA_WR_SEND, 0, bytes, 0);
	two_hcas_post(d, 0);
}

static uint64_t take_receive(struct two_hcas *d, uint32_t status)
{
	struct cqe c;

	assert_true(two_hcas_poll(d, 1, &c));
	assert_int_equal(c.status, status);
	return c.wr_id;
}

static void to_error(struct two_hcas *d, int i)
{
	struct hca_qp_attr a = {.qp_state = HCA_QP_ERR};
	const char *why;

	assert_int_equal(engine_qp_modify(d->side[i].engine, d->side[i].side,
					  &a, HCA_QP_STATE, NULL, d->now_ns,
					  &why),
			 0);
	two_hcas_run(d, d->now_ns);
}

static void an_empty_shared_queue_makes_the_sender_wait(void **state)
{
	struct two_hcas *d = two_hcas_new_shared(1, 4);
	struct cqe c;

	for (uint32_t k = 0; k < 12; k++) {
		post_send(d, 700);
		two_hcas_run(d, d->now_ns + 5000000);
		assert_false(two_hcas_poll(d, 0, &c));
		two_hcas_recv(d, 1, 9000, 1000);
		two_hcas_run(d, d->now_ns + LONG);
		assert_true(two_hcas_poll(d, 0, &c));
		assert_int_equal(c.status, HCA_SUCCESS);
		assert_int_equal(take_receive(d, HCA_SUCCESS), 0x8000 + k);
	}
	two_hcas_free(d);
}

static void a_taken_receive_frees_its_slot(void **state)
{
	struct two_hcas *d = two_hcas_new_shared(1, 2);

	two_hcas_recv(d, 1, 0, 4000);
	two_hcas_recv(d, 1, 4000, 4000);
	post_send(d, 4000);
	two_hcas_run(d, d->now_ns + LONG);
	assert_true(two_hcas_poll(d, 0, &(struct cqe){0}));
	/* side 1 has not polled, and the queue has room */
	two_hcas_recv(d, 1, 8000, 4000);
	post_send(d, 4000);
	post_send(d, 4000);
	two_hcas_run(d, d->now_ns + LONG);
	for (uint64_t k = 0; k < 3; k++)
		assert_int_equal(take_receive(d, HCA_SUCCESS), 0x8000 + k);
	two_hcas_free(d);
}

static void many_receives_are_taken_before_a_poll(void **state)
{
	struct two_hcas *d = two_hcas_new_shared(1, 64);

	for (uint64_t k = 0; k < 50; k++)
		two_hcas_recv(d, 1, 100 * k, 100);
	for (uint64_t k = 0; k < 50; k++) {
		post_send(d, 100);
		two_hcas_run(d, d->now_ns + LONG);
		assert_true(two_hcas_poll(d, 0, &(struct cqe){0}));
	}
	for (uint64_t k = 0; k < 50; k++)
		assert_int_equal(take_receive(d, HCA_SUCCESS), 0x8000 + k);
	two_hcas_free(d);
}

/* On the direct path, a stopped target gets no more messages than its QP has
 * slots for taken receives. */
static void a_target_that_collects_late_gets_the_rest(void **state)
{
	struct two_hcas *d = two_hcas_new_shared(1, 64);
	uint32_t done = 0;

	for (uint64_t k = 0; k < 50; k++)
		two_hcas_recv(d, 1, 100 * k, 100);
	d->side[1].is_stopped = two_hcas_is_direct();
	for (uint64_t k = 0; k < 50; k++) {
		post_send(d, 100);
		two_hcas_run(d, d->now_ns + 1000000);
		done += two_hcas_poll(d, 0, &(struct cqe){0});
	}
	assert_int_equal(done, two_hcas_is_direct() ? 16 : 50);
	d->side[1].is_stopped = false;
	two_hcas_run(d, d->now_ns + LONG);
	while (two_hcas_poll(d, 0, &(struct cqe){0}))
		done++;
	assert_int_equal(done, 50);
	for (uint64_t k = 0; k < 50; k++)
		assert_int_equal(take_receive(d, HCA_SUCCESS), 0x8000 + k);
	assert_false(two_hcas_poll(d, 1, &(struct cqe){0}));
	two_hcas_free(d);
}

static void the_limit_event_is_raised_once(void **state)
{
	struct two_hcas *d = two_hcas_new_shared(1, 8);
	struct two_hcas_side *s = &d->side[1];

	for (uint64_t k = 0; k < 8; k++)
		two_hcas_recv(d, 1, 100 * k, 100);
	assert_false(srq_arm(&s->hca, s->srq, 6));
	for (int k = 0; k < 2; k++)
		post_send(d, 10);
	two_hcas_run(d, d->now_ns + LONG);
	assert_int_equal(s->events[ENGINE_SRQ_LIMIT], 0);
	for (int k = 0; k < 3; k++)
		post_send(d, 10);
	two_hcas_run(d, d->now_ns + LONG);
	assert_int_equal(s->events[ENGINE_SRQ_LIMIT], 1);
	assert_int_equal(srq_limit(s->srq), 0);
	two_hcas_free(d);
}

/* The first message of a batch takes the receive at the limit, and the batch
 * ends at the second message, whose SGE has a key of no region. */
static void
a_target_is_woken_for_its_limit_although_the_batch_ends(void **state)
{
	struct two_hcas *d = two_hcas_new_shared(1, 8);
	struct two_hcas_side *s = &d->side[1];
	uint32_t before;

	for (uint64_t k = 0; k < 8; k++)
		two_hcas_recv(d, 1, 100 * k, 100);
	/* a batch needs a request that was executed before */
	post_send(d, 10);
	two_hcas_run(d, d->now_ns + LONG);
	assert_true(two_hcas_poll(d, 0, &(struct cqe){0}));
	assert_false(srq_arm(&s->hca, s->srq, 7));
	shared_store(&s->hca.shared->is_asleep, 1);
	before = s->woken;
	two_hcas_send(d, 0, HCA_WR_SEND, 0, 10, 0);
	wq_commit(&d->side[0].qp->sq);
	wqe_sges(two_hcas_send(d, 0, HCA_WR_SEND, 0, 10, 0))->lkey ^= 0x100;
	two_hcas_post(d, 0);
	two_hcas_run(d, d->now_ns + LONG);
	assert_int_equal(s->woken, before + 1);
	assert_int_equal(s->events[ENGINE_SRQ_LIMIT], 1);
	assert_done(d, 0, HCA_SUCCESS);
	assert_done(d, 0, HCA_LOC_PROT_ERR);
	two_hcas_free(d);
}

/* Lets *context frames of side 0 pass, and drops the frames after them. */
static int pass_few(void *context, int from, const struct engine_frame *f)
{
	int *left = context;

	return from || (*left)-- > 0;
}

static void an_error_flushes_only_the_receives_that_were_taken(void **state)
{
	struct two_hcas *d = two_hcas_new_shared(1, 8);
	int left = 2;

	d->fate = pass_few;
	d->context = &left;
	two_hcas_recv(d, 1, 0, 4000);
	two_hcas_recv(d, 1, 4000, 4000);
	post_send(d, 4000);
	two_hcas_run(d, d->now_ns + 1000000);
	to_error(d, 1);
	assert_int_equal(take_receive(d, HCA_WR_FLUSH_ERR), 0x8000);
	assert_false(two_hcas_poll(d, 1, &(struct cqe){0}));
	assert_int_equal(d->side[1].events[ENGINE_LAST_WQE], 1);
	assert_int_equal(srq_next(d->side[1].srq), 1);
	two_hcas_free(d);
}

static void a_message_too_long_ends_its_receive_and_the_qp(void **state)
{
	struct two_hcas *d = two_hcas_new_shared(1, 8);

	two_hcas_recv(d, 1, 0, 300);
	two_hcas_recv(d, 1, 4000, 4000);
	post_send(d, 4000);
	two_hcas_run(d, d->now_ns + LONG);
	assert_int_equal(take_receive(d, HCA_LOC_LEN_ERR), 0x8000);
	assert_false(two_hcas_poll(d, 1, &(struct cqe){0}));
	assert_int_equal(d->side[1].events[ENGINE_LAST_WQE], 1);
	two_hcas_free(d);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_empty_shared_queue_makes_the_sender_wait),
		cmocka_unit_test(a_taken_receive_frees_its_slot),
		cmocka_unit_test(many_receives_are_taken_before_a_poll),
		cmocka_unit_test(a_target_that_collects_late_gets_the_rest),
		cmocka_unit_test(the_limit_event_is_raised_once),
		cmocka_unit_test(
			a_message_too_long_ends_its_receive_and_the_qp),
	};
	const struct CMUnitTest of_packets[] = {
		cmocka_unit_test(
			an_error_flushes_only_the_receives_that_were_taken),
	};

	const struct CMUnitTest of_direct[] = {
		cmocka_unit_test(
			a_target_is_woken_for_its_limit_although_the_batch_ends),
	};

	two_hcas_mode(argc, argv);
	if (two_hcas_is_direct() &&
	    cmocka_run_group_tests(of_direct, NULL, NULL))
		return 1;
	if (!two_hcas_is_direct() &&
	    cmocka_run_group_tests(of_packets, NULL, NULL))
		return 1;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
