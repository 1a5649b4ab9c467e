/* SPDX-License-Identifier: BSD-2-Clause */
/* log/env: the words of a variable are found, and words that adverb does not
 * know are reported. */
#include "test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "log/env.h"

static uint32_t without_bits(const char *value)
{
	uint32_t bits = 0;

	if (value)
		setenv("ADVERB_WITHOUT", value, 1);
	else
		unsetenv("ADVERB_WITHOUT");
	for (int i = 0; i < ENV_MECHANISMS; i++)
		bits |= (uint32_t)env_is_without((enum env_mechanism)i) << i;
	return bits;
}

static void mechanisms_are_named_in_a_list(void **state)
{
	assert_int_equal(without_bits(NULL), 0);
	assert_int_equal(without_bits(""), 0);
	assert_int_equal(without_bits(","), 0);
	assert_int_equal(without_bits("credits"), 1 << ENV_CREDITS);
	assert_int_equal(without_bits("acks,eager"),
			 1 << ENV_ACKS | 1 << ENV_EAGER);
	assert_int_equal(without_bits(",adaptive,,mapped,"),
			 1 << ENV_ADAPTIVE | 1 << ENV_MAPPED);
	assert_int_equal(
		without_bits("credits,acks,eager,mapped,adaptive,rings"),
		(1 << ENV_MECHANISMS) - 1);
	assert_int_equal(without_bits("credit,acksacks,Eager,mapped ,1"), 0);
}

static void options_of_mpa_are_named_in_a_list(void **state)
{
	unsetenv("ADVERB_MPA");
	for (int i = 0; i < ENV_MPA_WORDS; i++)
		assert_false(env_has_mpa((enum env_mpa)i));
	setenv("ADVERB_MPA", "markers,client-server", 1);
	assert_false(env_has_mpa(ENV_MPA_REV1));
	assert_false(env_has_mpa(ENV_MPA_NOCRC));
	assert_true(env_has_mpa(ENV_MPA_MARKERS));
	assert_true(env_has_mpa(ENV_MPA_CLIENT_SERVER));
	setenv("ADVERB_MPA", "rev1,nocrc", 1);
	assert_true(env_has_mpa(ENV_MPA_REV1));
	assert_true(env_has_mpa(ENV_MPA_NOCRC));
	unsetenv("ADVERB_MPA");
}

static void a_switch_is_off_only_if_it_is_0(void **state)
{
	unsetenv("ADVERB_GSO");
	assert_false(env_is_off("ADVERB_GSO"));
	assert_null(env_text("ADVERB_GSO"));
	setenv("ADVERB_GSO", "", 1);
	assert_false(env_is_off("ADVERB_GSO"));
	assert_string_equal(env_text("ADVERB_GSO"), "");
	setenv("ADVERB_GSO", "00", 1);
	assert_false(env_is_off("ADVERB_GSO"));
	setenv("ADVERB_GSO", "0", 1);
	assert_true(env_is_off("ADVERB_GSO"));
	unsetenv("ADVERB_GSO");
}

static void a_switch_is_on_unless_it_is_0_or_empty(void **state)
{
	unsetenv("ADVERB_STRICT");
	assert_false(env_is_on("ADVERB_STRICT"));
	setenv("ADVERB_STRICT", "", 1);
	assert_false(env_is_on("ADVERB_STRICT"));
	setenv("ADVERB_STRICT", "0", 1);
	assert_false(env_is_on("ADVERB_STRICT"));
	setenv("ADVERB_STRICT", "1", 1);
	assert_true(env_is_on("ADVERB_STRICT"));
	unsetenv("ADVERB_STRICT");
}

/* Sets the variable, and returns the text that env_check then prints on stderr.
 */
static const char *printed_for(const char *name, const char *value)
{
	static char text[1000];
	int before = dup(STDERR_FILENO), fd = memfd_create("stderr", 0);
	ssize_t n;

	setenv(name, value, 1);
	dup2(fd, STDERR_FILENO);
	env_check();
	dup2(before, STDERR_FILENO);
	n = pread(fd, text, sizeof(text) - 1, 0);
	text[n > 0 ? n : 0] = 0;
	close(before);
	close(fd);
	return text;
}

static void an_unknown_word_is_reported(void **state)
{
	const char *said;

	assert_string_equal(
		printed_for("ADVERB_WITHOUT", "credits,adaptive,rings"), "");
	said = printed_for("ADVERB_WITHOUT", "credits,polling");
	assert_non_null(strstr(said, "ADVERB_WITHOUT: \"polling\""));
	assert_non_null(
		strstr(said, "acks, eager, mapped, adaptive and rings"));
	unsetenv("ADVERB_WITHOUT");
	assert_string_equal(printed_for("ADVERB_MPA", "rev1,nocrc"), "");
	said = printed_for("ADVERB_MPA", "rev2");
	assert_non_null(strstr(said, "ADVERB_MPA: \"rev2\" is not one of"));
}

static void a_variable_that_does_not_exist_is_reported(void **state)
{
	static const struct {
		const char *name, *nearest;
	} rows[] = {
		{"ADVERB_DEVICE", "the nearest name is ADVERB_DEVICES,"},
		{"ADVERB_PACP", "the nearest name is ADVERB_PCAP,"},
		{"ADVERB_PATIENCES_OF_A_PEER_THAT_IS_SILENT_FOR_LONG",
		 "the nearest name is ADVERB_"},
		{"ADVERB_", "the nearest name is ADVERB_"},
	};
	static const char *const known[] = {"ADVERB_PCAP", "ADVERB_COMMAND",
					    "ADVERB_READY_FD",
					    "ADVERB_BROKER_USER", "ADVERBIAL"};
	char start[100];

	for (size_t i = 0; i < TEST_COUNT(rows); i++) {
		const char *said = printed_for(rows[i].name, "1");

		snprintf(start, sizeof(start),
			 "adverb: %s is not a variable of adverb",
			 rows[i].name);
		assert_ptr_equal(strstr(said, start), said);
		assert_non_null(strstr(said, rows[i].nearest));
		/* one message for each variable */
		assert_string_equal(printed_for("ADVERB_PCAP", "x"), "");
		unsetenv(rows[i].name);
	}
	/* adverb(7) does not describe ADVERB_COMMAND, so no message names it */
	assert_null(
		strstr(printed_for("ADVERB_COMAND", "x"), "ADVERB_COMMAND"));
	unsetenv("ADVERB_COMAND");
	for (size_t i = 0; i < TEST_COUNT(known); i++) {
		assert_string_equal(printed_for(known[i], "x"), "");
		unsetenv(known[i]);
	}
}

/* The test sets one wrong value for each variable, since a variable is reported
 * once in a process. */
static void a_wrong_number_is_reported(void **state)
{
	static const char *const right[] = {"0", "60", "0x3c", "4294967295"};
	static const struct {
		const char *name, *value;
	} wrong[] = {
		/* strtoul(3) returns 1 */
		{"ADVERB_PATIENCE", " -18446744073709551615"},
		{"ADVERB_PART_ID", "4294967296"},
	};

	for (size_t i = 0; i < TEST_COUNT(right); i++)
		assert_string_equal(printed_for("ADVERB_PATIENCE", right[i]),
				    "");
	for (size_t i = 0; i < TEST_COUNT(wrong); i++) {
		assert_non_null(
			strstr(printed_for(wrong[i].name, wrong[i].value),
			       "the value must be a number from 0 to"));
		unsetenv(wrong[i].name);
	}
}

static void sctp_is_off_or_named(void **state)
{
	static const char *const wrong[] = {
		"1x",  "tcp", "65536", "-1", " -1", " -18446744073709551615",
		"udp,"};
	uint16_t port = 7;

	unsetenv("ADVERB_SCTP");
	unsetenv("ADVERB_MPA");
	assert_int_equal(env_sctp(&port), ENV_SCTP_OFF);
	assert_int_equal(port, 0);
	assert_string_equal(printed_for("ADVERB_SCTP", "udp"), "");
	assert_int_equal(env_sctp(&port), ENV_SCTP_UDP);
	assert_int_equal(port, 0);
	assert_string_equal(printed_for("ADVERB_SCTP", "raw"), "");
	assert_int_equal(env_sctp(&port), ENV_SCTP_RAW);
	assert_string_equal(printed_for("ADVERB_SCTP", "9899"), "");
	assert_int_equal(env_sctp(&port), ENV_SCTP_UDP);
	assert_int_equal(port, 9899);
	assert_non_null(
		strstr(printed_for("ADVERB_SCTP", "tcp"), "must be udp"));
	for (size_t i = 0; i < TEST_COUNT(wrong); i++) {
		setenv("ADVERB_SCTP", wrong[i], 1);
		assert_int_equal(env_sctp(&port), ENV_SCTP_WRONG);
	}
	unsetenv("ADVERB_SCTP");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(mechanisms_are_named_in_a_list),
		cmocka_unit_test(options_of_mpa_are_named_in_a_list),
		cmocka_unit_test(a_switch_is_on_unless_it_is_0_or_empty),
		cmocka_unit_test(a_switch_is_off_only_if_it_is_0),
		cmocka_unit_test(an_unknown_word_is_reported),
		cmocka_unit_test(a_variable_that_does_not_exist_is_reported),
		cmocka_unit_test(a_wrong_number_is_reported),
		cmocka_unit_test(sctp_is_off_or_named),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
