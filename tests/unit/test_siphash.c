/* SPDX-License-Identifier: BSD-2-Clause */
#include "test.h"

#include "util/siphash.h"

static const struct siphash_key key = {
	{0x0706050403020100u, 0x0f0e0d0c0b0a0908u}};

/* The example of the paper's appendix A, and the value of the reference code
 * for no bytes. */
static void the_example_of_the_paper_is_met(void **state)
{
	uint8_t data[15];

	for (uint8_t i = 0; i < sizeof(data); i++)
		data[i] = i;
	assert_int_equal(siphash(&key, data, sizeof(data)),
			 0xa129ca6149be45e5u);
	assert_int_equal(siphash(&key, data, 0), 0x726fdb47dd0e0e31u);
}

static void each_byte_and_the_length_count(void **state)
{
	uint8_t data[33] = {0};
	uint64_t all = siphash(&key, data, 32);

	assert_int_not_equal(siphash(&key, data, 33), all);
	assert_int_not_equal(siphash(&key, data, 31), all);
	for (int i = 0; i < 32; i++) {
		data[i] ^= 1;
		assert_int_not_equal(siphash(&key, data, 32), all);
		data[i] ^= 1;
	}
	assert_int_equal(siphash(&key, data, 32), all);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_example_of_the_paper_is_met),
		cmocka_unit_test(each_byte_and_the_length_count),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
