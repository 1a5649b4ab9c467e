/* SPDX-License-Identifier: BSD-2-Clause */
/* A clock on a simulated machine is never ahead of the machine's time, never
 * far behind, and never goes back, also when the rate of the counter changes a
 * little or the counter jumps far. */
#include "test.h"

#include "host/clock.h"
#include "util/monotonic.h"

#define START_NS 5000000000u

/* A simulated machine.  now_ns: its time.  tick: its counter, which counts
 * `rate` ticks in 1024 ns.  fraction: how much of the next tick has passed, in
 * 1/1024 of a tick.  looks: how often `clock` has read the time. */
struct machine {
	struct clock clock;
	uint64_t now_ns, tick, rate, fraction;
	unsigned looks;
};

static void pass_time(struct machine *m, uint64_t ns)
{
	m->now_ns += ns;
	m->fraction += ns * m->rate;
	m->tick += m->fraction / 1024;
	m->fraction %= 1024;
}

/* Reads the machine's time for the clock: 10 ns pass before the reading, and
 * after_ns after it. */
static uint64_t look_once(struct machine *m, uint64_t after_ns)
{
	uint64_t before = m->tick, then;

	m->looks++;
	pass_time(m, 10);
	then = m->now_ns;
	pass_time(m, after_ns);
	return clock_look(&m->clock, before, then, m->tick);
}

static uint64_t ask_clock(struct machine *m)
{
	uint64_t ns = clock_at(&m->clock, m->tick);

	return ns ? ns : look_once(m, 10);
}

static struct machine new_machine(uint64_t rate)
{
	return (struct machine){.clock = {.sure = rate + 1},
				.now_ns = START_NS,
				.tick = 123456789,
				.rate = rate};
}

/* Asks the clock every `step` ns for long_ns.  Returns the longest time by
 * which the clock was behind.  The test fails if the clock is ahead or goes
 * back. */
static uint64_t worst_lag(struct machine *m, uint64_t step, uint64_t long_ns)
{
	uint64_t end = m->now_ns + long_ns, said = 0, worst = 0;

	while (m->now_ns < end) {
		uint64_t ns = ask_clock(m);

		assert_true(ns <= m->now_ns);
		assert_true(ns >= said);
		said = ns;
		if (m->now_ns - ns > worst)
			worst = m->now_ns - ns;
		pass_time(m, step);
	}
	return worst;
}

static void the_clock_stays_close_behind_at_every_rate(void **state)
{
	static const uint64_t rates[] = {25, 64, 1024, 2458, 2662, 5000};

	for (size_t i = 0; i < sizeof(rates) / sizeof(rates[0]); i++) {
		struct machine m = new_machine(rates[i]);

		/* CLOCK_LAG_NS covers the length of one tick too */
		assert_uint_in_range(worst_lag(&m, 130, 30000000), 0,
				     CLOCK_LAG_NS);
		m.looks = 0;
		assert_uint_in_range(worst_lag(&m, 130, 30000000), 0, 300);
		assert_uint_in_range(m.looks, 500, 700);
	}
}

static void a_process_that_asks_seldom_reads_the_kernels_clock(void **state)
{
	struct machine m = new_machine(2662);

	worst_lag(&m, 500, 20000000);
	for (int i = 0; i < 10; i++) {
		pass_time(&m, 3000000000u);
		m.looks = 0;
		assert_uint_in_range(m.now_ns + 20 - ask_clock(&m), 0, 200);
		assert_int_equal(m.looks, 1);
	}
}

/* Interrupts a look: for_ns pass between the readings of the time and of the
 * counter.  Checks that the clock does not rely on that look. */
static void interrupt_look(uint64_t rate, uint64_t for_ns)
{
	struct machine m = new_machine(rate);

	worst_lag(&m, 500, 20000000);
	pass_time(&m, 60000);
	assert_true(look_once(&m, for_ns) <= m.now_ns - for_ns);
	m.looks = 0;
	assert_uint_in_range(worst_lag(&m, 130, 1000000), 0, CLOCK_LAG_NS);
	assert_true(m.looks > 1);
}

static void the_clock_does_not_rely_on_an_interrupted_look(void **state)
{
	interrupt_look(2662, 5000000);
	interrupt_look(26, 100000); /* a counter of 25 MHz has few ticks */
}

/* An interrupted look does not count as an error of the counter. */
static void
an_interrupted_look_does_not_end_the_use_of_the_counter(void **state)
{
	struct machine m = new_machine(2662);

	worst_lag(&m, 500, 20000000);
	for (int i = 0; i < 10; i++) {
		pass_time(&m, 60000);
		look_once(&m, 5000);
		assert_uint_in_range(worst_lag(&m, 130, 1000000), 0,
				     CLOCK_LAG_NS);
	}
	assert_int_equal(m.clock.wrong, 0);
	m.looks = 0;
	worst_lag(&m, 130, 30000000);
	assert_uint_in_range(m.looks, 500, 700);
}

static void a_steered_clock_is_followed(void **state)
{
	struct machine m = new_machine(2662);

	worst_lag(&m, 500, 100000000);
	m.rate = 2662 - 1; /* time passes 376 ppm faster, and then slower */
	assert_uint_in_range(worst_lag(&m, 500, 3000000000u), 0, CLOCK_LAG_NS);
	m.rate = 2662 + 1;
	assert_uint_in_range(worst_lag(&m, 500, 3000000000u), 0, CLOCK_LAG_NS);
	assert_int_equal(m.clock.wrong, 0);
}

/* The counter jumps, as when a virtual machine migrates: one jump is tolerated,
 * and several jumps end the use of the counter. */
static void a_counter_that_jumps_is_no_longer_used(void **state)
{
	struct machine m = new_machine(2662);

	worst_lag(&m, 500, 20000000);
	m.tick /= 2;
	assert_uint_in_range(worst_lag(&m, 500, 20000000), 0, CLOCK_LAG_NS);
	assert_false(m.clock.is_off);
	for (int i = 0; i < 4; i++) {
		m.tick += 100000000000u;
		/* the jump exceeds the time for which a reading of the kernel's
		 * clock is used, so ask_clock reads that clock again */
		ask_clock(&m);
		worst_lag(&m, 500, 20000000);
	}
	assert_true(m.clock.is_off);
	m.looks = 0;
	worst_lag(&m, 500, 50000);
	assert_true(m.looks > 90);
}

static void the_real_clock_is_behind_the_kernels_clock(void **state)
{
	struct clock c;
	uint64_t said = 0;

	NEEDS_KERNEL(); /* an emulator's counter may have ticks of over 1 us */
	clock_init(&c);
	for (int i = 0; i < 1000000; i++) {
		uint64_t ns = clock_now(&c);

		assert_true(ns >= said);
		assert_true(ns <= monotonic_ns());
		said = ns;
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_clock_stays_close_behind_at_every_rate),
		cmocka_unit_test(
			a_process_that_asks_seldom_reads_the_kernels_clock),
		cmocka_unit_test(
			the_clock_does_not_rely_on_an_interrupted_look),
		cmocka_unit_test(
			an_interrupted_look_does_not_end_the_use_of_the_counter),
		cmocka_unit_test(a_steered_clock_is_followed),
		cmocka_unit_test(a_counter_that_jumps_is_no_longer_used),
		cmocka_unit_test(the_real_clock_is_behind_the_kernels_clock),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
