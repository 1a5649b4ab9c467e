/* SPDX-License-Identifier: BSD-2-Clause */
/* host/poll_policy: when the socket is looked at, and when requests wait for
 * others, as the traffic changes.  The test is the caller, and gives the time.
 */
#include "test.h"

#include "host/poll_policy.h"

#define MUCH	POLL_POLICY_BULK
#define MS	1000000u
#define PACKETS 8 /* a run of more packets counts as MUCH */

static struct poll_policy new_policy(void)
{
	struct poll_policy p;

	poll_policy_init(&p);
	return p;
}

static void send_stream(struct poll_policy *p)
{
	for (int i = 0; i < POLL_POLICY_STREAM; i++)
		poll_policy_sent(p, MUCH, 0);
}

/* Reports to the policy as many looks at the socket as `looks` says, 1 us
 * apart, none of which has found anything. */
static void look_in_vain(struct poll_policy *p, int looks, uint64_t *now)
{
	for (int i = 0; i < looks; i++, *now += 1000)
		poll_policy_looked(p, 0, true, *now, *now);
}

static void a_run_of_packets_carries_much_as_a_long_datagram_does(void **state)
{
	struct poll_policy p = new_policy();

	(void)state;
	poll_policy_sent(&p, MUCH - 1, 0);
	poll_policy_sent(&p, PACKETS * 64, 64);
	assert_int_equal(p.stream.bulk, 0);
	poll_policy_sent(&p, MUCH, 0);
	poll_policy_sent(&p, PACKETS * 64 + 1, 64);
	assert_int_equal(p.stream.bulk, 2);
	assert_true(poll_policy_joins(MUCH, 1));
	assert_true(poll_policy_joins(1, PACKETS));
	assert_false(poll_policy_joins(MUCH - 1, PACKETS - 1));
}

static void a_receive_ends_the_senders_streak(void **state)
{
	struct poll_policy p = new_policy();

	(void)state;
	send_stream(&p);
	assert_int_equal(shared_load(&p.stream.streak), POLL_POLICY_STREAM);
	poll_policy_received(&p, 64, 0);
	assert_int_equal(shared_load(&p.stream.streak), POLL_POLICY_STREAM);
	poll_policy_received(&p, MUCH, 0);
	assert_int_equal(shared_load(&p.stream.streak), 0);
	assert_int_equal(p.stream.inflow, 1);
	poll_policy_sent(&p, MUCH, 0);
	assert_int_equal(p.stream.inflow, 0);
}

static void the_socket_is_empty_at_once_for_a_thread_that_waits(void **state)
{
	struct poll_policy p = new_policy();
	uint64_t now = MS;

	(void)state;
	look_in_vain(&p, 1, &now);
	assert_true(poll_policy_is_empty(&p, true));
	assert_false(poll_policy_is_empty(&p, false));
	look_in_vain(&p, 8, &now);
	assert_true(poll_policy_is_empty(&p, false));
	poll_policy_looked(&p, 100, false, now, now);
	assert_false(poll_policy_is_empty(&p, true));
	look_in_vain(&p, 1, &now);
	poll_policy_skipped(&p);
	assert_false(poll_policy_is_empty(&p, true));
}

static void looks_that_find_something_are_counted(void **state)
{
	struct poll_policy p = new_policy();
	uint64_t now = MS;

	(void)state;
	look_in_vain(&p, 3, &now);
	assert_int_equal(shared_load(&p.looks.news), 0);
	poll_policy_looked(&p, 1, true, now, now);
	assert_int_equal(shared_load(&p.looks.news), 1);
	assert_int_equal(p.looks.in_vain, 0);
}

static void a_fixed_policy_does_not_follow_the_traffic(void **state)
{
	struct poll_policy p = new_policy();
	uint64_t now = MS;

	(void)state;
	poll_policy_fix(&p);
	look_in_vain(&p, 10, &now);
	send_stream(&p);
	assert_false(poll_policy_skips_socket(&p));
	assert_int_equal(poll_policy_post(&p, now + MS), POLL_POST_SEND);
	/* a policy that is not fixed would try pauses after so many bytes */
	for (int i = 0; i < 1000; i++, now += 1000) {
		poll_policy_received(&p, MUCH, 0);
		poll_policy_looked(&p, MUCH, true, now, now);
		assert_true(rx_backoff_is_off(&p.looks.backoff));
	}
	assert_int_equal(shared_load(&p.looks.news), 1000);
	poll_policy_rested(&p, 0, 0, now);
	assert_int_equal(poll_policy_lingers(&p, now), 0);
	poll_policy_rested(&p, 0, 1000, now);
	poll_policy_thread_looked(&p, now + MS);
	assert_int_equal(poll_policy_scaled(&p, 1), 1);
}

static void each_eighth_poll_does_everything(void **state)
{
	struct poll_policy p = new_policy();
	int full = 0;

	(void)state;
	for (int i = 0; i < 80; i++)
		full += poll_policy_is_full_turn(&p);
	assert_int_equal(full, 10);
}

static void
a_poll_skips_the_socket_only_amid_a_stream_without_answers(void **state)
{
	struct poll_policy p = new_policy();
	uint64_t now = MS;

	(void)state;
	look_in_vain(&p, 10, &now);
	assert_false(poll_policy_skips_socket(&p));
	send_stream(&p);
	assert_true(poll_policy_skips_socket(&p));
	poll_policy_looked(&p, 60, true, now, now);
	assert_false(poll_policy_skips_socket(&p));
}

static void
a_post_amid_a_stream_looks_at_the_socket_ever_less_often(void **state)
{
	struct poll_policy p = new_policy();
	uint64_t now = MS;

	(void)state;
	poll_policy_looked(&p, 1, true, now, now);
	assert_int_equal(poll_policy_post(&p, now + MS), POLL_POST_SEND);
	send_stream(&p);
	assert_int_equal(poll_policy_post(&p, now + 20001), POLL_POST_TURN);
	/* a look found nothing: the next look comes after twice the time, and
	 * each fourth post takes the ACKs */
	poll_policy_looked(&p, 0, true, now, now);
	assert_int_equal(poll_policy_post(&p, now + 20001), POLL_POST_ACKS);
	for (int i = 0; i < 3; i++)
		assert_int_equal(poll_policy_post(&p, now + 20001),
				 POLL_POST_SEND);
	assert_int_equal(poll_policy_post(&p, now + 20001), POLL_POST_ACKS);
	assert_int_equal(poll_policy_post(&p, now + 40001), POLL_POST_TURN);
	/* the time between two looks grows at most eightfold */
	look_in_vain(&p, 20, &now);
	assert_int_equal(poll_policy_post(&p, now + 160001), POLL_POST_TURN);
}

static void a_core_is_crowded_for_a_while_after_a_long_yield(void **state)
{
	struct poll_crowd c = {0};
	uint64_t now = 1000000000, lasts = POLL_CROWD_NS;

	assert_false(poll_policy_is_crowded(&c, now));
	poll_policy_yielded(&c, now, 20000);
	assert_false(poll_policy_is_crowded(&c, now + 20000));
	for (int i = 0; i < 8; i++) {
		poll_policy_yielded(&c, now, 4000000);
		now += 4000000;
		assert_true(poll_policy_is_crowded(&c, now + lasts - 1));
		now += lasts;
		assert_false(poll_policy_is_crowded(&c, now));
		lasts = 2 * lasts < POLL_CROWD_MAX_NS ? 2 * lasts
						      : POLL_CROWD_MAX_NS;
	}
	/* the core is free again */
	poll_policy_yielded(&c, now, 300);
	poll_policy_yielded(&c, now, 4000000);
	assert_false(poll_policy_is_crowded(&c, now + 4000000 + POLL_CROWD_NS));
}

static void posts_gather_up_to_a_bound(void **state)
{
	struct poll_policy p = new_policy();

	(void)state;
	assert_false(poll_policy_may_gather(&p, POLL_POLICY_GATHER + 1));
	poll_policy_gathered(&p, POLL_POLICY_GATHER - 10);
	assert_true(poll_policy_may_gather(&p, 10));
	assert_false(poll_policy_may_gather(&p, 11));
	poll_policy_scattered(&p, MS);
	assert_true(poll_policy_may_gather(&p, POLL_POLICY_GATHER));
}

static void the_thread_looks_while_many_unanswered_requests_come(void **state)
{
	struct poll_policy p = new_policy();
	uint64_t now = MS;

	(void)state;
	for (int i = 0; i < 7; i++)
		poll_policy_unanswered(&p, now);
	assert_false(poll_policy_wants_service(&p));
	assert_true(poll_policy_serve(&p, now) == UINT64_MAX);
	for (int i = 0; i < 8; i++)
		poll_policy_unanswered(&p, now);
	assert_true(poll_policy_wants_service(&p));
	assert_true(poll_policy_serve(&p, now) == now + POLL_POLICY_SERVE_NS);
	assert_true(shared_load(&p.unanswered.is_served));
	assert_false(poll_policy_wants_service(&p));
	now += 2 * MS;
	assert_true(poll_policy_serve(&p, now) == UINT64_MAX);
	assert_false(shared_load(&p.unanswered.is_served));
}

static void requests_far_apart_are_not_many(void **state)
{
	struct poll_policy p = new_policy();
	uint64_t now = MS;

	(void)state;
	for (int i = 0; i < 20; i++, now += POLL_POLICY_SERVE_NS + 1)
		poll_policy_unanswered(&p, now);
	assert_false(poll_policy_wants_service(&p));
}

/* Posts unanswered requests until the thread wants to look, and lets the thread
 * look. */
static void post_until_served(struct poll_policy *p, uint64_t now)
{
	while (!poll_policy_wants_service(p))
		poll_policy_unanswered(p, now);
	poll_policy_serve(p, now);
	assert_true(shared_load(&p->unanswered.is_served));
}

/* Lets a group of requests wait for `ns`. */
static void wait_for_ns(struct poll_policy *p, uint64_t now, uint64_t ns)
{
	poll_policy_waits(p, now);
	poll_policy_waits(p, now + ns / 2); /* the second changes nothing */
	assert_true(poll_policy_is_waiting(p));
	poll_policy_scattered(p, now + ns);
	assert_false(poll_policy_is_waiting(p));
}

/* Posts unanswered requests until the thread wants to look.  Returns how many
 * of these requests were not counted: all but the last 8. */
static uint32_t count_forbidden(struct poll_policy *p, uint64_t now)
{
	uint32_t posts = 0;

	for (; !poll_policy_wants_service(p); posts++)
		poll_policy_unanswered(p, now);
	return posts - 8;
}

static void requests_that_waited_too_long_wait_no_more_for_a_while(void **state)
{
	static const uint32_t penalties[] = {1024, 2048,  4096,
					     8192, 16384, 16384};
	struct poll_policy p = new_policy();

	(void)state;
	for (size_t i = 0; i < sizeof(penalties) / sizeof(*penalties); i++) {
		post_until_served(&p, MS);
		wait_for_ns(&p, MS, POLL_POLICY_LATE_NS + 3000);
		assert_false(shared_load(&p.unanswered.is_served));
		assert_int_equal(count_forbidden(&p, MS), penalties[i]);
	}
}

static void requests_that_are_sent_soon_may_wait_again(void **state)
{
	struct poll_policy p = new_policy();

	(void)state;
	post_until_served(&p, MS);
	wait_for_ns(&p, MS, POLL_POLICY_LATE_NS - 3000);
	assert_true(shared_load(&p.unanswered.is_served));
	/* the clock of the thread that sends may be behind */
	poll_policy_waits(&p, MS);
	poll_policy_scattered(&p, MS - 5000);
	assert_true(shared_load(&p.unanswered.is_served));
	/* no request waited, so no time has passed */
	poll_policy_scattered(&p, 1000 * MS);
	assert_true(shared_load(&p.unanswered.is_served));
}

static void a_large_request_ends_the_looks(void **state)
{
	struct poll_policy p = new_policy();

	(void)state;
	post_until_served(&p, MS);
	poll_policy_large(&p);
	assert_true(poll_policy_serve(&p, MS) == UINT64_MAX);
	assert_false(shared_load(&p.unanswered.is_served));
	assert_int_equal(count_forbidden(&p, MS), 0);
}

static void a_late_request_is_forgiven_after_many_groups(void **state)
{
	struct poll_policy p = new_policy();

	(void)state;
	for (int i = 0; i < 2; i++) {
		post_until_served(&p, MS);
		wait_for_ns(&p, MS, MS);
	}
	for (int i = 0; i < 1024; i++)
		wait_for_ns(&p, MS, 2000);
	assert_int_equal(count_forbidden(&p, MS), 2048);
	poll_policy_serve(&p, MS);
	wait_for_ns(&p, MS, MS);
	assert_int_equal(count_forbidden(&p, MS), 1024);
}

/* A program that polls loses its core for a moment in each millisecond: in each
 * millisecond, 40 groups of its requests are in time, and then 1 is late. */
static void a_program_that_loses_its_core_now_and_then_is_forgiven(void **state)
{
	struct poll_policy p = new_policy();

	(void)state;
	for (int ms = 0; ms < 20; ms++) {
		post_until_served(&p, MS);
		for (int i = 0; i < 40; i++)
			wait_for_ns(&p, MS, 2000);
		wait_for_ns(&p, MS, 50000);
		assert_true(count_forbidden(&p, MS) <= 2048);
	}
}

/* The thread happens to look soon after some requests of a program that does
 * not poll. */
static void a_few_groups_in_time_do_not_count(void **state)
{
	struct poll_policy p = new_policy();

	(void)state;
	for (int i = 0; i < 5; i++) {
		post_until_served(&p, MS);
		for (int j = 0; j < 15; j++)
			wait_for_ns(&p, MS, 2000);
		wait_for_ns(&p, MS, 90000);
	}
	assert_int_equal(count_forbidden(&p, MS), 16384);
}

static void the_thread_lingers_after_a_stream_alone(void **state)
{
	struct poll_policy p = new_policy();
	uint64_t now = MS;

	(void)state;
	poll_policy_received(&p, MUCH, 0);
	poll_policy_rested(&p, 0, 0, now);
	assert_int_equal(poll_policy_lingers(&p, now), 0);
	for (int i = 0; i < POLL_POLICY_STREAM; i++)
		poll_policy_received(&p, MUCH, 0);
	poll_policy_rested(&p, 1, 0, now);
	assert_int_equal(poll_policy_lingers(&p, now), POLL_POLICY_LINGER_NS);
	assert_int_equal(poll_policy_lingers(&p, now + POLL_POLICY_LINGER_NS),
			 0);
	/* no datagrams came in the next turn: the time is not prolonged */
	poll_policy_rested(&p, p.stream.bulk, 0, now + 1000);
	assert_int_equal(poll_policy_lingers(&p, now + POLL_POLICY_LINGER_NS),
			 0);
}

static void the_slowness_follows_looks_that_find_nothing(void **state)
{
	struct poll_policy p = new_policy();
	uint64_t now = MS;

	(void)state;
	assert_int_equal(poll_policy_scaled(&p, 7), 7);
	poll_policy_rested(&p, 0, 0, now);
	p.thread.heard_ns = 0;
	poll_policy_thread_looked(&p, now + 10 * POLL_POLICY_LOOK_NS);
	assert_int_equal(p.thread.slowness, 10);
	/* a quicker look counts at once, a slower look only a little */
	poll_policy_thread_looked(&p, now + POLL_POLICY_LOOK_NS / 2);
	assert_int_equal(p.thread.slowness, 1);
	poll_policy_thread_looked(&p, now + MS);
	assert_int_equal(p.thread.slowness, 1);
	/* a look that found datagrams does not count */
	shared_store(&p.looks.news, 1);
	poll_policy_rested(&p, 0, 0, now);
	poll_policy_thread_looked(&p, now + MS);
	assert_int_equal(p.thread.slowness, 1);
}

static void the_backoff_holds_unless_datagrams_were_left(void **state)
{
	struct poll_policy p = new_policy();

	(void)state;
	p.looks.backoff.until_ns = MS;
	assert_false(poll_policy_may_look(&p, false, MS - 1));
	assert_true(poll_policy_may_look(&p, true, MS - 1));
	assert_true(poll_policy_may_look(&p, false, MS));
	poll_policy_sleeps(&p, false);
	assert_true(poll_policy_pauses(&p, MS - 1));
	poll_policy_sleeps(&p, true);
	assert_false(poll_policy_pauses(&p, MS - 1));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
			a_run_of_packets_carries_much_as_a_long_datagram_does),
		cmocka_unit_test(a_receive_ends_the_senders_streak),
		cmocka_unit_test(
			the_socket_is_empty_at_once_for_a_thread_that_waits),
		cmocka_unit_test(looks_that_find_something_are_counted),
		cmocka_unit_test(a_fixed_policy_does_not_follow_the_traffic),
		cmocka_unit_test(each_eighth_poll_does_everything),
		cmocka_unit_test(
			a_poll_skips_the_socket_only_amid_a_stream_without_answers),
		cmocka_unit_test(
			a_post_amid_a_stream_looks_at_the_socket_ever_less_often),
		cmocka_unit_test(
			a_core_is_crowded_for_a_while_after_a_long_yield),
		cmocka_unit_test(posts_gather_up_to_a_bound),
		cmocka_unit_test(
			the_thread_looks_while_many_unanswered_requests_come),
		cmocka_unit_test(
			requests_that_waited_too_long_wait_no_more_for_a_while),
		cmocka_unit_test(requests_that_are_sent_soon_may_wait_again),
		cmocka_unit_test(a_large_request_ends_the_looks),
		cmocka_unit_test(a_late_request_is_forgiven_after_many_groups),
		cmocka_unit_test(
			a_program_that_loses_its_core_now_and_then_is_forgiven),
		cmocka_unit_test(a_few_groups_in_time_do_not_count),
		cmocka_unit_test(requests_far_apart_are_not_many),
		cmocka_unit_test(the_thread_lingers_after_a_stream_alone),
		cmocka_unit_test(the_slowness_follows_looks_that_find_nothing),
		cmocka_unit_test(the_backoff_holds_unless_datagrams_were_left),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
