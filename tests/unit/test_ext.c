/* SPDX-License-Identifier: BSD-2-Clause */
/* hdr/ext and hdr/aeth: each field is at its place in the header and is written
 * as it was read; timers and syndromes have the values that IBTA states. */
#include "test.h"

#include "hdr/aeth.h"
#include "hdr/ext.h"

/* Bytes 1, 2, 3 ...: a field at a wrong place, or in a wrong byte order, has a
 * wrong value. */
static const uint8_t counting[32] = {1,	 2,  3,	 4,  5,	 6,  7,	 8,  9,	 10, 11,
				     12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22,
				     23, 24, 25, 26, 27, 28, 29, 30, 31, 32};

static void reth_is_va_rkey_length(void **state)
{
	uint8_t out[EXT_RETH_BYTES];
	struct reth reth;

	ext_reth_parse(counting, &reth);
	assert_int_equal(reth.va, 0x0102030405060708);
	assert_int_equal(reth.rkey, 0x090a0b0c);
	assert_int_equal(reth.length, 0x0d0e0f10);
	ext_reth_write(out, &reth);
	assert_memory_equal(out, counting, sizeof(out));
}

static void atomiceth_is_va_rkey_swap_compare(void **state)
{
	uint8_t out[EXT_ATOMICETH_BYTES];
	struct atomiceth a;

	ext_atomiceth_parse(counting, &a);
	assert_int_equal(a.va, 0x0102030405060708);
	assert_int_equal(a.rkey, 0x090a0b0c);
	assert_int_equal(a.swap_add, 0x0d0e0f1011121314);
	assert_int_equal(a.compare, 0x15161718191a1b1c);
	ext_atomiceth_write(out, &a);
	assert_memory_equal(out, counting, sizeof(out));
}

static void atomicacketh_is_the_original_value(void **state)
{
	uint8_t out[EXT_ATOMICACKETH_BYTES];
	struct atomicacketh ack;

	ext_atomicacketh_parse(counting, &ack);
	assert_int_equal(ack.orig, 0x0102030405060708);
	ext_atomicacketh_write(out, &ack);
	assert_memory_equal(out, counting, sizeof(out));
}

static void deth_and_xrceth_leave_their_reserved_byte_zero(void **state)
{
	static const uint8_t want[EXT_DETH_BYTES] = {1, 2, 3, 4, 0, 6, 7, 8};
	uint8_t out[EXT_DETH_BYTES];
	struct xrceth xrceth;
	struct deth deth;

	ext_deth_parse(counting, &deth);
	assert_int_equal(deth.qkey, 0x01020304);
	assert_int_equal(deth.src_qpn, 0x060708);
	deth.src_qpn |= 0xff000000;
	ext_deth_write(out, &deth);
	assert_memory_equal(out, want, sizeof(out));
	ext_xrceth_parse(counting + 4, &xrceth);
	assert_int_equal(xrceth.srqn, 0x060708);
	xrceth.srqn |= 0xff000000;
	ext_xrceth_write(out, &xrceth);
	assert_memory_equal(out, want + 4, EXT_XRCETH_BYTES);
}

static void immediate_data_keeps_its_bytes(void **state)
{
	uint8_t out[EXT_IMMDT_BYTES];
	struct immdt immdt;

	ext_immdt_parse(counting, &immdt);
	assert_memory_equal(&immdt.imm_be, counting, sizeof(immdt.imm_be));
	ext_immdt_write(out, &immdt);
	assert_memory_equal(out, counting, sizeof(out));
}

static void ieth_is_an_rkey(void **state)
{
	uint8_t out[EXT_IETH_BYTES];
	struct ieth ieth;

	ext_ieth_parse(counting, &ieth);
	assert_int_equal(ieth.rkey, 0x01020304);
	ext_ieth_write(out, &ieth);
	assert_memory_equal(out, counting, sizeof(out));
}

static void feth_is_placement_and_selectivity(void **state)
{
	for (unsigned int v = 0; v < 64; v++) {
		uint8_t in[EXT_FETH_BYTES] = {0, 0, 0, (uint8_t)v};
		uint8_t out[EXT_FETH_BYTES];
		struct feth feth;

		ext_feth_parse(in, &feth);
		assert_int_equal(feth.placement, v & 0xf);
		assert_int_equal(feth.selectivity, v >> 4);
		ext_feth_write(out, &feth);
		assert_memory_equal(out, in, sizeof(out));
	}
}

static void every_syndrome_has_one_kind_and_survives(void **state)
{
	static const enum aeth_kind by_top_bits[8] = {
		AETH_ACK,      AETH_RNR_NAK,  AETH_RESERVED, AETH_NAK,
		AETH_RESERVED, AETH_RESERVED, AETH_RESERVED, AETH_RESERVED};

	for (unsigned int s = 0; s < 256; s++) {
		uint8_t in[AETH_BYTES] = {(uint8_t)s, 1, 2, 3};
		uint8_t out[AETH_BYTES];
		struct aeth aeth;

		aeth_parse(in, &aeth);
		assert_int_equal(aeth.syndrome, s);
		assert_int_equal(aeth.msn, 0x010203);
		aeth_write(out, &aeth);
		assert_memory_equal(out, in, sizeof(out));
		assert_int_equal(aeth_kind(aeth.syndrome), by_top_bits[s >> 5]);
		assert_int_equal(aeth_value(aeth.syndrome), s & 31);
		if (s < 0x80)
			assert_int_equal(aeth_syndrome(aeth_kind(in[0]),
						       aeth_value(in[0])),
					 s);
	}
	assert_int_equal(aeth_syndrome(AETH_ACK, 31), 0x1f);
	assert_int_equal(aeth_syndrome(AETH_NAK, AETH_NAK_REMOTE_ACCESS), 0x62);
}

static void rnr_timers_double_every_second_code(void **state)
{
	assert_int_equal(aeth_rnr_timer_ns(0), 655360000);
	assert_int_equal(aeth_rnr_timer_ns(1), 10000);
	assert_int_equal(aeth_rnr_timer_ns(12), 640000);
	assert_int_equal(aeth_rnr_timer_ns(31), 491520000);
	for (uint8_t code = 3; code < 30; code++)
		assert_int_equal(aeth_rnr_timer_ns((uint8_t)(code + 2)),
				 2 * aeth_rnr_timer_ns(code));
}

static void ack_timeouts_are_powers_of_two_and_zero_is_never(void **state)
{
	assert_int_equal(aeth_ack_timeout_ns(0), 0);
	assert_int_equal(aeth_ack_timeout_ns(1), 8192);
	assert_int_equal(aeth_ack_timeout_ns(14), 67108864);
	assert_int_equal(aeth_ack_timeout_ns(31), UINT64_C(8796093022208));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reth_is_va_rkey_length),
		cmocka_unit_test(atomiceth_is_va_rkey_swap_compare),
		cmocka_unit_test(atomicacketh_is_the_original_value),
		cmocka_unit_test(
			deth_and_xrceth_leave_their_reserved_byte_zero),
		cmocka_unit_test(immediate_data_keeps_its_bytes),
		cmocka_unit_test(ieth_is_an_rkey),
		cmocka_unit_test(feth_is_placement_and_selectivity),
		cmocka_unit_test(every_syndrome_has_one_kind_and_survives),
		cmocka_unit_test(rnr_timers_double_every_second_code),
		cmocka_unit_test(
			ack_timeouts_are_powers_of_two_and_zero_is_never),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
