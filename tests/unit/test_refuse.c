/* SPDX-License-Identifier: BSD-2-Clause */
#include "test.h"

#include "verbs/refuse.h"

#include <errno.h>

/* Each of these functions implements verbs that would create an object of a
 * kind that adverb lacks. */
static void *(*const makers[])(void) = {
	v_refuse_null_mr,     v_refuse_counters, v_refuse_flow,
	v_refuse_flow_action, v_refuse_rss,	 v_refuse_wq,
	v_refuse_xrc,
};

static void no_object_is_created_and_errno_is_eopnotsupp(void **state)
{
	for (size_t i = 0; i < TEST_COUNT(makers); i++) {
		errno = 0;
		assert_null(makers[i]());
		assert_int_equal(errno, EOPNOTSUPP);
	}
}

static void advice_returns_eopnotsupp(void **state)
{
	assert_int_equal(v_refuse_advice(), EOPNOTSUPP);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(no_object_is_created_and_errno_is_eopnotsupp),
		cmocka_unit_test(advice_returns_eopnotsupp),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
