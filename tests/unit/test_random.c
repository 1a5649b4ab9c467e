/* SPDX-License-Identifier: BSD-2-Clause */
#include "test.h"

#include "util/random.h"

enum { ROOM = 4096, ROUNDS = 64 };

/* A correct generator leaves a given byte 0 in all of the 64 rounds with a
 * probability of 2^-512. */
static void every_byte_of_the_buffer_is_filled(void **state)
{
	static uint8_t all[ROOM], now[ROOM];

	for (int i = 0; i < ROUNDS; i++) {
		memset(now, 0, sizeof(now));
		assert_true(random_fill(now, sizeof(now), true));
		for (size_t at = 0; at < sizeof(now); at++)
			all[at] |= now[at];
	}
	for (size_t at = 0; at < sizeof(all); at++)
		assert_int_not_equal(all[at], 0);
}

static void no_byte_outside_the_buffer_is_written(void **state)
{
	uint8_t guarded[16 + 7 + 16], zeros[16] = {0};

	for (int i = 0; i < ROUNDS; i++) {
		memset(guarded, 0, sizeof(guarded));
		assert_true(random_fill(guarded + 16, 7, false));
		assert_memory_equal(guarded, zeros, 16);
		assert_memory_equal(guarded + 16 + 7, zeros, 16);
	}
}

static void two_calls_give_different_numbers(void **state)
{
	uint8_t a[32], b[32];

	assert_true(random_fill(a, sizeof(a), true));
	assert_true(random_fill(b, sizeof(b), true));
	assert_memory_not_equal(a, b, sizeof(a));
}

static void filling_no_bytes_succeeds(void **state)
{
	uint8_t untouched = 7;

	assert_true(random_fill(&untouched, 0, true));
	assert_int_equal(untouched, 7);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_byte_of_the_buffer_is_filled),
		cmocka_unit_test(no_byte_outside_the_buffer_is_written),
		cmocka_unit_test(two_calls_give_different_numbers),
		cmocka_unit_test(filling_no_bytes_succeeds),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
