/* SPDX-License-Identifier: BSD-2-Clause */
/* hca/counters: the values of counters, in the form in which a kernel's device
 * gives them. */
#include "test.h"

#include "hca/counters.h"
#include "hca/hca.h"

#include <string.h>

static uint64_t value_of(const char *name, const struct engine_counters *c)
{
	uint64_t words[COUNTERS_WORDS];

	memcpy(words, c, sizeof(words));
	for (uint32_t i = 0; i < COUNTERS_FILES; i++)
		if (!strcmp(counters_files[i].name, name))
			return counters_value(i, words);
	fail_msg("there is no %s", name);
	return 0;
}

static void data_are_counted_in_words(void **state)
{
	struct engine_counters c = {.tx_bytes = 4099, .rx_bytes = 8};

	assert_int_equal(value_of("counters/port_xmit_data", &c), 1024);
	assert_int_equal(value_of("counters/port_rcv_data", &c), 2);
	assert_int_equal(value_of("hw_counters/tx_bytes", &c), 4099);
}

static void bad_packets_are_added_up_as_receive_errors(void **state)
{
	struct engine_counters c = {.refused.malformed = 3,
				    .refused.bad_icrc = 4};

	assert_int_equal(value_of("counters/port_rcv_errors", &c), 7);
	assert_int_equal(value_of("hw_counters/rx_icrc_encapsulated", &c), 4);
}

static void a_request_that_failed_is_counted_by_its_reason(void **state)
{
	struct engine_counters c = {.failed = 3};

	c.failed_by[HCA_WR_FLUSH_ERR] = 2;
	c.failed_by[HCA_RETRY_EXC_ERR] = 1;
	assert_int_equal(value_of("hw_counters/req_cqe_error", &c), 5);
	assert_int_equal(value_of("hw_counters/req_cqe_flush_error", &c), 2);
	assert_int_equal(value_of("hw_counters/retry_exceeded_err", &c), 1);
}

static void a_counter_without_a_meaning_is_zero(void **state)
{
	struct engine_counters c;

	memset(&c, 0x11, sizeof(c));
	assert_int_equal(value_of("counters/symbol_error", &c), 0);
	assert_int_equal(value_of("hw_counters/link_downed", &c), 0);
}

static void no_two_counters_have_one_name(void **state)
{
	for (uint32_t i = 0; i < COUNTERS_FILES; i++)
		for (uint32_t k = 0; k < i; k++)
			assert_string_not_equal(counters_files[i].name,
						counters_files[k].name);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(data_are_counted_in_words),
		cmocka_unit_test(bad_packets_are_added_up_as_receive_errors),
		cmocka_unit_test(
			a_request_that_failed_is_counted_by_its_reason),
		cmocka_unit_test(a_counter_without_a_meaning_is_zero),
		cmocka_unit_test(no_two_counters_have_one_name),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
