/* SPDX-License-Identifier: BSD-2-Clause */
#include "test.h"

#include "util/serial24.h"

static void distance_is_what_was_added(void **state)
{
	static const uint32_t from[] = {0,	  1,	    0x7fffff,
					0x800000, 0xfffffe, 0xffffff};
	static const int32_t by[] = {0, 1, -1, 255, -256, 0x7fffff, -0x800000};

	for (size_t i = 0; i < TEST_COUNT(from); i++) {
		for (size_t k = 0; k < TEST_COUNT(by); k++) {
			struct serial24 a = serial24(from[i]);
			struct serial24 b = serial24_add(a, by[k]);

			assert_true(b.v <= SERIAL24_MASK);
			assert_int_equal(serial24_diff(b, a), by[k]);
			assert_int_equal(serial24_is_before(b, a), by[k] < 0);
			assert_int_equal(serial24_is_equal(b, a), by[k] == 0);
		}
	}
}

static void adding_2_to_the_24_changes_nothing(void **state)
{
	struct serial24 a = serial24(0xfffff0);

	assert_int_equal(serial24_add(a, 1 << 24).v, a.v);
	assert_int_equal(serial24_add(a, -(1 << 24)).v, a.v);
	assert_int_equal(serial24_add(a, 0x10).v, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(distance_is_what_was_added),
		cmocka_unit_test(adding_2_to_the_24_changes_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
