/* SPDX-License-Identifier: BSD-2-Clause */
/* A clock of a made-up machine: never ahead of it, never far behind, never
 * back, whatever its counter does. */
#include "test.h"

#include "host/clock.h"

#define START_NS 5000000000u

/* The machine: a counter of so many ticks in 1024 ns. */
struct machine {
	struct clock clock;
	uint64_t now_ns, tick, rate, fraction;
	unsigned looks;
};

static void pass(struct machine *m, uint64_t ns)
{
	m->now_ns += ns;
	m->fraction += ns * m->rate;
	m->tick += m->fraction / 1024;
	m->fraction %= 1024;
}

/* To look at the clock itself takes 20 ns, in the middle of which it reads. */
static uint64_t ask(struct machine *m)
{
	uint64_t ns = clock_at(&m->clock, m->tick), before = m->tick, then;

	if (ns)
		return ns;
	m->looks++;
	pass(m, 10);
	then = m->now_ns;
	pass(m, 10);
	return clock_look(&m->clock, before, then, m->tick);
}

static struct machine machine(uint64_t rate)
{
	return (struct machine){.clock = {.sure = rate + 1},
				.now_ns = START_NS,
				.tick = 123456789,
				.rate = rate};
}

/* Asked every `step` ns for so long; how far behind it ever was. */
static uint64_t worst(struct machine *m, uint64_t step, uint64_t long_ns)
{
	uint64_t end = m->now_ns + long_ns, said = 0, worst = 0;

	while (m->now_ns < end) {
		uint64_t ns = ask(m);

		assert_true(ns <= m->now_ns);
		assert_true(ns >= said);
		said = ns;
		if (m->now_ns - ns > worst)
			worst = m->now_ns - ns;
		pass(m, step);
	}
	return worst;
}

static void it_stays_close_behind_at_every_rate(void **state)
{
	static const uint64_t rates[] = {64, 1024, 2458, 2662, 5000};

	for (size_t i = 0; i < sizeof rates / sizeof rates[0]; i++) {
		struct machine m = machine(rates[i]);

		/* the lag says what the counter's own ticks take, too */
		assert_in_range(worst(&m, 130, 30000000), 0, CLOCK_LAG_NS);
		m.looks = 0;
		assert_in_range(worst(&m, 130, 30000000), 0, 300);
		assert_in_range(m.looks, 500, 700);
	}
}

static void who_asks_seldom_gets_the_clock_itself(void **state)
{
	struct machine m = machine(2662);

	worst(&m, 500, 20000000);
	for (int i = 0; i < 10; i++) {
		pass(&m, 3000000000u);
		m.looks = 0;
		assert_in_range(m.now_ns + 20 - ask(&m), 0, 200);
		assert_int_equal(m.looks, 1);
	}
}

/* Interrupted for 5 ms between the looks at the clock and at the counter. */
static void an_interrupted_look_is_not_built_on(void **state)
{
	struct machine m = machine(2662);
	uint64_t before, then;

	worst(&m, 500, 20000000);
	pass(&m, 60000);
	before = m.tick;
	pass(&m, 10);
	then = m.now_ns;
	pass(&m, 5000000);
	assert_true(clock_look(&m.clock, before, then, m.tick) <= then);
	m.looks = 0;
	assert_in_range(worst(&m, 130, 1000000), 0, CLOCK_LAG_NS);
	assert_true(m.looks > 1);
}

/* Of slow ticks few go by in a long time. */
static void neither_is_one_of_a_slow_counter(void **state)
{
	struct machine m = machine(26); /* 25 MHz */
	uint64_t before, then;

	worst(&m, 500, 20000000);
	pass(&m, 60000);
	before = m.tick;
	pass(&m, 10);
	then = m.now_ns;
	pass(&m, 100000);
	clock_look(&m.clock, before, then, m.tick);
	assert_in_range(worst(&m, 130, 1000000), 0, CLOCK_LAG_NS);
}

static void a_steered_clock_is_followed(void **state)
{
	struct machine m = machine(2662);

	worst(&m, 500, 100000000);
	m.rate = 2662 - 1; /* the clock is 376 ppm faster, and then slower */
	assert_in_range(worst(&m, 500, 3000000000u), 0, CLOCK_LAG_NS);
	m.rate = 2662 + 1;
	assert_in_range(worst(&m, 500, 3000000000u), 0, CLOCK_LAG_NS);
	assert_int_equal(m.clock.wrong, 0);
}

/* As when a virtual machine moves: once is forgotten, often is not. */
static void a_counter_that_jumps_is_left_alone(void **state)
{
	struct machine m = machine(2662);

	worst(&m, 500, 20000000);
	m.tick /= 2;
	assert_in_range(worst(&m, 500, 20000000), 0, CLOCK_LAG_NS);
	assert_false(m.clock.is_off);
	for (int i = 0; i < 4; i++) {
		m.tick += 100000000000u;
		/* the first answer after it may be ahead, and nothing is told
		 * to go back */
		ask(&m);
		worst(&m, 500, 20000000);
	}
	assert_true(m.clock.is_off);
	m.looks = 0;
	worst(&m, 500, 50000);
	assert_true(m.looks > 90);
}

static void the_real_one_is_behind_the_real_clock(void **state)
{
	struct clock c;
	uint64_t said = 0;

	clock_init(&c);
	for (int i = 0; i < 1000000; i++) {
		uint64_t ns = clock_now(&c);

		assert_true(ns >= said);
		assert_true(ns <= clock_real());
		said = ns;
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(it_stays_close_behind_at_every_rate),
		cmocka_unit_test(who_asks_seldom_gets_the_clock_itself),
		cmocka_unit_test(an_interrupted_look_is_not_built_on),
		cmocka_unit_test(neither_is_one_of_a_slow_counter),
		cmocka_unit_test(a_steered_clock_is_followed),
		cmocka_unit_test(a_counter_that_jumps_is_left_alone),
		cmocka_unit_test(the_real_one_is_behind_the_real_clock),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
