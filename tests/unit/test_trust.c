/* SPDX-License-Identifier: BSD-2-Clause */
/* A process trusts the brokers of some users only (broker/trust.h). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "broker/trust.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define VARIABLE "ADVERB_BROKER_USER"

/* another_user and third_user return different users, neither of which is root
 * or this process's own. */
static uid_t another_user(void)
{
	return geteuid() == 1 ? 2 : 1;
}

static uid_t third_user(void)
{
	return geteuid() == 3 ? 4 : 3;
}

static void a_process_trusts_its_own_user_and_root(void **state)
{
	unsetenv(VARIABLE);
	assert_int_equal(trust_in(geteuid()),
			 geteuid() ? TRUST_OWN : TRUST_SYSTEM);
	assert_int_equal(trust_in(0), TRUST_SYSTEM);
	assert_int_equal(trust_in(another_user()), TRUST_NOT);
	assert_int_equal(trust_in((uid_t)-1), TRUST_NOT);
}

static void the_variable_names_a_trusted_user_except_to_root(void **state)
{
	static const char *const ignored[] = {
		"",    "any", "*",	    "-1",
		"1x",  "1 ",  "4294967295", "99999999999999999999",
		" 1 ", "+1",  "0x1",
	};
	char number[16];

	snprintf(number, sizeof(number), "%u", (unsigned)another_user());
	setenv(VARIABLE, number, 1);
	assert_int_equal(trust_in(another_user()),
			 geteuid() ? TRUST_NAMED : TRUST_NOT);
	assert_int_equal(trust_in(third_user()), TRUST_NOT);
	for (size_t i = 0; i < sizeof(ignored) / sizeof(ignored[0]); i++) {
		setenv(VARIABLE, ignored[i], 1);
		assert_int_equal(trust_in(another_user()), TRUST_NOT);
		assert_int_equal(trust_in((uid_t)-1), TRUST_NOT);
	}
	unsetenv(VARIABLE);
}

static void a_refusal_names_the_broker_and_what_to_do(void **state)
{
	char text[640];

	trust_refusal(12, 34, text, sizeof(text));
	assert_non_null(strstr(text, "(process 34)"));
	assert_non_null(strstr(text, "user 12's"));
	assert_non_null(strstr(text, "adverb run --private"));
	assert_true(!strstr(text, VARIABLE "=12") == !geteuid());
	trust_refusal(12, 0, text, sizeof(text));
	assert_null(strstr(text, "process "));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_process_trusts_its_own_user_and_root),
		cmocka_unit_test(
			the_variable_names_a_trusted_user_except_to_root),
		cmocka_unit_test(a_refusal_names_the_broker_and_what_to_do),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
