/* SPDX-License-Identifier: BSD-2-Clause */
/* ipoib/announce: when addresses are announced, and by which frames. */
#include "test.h"

#include "hdr/bytes.h"
#include "hdr/ip.h"
#include "ipoib/announce.h"
#include "ipoib/arp.h"
#include "ipoib/ndisc.h"

enum { ETHERNET = 14 };

static const uint8_t mac[6] = {2, 3, 4, 5, 6, 7};

static void announcements_are_repeated_with_growing_pauses(void **state)
{
	struct announce a = {0};
	uint64_t now_ms = 100, pause = 0;
	uint32_t times = 0;

	assert_int_equal(announce_deadline(&a), ANNOUNCE_NEVER);
	assert_false(announce_take(&a, now_ms));
	announce_begin(&a, now_ms);
	for (; announce_deadline(&a) != ANNOUNCE_NEVER; times++) {
		uint64_t due = announce_deadline(&a);

		assert_true(!times || due > now_ms + pause);
		pause = due - now_ms;
		now_ms = due;
		assert_false(now_ms && announce_take(&a, now_ms - 1));
		assert_true(announce_take(&a, now_ms));
		assert_false(announce_take(&a, now_ms));
	}
	assert_uint_in_range(times, 3, 10);
	assert_uint_in_range(now_ms, 10000, 20000);
}

static void one_announcement_stands_for_those_that_are_late(void **state)
{
	struct announce a = {0};

	announce_begin(&a, 5);
	assert_true(announce_take(&a, 5 + 3500));
	assert_int_equal(announce_deadline(&a), 5 + 7000);
	assert_true(announce_take(&a, UINT64_MAX - 1));
	assert_int_equal(announce_deadline(&a), ANNOUNCE_NEVER);
	/* an interface that comes up again announces its addresses anew */
	announce_begin(&a, 9);
	assert_int_equal(announce_deadline(&a), 9);
	announce_end(&a);
	assert_false(announce_take(&a, 9));
	assert_int_equal(announce_deadline(&a), ANNOUNCE_NEVER);
}

static void ipv4_is_announced_by_arp(void **state)
{
	const struct announce_address address = {.ip = {10, 9, 0, 1}};
	uint8_t p[ANNOUNCE_FRAME_MAX];
	struct arp arp;

	assert_int_equal(announce_write(mac, &address, p),
			 ETHERNET + ARP_MAC_BYTES);
	for (int i = 0; i < 6; i++)
		assert_int_equal(p[i], 0xff);
	assert_memory_equal(p + 6, mac, 6);
	assert_int_equal(bytes_get16(p + 12), 0x0806);
	assert_true(arp_parse_mac(p + ETHERNET, ARP_MAC_BYTES, &arp));
	assert_int_equal(arp.operation, 1);
	assert_memory_equal(arp.sender, mac, 6);
	assert_memory_equal(arp.sender_ip, address.ip, 4);
	assert_memory_equal(arp.target_ip, address.ip, 4);
}

static bool take_address(void *ctx, const uint8_t *from, uint8_t *to)
{
	assert_memory_equal(from, mac, 6);
	memset(to, 9, HWADDR_BYTES);
	return true;
}

static void ipv6_is_announced_by_an_advertisement(void **state)
{
	const struct announce_address address = {.is_v6 = true,
						 .ip = {0xfd, [15] = 1}};
	uint8_t p[ANNOUNCE_FRAME_MAX], out[200];
	const uint8_t *body = p + ETHERNET + IP_V6_BYTES;
	struct ip_v6 ip;

	assert_int_equal(announce_write(mac, &address, p), ANNOUNCE_FRAME_MAX);
	assert_int_equal(bytes_get64(p) >> 16, 0x333300000001);
	assert_memory_equal(p + 6, mac, 6);
	assert_int_equal(bytes_get16(p + 12), 0x86dd);
	assert_true(ip_v6_parse(p + ETHERNET, sizeof(p) - ETHERNET, &ip));
	assert_int_equal(ip.payload_length, sizeof(p) - ETHERNET - IP_V6_BYTES);
	assert_memory_equal(ip.src, address.ip, 16);
	assert_int_equal(bytes_get64(ip.dst), 0xff02000000000000);
	assert_int_equal(body[0], 136);
	assert_int_equal(body[4], 0x20); /* Override set, Solicited clear */
	assert_memory_equal(body + 8, address.ip, 16);
	/* the length, the checksum and the option are right */
	assert_true(ndisc_is(p + ETHERNET, sizeof(p) - ETHERNET));
	assert_int_equal(ndisc_translate(p + ETHERNET, sizeof(p) - ETHERNET,
					 NDISC_TO_HWADDR, take_address, NULL,
					 out, sizeof(out)),
			 sizeof(p) - ETHERNET + 16);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
			announcements_are_repeated_with_growing_pauses),
		cmocka_unit_test(
			one_announcement_stands_for_those_that_are_late),
		cmocka_unit_test(ipv4_is_announced_by_arp),
		cmocka_unit_test(ipv6_is_announced_by_an_advertisement),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
