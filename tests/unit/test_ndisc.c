/* SPDX-License-Identifier: BSD-2-Clause */
/* ipoib/ndisc: hardware addresses in neighbour discovery. */
#include "test.h"

#include "hdr/bytes.h"
#include "hdr/ip.h"
#include "ipoib/hwaddr.h"
#include "ipoib/ndisc.h"

enum {
	RS = 133,
	RA = 134,
	NS = 135,
	NA = 136,
	REDIRECT = 137,
	SOURCE = 1,
	TARGET = 2,
	MTU = 5,
	ROOM = 512,
	FILL = 0x5a,
};

/* A message, in memory of its exact length, so that a sanitizer finds reads
 * behind it. */
struct message {
	uint8_t *p;
	size_t bytes;
};

static void set_checksum(uint8_t *p, size_t bytes)
{
	size_t n = bytes - IP_V6_BYTES;
	uint64_t sum = ip_sum(58 + (uint64_t)n, p + 8, 32);

	bytes_put16(p + 4, (uint16_t)n);
	bytes_put16(p + IP_V6_BYTES + 2, 0);
	bytes_put16(p + IP_V6_BYTES + 2,
		    ip_sum_fold(ip_sum(sum, p + IP_V6_BYTES, n)));
}

static bool has_checksum(const uint8_t *p, size_t bytes)
{
	size_t n = bytes - IP_V6_BYTES;
	uint64_t sum = ip_sum(58 + (uint64_t)n, p + 8, 32);

	return ip_sum_fold(ip_sum(sum, p + IP_V6_BYTES, n)) == 0;
}

/* Makes a message of a type, with the options, and a right checksum.  The
 * caller frees the memory at p. */
static struct message make_message(uint8_t type, const uint8_t *options,
				   size_t bytes)
{
	static const uint8_t fixed[] = {8, 16, 24, 24, 40};
	struct ip_v6 ip = {.next_header = 58,
			   .hop_limit = 255,
			   .src = {0xfe, 0x80, [15] = 1},
			   .dst = {0xff, 2, [15] = 1}};
	size_t head = IP_V6_BYTES + fixed[type - RS];
	struct message m = {malloc(head + bytes), head + bytes};

	assert_non_null(m.p);
	memset(m.p, FILL, head);
	ip_v6_write(m.p, &ip);
	m.p[IP_V6_BYTES] = type;
	m.p[IP_V6_BYTES + 1] = 0;
	if (bytes)
		memcpy(m.p + head, options, bytes);
	set_checksum(m.p, m.bytes);
	return m;
}

/* In this test, each hardware address and its MAC have the bytes FIRST,
 * FIRST + 1 and so on.  `from` is one of the two, and gives FIRST.  `to` gets
 * the other: *ctx, an enum ndisc_way, says whether that is the MAC.  Returns
 * false if FIRST is 0xee: the address is unknown. */
static bool find_address(void *ctx, const uint8_t *from, uint8_t *to)
{
	size_t bytes = *(enum ndisc_way *)ctx == NDISC_TO_MAC ? HWADDR_MAC_BYTES
							      : HWADDR_BYTES;

	for (size_t i = 0; i < bytes; i++)
		to[i] = (uint8_t)(from[0] + i);
	return from[0] != 0xee;
}

static size_t translate_it(const struct message *m, enum ndisc_way way,
			   uint8_t *out, size_t room)
{
	return ndisc_translate(m->p, m->bytes, way, find_address, &way, out,
			       room);
}

static void options_are_translated_both_ways(void **state)
{
	static const uint8_t narrow[] = {MTU,	 1, 0,	0,  0,	0,  7,	252,
					 SOURCE, 1, 10, 11, 12, 13, 14, 15,
					 TARGET, 1, 40, 41, 42, 43, 44, 45};
	for (uint8_t type = RS; type <= REDIRECT; type++) {
		struct message m = make_message(type, narrow, sizeof(narrow));
		uint8_t out[ROOM], back[ROOM];
		const uint8_t *option;
		size_t n;

		assert_true(ndisc_is(m.p, m.bytes));
		n = translate_it(&m, NDISC_TO_HWADDR, out, sizeof(out));
		assert_int_equal(n, m.bytes + 32);
		assert_true(has_checksum(out, n));
		assert_int_equal(bytes_get16(out + 4), n - IP_V6_BYTES);
		option = out + n - 48;
		assert_int_equal(option[0], SOURCE);
		assert_int_equal(option[1], 3);
		assert_int_equal(bytes_get16(option + 2), 0);
		for (uint8_t i = 0; i < HWADDR_BYTES; i++)
			assert_int_equal(option[4 + i], 10 + i);
		assert_int_equal(option[24], TARGET);
		assert_int_equal(option[25], 3);
		assert_int_equal(option[28], 40);
		free(m.p);
		m = (struct message){out, n};
		n = translate_it(&m, NDISC_TO_MAC, back, sizeof(back));
		assert_int_equal(n, m.bytes - 32);
		assert_true(has_checksum(back, n));
		assert_memory_equal(back + n - sizeof(narrow), narrow,
				    sizeof(narrow));
	}
}

static void bytes_behind_the_packet_are_left_out(void **state)
{
	static const uint8_t option[24 + 5] = {SOURCE, 3, 0, 0, 9};
	struct message m = make_message(NS, option, sizeof(option));
	uint8_t out[ROOM];

	set_checksum(m.p, m.bytes - 5);
	assert_int_equal(translate_it(&m, NDISC_TO_MAC, out, sizeof(out)),
			 m.bytes - 5 - 16);
	free(m.p);
}

static void each_shorter_message_is_refused(void **state)
{
	static const uint8_t option[] = {SOURCE, 1, 10, 11, 12, 13, 14, 15};

	for (uint8_t type = RS; type <= REDIRECT; type++) {
		struct message m = make_message(type, option, sizeof(option));
		uint8_t out[ROOM];
		size_t fixed = m.bytes - sizeof(option);

		for (size_t n = IP_V6_BYTES + 1; n < m.bytes; n++) {
			struct message cut = {malloc(n), n};

			memcpy(cut.p, m.p, n);
			/* the header has the length of the whole message */
			assert_int_equal(translate_it(&cut, NDISC_TO_HWADDR,
						      out, sizeof(out)),
					 0);
			/* the header has the right length */
			if (n >= IP_V6_BYTES + 4)
				set_checksum(cut.p, n);
			assert_int_equal(translate_it(&cut, NDISC_TO_HWADDR,
						      out, sizeof(out)),
					 n == fixed ? n : 0);
			free(cut.p);
		}
		free(m.p);
	}
}

static void a_message_with_a_wrong_field_is_refused(void **state)
{
	static const uint8_t option[] = {SOURCE, 1, 10, 11, 12, 13, 14, 15};
	uint8_t out[ROOM];

	for (size_t i = 0; i < IP_V6_BYTES + 24 + sizeof(option); i++) {
		struct message m = make_message(NS, option, sizeof(option));

		m.p[i] ^= 4;
		/* the checksum does not cover traffic class and flow label */
		if (i >= 4 && ndisc_is(m.p, m.bytes))
			assert_int_equal(translate_it(&m, NDISC_TO_HWADDR, out,
						      sizeof(out)),
					 0);
		free(m.p);
	}
}

static void bad_options_are_refused(void **state)
{
	static const uint8_t zero[] = {MTU, 0, 0, 0, 0, 0, 0, 0};
	static const uint8_t wide[] = {SOURCE, 2, [15] = 0};
	static const uint8_t late[] = {MTU, 2, 0, 0, 0, 0, 0, 0};
	static const uint8_t refused[] = {SOURCE, 1, 0xee, 1, 2, 3, 4, 5};
	static const struct {
		const uint8_t *p;
		size_t bytes;
	} rows[] = {{zero, sizeof(zero)},
		    {wide, sizeof(wide)},
		    {late, sizeof(late)},
		    {refused, sizeof(refused)}};
	uint8_t out[ROOM];

	for (size_t i = 0; i < TEST_COUNT(rows); i++) {
		struct message m = make_message(NA, rows[i].p, rows[i].bytes);

		assert_int_equal(
			translate_it(&m, NDISC_TO_HWADDR, out, sizeof(out)), 0);
		assert_int_equal(
			translate_it(&m, NDISC_TO_MAC, out, sizeof(out)), 0);
		free(m.p);
	}
}

/* As find_address for NDISC_TO_MAC, but *ctx counts the calls. */
static bool count_finds(void *ctx, const uint8_t *from, uint8_t *to)
{
	enum ndisc_way way = NDISC_TO_MAC;

	++*(uint32_t *)ctx;
	return find_address(&way, from, to);
}

/* A packet of 4 KiB has room for 168 options. */
static void a_second_option_of_a_kind_is_refused(void **state)
{
	enum { MANY = 168, BYTES = 24 };
	uint8_t options[MANY * BYTES] = {0}, out[sizeof(options) + ROOM];

	for (int i = 0; i < MANY; i++) {
		options[i * BYTES] = i % 2 ? SOURCE : TARGET;
		options[i * BYTES + 1] = 3;
	}
	for (size_t count = 1; count <= MANY; count++) {
		struct message m = make_message(NA, options, count * BYTES);
		uint32_t finds = 0;
		size_t n =
			ndisc_translate(m.p, m.bytes, NDISC_TO_MAC, count_finds,
					&finds, out, sizeof(out));

		assert_int_equal(n, count <= 2 ? m.bytes - count * 16 : 0);
		assert_int_equal(finds, count <= 2 ? count : 2);
		free(m.p);
	}
}

static void the_room_is_not_exceeded(void **state)
{
	static const uint8_t narrow[] = {SOURCE, 1, 10, 11, 12, 13, 14, 15};
	struct message m = make_message(NS, narrow, sizeof(narrow));

	for (size_t room = 0; room < m.bytes + 16; room++) {
		uint8_t *out = malloc(room ? room : 1);

		assert_int_equal(translate_it(&m, NDISC_TO_HWADDR, out, room),
				 0);
		free(out);
	}
	free(m.p);
}

static void other_packets_are_no_messages(void **state)
{
	struct message m = make_message(NS, NULL, 0);

	for (size_t n = 0; n <= IP_V6_BYTES; n++)
		assert_false(ndisc_is(m.p, n));
	m.p[IP_V6_BYTES] = RS - 1;
	assert_false(ndisc_is(m.p, m.bytes));
	m.p[IP_V6_BYTES] = REDIRECT + 1;
	assert_false(ndisc_is(m.p, m.bytes));
	m.p[IP_V6_BYTES] = NS;
	m.p[6] = 17;
	assert_false(ndisc_is(m.p, m.bytes));
	m.p[6] = 58;
	m.p[0] = 0x45;
	assert_false(ndisc_is(m.p, m.bytes));
	free(m.p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(options_are_translated_both_ways),
		cmocka_unit_test(bytes_behind_the_packet_are_left_out),
		cmocka_unit_test(each_shorter_message_is_refused),
		cmocka_unit_test(a_message_with_a_wrong_field_is_refused),
		cmocka_unit_test(bad_options_are_refused),
		cmocka_unit_test(a_second_option_of_a_kind_is_refused),
		cmocka_unit_test(the_room_is_not_exceeded),
		cmocka_unit_test(other_packets_are_no_messages),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
