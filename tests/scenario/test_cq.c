/* SPDX-License-Identifier: BSD-2-Clause */
/* Events of a completion queue, moderated. */
#include "test.h"

#include "scenario/duo.h"

#define PERIOD 2000000ull /* ns */
#define LONG   (60ull * 1000000000)

static void write_some(struct duo *d, int n)
{
	while (n--) {
		duo_send(d, 0, HCA_WR_RDMA_WRITE, 0, 8, 0);
		duo_post(d, 0);
	}
}

static uint32_t told(const struct duo *d)
{
	return d->side[0].events[ENGINE_CQ_EVENT];
}

static void enough_completions_are_told_at_once(void **state)
{
	struct duo *d = duo_new(1, 16);

	cq_moderate(&d->side[0].hca, d->side[0].cq, 4, PERIOD);
	cq_arm(d->side[0].cq, false);
	write_some(d, 3);
	duo_run(d, d->now_ns);
	assert_int_equal(told(d), 0);
	write_some(d, 1);
	duo_run(d, d->now_ns);
	assert_int_equal(told(d), 1);
	write_some(d, 8);
	duo_run(d, d->now_ns + LONG);
	assert_int_equal(told(d), 1); /* one-shot */
	duo_free(d);
}

static void a_few_are_told_when_the_time_is_up(void **state)
{
	struct duo *d = duo_new(1, 16);

	cq_moderate(&d->side[0].hca, d->side[0].cq, 4, PERIOD);
	for (uint32_t round = 1; round < 4; round++) {
		uint64_t before = d->now_ns;

		cq_arm(d->side[0].cq, false);
		write_some(d, 1);
		duo_run(d, before + PERIOD / 2);
		assert_int_equal(told(d), round - 1);
		duo_run(d, before + 2 * PERIOD);
		assert_int_equal(told(d), round);
	}
	duo_free(d);
}

static void an_error_is_told_at_once(void **state)
{
	struct duo *d = duo_new(1, 16);

	cq_moderate(&d->side[0].hca, d->side[0].cq, 100, PERIOD);
	cq_arm(d->side[0].cq, true);
	duo_send(d, 0, HCA_WR_RDMA_WRITE, 0, 8, 0)->rkey ^= 1;
	duo_post(d, 0);
	duo_run(d, d->now_ns);
	assert_int_equal(told(d), 1);
	duo_free(d);
}

static void a_queue_that_goes_is_not_told_of(void **state)
{
	struct duo *d = duo_new(1, 16);

	cq_moderate(&d->side[0].hca, d->side[0].cq, 4, PERIOD);
	cq_arm(d->side[0].cq, false);
	write_some(d, 1);
	duo_run(d, d->now_ns);
	engine_cq_remove(d->side[0].engine, d->side[0].cq);
	duo_run(d, d->now_ns + LONG);
	assert_int_equal(told(d), 0);
	duo_free(d);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(enough_completions_are_told_at_once),
		cmocka_unit_test(a_few_are_told_when_the_time_is_up),
		cmocka_unit_test(an_error_is_told_at_once),
		cmocka_unit_test(a_queue_that_goes_is_not_told_of),
	};

	duo_mode(argc, argv);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
