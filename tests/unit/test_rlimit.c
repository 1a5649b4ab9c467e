/* SPDX-License-Identifier: BSD-2-Clause */
#include "test.h"

#include <sys/resource.h>

#include "util/rlimit.h"

enum { FEW = 32 };

static void the_soft_limit_becomes_the_hard_one(void **state)
{
	struct rlimit before, low, after;

	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	assert_true(before.rlim_max > FEW);
	low = (struct rlimit){FEW, before.rlim_max};
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &low), 0);
	rlimit_raise(RLIMIT_NOFILE);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &after), 0);
	assert_true(after.rlim_cur == before.rlim_max);
	assert_true(after.rlim_max == before.rlim_max);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
}

static void a_resource_that_does_not_exist_changes_nothing(void **state)
{
	struct rlimit before, after;

	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	rlimit_raise(-1);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &after), 0);
	assert_memory_equal(&before, &after, sizeof(before));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_soft_limit_becomes_the_hard_one),
		cmocka_unit_test(
			a_resource_that_does_not_exist_changes_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
