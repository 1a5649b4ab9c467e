/* SPDX-License-Identifier: BSD-2-Clause */
/* host/post_gather: which requests wait for the requests that are posted after
 * them.  The test is the caller, and gives the time. */
#include "test.h"

#include "host/post_gather.h"

#define MS 1000000u

static struct post_gather new_gather(void)
{
	struct post_gather g;

	post_gather_init(&g);
	return g;
}

/* Makes a poll and then `posts` posts, the first of which reports the poll.
 * Returns whether the last post may wait. */
static bool post_stream(struct post_gather *g, int posts)
{
	bool may_wait = false;

	for (int i = 0; i < posts; i++)
		may_wait = post_gather_posted(g, i == 0);
	return may_wait;
}

static void post_streams(struct post_gather *g)
{
	for (int i = 0; i <= POST_GATHER_STREAMS; i++)
		post_stream(g, POST_GATHER_LEAST);
}

static void posts_wait_only_after_streams(void **state)
{
	struct post_gather g = new_gather();

	(void)state;
	for (int i = 0; i < POST_GATHER_STREAMS; i++)
		assert_false(post_stream(&g, POST_GATHER_LEAST));
	assert_true(post_stream(&g, POST_GATHER_LEAST));
	/* a poll after too few posts ends the row of streams */
	post_stream(&g, POST_GATHER_LEAST - 1);
	assert_false(post_stream(&g, POST_GATHER_LEAST));
}

static void a_program_that_polls_after_each_post_never_waits(void **state)
{
	struct post_gather g = new_gather();

	(void)state;
	for (int i = 0; i < 1000; i++)
		assert_false(post_gather_posted(&g, true));
}

static void a_group_ends_when_it_is_full(void **state)
{
	struct post_gather g = new_gather();

	(void)state;
	for (int i = 1; i < POST_GATHER_MAX; i++)
		assert_true(post_gather_waits(&g, 0));
	assert_false(post_gather_waits(&g, 0));
	post_gather_done(&g);
	assert_true(post_gather_waits(&g, 0));
	assert_int_equal(g.groups, 2);
}

static void a_group_ends_when_its_first_post_is_old(void **state)
{
	struct post_gather g = new_gather();

	(void)state;
	assert_true(post_gather_waits(&g, MS));
	assert_true(post_gather_waits(&g, MS + POST_GATHER_NS - 1));
	assert_false(post_gather_waits(&g, MS + POST_GATHER_NS));
}

static void a_late_handover_forbids_waiting(void **state)
{
	struct post_gather g = new_gather();
	uint32_t first;

	(void)state;
	post_streams(&g);
	assert_true(post_gather_waits(&g, MS));
	post_gather_handed_over(&g, MS + POST_GATHER_LATE_NS + 1);
	assert_int_equal(g.count, 0);
	first = g.forbidden;
	assert_int_not_equal(first, 0);
	for (uint32_t i = 0; i < first; i++)
		assert_false(
			post_gather_posted(&g, i % POST_GATHER_LEAST == 0));
	post_streams(&g);
	assert_true(post_gather_posted(&g, false));
	/* the next late handover forbids twice as many posts to wait */
	assert_true(post_gather_waits(&g, 2 * MS));
	post_gather_handed_over(&g, 3 * MS);
	assert_int_equal(g.forbidden, 2 * first);
}

static void a_handover_in_time_forbids_nothing(void **state)
{
	struct post_gather g = new_gather();

	(void)state;
	assert_true(post_gather_waits(&g, MS));
	post_gather_handed_over(&g, MS + POST_GATHER_LATE_NS);
	assert_int_equal(g.forbidden, 0);
	/* the clock of the thread that takes over is behind */
	assert_true(post_gather_waits(&g, MS));
	post_gather_handed_over(&g, MS - 1000);
	assert_int_equal(g.forbidden, 0);
}

static void the_thread_looks_for_as_long_as_groups_come(void **state)
{
	struct post_gather_thread t = {0};

	(void)state;
	assert_false(post_gather_serves(&t, 0, false, MS));
	assert_true(post_gather_serves(&t, 0, true, MS));
	assert_true(post_gather_serves(&t, 1, false, 2 * MS - 1));
	assert_true(post_gather_serves(&t, 1, false, 3 * MS - 2));
	assert_false(post_gather_serves(&t, 1, false, 3 * MS - 1));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(posts_wait_only_after_streams),
		cmocka_unit_test(
			a_program_that_polls_after_each_post_never_waits),
		cmocka_unit_test(a_group_ends_when_it_is_full),
		cmocka_unit_test(a_group_ends_when_its_first_post_is_old),
		cmocka_unit_test(a_late_handover_forbids_waiting),
		cmocka_unit_test(a_handover_in_time_forbids_nothing),
		cmocka_unit_test(the_thread_looks_for_as_long_as_groups_come),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
