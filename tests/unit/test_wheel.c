/* SPDX-License-Identifier: BSD-2-Clause */
/* util/wheel: a timer fires once, never early, and at most one tick late. */
#include "test.h"

#include "util/rng.h"
#include "util/wheel.h"

#define TIMERS 200
#define TICK   (1ull << WHEEL_TICK_SHIFT)

static uint64_t due[TIMERS]; /* 0: not set */
static struct wheel_timer timer[TIMERS];
static struct wheel wheel;

static uint64_t first_due(void)
{
	uint64_t first = WHEEL_NEVER;

	for (int i = 0; i < TIMERS; i++)
		if (due[i] && due[i] < first)
			first = due[i];
	return first;
}

static void fire_due(uint64_t now)
{
	struct wheel_timer *t;

	while ((t = wheel_expire(&wheel, now))) {
		size_t i = (size_t)(t - timer);

		assert_true(due[i] && due[i] <= now); /* never early */
		assert_false(wheel_is_set(t));
		due[i] = 0;
	}
	/* late by a tick at most */
	assert_true(first_due() > now || now - first_due() <= TICK);
}

/* Returns a random time span of less than 2^62 ns.  The orders of magnitude
 * from 2^9 to 2^62 are about equally frequent, so that timers get to each
 * level. */
static uint64_t random_span(struct rng *r)
{
	return rng_u64(r) >> (2 + rng_below(r, 54));
}

static void timers_fire_in_time_and_once(void **state)
{
	struct rng r;

	for (uint64_t seed = 1; seed <= 20; seed++) {
		uint64_t now;

		rng_init(&r, seed);
		now = seed == 1 ? 0 : random_span(&r);
		wheel_init(&wheel, now);
		memset(due, 0, sizeof(due));
		for (int i = 0; i < TIMERS; i++)
			wheel_timer_init(&timer[i]);
		for (int step = 0; step < 3000; step++) {
			uint32_t i = rng_below(&r, TIMERS);

			switch (rng_below(&r, 4)) {
			case 0:
			case 1:
				due[i] = now + random_span(&r) + 1;
				wheel_set(&wheel, &timer[i], due[i]);
				break;
			case 2:
				due[i] = 0;
				wheel_cancel(&wheel, &timer[i]);
				break;
			case 3:
				assert_true(wheel_deadline(&wheel) / 2 <=
					    (first_due() / 2 + TICK));
				now += random_span(&r) % (1ull << 32);
				fire_due(now);
				break;
			}
		}
	}
}

static void waking_at_each_deadline_fires_all_timers(void **state)
{
	struct rng r;
	uint64_t now = 123456789, wakes = 0;
	uint32_t levels = 0;

	rng_init(&r, 7);
	wheel_init(&wheel, now);
	for (int i = 0; i < TIMERS; i++) {
		due[i] = now + random_span(&r) + 1;
		wheel_timer_init(&timer[i]);
		wheel_set(&wheel, &timer[i], due[i]);
		levels |= 1u << timer[i].level;
	}
	assert_int_equal(levels, (1u << WHEEL_LEVELS) - 1);
	while ((now = wheel_deadline(&wheel)) != WHEEL_NEVER) {
		fire_due(now);
		assert_true(++wakes < TIMERS * WHEEL_LEVELS * 2);
	}
	assert_int_equal(first_due(), WHEEL_NEVER);
}

/* UINT64_MAX is a valid time: the timer does not fire before it, and
 * wheel_expire does not hang. */
static void a_timer_set_to_the_end_of_time_waits_until_then(void **state)
{
	struct wheel_timer t;

	wheel_init(&wheel, 0);
	wheel_timer_init(&t);
	wheel_set(&wheel, &t, UINT64_MAX);
	for (int bits = 0; bits < 64; bits++)
		assert_null(wheel_expire(&wheel, (1ull << bits) - 1));
	assert_true(wheel_deadline(&wheel) != WHEEL_NEVER);
	assert_ptr_equal(wheel_expire(&wheel, UINT64_MAX), &t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(timers_fire_in_time_and_once),
		cmocka_unit_test(waking_at_each_deadline_fires_all_timers),
		cmocka_unit_test(
			a_timer_set_to_the_end_of_time_waits_until_then),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
