/* SPDX-License-Identifier: BSD-2-Clause */
#include "test.h"

#include <time.h>

#include "util/monotonic.h"

static uint64_t kernel_ns(void)
{
	struct timespec t;

	assert_int_equal(clock_gettime(CLOCK_MONOTONIC, &t), 0);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* The readings of util/monotonic lie between an earlier and a later reading of
 * the kernel's clock, however much time passes between two of the readings. */
static void the_time_is_that_of_the_kernels_clock(void **state)
{
	uint64_t before = kernel_ns(), ns = monotonic_ns(), ms = monotonic_ms(),
		 after = kernel_ns();

	assert_true(before <= ns && ns <= after);
	assert_true(ns / 1000000 <= ms && ms <= after / 1000000);
}

static void a_time_lies_as_far_ahead_as_asked(void **state)
{
	static const uint32_t after_ms[] = {0, 999, 1000, 5001, UINT32_MAX};
	uint64_t before, ns;
	struct timespec t;

	for (size_t i = 0; i < TEST_COUNT(after_ms); i++) {
		before = kernel_ns();
		monotonic_after(after_ms[i], &t);
		assert_true(t.tv_nsec >= 0 && t.tv_nsec < 1000000000);
		ns = (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec -
		     after_ms[i] * 1000000ull;
		assert_true(before <= ns && ns <= kernel_ns());
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_time_is_that_of_the_kernels_clock),
		cmocka_unit_test(a_time_lies_as_far_ahead_as_asked),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
