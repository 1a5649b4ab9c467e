/* SPDX-License-Identifier: BSD-2-Clause */
/* util/crccopy against util/crc. */
#include "test.h"

#include <string.h>

#include "util/crc.h"
#include "util/crccopy.h"

static void a_copy_and_its_sum_agree_with_those_of_two_steps(void **state)
{
	static uint8_t from[8192 + 64], to[8192 + 128], want[8192 + 128];
	uint32_t sum;

	if (!crccopy_is_fast())
		skip();
	for (size_t i = 0; i < sizeof from; i++)
		from[i] = (uint8_t)(i * 7 + i / 251);
	for (size_t n = CRCCOPY_STEP; n <= 8192; n += CRCCOPY_STEP) {
		size_t off = n / CRCCOPY_STEP % 64, at = (off * 11 + 12) % 64;
		uint32_t crc = (uint32_t)(n * 2654435761u);

		memset(to, 0xee, sizeof to);
		memset(want, 0xee, sizeof want);
		memcpy(want + at, from + off, n);
		crccopy_steps(to + at, from + off, n, crc, &sum);
		assert_memory_equal(to, want, sizeof to);
		assert_int_equal(sum, crc32_update(crc, from + off, n));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
			a_copy_and_its_sum_agree_with_those_of_two_steps),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
