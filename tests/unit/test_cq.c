/* SPDX-License-Identifier: BSD-2-Clause */
/* hca/cq: completions in order, arming, overflow, resizing, purging. */
#include "test.h"

#include <errno.h>

#include "hca/hca.h"

#define ARENA_BYTES (8u << 20)
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
	cq = cq_new(&h, CQE, 9);
	return cq ? 0 : -1;
}

static int tear_down(void **state)
{
	cq_free(&h, cq);
	free(memory);
	return 0;
}

static enum cq_push push(uint64_t wr_id, uint32_t qpn, bool solicited)
{
	struct cqe c = {.wr_id = wr_id, .qpn = qpn};

	return cq_push(&h, cq, &c, solicited);
}

static uint64_t pop(void)
{
	struct cqe c;

	return cq_poll(&h, cq, &c, 1) ? c.wr_id : 0;
}

static void completions_come_out_in_order_past_every_wrap(void **state)
{
	for (uint64_t i = 1; i < 1000; i += 3) {
		for (uint64_t k = 0; k < 3; k++)
			assert_int_equal(push(i + k, 1, false), CQ_QUIET);
		assert_int_equal(cq_count(cq), 3);
		for (uint64_t k = 0; k < 3; k++)
			assert_int_equal(pop(), i + k);
		assert_int_equal(pop(), 0);
	}
}

static void a_poll_takes_what_is_there_and_no_more(void **state)
{
	struct cqe c[8];

	push(1, 1, false);
	push(2, 1, false);
	push(3, 1, false);
	assert_int_equal(cq_poll(&h, cq, c, 2), 2);
	assert_int_equal(cq_poll(&h, cq, c, 8), 1);
	assert_int_equal(c[0].wr_id, 3);
	assert_int_equal(cq_poll(&h, cq, c, 8), 0);
}

static void one_too_many_is_an_overrun_for_good(void **state)
{
	for (uint64_t i = 1; i <= CQE; i++)
		assert_int_equal(push(i, 1, false), CQ_QUIET);
	assert_int_equal(push(6, 1, false), CQ_OVERRUN);
	assert_int_equal(push(7, 1, false), CQ_QUIET); /* said once */
	for (uint64_t i = 1; i <= CQE; i++)
		assert_int_equal(pop(), i);
	assert_int_equal(push(8, 1, false), CQ_QUIET);
	assert_int_equal(pop(), 0);
}

static void arming_is_for_one_event(void **state)
{
	assert_int_equal(push(1, 1, true), CQ_QUIET);
	cq_arm(cq, false);
	assert_int_equal(push(2, 1, false), CQ_NOTIFY);
	assert_int_equal(push(3, 1, false), CQ_QUIET);
	cq_arm(cq, true);
	assert_int_equal(push(4, 1, false), CQ_QUIET);
	assert_int_equal(push(5, 1, true), CQ_NOTIFY);
}

static void the_stronger_wish_stays(void **state)
{
	cq_arm(cq, false);
	cq_arm(cq, true);
	assert_int_equal(push(1, 1, false), CQ_NOTIFY);
	cq_arm(cq, true);
	cq_arm(cq, false);
	assert_int_equal(push(2, 1, false), CQ_NOTIFY);
}

static void resizing_keeps_what_waits_or_is_refused(void **state)
{
	for (uint64_t i = 1; i <= 4; i++) /* past the end of the ring */
		push(i, 1, false), pop();
	for (uint64_t i = 1; i <= CQE; i++)
		push(i, 1, false);
	assert_int_equal(cq_resize(&h, cq, 4), -EINVAL);
	assert_int_equal(cq_resize(&h, cq, 100), 0);
	for (uint64_t i = CQE + 1; i <= 100; i++)
		assert_int_equal(push(i, 1, false), CQ_QUIET);
	assert_int_equal(push(101, 1, false), CQ_OVERRUN);
	for (uint64_t i = 1; i <= 100; i++)
		assert_int_equal(pop(), i);
	assert_int_equal(cq_resize(&h, cq, 1), 0);
}

static void purging_leaves_the_others_in_order(void **state)
{
	push(1, 10, false);
	push(2, 20, false);
	push(3, 10, false);
	push(4, 30, false);
	push(5, 10, false);
	cq_purge(&h, cq, 10);
	assert_int_equal(cq_count(cq), 2);
	assert_int_equal(pop(), 2);
	assert_int_equal(pop(), 4);
	cq_purge(&h, cq, 10);
	assert_int_equal(pop(), 0);
	assert_int_equal(push(6, 10, false), CQ_QUIET);
	assert_int_equal(pop(), 6);
}

static void moderated_events_wait_for_company(void **state)
{
	cq_moderate(&h, cq, 3, 1000);
	cq_arm(cq, false);
	assert_int_equal(push(1, 1, false), CQ_LATER);
	assert_int_equal(push(2, 1, false), CQ_QUIET);
	assert_int_equal(push(3, 1, false), CQ_NOTIFY);
	cq_fire(&h, cq);
	assert_int_equal(cq_owed(cq), 1);
	cq_arm(cq, false);
	assert_int_equal(push(4, 1, false), CQ_LATER);
	cq_fire(&h, cq);
	assert_int_equal(cq_owed(cq), 1);
	cq_fire(&h, cq);
	assert_int_equal(cq_owed(cq), 0);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(completions_come_out_in_order_past_every_wrap),
		CASE(a_poll_takes_what_is_there_and_no_more),
		CASE(one_too_many_is_an_overrun_for_good),
		CASE(arming_is_for_one_event),
		CASE(the_stronger_wish_stays),
		CASE(resizing_keeps_what_waits_or_is_refused),
		CASE(purging_leaves_the_others_in_order),
		CASE(moderated_events_wait_for_company),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
