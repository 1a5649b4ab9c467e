/* SPDX-License-Identifier: BSD-2-Clause */
#include "test.h"

#include "hdr/bth.h"

static void each_field_is_where_the_specification_has_it(void **state)
{
	static const uint8_t want[BTH_BYTES] = {0x0a, 0x80 | 0x40 | 0x20 | 0x05,
						0x12, 0x34,
						0x80, 0xab,
						0xcd, 0xef,
						0x80, 0x01,
						0x02, 0x03};
	struct bth bth = {.opcode = 0x0a,
			  .se = true,
			  .migreq = true,
			  .pad = 2,
			  .tver = 5,
			  .pkey = 0x1234,
			  .fecn = true,
			  .dest_qpn = 0xabcdef,
			  .ackreq = true,
			  .psn = 0x010203};
	uint8_t p[BTH_BYTES];

	bth_write(p, &bth);
	assert_memory_equal(p, want, sizeof(p));
	bth.fecn = false;
	bth.becn = true;
	bth_write(p, &bth);
	assert_int_equal(p[4], 0x40);
}

static void every_defined_bit_survives_parse_and_write(void **state)
{
	static const uint8_t defined[BTH_BYTES] = {0xff, 0xff, 0xff, 0xff,
						   0xc0, 0xff, 0xff, 0xff,
						   0x80, 0xff, 0xff, 0xff};

	for (unsigned int bit = 0; bit < BTH_BYTES * 8; bit++) {
		uint8_t in[BTH_BYTES] = {0}, out[BTH_BYTES];
		struct bth bth;

		in[bit / 8] = (uint8_t)(1 << bit % 8);
		assert_true(bth_parse(in, sizeof(in), &bth));
		bth_write(out, &bth);
		in[bit / 8] &= defined[bit / 8];
		assert_memory_equal(in, out, sizeof(in));
	}
}

static void a_short_header_is_refused(void **state)
{
	uint8_t p[BTH_BYTES] = {0};
	struct bth bth;

	for (size_t len = 0; len < BTH_BYTES; len++)
		assert_false(bth_parse(p, len, &bth));
	assert_true(bth_parse(p, BTH_BYTES, &bth));
}

static void numbers_wider_than_their_field_are_cut(void **state)
{
	struct bth bth = {.dest_qpn = 0xff000001, .psn = 0xff000002};
	struct bth back;
	uint8_t p[BTH_BYTES];

	bth_write(p, &bth);
	assert_true(bth_parse(p, sizeof(p), &back));
	assert_int_equal(back.dest_qpn, 1);
	assert_int_equal(back.psn, 2);
	assert_false(back.fecn || back.becn || back.ackreq);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_field_is_where_the_specification_has_it),
		cmocka_unit_test(every_defined_bit_survives_parse_and_write),
		cmocka_unit_test(a_short_header_is_refused),
		cmocka_unit_test(numbers_wider_than_their_field_are_cut),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
