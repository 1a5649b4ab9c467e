/* SPDX-License-Identifier: BSD-2-Clause */
/* util/remedy: each limit has a clause, which the broker's sentence about the
 * limit has in full. */
#include "test.h"

#include <errno.h>
#include <string.h>

#include "broker/refuse_full.h"
#include "util/remedy.h"

static const int limits[] = {EMFILE, ENFILE, ETOOMANYREFS,
			     EAGAIN, ENOMEM, ENOBUFS};

#define LIMITS (sizeof(limits) / sizeof(*limits))

static void each_limit_has_a_clause(void **state)
{
	for (size_t i = 0; i < LIMITS; i++)
		assert_non_null(remedy_of(limits[i], NULL));
	assert_string_equal(remedy_of(ENOMEM, NULL), remedy_of(ENOBUFS, NULL));
	assert_string_not_equal(remedy_of(EMFILE, ""), remedy_of(ENFILE, ""));
}

static void another_error_has_the_clause_of_the_caller(void **state)
{
	assert_null(remedy_of(EPERM, NULL));
	assert_string_equal(remedy_of(0, "look"), "look");
}

/* The room for the broker's sentence is small, and half a clause would not tell
 * the user what to do. */
static void the_broker_tells_the_whole_clause(void **state)
{
	struct refuse_full_slot slot;

	for (size_t i = 0; i < LIMITS; i++) {
		const char *clause = remedy_of(limits[i], "");
		size_t length = strlen(clause);

		refuse_full_why(limits[i], slot.why, sizeof(slot.why));
		assert_true(strlen(slot.why) > length);
		assert_string_equal(slot.why + strlen(slot.why) - length,
				    clause);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_limit_has_a_clause),
		cmocka_unit_test(another_error_has_the_clause_of_the_caller),
		cmocka_unit_test(the_broker_tells_the_whole_clause),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
