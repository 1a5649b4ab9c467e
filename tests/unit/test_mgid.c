/* SPDX-License-Identifier: BSD-2-Clause */
/* ipoib/mgid: the multicast GIDs of IPoIB (RFC 4391, 4). */
#include "test.h"

#include "ipoib/mgid.h"

static void a_partition_has_a_broadcast_group(void **state)
{
	static const uint8_t want[16] = {0xff, 0x12,	    0x40, 0x1b, 0x80,
					 1,    [12] = 0xff, 0xff, 0xff, 0xff};
	uint8_t mgid[16];

	mgid_broadcast(0x8001, mgid);
	assert_memory_equal(mgid, want, 16);
}

/* RFC 4391, 4: the scope and the P_Key are those of the broadcast group. */
static void
groups_of_ip_have_scope_and_pkey_of_the_broadcast_group(void **state)
{
	static const uint8_t broadcast[16] = {0xff, 0x15, 0x40,	       0x1b,
					      0xab, 0xcd, [12] = 0xff, 0xff,
					      0xff, 0xff};
	static const uint8_t v4[16] = {0xff, 0x15,	  0x40, 0x1b, 0xab,
				       0xcd, [12] = 0x0f, 0xc0, 0,    0x12};
	static const uint8_t ip[16] = {0xff, 0x02, 1, 2,  3, 4,	   5,	 6,
				       7,    8,	   9, 10, 1, 0xff, 0xab, 0xcd};
	static const uint8_t v6[16] = {0xff, 0x15, 0x60, 0x1b, 0xab, 0xcd,
				       5,    6,	   7,	 8,    9,    10,
				       1,    0xff, 0xab, 0xcd};
	uint8_t mgid[16];

	mgid_ipv4(broadcast, 0xefc00012, mgid);
	assert_memory_equal(mgid, v4, 16);
	mgid_ipv6(broadcast, ip, mgid);
	assert_memory_equal(mgid, v6, 16);
}

static void groups_of_ipv4_are_224_to_239(void **state)
{
	assert_false(mgid_is_ipv4(0xdfffffff));
	assert_true(mgid_is_ipv4(0xe0000000));
	assert_true(mgid_is_ipv4(0xefffffff));
	assert_false(mgid_is_ipv4(0xf0000000));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_partition_has_a_broadcast_group),
		cmocka_unit_test(
			groups_of_ip_have_scope_and_pkey_of_the_broadcast_group),
		cmocka_unit_test(groups_of_ipv4_are_224_to_239),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
