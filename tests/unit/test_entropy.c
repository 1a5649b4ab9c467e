/* SPDX-License-Identifier: BSD-2-Clause */
/* broker/entropy: the numbers differ, and no bit is constant. */
#include "test.h"

#include "broker/entropy.h"

enum { DRAWS = 1000 }; /* more than one call of the kernel brings */

/* Two of 1000 numbers are equal with a probability of 2^-45. */
static void no_number_is_given_twice(void **state)
{
	static uint64_t drawn[DRAWS];

	for (int i = 0; i < DRAWS; i++) {
		drawn[i] = entropy();
		assert_int_not_equal(drawn[i], 0);
		for (int k = 0; k < i; k++)
			assert_int_not_equal(drawn[i], drawn[k]);
	}
}

static void every_bit_takes_both_values(void **state)
{
	uint64_t ones = 0, zeros = 0;

	for (int i = 0; i < DRAWS; i++) {
		uint64_t n = entropy();

		ones |= n;
		zeros |= ~n;
	}
	assert_int_equal(ones, UINT64_MAX);
	assert_int_equal(zeros, UINT64_MAX);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(no_number_is_given_twice),
		cmocka_unit_test(every_bit_takes_both_values),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
