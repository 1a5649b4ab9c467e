/* SPDX-License-Identifier: BSD-2-Clause */
/* rdmacm/link_thread: a thread gets back the number and the descriptor that its
 * argument was made of, however large both are. */
#include "test.h"

#include <limits.h>

#include "rdmacm/link_thread.h"

static void the_parts_of_an_argument_do_not_mix(void **state)
{
	static const uint32_t numbers[] = {0, 1, 4096, UINT32_MAX};
	static const int fds[] = {0, 3, (1 << 20) - 1, 1 << 20, INT_MAX};

	for (size_t i = 0; i < TEST_COUNT(numbers); i++)
		for (size_t k = 0; k < TEST_COUNT(fds); k++) {
			void *packed = r_thread_pack(numbers[i], fds[k]);

			assert_int_equal(r_thread_number(packed), numbers[i]);
			assert_int_equal(r_thread_fd(packed), fds[k]);
		}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_parts_of_an_argument_do_not_mix),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
