/* SPDX-License-Identifier: BSD-2-Clause */
/* encap/icrc: the ICRC is right also for packets of kinds that no capture has,
 * and the IPv4 id and DF are found from the ICRC. */
#include "test.h"

#include "encap/icrc.h"
#include "hdr/bth.h"
#include "hdr/bytes.h"
#include "util/crc.h"

#define BODY  36
#define TOTAL (IP_V4_BYTES + UDP_BYTES + BTH_BYTES + BODY + ICRC_BYTES)

static const struct udp udp = {.sport = 0xc000,
			       .dport = UDP_PORT_ROCEV2,
			       .length = TOTAL - IP_V4_BYTES,
			       .checksum = 0x1234};
static const uint8_t bth[BTH_BYTES] = {4,    0, 0xff, 0xff, 0, 0x12,
				       0x34, 0, 0x80, 1,    2, 3};
static const uint8_t body[BODY] = "thirty-six bytes of something, o.k.";

static struct ip_v4 make_header(uint16_t id, uint16_t flags_fragment)
{
	return (struct ip_v4){.total_length = TOTAL,
			      .id = id,
			      .flags_fragment = flags_fragment,
			      .ttl = 64,
			      .protocol = IP_PROTOCOL_UDP,
			      .src = 0x0a000001,
			      .dst = 0x0a000002};
}

static uint32_t icrc_v4(uint16_t id, uint16_t flags_fragment)
{
	struct ip_v4 ip = make_header(id, flags_fragment);

	return icrc_update(icrc_bth(icrc_headers_v4(&ip, &udp), bth), body,
			   BODY);
}

static void ipv6_covers_the_header_with_three_fields_masked(void **state)
{
	struct ip_v6 ip = {.traffic_class = 3,
			   .flow_label = 0x12345,
			   .payload_length = TOTAL - IP_V4_BYTES,
			   .next_header = IP_PROTOCOL_UDP,
			   .hop_limit = 9,
			   .src = {0xfe, 0x80},
			   .dst = {0xfe, 0x80, 1}};
	uint8_t block[8 + IP_V6_BYTES + UDP_BYTES + BTH_BYTES];
	uint8_t *p = block + 8;

	memset(block, 0xff, 8);
	ip_v6_write(p, &ip);
	p[0] = 0x6f;
	p[1] = p[2] = p[3] = p[7] = 0xff;
	udp_write(p + IP_V6_BYTES, &udp);
	bytes_put16(p + IP_V6_BYTES + 6, 0xffff);
	memcpy(p + IP_V6_BYTES + UDP_BYTES, bth, BTH_BYTES);
	p[IP_V6_BYTES + UDP_BYTES + 4] = 0xff;
	assert_int_equal(icrc_bth(icrc_headers_v6(&ip, &udp), bth),
			 crc32_update(CRC_INIT, block, sizeof(block)));
}

static void the_icrc_covers_no_field_that_a_router_changes(void **state)
{
	struct ip_v4 a = make_header(1, IP_V4_DF), b = a;
	struct udp other = udp;
	uint8_t marked[BTH_BYTES];

	b.tos = 3;
	b.ttl = 1;
	b.checksum = 0xabcd;
	other.checksum = 0;
	memcpy(marked, bth, sizeof(marked));
	marked[4] = 0xc0;
	assert_int_equal(icrc_bth(icrc_headers_v4(&a, &udp), bth),
			 icrc_bth(icrc_headers_v4(&b, &other), marked));
}

static void the_wire_has_the_complement_low_byte_first(void **state)
{
	uint8_t p[ICRC_BYTES];

	icrc_write(p, ~0x04030201u);
	assert_memory_equal(p, "\1\2\3\4", sizeof(p));
	assert_int_equal(icrc_read(p), ~0x04030201u);
}

static void each_id_is_recovered_from_a_guess(void **state)
{
	for (unsigned int id = 0; id < 65536; id++) {
		struct icrc_hidden assumed = {(uint16_t)(id * 40503u), id & 4};
		struct icrc_hidden actual;
		uint16_t flags = id & 2 ? IP_V4_DF : 0;
		uint32_t syndrome =
			icrc_v4((uint16_t)id, flags) ^
			icrc_v4(assumed.id, assumed.df ? IP_V4_DF : 0);

		assert_true(
			icrc_syndrome_id(syndrome, TOTAL, assumed, &actual));
		assert_int_equal(actual.id, id);
		assert_int_equal(actual.df, (id & 2) != 0);
	}
}

static void a_fragment_explains_nothing(void **state)
{
	struct icrc_hidden assumed = {0, true}, actual = {7, false};
	uint32_t guess = icrc_v4(0, IP_V4_DF);

	for (unsigned int bit = 0; bit < 16; bit++) {
		uint16_t flags = (uint16_t)(1 << bit);

		if (flags == IP_V4_DF)
			continue;
		assert_false(icrc_syndrome_id(icrc_v4(5, flags) ^ guess, TOTAL,
					      assumed, &actual));
		assert_int_equal(actual.id, 7);
	}
}

static void a_length_too_short_for_the_headers_explains_nothing(void **state)
{
	struct icrc_hidden assumed = {0, true}, actual;

	for (uint16_t n = 0; n < TOTAL - BODY; n++)
		assert_false(icrc_syndrome_id(0, n, assumed, &actual));
	assert_true(icrc_syndrome_id(0, TOTAL - BODY, assumed, &actual));
	assert_int_equal(actual.id, 0);
	assert_true(actual.df);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
			ipv6_covers_the_header_with_three_fields_masked),
		cmocka_unit_test(
			the_icrc_covers_no_field_that_a_router_changes),
		cmocka_unit_test(the_wire_has_the_complement_low_byte_first),
		cmocka_unit_test(each_id_is_recovered_from_a_guess),
		cmocka_unit_test(a_fragment_explains_nothing),
		cmocka_unit_test(
			a_length_too_short_for_the_headers_explains_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
