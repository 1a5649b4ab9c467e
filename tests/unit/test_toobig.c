/* SPDX-License-Identifier: BSD-2-Clause */
/* ipoib/toobig: the kernel is told that a packet is too long. */
#include "test.h"

#include "hdr/bytes.h"
#include "hdr/ip.h"
#include "ipoib/toobig.h"

enum { LEN = 3000, MTU = 2044, ICMP = 1, UDP = 17, ICMPV6 = 58 };

static void make_ipv4(uint8_t p[LEN], uint8_t protocol, uint32_t dst)
{
	struct ip_v4 ip = {.total_length = LEN,
			   .flags_fragment = IP_V4_DF,
			   .ttl = 1,
			   .protocol = protocol,
			   .src = 0x0a000001,
			   .dst = dst};

	memset(p, 0x77, LEN);
	ip_v4_write(p, &ip);
}

static void make_ipv6(uint8_t p[LEN], uint8_t protocol, uint8_t dst)
{
	struct ip_v6 ip = {.payload_length = LEN - IP_V6_BYTES,
			   .next_header = protocol,
			   .hop_limit = 1,
			   .src = {0xfd, [15] = 1},
			   .dst = {dst, [15] = 2}};

	memset(p, 0x77, LEN);
	ip_v6_write(p, &ip);
}

static void the_message_of_ipv4_quotes_the_packet(void **state)
{
	uint8_t p[LEN], out[TOOBIG_MAX], *body = out + IP_V4_BYTES;
	struct ip_v4 ip;
	size_t n;

	make_ipv4(p, UDP, 0x0a000002);
	n = toobig_write(p, LEN, MTU, out);
	assert_true(n <= TOOBIG_MAX && ip_v4_parse(out, n, &ip));
	assert_true(ip_v4_checksum_ok(out, &ip));
	assert_int_equal(ip.total_length, n);
	assert_int_equal(ip.src, 0x0a000002);
	assert_int_equal(ip.dst, 0x0a000001);
	assert_int_equal(ip.protocol, ICMP);
	assert_int_equal(bytes_get16(body), 0x0304);
	assert_int_equal(bytes_get32(body + 4), MTU);
	assert_true(n >= IP_V4_BYTES + 8 + IP_V4_BYTES + 8);
	assert_memory_equal(body + 8, p, n - IP_V4_BYTES - 8);
	assert_int_equal(ip_sum_fold(ip_sum(0, body, n - IP_V4_BYTES)), 0);
}

static void the_message_of_ipv6_quotes_the_packet(void **state)
{
	uint8_t p[LEN], out[TOOBIG_MAX], *body = out + IP_V6_BYTES;
	struct ip_v6 ip;
	size_t n;

	make_ipv6(p, UDP, 0xfd);
	n = toobig_write(p, LEN, MTU, out);
	assert_true(n <= TOOBIG_MAX && ip_v6_parse(out, n, &ip));
	assert_int_equal(ip.payload_length, n - IP_V6_BYTES);
	assert_int_equal(ip.src[15], 2);
	assert_int_equal(ip.dst[15], 1);
	assert_int_equal(bytes_get16(body), 0x0200);
	assert_int_equal(bytes_get32(body + 4), MTU);
	assert_memory_equal(body + 8, p, n - IP_V6_BYTES - 8);
	assert_int_equal(ip_sum_fold(ip_sum(
				 ip_sum(ICMPV6 + n - IP_V6_BYTES, out + 8, 32),
				 body, n - IP_V6_BYTES)),
			 0);
}

/* RFC 1122, 3.2.2; RFC 4443, 2.4 */
static void no_message_is_about_an_error_or_a_group(void **state)
{
	uint8_t p[LEN], out[TOOBIG_MAX];

	make_ipv4(p, ICMP, 0x0a000002);
	p[IP_V4_BYTES] = 8; /* an echo */
	assert_int_not_equal(toobig_write(p, LEN, MTU, out), 0);
	p[IP_V4_BYTES] = 3;
	assert_int_equal(toobig_write(p, LEN, MTU, out), 0);
	make_ipv4(p, UDP, 0xef010203);
	assert_int_equal(toobig_write(p, LEN, MTU, out), 0);
	make_ipv4(p, UDP, 0x0a000002);
	bytes_put32(p + 12, 0);
	assert_int_equal(toobig_write(p, LEN, MTU, out), 0);
	make_ipv6(p, ICMPV6, 0xfd);
	p[IP_V6_BYTES] = 128;
	assert_int_not_equal(toobig_write(p, LEN, MTU, out), 0);
	p[IP_V6_BYTES] = 1;
	assert_int_equal(toobig_write(p, LEN, MTU, out), 0);
	make_ipv6(p, UDP, 0xff);
	assert_int_equal(toobig_write(p, LEN, MTU, out), 0);
}

/* The packets lie at the ends of blocks, so that valgrind finds a read of one
 * byte too many. */
static void short_packets_give_no_message(void **state)
{
	uint8_t out[TOOBIG_MAX], whole[LEN];

	for (uint8_t version = 0; version < 16; version++)
		for (size_t n = 0; n < IP_V6_BYTES; n++) {
			uint8_t *p = malloc(n + 1);

			assert_non_null(p);
			make_ipv4(whole, ICMP, 0x0a000002);
			memcpy(p + 1, whole, n);
			if (n)
				p[1] = (uint8_t)(version << 4 | 5);
			assert_int_equal(toobig_write(p + 1, n, MTU, out), 0);
			free(p);
		}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_message_of_ipv4_quotes_the_packet),
		cmocka_unit_test(the_message_of_ipv6_quotes_the_packet),
		cmocka_unit_test(no_message_is_about_an_error_or_a_group),
		cmocka_unit_test(short_packets_give_no_message),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
