/* SPDX-License-Identifier: BSD-2-Clause */
/* ipoib/joined: the groups of an interface in /proc/net/igmp and igmp6. */
#include "test.h"

#include "ipoib/joined.h"
#include "util/rng.h"

/* Writes a sample of /proc/net/igmp to text, which has `room` bytes.  The
 * kernel prints an address as a number in this processor's byte order. */
static void print_igmp(char *text, size_t room)
{
	static const uint8_t all[4] = {224, 0, 0, 1}, one[4] = {239, 1, 2, 3};
	uint32_t a, b;

	memcpy(&a, all, 4);
	memcpy(&b, one, 4);
	snprintf(text, room,
		 "Idx\tDevice    : Count Querier\tGroup    Users Timer\tR\n"
		 "1\tlo        :     1      V3\n"
		 "\t\t\t\t%08X     1 0:00000000\t\t0\n"
		 "2\tib0       :     2      V3\n"
		 "\t\t\t\t%08X     1 0:00000000\t\t1\n"
		 "\t\t\t\t%08X     1 0:00000000\t\t0\n"
		 "3\tib01      :     1      V3\n"
		 "\t\t\t\t%08X     1 0:00000000\t\t0\n",
		 a, b, a, a);
}

static const char igmp6[] =
	"1    lo              ff020000000000000000000000000001     1 0C 0\n"
	"2    ib0             ff0200000000000000000001ff100007     1 04 0\n"
	"2    ib0             ff010000000000000000000000000001     1 08 0\n"
	"2    ib0             ff05000000000000000000000000000a     1 0C 0\n"
	"3    ib01            ff020000000000000000000000000001     1 0C 0\n";

static void the_groups_of_one_interface_are_found(void **state)
{
	static const uint8_t solicited[16] = {0xff, 2, [11] = 1, 0xff,
					      0x10, 0, 7};
	struct joined j = {0};
	char text[1024];

	print_igmp(text, sizeof(text));
	joined_add_igmp(&j, text, "ib0");
	assert_int_equal(j.count, 2);
	assert_int_equal(j.all[0].ipv4, 0xef010203);
	assert_int_equal(j.all[1].ipv4, 0xe0000001);
	assert_false(j.all[0].is_v6);
	joined_add_igmp6(&j, igmp6, "ib0");
	assert_int_equal(j.count, 4);
	assert_true(j.all[2].is_v6);
	assert_memory_equal(j.all[2].ipv6, solicited, 16);
	assert_int_equal(j.all[3].ipv6[15], 10);
}

/* The kernel puts no blank between a long name and the colon. */
static void long_names_are_found(void **state)
{
	static const char *const names[] = {"ib0.8001", "ib0.80012",
					    "ib0.800123", "ib0.8001-backup"};
	char text[256];

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		struct joined j = {0};

		snprintf(
			text, sizeof(text),
			"Idx\tDevice    : Count Querier\tGroup    Users Timer\tR\n"
			"2\t%-10s: %5d %7s\n\t\t\t\t%08X     1 0:00000000\t\t0\n",
			names[i], 1, "V3", 0x010000e0);
		joined_add_igmp(&j, text, names[i]);
		assert_int_equal(j.count, 1);
		joined_add_igmp(&j, text, "ib0.800");
		assert_int_equal(j.count, 1);
	}
}

static void a_list_takes_no_more_than_it_has_room_for(void **state)
{
	struct joined j = {0};

	for (int i = 0; i < JOINED_MAX; i++)
		joined_add_igmp6(&j, igmp6, "ib0");
	assert_int_equal(j.count, JOINED_MAX);
}

/* No text makes the functions read behind its end.  AddressSanitizer finds such
 * a read, since each copy has just the length of its text. */
static void other_texts_do_no_harm(void **state)
{
	struct rng r;
	char text[1024];

	rng_init(&r, 1);
	for (int i = 0; i < 20000; i++) {
		size_t bytes;
		char *copy;
		struct joined j = {0};

		print_igmp(text, sizeof(text));
		if (i & 1)
			snprintf(text, sizeof(text), "%s", igmp6);
		bytes = rng_below(&r, (uint32_t)strlen(text) + 1);
		for (int k = 0; k < 3 && bytes; k++)
			text[rng_below(&r, (uint32_t)bytes)] =
				"\n\t 0fz"[rng_below(&r, 6)];
		text[bytes] = '\0';
		copy = strdup(text);
		joined_add_igmp(&j, copy, "ib0");
		joined_add_igmp6(&j, copy, "ib0");
		assert_true(j.count <= JOINED_MAX);
		free(copy);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_groups_of_one_interface_are_found),
		cmocka_unit_test(long_names_are_found),
		cmocka_unit_test(a_list_takes_no_more_than_it_has_room_for),
		cmocka_unit_test(other_texts_do_no_harm),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
