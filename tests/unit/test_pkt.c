/* SPDX-License-Identifier: BSD-2-Clause */
/* hdr/pkt: every opcode, every pad, and packets that are refused. */
#include "test.h"

#include "hdr/pkt.h"

#define ROOM 128

/* Returns a packet with this opcode.  Each header has values of its own, also
 * the headers that a packet with this opcode lacks. */
static struct pkt sample_packet(uint8_t opcode, size_t payload_len)
{
	return (struct pkt){
		.bth = {.opcode = opcode,
			.migreq = true,
			.pkey = BTH_DEFAULT_PKEY,
			.dest_qpn = 0x123456,
			.psn = 0x654321},
		.deth = {.qkey = 0x80010000, .src_qpn = 1},
		.xrceth = {.srqn = 0x777777},
		.feth = {.placement = EXT_FETH_PERSISTENCE},
		.reth = {.va = 0x1122334455667788, .rkey = 9, .length = 10},
		.atomiceth = {.va = 11,
			      .rkey = 12,
			      .swap_add = 13,
			      .compare = 14},
		.aeth = {.syndrome = 0x1f, .msn = 15},
		.atomicacketh = {.orig = 16},
		.immdt = {.imm_be = 17},
		.ieth = {.rkey = 18},
		.payload_len = payload_len,
	};
}

static size_t build_packet(uint8_t *p, uint8_t opcode, size_t payload_len)
{
	struct pkt pkt = sample_packet(opcode, payload_len);
	size_t len = pkt_write_headers(p, &pkt);

	memset(p + len, 0xaa, payload_len);
	memset(p + len + payload_len, 0, pkt_pad(payload_len));
	return len + payload_len + pkt_pad(payload_len);
}

static void assert_same_headers(const struct pkt *a, const struct pkt *b)
{
	unsigned int ext = a->info->ext;

	if (ext & OPCODE_EXT_DETH)
		assert_true(a->deth.qkey == b->deth.qkey &&
			    a->deth.src_qpn == b->deth.src_qpn);
	if (ext & OPCODE_EXT_XRCETH)
		assert_int_equal(a->xrceth.srqn, b->xrceth.srqn);
	if (ext & OPCODE_EXT_FETH)
		assert_int_equal(a->feth.placement, b->feth.placement);
	if (ext & OPCODE_EXT_RETH)
		assert_true(a->reth.va == b->reth.va &&
			    a->reth.rkey == b->reth.rkey &&
			    a->reth.length == b->reth.length);
	if (ext & OPCODE_EXT_ATOMICETH)
		assert_true(a->atomiceth.va == b->atomiceth.va &&
			    a->atomiceth.rkey == b->atomiceth.rkey &&
			    a->atomiceth.swap_add == b->atomiceth.swap_add &&
			    a->atomiceth.compare == b->atomiceth.compare);
	if (ext & OPCODE_EXT_AETH)
		assert_true(a->aeth.syndrome == b->aeth.syndrome &&
			    a->aeth.msn == b->aeth.msn);
	if (ext & OPCODE_EXT_ATOMICACKETH)
		assert_int_equal(a->atomicacketh.orig, b->atomicacketh.orig);
	if (ext & OPCODE_EXT_IMMDT)
		assert_int_equal(a->immdt.imm_be, b->immdt.imm_be);
	if (ext & OPCODE_EXT_IETH)
		assert_int_equal(a->ieth.rkey, b->ieth.rkey);
}

static void every_opcode_survives_write_and_parse(void **state)
{
	for (unsigned int op = 0; op < 256; op++) {
		const struct opcode_info *info = opcode_info((uint8_t)op);
		struct pkt want, got;
		uint8_t p[ROOM];

		for (size_t n = 0; info && n <= (info->payload ? 9 : 0); n++) {
			size_t len = build_packet(p, (uint8_t)op, n);

			want = sample_packet((uint8_t)op, n);
			assert_true(pkt_parse(p, len, &got));
			assert_ptr_equal(got.info, info);
			assert_int_equal(got.payload_len, n);
			assert_ptr_equal(got.payload, p + info->header_bytes);
			assert_int_equal(got.bth.pad, pkt_pad(n));
			assert_int_equal(got.bth.psn, want.bth.psn);
			assert_same_headers(&got, &want);
		}
	}
}

static void no_header_is_longer_than_the_limit(void **state)
{
	size_t longest = 0;

	for (unsigned int op = 0; op < 256; op++) {
		const struct opcode_info *info = opcode_info((uint8_t)op);

		if (info && info->header_bytes > longest)
			longest = info->header_bytes;
	}
	assert_int_equal(longest, PKT_MAX_HEADER_BYTES);
}

static void opcodes_without_a_row_are_refused(void **state)
{
	for (unsigned int op = 0; op < 256; op++) {
		uint8_t p[ROOM] = {(uint8_t)op};
		struct pkt pkt;

		if (!opcode_info((uint8_t)op))
			assert_false(pkt_parse(p, sizeof(p), &pkt));
	}
}

static void a_truncated_packet_is_refused(void **state)
{
	for (unsigned int op = 0; op < 256; op++) {
		const struct opcode_info *info = opcode_info((uint8_t)op);
		uint8_t p[ROOM];
		struct pkt pkt;

		if (!info)
			continue;
		build_packet(p, (uint8_t)op, 0);
		for (size_t len = 0; len < info->header_bytes; len++)
			assert_false(pkt_parse(p, len, &pkt));
	}
}

static void a_length_that_is_no_multiple_of_four_is_refused(void **state)
{
	uint8_t p[ROOM];
	struct pkt pkt;
	size_t len = build_packet(p, OPCODE_RC_SEND_ONLY, 8);

	for (size_t less = 1; less < 4; less++)
		assert_false(pkt_parse(p, len - less, &pkt));
	assert_true(pkt_parse(p, len - 4, &pkt));
}

static void payload_after_an_opcode_without_one_is_refused(void **state)
{
	for (unsigned int op = 0; op < 256; op++) {
		const struct opcode_info *info = opcode_info((uint8_t)op);
		uint8_t p[ROOM];
		struct pkt pkt;

		if (!info)
			continue;
		assert_int_equal(
			pkt_parse(p, build_packet(p, (uint8_t)op, 4), &pkt),
			info->payload);
	}
}

static void a_pad_longer_than_what_follows_is_refused(void **state)
{
	uint8_t p[ROOM];
	struct pkt pkt;

	for (uint8_t pad = 1; pad < 4; pad++) {
		size_t len = build_packet(p, OPCODE_RC_SEND_ONLY, 0);

		p[1] |= (uint8_t)(pad << 4);
		assert_false(pkt_parse(p, len, &pkt));
		len = build_packet(p, OPCODE_RC_ACKNOWLEDGE, 0);
		p[1] |= (uint8_t)(pad << 4);
		assert_false(pkt_parse(p, len, &pkt));
		len = build_packet(p, OPCODE_RC_SEND_ONLY, 4);
		p[1] |= (uint8_t)(pad << 4);
		assert_true(pkt_parse(p, len, &pkt));
		assert_int_equal(pkt.payload_len, 4 - pad);
	}
}

static void another_transport_version_is_refused(void **state)
{
	uint8_t p[ROOM];
	struct pkt pkt;

	for (uint8_t tver = 1; tver < 16; tver++) {
		size_t len = build_packet(p, OPCODE_RC_SEND_ONLY, 4);

		p[1] |= tver;
		assert_false(pkt_parse(p, len, &pkt));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_opcode_survives_write_and_parse),
		cmocka_unit_test(no_header_is_longer_than_the_limit),
		cmocka_unit_test(opcodes_without_a_row_are_refused),
		cmocka_unit_test(a_truncated_packet_is_refused),
		cmocka_unit_test(
			a_length_that_is_no_multiple_of_four_is_refused),
		cmocka_unit_test(
			payload_after_an_opcode_without_one_is_refused),
		cmocka_unit_test(a_pad_longer_than_what_follows_is_refused),
		cmocka_unit_test(another_transport_version_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
