/* SPDX-License-Identifier: BSD-2-Clause */
/* verbs/names: words for enum values, and rates converted in both directions.
 */
#include "test.h"

#include "verbs/names.h"

static void every_value_has_a_word_and_each_status_its_own(void **state)
{
	for (int a = IBV_WC_SUCCESS; a <= IBV_WC_TM_RNDV_INCOMPLETE; a++) {
		const char *word = ibv_wc_status_str((enum ibv_wc_status)a);

		assert_string_not_equal(word, "unknown");
		for (int b = 0; b < a; b++)
			assert_string_not_equal(
				word, ibv_wc_status_str((enum ibv_wc_status)b));
	}
	for (int a = IBV_EVENT_CQ_ERR; a <= IBV_EVENT_WQ_FATAL; a++)
		assert_string_not_equal(
			ibv_event_type_str((enum ibv_event_type)a), "unknown");
	for (int a = IBV_PORT_NOP; a <= IBV_PORT_ACTIVE_DEFER; a++)
		assert_string_not_equal(
			ibv_port_state_str((enum ibv_port_state)a), "unknown");
	for (int a = IBV_NODE_CA; a <= IBV_NODE_UNSPECIFIED; a++)
		assert_string_not_equal(
			ibv_node_type_str((enum ibv_node_type)a), "unknown");
}

static void values_outside_are_unknown(void **state)
{
	static const int odd[] = {-1, 99, INT32_MAX, INT32_MIN};

	for (size_t i = 0; i < TEST_COUNT(odd); i++) {
		assert_string_equal(
			ibv_wc_status_str((enum ibv_wc_status)odd[i]),
			"unknown");
		assert_string_equal(
			ibv_event_type_str((enum ibv_event_type)odd[i]),
			"unknown");
		assert_string_equal(
			ibv_port_state_str((enum ibv_port_state)odd[i]),
			"unknown");
		assert_string_equal(
			ibv_node_type_str((enum ibv_node_type)odd[i]),
			"unknown");
		assert_string_equal(v_wr_opcode_str((enum ibv_wr_opcode)odd[i]),
				    "unknown");
	}
	assert_string_equal(ibv_node_type_str((enum ibv_node_type)0),
			    "unknown");
}

static void opcodes_newer_than_the_headers_have_words(void **state)
{
	assert_string_equal(v_wr_opcode_str((enum ibv_wr_opcode)14), "flush");
	assert_string_equal(v_wr_opcode_str(IBV_WR_SEND), "send");
	assert_string_equal(v_wr_opcode_str((enum ibv_wr_opcode)12), "unknown");
}

static void rates_convert_there_and_back(void **state)
{
	for (int i = IBV_RATE_2_5_GBPS; i <= IBV_RATE_1200_GBPS; i++) {
		enum ibv_rate rate = (enum ibv_rate)i;
		int multiple = ibv_rate_to_mult(rate);

		assert_int_equal(mbps_to_ibv_rate(ibv_rate_to_mbps(rate)),
				 rate);
		if (multiple > 0)
			assert_int_equal(mult_to_ibv_rate(multiple), rate);
	}
	assert_int_equal(ibv_rate_to_mult(IBV_RATE_40_GBPS), 16);
	assert_int_equal(ibv_rate_to_mbps(IBV_RATE_100_GBPS), 103125);
}

static void rates_that_do_not_exist_are_refused(void **state)
{
	assert_int_equal(ibv_rate_to_mult(IBV_RATE_MAX), -1);
	assert_int_equal(ibv_rate_to_mult(IBV_RATE_14_GBPS), -1);
	assert_int_equal(ibv_rate_to_mbps(IBV_RATE_MAX), -1);
	assert_int_equal(mult_to_ibv_rate(0), IBV_RATE_MAX);
	assert_int_equal(mult_to_ibv_rate(3), IBV_RATE_MAX);
	assert_int_equal(mbps_to_ibv_rate(0), IBV_RATE_MAX);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
			every_value_has_a_word_and_each_status_its_own),
		cmocka_unit_test(values_outside_are_unknown),
		cmocka_unit_test(opcodes_newer_than_the_headers_have_words),
		cmocka_unit_test(rates_convert_there_and_back),
		cmocka_unit_test(rates_that_do_not_exist_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
