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

/* To look at the clock takes 10 ns before it reads, and so long after it. */
static uint64_t look(struct machine *m, uint64_t after_ns)
{
	uint64_t before = m->tick, then;

	m->looks++;
	pass(m, 10);
	then = m->now_ns;
	pass(m, after_ns);
	return clock_look(&m->clock, before, then, m->tick);
}

static uint64_t ask(struct machine *m)
{
	uint64_t ns = clock_at(&m->clock, m->tick);

	return ns ? ns : look(m, 10);
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

static void the_clock_stays_close_behind_at_every_rate(void **state)
{
	static const uint64_t rates[] = {25, 64, 1024, 2458, 2662, 5000};

	for (size_t i = 0; i < sizeof(rates) / sizeof(rates[0]); i++) {
		struct machine m = machine(rates[i]);

		/* the lag says what the counter's own ticks take, too */
		assert_uint_in_range(worst(&m, 130, 30000000), 0, CLOCK_LAG_NS);
		m.looks = 0;
		assert_uint_in_range(worst(&m, 130, 30000000), 0, 300);
		assert_uint_in_range(m.looks, 500, 700);
	}
}

static void a_process_that_asks_seldom_reads_the_kernels_clock(void **state)
{
	struct machine m = machine(2662);

	worst(&m, 500, 20000000);
	for (int i = 0; i < 10; i++) {
		pass(&m, 3000000000u);
		m.looks = 0;
		assert_uint_in_range(m.now_ns + 20 - ask(&m), 0, 200);
		assert_int_equal(m.looks, 1);
	}
}

/* Interrupted for so long between the looks at the clock and at the counter. */
static void interrupt(uint64_t rate, uint64_t for_ns)
{
	struct machine m = machine(rate);

	worst(&m, 500, 20000000);
	pass(&m, 60000);
	assert_true(look(&m, for_ns) <= m.now_ns - for_ns);
	m.looks = 0;
	assert_uint_in_range(worst(&m, 130, 1000000), 0, CLOCK_LAG_NS);
	assert_true(m.looks > 1);
}

static void an_interrupted_look_is_not_built_on(void **state)
{
	interrupt(2662, 5000000);
	interrupt(26, 100000); /* of 25 MHz few ticks go by in a long time */
}

/* The counter is not to blame. */
static void
an_interrupted_look_does_not_end_the_use_of_the_counter(void **state)
{
	struct machine m = machine(2662);

	worst(&m, 500, 20000000);
	for (int i = 0; i < 10; i++) {
		pass(&m, 60000);
		look(&m, 5000);
		assert_uint_in_range(worst(&m, 130, 1000000), 0, CLOCK_LAG_NS);
	}
	assert_int_equal(m.clock.wrong, 0);
	m.looks = 0;
	worst(&m, 130, 30000000);
	assert_uint_in_range(m.looks, 500, 700);
}

static void a_steered_clock_is_followed(void **state)
{
	struct machine m = machine(2662);

	worst(&m, 500, 100000000);
	m.rate = 2662 - 1; /* the clock is 376 ppm faster, and then slower */
	assert_uint_in_range(worst(&m, 500, 3000000000u), 0, CLOCK_LAG_NS);
	m.rate = 2662 + 1;
	assert_uint_in_range(worst(&m, 500, 3000000000u), 0, CLOCK_LAG_NS);
	assert_int_equal(m.clock.wrong, 0);
}

/* As when a virtual machine moves: once is forgotten, often is not. */
static void a_counter_that_jumps_is_left_alone(void **state)
{
	struct machine m = machine(2662);

	worst(&m, 500, 20000000);
	m.tick /= 2;
	assert_uint_in_range(worst(&m, 500, 20000000), 0, CLOCK_LAG_NS);
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

	NEEDS_KERNEL(); /* a counter of more than 1 us is found out only later
			 */
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
		cmocka_unit_test(the_clock_stays_close_behind_at_every_rate),
		cmocka_unit_test(
			a_process_that_asks_seldom_reads_the_kernels_clock),
		cmocka_unit_test(an_interrupted_look_is_not_built_on),
		cmocka_unit_test(
			an_interrupted_look_does_not_end_the_use_of_the_counter),
		cmocka_unit_test(a_steered_clock_is_followed),
		cmocka_unit_test(a_counter_that_jumps_is_left_alone),
		cmocka_unit_test(the_real_one_is_behind_the_real_clock),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
