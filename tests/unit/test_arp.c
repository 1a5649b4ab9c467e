/* SPDX-License-Identifier: BSD-2-Clause */
/* ipoib/arp: ARP with addresses of 6 and of 20 bytes. */
#include "test.h"

#include "ipoib/arp.h"

static const struct arp example = {
	.operation = 2,
	.sender_ip = {10, 0, 0, 1},
	.target_ip = {10, 0, 0, 2},
	.sender = {1, 2, 3, 4, 5, 6},
	.target = {7, 8, 9, 10, 11, 12},
};

static void both_forms_are_written_and_read(void **state)
{
	static const uint8_t want[] = {0, 1,  8,  0,  6,  4, 0, 2, 1, 2,
				       3, 4,  5,  6,  10, 0, 0, 1, 7, 8,
				       9, 10, 11, 12, 10, 0, 0, 2};
	uint8_t p[ARP_HWADDR_BYTES];
	struct arp arp, wide = example;

	arp_write_mac(p, &example);
	assert_memory_equal(p, want, sizeof(want));
	assert_true(arp_parse_mac(p, ARP_MAC_BYTES, &arp));
	assert_memory_equal(&arp, &example, sizeof(arp));
	memset(wide.sender, 0x55, sizeof(wide.sender));
	memset(wide.target, 0xaa, sizeof(wide.target));
	arp_write_hwaddr(p, &wide);
	assert_int_equal(p[1], 32);
	assert_int_equal(p[4], HWADDR_BYTES);
	assert_true(arp_parse_hwaddr(p, ARP_HWADDR_BYTES, &arp));
	assert_memory_equal(&arp, &wide, sizeof(arp));
}

static void short_packets_are_refused(void **state)
{
	uint8_t p[ARP_HWADDR_BYTES];
	struct arp arp;

	arp_write_mac(p, &example);
	for (size_t n = 0; n < ARP_MAC_BYTES; n++)
		assert_false(arp_parse_mac(p, n, &arp));
	arp_write_hwaddr(p, &example);
	for (size_t n = 0; n < ARP_HWADDR_BYTES; n++)
		assert_false(arp_parse_hwaddr(p, n, &arp));
}

static void packets_of_other_links_are_refused(void **state)
{
	uint8_t p[ARP_HWADDR_BYTES];
	struct arp arp;

	for (int i = 0; i < 6; i++) {
		arp_write_hwaddr(p, &example);
		p[i] ^= 1;
		assert_false(arp_parse_hwaddr(p, sizeof(p), &arp));
		arp_write_mac(p, &example);
		p[i] ^= 1;
		assert_false(arp_parse_mac(p, sizeof(p), &arp));
	}
	arp_write_mac(p, &example);
	assert_false(arp_parse_hwaddr(p, sizeof(p), &arp));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(both_forms_are_written_and_read),
		cmocka_unit_test(short_packets_are_refused),
		cmocka_unit_test(packets_of_other_links_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
