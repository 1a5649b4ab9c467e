/* SPDX-License-Identifier: BSD-2-Clause */
/* util/inaddr: which GIDs are groups.  host/mcast_socket: which IPv4 group is
 * the alias of a GID. */
#include "test.h"

#include <string.h>

#include "host/mcast_socket.h"

#include "util/inaddr.h"

static void groups_of_both_families_are_known(void **state)
{
	static const struct {
		uint8_t gid[16];
		bool is;
	} rows[] = {
		{{[10] = 0xff, 0xff, 224, 0, 0, 1}, true},
		{{[10] = 0xff, 0xff, 239, 255, 255, 255}, true},
		{{[10] = 0xff, 0xff, 223, 255, 255, 255}, false},
		{{[10] = 0xff, 0xff, 240, 0, 0, 0}, false},
		{{0xff, 0x0e, [15] = 1}, true},
		{{0xff, 0x01}, true},
		{{0xfe, 0x80, [15] = 1}, false},
		{{[15] = 1}, false},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
		assert_int_equal(inaddr_is_multicast(rows[i].gid), rows[i].is);
}

static void an_alias_is_one_group_of_239_192(void **state)
{
	uint8_t gid[16] = {0xff, 0x0e, [8] = 1}, a[16], b[16];

	for (int i = 0; i < 256; i++) {
		gid[15] = (uint8_t)i;
		mcast_socket_alias(gid, a);
		mcast_socket_alias(gid, b);
		assert_memory_equal(a, b, 16);
		assert_true(inaddr_is_v4(a));
		assert_int_equal(a[12], 239);
		assert_int_equal(a[13] & 0xfc, 192);
	}
	gid[15] = 0;
	mcast_socket_alias(gid, b);
	assert_memory_not_equal(a, b, 16);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(groups_of_both_families_are_known),
		cmocka_unit_test(an_alias_is_one_group_of_239_192),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
