/* SPDX-License-Identifier: BSD-2-Clause */
/* hdr/ip, udp, eth, grh and mad: the headers around a transport packet are
 * written as they were read, and wrong lengths and checksums are refused. */
#include "test.h"

#include "hdr/eth.h"
#include "hdr/grh.h"
#include "hdr/ip.h"
#include "hdr/mad.h"
#include "hdr/udp.h"

/* A header from 192.168.0.1 to 192.168.0.199, whose checksum is 0xb861. */
static const uint8_t known_v4[IP_V4_BYTES] = {
	0x45, 0x00, 0x00, 0x73, 0x00, 0x00, 0x40, 0x00, 0x40, 0x11,
	0xb8, 0x61, 0xc0, 0xa8, 0x00, 0x01, 0xc0, 0xa8, 0x00, 0xc7};

static void a_known_ipv4_header_reads_and_writes_back(void **state)
{
	uint8_t packet[0x73] = {0}, out[IP_V4_BYTES];
	struct ip_v4 ip;

	memcpy(packet, known_v4, sizeof(known_v4));
	assert_true(ip_v4_parse(packet, sizeof(packet), &ip));
	assert_int_equal(ip.total_length, 0x73);
	assert_int_equal(ip.flags_fragment, IP_V4_DF);
	assert_int_equal(ip.src, 0xc0a80001);
	assert_int_equal(ip.dst, 0xc0a800c7);
	assert_int_equal(ip.checksum, 0xb861);
	assert_true(ip_v4_checksum_ok(packet, &ip));
	ip_v4_write(out, &ip);
	assert_memory_equal(out, known_v4, sizeof(out));
	packet[8]--;
	assert_false(ip_v4_checksum_ok(packet, &ip));
}

static void an_ipv4_header_that_lies_about_lengths_is_refused(void **state)
{
	uint8_t packet[0x73] = {0};
	struct ip_v4 ip;

	memcpy(packet, known_v4, sizeof(known_v4));
	for (size_t len = 0; len < sizeof(packet); len++)
		assert_false(ip_v4_parse(packet, len, &ip));
	for (unsigned int first = 0; first < 256; first++) {
		packet[0] = (uint8_t)first;
		assert_int_equal(ip_v4_parse(packet, sizeof(packet), &ip),
				 first >= 0x45 && first <= 0x4f);
	}
	packet[0] = 0x46;
	packet[3] = 23;
	assert_false(ip_v4_parse(packet, sizeof(packet), &ip));
}

static void ipv6_fields_are_where_the_specification_has_them(void **state)
{
	uint8_t packet[IP_V6_BYTES + 5] = {0x6a, 0xbc, 0xde, 0xf1,
					   0,	 5,    17,   64};
	uint8_t out[IP_V6_BYTES];
	struct ip_v6 ip;

	packet[8] = 0xfe;
	packet[39] = 1;
	assert_true(ip_v6_parse(packet, sizeof(packet), &ip));
	assert_int_equal(ip.traffic_class, 0xab);
	assert_int_equal(ip.flow_label, 0xcdef1);
	assert_int_equal(ip.payload_length, 5);
	assert_int_equal(ip.next_header, IP_PROTOCOL_UDP);
	assert_int_equal(ip.hop_limit, 64);
	assert_int_equal(ip.src[0], 0xfe);
	assert_int_equal(ip.dst[15], 1);
	ip_v6_write(out, &ip);
	assert_memory_equal(out, packet, sizeof(out));
	for (size_t len = 0; len < sizeof(packet); len++)
		assert_false(ip_v6_parse(packet, len, &ip));
	packet[0] = 0x45;
	assert_false(ip_v6_parse(packet, sizeof(packet), &ip));
}

/* Returns the checksum of RFC 1071, computed byte by byte. */
static uint16_t slow_sum(const uint8_t *p, size_t n)
{
	uint32_t sum = 0;

	for (size_t i = 0; i < n; i++)
		sum += i % 2 ? p[i] : (uint32_t)p[i] << 8;
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return (uint16_t)~sum;
}

static void sums_of_every_length_agree_with_the_definition(void **state)
{
	uint8_t data[300];

	for (size_t i = 0; i < sizeof(data); i++)
		data[i] = (uint8_t)(i * 37 + 255);
	for (size_t n = 0; n < sizeof(data); n++) {
		uint64_t first = ip_sum(0, data, n / 2 & ~(size_t)1);
		size_t at = n / 2 & ~(size_t)1;

		assert_int_equal(ip_sum_fold(ip_sum(0, data, n)),
				 slow_sum(data, n));
		assert_int_equal(ip_sum_fold(ip_sum(first, data + at, n - at)),
				 slow_sum(data, n));
	}
}

static void udp_checksums_verify_and_notice_every_bit(void **state)
{
	struct ip_v6 v6 = {.src = {0xfe, 0x80}, .dst = {0xff, 2}};
	struct ip_v4 v4 = {.src = 0x0a000001, .dst = 0x0a000002};
	struct udp udp = {.sport = 1, .dport = UDP_PORT_ROCEV2, .length = 23};
	uint8_t p4[23] = {0}, p6[23];

	udp_write(p4, &udp);
	memcpy(p4 + UDP_BYTES, "a datagram, odd", 15);
	memcpy(p6, p4, sizeof(p6));
	assert_true(udp_checksum_v4_ok(&v4, p4, sizeof(p4)));
	udp.checksum = udp_checksum_v4(&v4, p4, sizeof(p4));
	udp_write(p4, &udp);
	udp.checksum = udp_checksum_v6(&v6, p6, sizeof(p6));
	udp_write(p6, &udp);
	assert_true(udp_checksum_v4_ok(&v4, p4, sizeof(p4)));
	assert_true(udp_checksum_v6_ok(&v6, p6, sizeof(p6)));
	for (size_t bit = 0; bit < sizeof(p4) * 8; bit++) {
		p4[bit / 8] ^= (uint8_t)(1 << bit % 8);
		p6[bit / 8] ^= (uint8_t)(1 << bit % 8);
		assert_false(udp_checksum_v4_ok(&v4, p4, sizeof(p4)));
		assert_false(udp_checksum_v6_ok(&v6, p6, sizeof(p6)));
		p4[bit / 8] ^= (uint8_t)(1 << bit % 8);
		p6[bit / 8] ^= (uint8_t)(1 << bit % 8);
	}
}

static void a_udp_checksum_that_comes_to_zero_is_sent_as_ones(void **state)
{
	struct ip_v4 ip = {0};
	uint8_t p[10] = {0};

	/* All other words add up to 17 + 10. */
	p[8] = 0xff;
	p[9] = 0xff - 27;
	assert_int_equal(udp_checksum_v4(&ip, p, sizeof(p)), 0xffff);
}

static void a_udp_header_that_lies_about_its_length_is_refused(void **state)
{
	uint8_t p[20] = {0x12, 0xb7, 0x12, 0xb8};
	struct udp udp;

	for (unsigned int length = 0; length < 30; length++) {
		p[5] = (uint8_t)length;
		assert_int_equal(udp_parse(p, sizeof(p), &udp),
				 length >= 8 && length <= 20);
	}
	assert_int_equal(udp.sport, 0x12b7);
	assert_int_equal(udp.dport, 0x12b8);
	p[5] = 8;
	for (size_t len = 0; len < UDP_BYTES; len++)
		assert_false(udp_parse(p, len, &udp));
}

static void eth_grh_and_mad_write_back_what_they_read(void **state)
{
	uint8_t in[64], out[64] = {0};
	struct eth eth;
	struct grh grh;
	struct mad mad;

	for (size_t i = 0; i < sizeof(in); i++)
		in[i] = (uint8_t)(i + 1);
	assert_true(eth_parse(in, ETH_BYTES, &eth));
	assert_false(eth_parse(in, ETH_BYTES - 1, &eth));
	assert_int_equal(eth.type, 0x0d0e);
	eth_write(out, &eth);
	assert_memory_equal(out, in, ETH_BYTES);

	assert_true(mad_parse(in, MAD_HEADER_BYTES, &mad));
	assert_false(mad_parse(in, MAD_HEADER_BYTES - 1, &mad));
	assert_int_equal(mad.transaction_id, 0x090a0b0c0d0e0f10);
	assert_int_equal(mad.attribute_modifier, 0x15161718);
	in[18] = in[19] = 0;
	mad_write(out, &mad);
	assert_memory_equal(out, in, MAD_HEADER_BYTES);

	in[0] = 0x61;
	in[4] = 0;
	in[5] = 24;
	assert_true(grh_parse(in, sizeof(in), &grh));
	assert_false(grh_parse(in, sizeof(in) - 1, &grh));
	assert_int_equal(grh.sgid[0], 9);
	assert_int_equal(grh.dgid[0], 25);
	grh_write(out, &grh);
	assert_memory_equal(out, in, GRH_BYTES);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_known_ipv4_header_reads_and_writes_back),
		cmocka_unit_test(
			an_ipv4_header_that_lies_about_lengths_is_refused),
		cmocka_unit_test(
			ipv6_fields_are_where_the_specification_has_them),
		cmocka_unit_test(
			sums_of_every_length_agree_with_the_definition),
		cmocka_unit_test(udp_checksums_verify_and_notice_every_bit),
		cmocka_unit_test(
			a_udp_checksum_that_comes_to_zero_is_sent_as_ones),
		cmocka_unit_test(
			a_udp_header_that_lies_about_its_length_is_refused),
		cmocka_unit_test(eth_grh_and_mad_write_back_what_they_read),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
