/* SPDX-License-Identifier: BSD-2-Clause */
#include "test.h"

#include "host/pace.h"

#define MEGA (1u << 20)

/* A peer whose bytes cost so many ns a MiB, by the way they are taken. */
struct peer {
	uint64_t at_once, paused;
	size_t look; /* bytes that one look finds */
};

/* The share of the bytes, in percent, that came behind pauses. */
static unsigned run(struct pace *p, const struct peer *peer, uint64_t *now_ns,
		    size_t bytes)
{
	size_t paused = 0, got = 0;

	for (; got < bytes; got += peer->look) {
		uint64_t cost = p->pauses ? peer->paused : peer->at_once;

		if (p->pauses)
			paused += peer->look;
		*now_ns += cost * peer->look / MEGA;
		pace_looked(p, peer->look, *now_ns);
	}
	return (unsigned)(100 * paused / bytes);
}

static void a_stream_that_pauses_make_faster_has_them(void **state)
{
	struct peer stream = {240000, 200000, 300000};
	uint64_t now = 1000000000;
	struct pace p;

	pace_init(&p);
	run(&p, &stream, &now, 16 * MEGA);
	assert_in_range(run(&p, &stream, &now, 1000u * MEGA), 95, 100);
	assert_in_range(run(&p, &stream, &now, 1000u * MEGA), 97, 100);
}

static void a_peer_that_waits_for_answers_is_looked_after_at_once(void **state)
{
	struct peer waits = {300000, 500000, 65536};
	uint64_t now = 1000000000;
	struct pace p;

	pace_init(&p);
	run(&p, &waits, &now, 16 * MEGA);
	assert_in_range(run(&p, &waits, &now, 1000u * MEGA), 0, 5);
	assert_in_range(run(&p, &waits, &now, 1000u * MEGA), 0, 3);
}

static void what_makes_no_difference_is_no_reason_to_pause(void **state)
{
	struct peer either = {300000, 295000, 65536};
	uint64_t now = 1000000000;
	struct pace p;

	pace_init(&p);
	run(&p, &either, &now, 16 * MEGA);
	assert_in_range(run(&p, &either, &now, 1000u * MEGA), 0, 5);
}

static void a_peer_that_changes_is_followed(void **state)
{
	struct peer stream = {240000, 200000, 300000};
	struct peer waits = {300000, 500000, 65536};
	uint64_t now = 1000000000;
	struct pace p;

	pace_init(&p);
	run(&p, &stream, &now, 1000u * MEGA);
	run(&p, &waits, &now, 100u * MEGA);
	assert_in_range(run(&p, &waits, &now, 500u * MEGA), 0, 5);
	run(&p, &stream, &now, 100u * MEGA);
	assert_in_range(run(&p, &stream, &now, 500u * MEGA), 95, 100);
}

static void what_is_no_stream_is_looked_after_at_once(void **state)
{
	struct peer slow = {10000000, 9000000, 4096};
	uint64_t now = 1000000000;
	struct pace p;

	pace_init(&p);
	assert_int_equal(run(&p, &slow, &now, 100u * MEGA), 0);
}

static void a_look_that_finds_nothing_ends_the_pauses(void **state)
{
	struct peer stream = {240000, 200000, 300000};
	uint64_t now = 1000000000;
	struct pace p;

	pace_init(&p);
	run(&p, &stream, &now, 100u * MEGA);
	assert_true(p.pauses);
	assert_true(pace_waits(&p, now));
	assert_false(pace_waits(&p, now + PACE_NS));
	pace_looked(&p, 0, now + PACE_NS);
	assert_true(pace_is_off(&p));
	pace_looked(&p, 65536, now + PACE_NS + 1000);
	assert_true(pace_waits(&p, now + PACE_NS + 1000));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_stream_that_pauses_make_faster_has_them),
		cmocka_unit_test(
			a_peer_that_waits_for_answers_is_looked_after_at_once),
		cmocka_unit_test(
			what_makes_no_difference_is_no_reason_to_pause),
		cmocka_unit_test(a_peer_that_changes_is_followed),
		cmocka_unit_test(what_is_no_stream_is_looked_after_at_once),
		cmocka_unit_test(a_look_that_finds_nothing_ends_the_pauses),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
