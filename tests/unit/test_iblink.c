/* SPDX-License-Identifier: BSD-2-Clause */
/* encap/iblink, hdr/lrh, util/crc16: packets of an InfiniBand link have the
 * CRCs that are computed bit by bit here, and wrong packets are refused. */
#include "test.h"

#include "encap/iblink.h"
#include "encap/icrc.h"
#include "hdr/bth.h"
#include "hdr/bytes.h"
#include "util/crc.h"
#include "util/crc16.h"

#define INNER 44

/* The local packet of the specification's example (IBTA 7.8.3): a WRITE of 14
 * bytes, with its ICRC. */
static const uint8_t sample[] = {
	0x70, 0x12, 0x37, 0x5c, 0x00, 0x0e, 0x17, 0xd2, 0x0a, 0x20, 0x24, 0x87,
	0x00, 0x87, 0xb1, 0xb3, 0x00, 0x0d, 0xec, 0x2a, 0x01, 0x71, 0x0a, 0x1c,
	0x01, 0x5d, 0x40, 0x02, 0x38, 0xf2, 0x7a, 0x05, 0x00, 0x00, 0x00, 0x0e,
	0xbb, 0x88, 0x4d, 0x85, 0xfd, 0x5c, 0xfb, 0xa4, 0x72, 0x8b, 0xc0, 0x69,
	0x0e, 0xd4, 0x00, 0x00, 0x96, 0x25, 0xb7, 0x5a};

static const struct lrh sample_lrh = {.vl = 7,
				      .sl = 1,
				      .lnh = LRH_NEXT_LOCAL,
				      .dlid = 0x375c,
				      .slid = 0x17d2};

/* Returns the CRC of n bytes from the state `crc` on.  The least significant
 * bit of each byte is the first. */
static uint32_t slow_crc(uint32_t polynomial, uint32_t crc, const uint8_t *p,
			 size_t n)
{
	for (size_t i = 0; i < 8 * n; i++) {
		uint32_t bit = (p[i / 8] >> i % 8 ^ crc) & 1;

		crc = crc >> 1 ^ (bit ? polynomial : 0);
	}
	return crc;
}

static uint16_t slow_vcrc(const uint8_t *p, size_t n)
{
	return (uint16_t)~slow_crc(0xd008, 0xffff, p, n);
}

static uint32_t slow_icrc(const uint8_t *p, size_t n)
{
	return ~slow_crc(0xedb88320, 0xffffffff, p, n);
}

static void crc16_agrees_with_the_bitwise_definition(void **state)
{
	uint8_t bytes[64];

	for (size_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = (uint8_t)(i * 37 + 11);
	for (size_t n = 0; n <= sizeof(bytes); n++)
		for (size_t cut = 0; cut <= n; cut++) {
			uint16_t crc = crc16_update(CRC16_INIT, bytes, cut);

			crc = crc16_update(crc, bytes + cut, n - cut);
			assert_int_equal(crc,
					 slow_crc(0xd008, 0xffff, bytes, n));
		}
}

static size_t make_packet(uint8_t *p, const struct iblink *h)
{
	size_t head = iblink_write(p, h, INNER);

	memcpy(p + head, sample + LRH_BYTES, INNER);
	return head + iblink_seal(p, head, p + head, INNER);
}

/* IBTA 7.8.3 */
static void the_example_of_the_specification_comes_out(void **state)
{
	struct iblink h = {.lrh = sample_lrh};
	uint8_t p[LRH_FRAME_MAX];
	size_t n = make_packet(p, &h);

	assert_int_equal(n, sizeof(sample) + LRH_VCRC_BYTES);
	assert_memory_equal(p, sample, sizeof(sample));
	assert_int_equal(p[n - 2] | p[n - 1] << 8,
			 slow_vcrc(sample, sizeof(sample)));
}

static void global_headers(struct iblink *h)
{
	*h = (struct iblink){.lrh = sample_lrh,
			     .grh = {.traffic_class = 0x5a,
				     .flow_label = 0x12345,
				     .hop_limit = 63,
				     .sgid = {0xfe, 0x80, [15] = 1},
				     .dgid = {0xfe, 0x80, [15] = 2}}};
	h->lrh.lnh = LRH_NEXT_GLOBAL;
}

static void a_global_packet_covers_the_grh_with_three_fields_masked(void **s)
{
	uint8_t p[LRH_FRAME_MAX], masked[LRH_FRAME_MAX];
	struct iblink_inner inner;
	struct iblink h, got;
	size_t n, covered;

	global_headers(&h);
	n = make_packet(p, &h);
	covered = n - IBLINK_TAIL_BYTES;
	assert_int_equal(covered, LRH_HEAD_MAX + INNER);
	memcpy(masked, p, n);
	memset(masked, 0xff, LRH_BYTES);
	masked[8] = 0x6f;
	masked[9] = masked[10] = masked[11] = masked[15] = 0xff;
	masked[LRH_HEAD_MAX + 4] = 0xff;
	assert_int_equal(icrc_read(p + covered), ~slow_icrc(masked, covered));
	assert_int_equal(bytes_get16(p + LRH_BYTES + 4), INNER + ICRC_BYTES);
	assert_true(iblink_open(p, n, &got, &inner));
	assert_int_equal(got.lrh.words, (n - LRH_VCRC_BYTES) / 4);
	assert_int_equal(got.grh.flow_label, 0x12345);
	assert_memory_equal(got.grh.dgid, h.grh.dgid, 16);
	assert_ptr_equal(inner.bth, p + LRH_HEAD_MAX);
	assert_int_equal(inner.bytes, INNER);
}

/* The CRC of the payload may be known already; a pad follows the payload. */
static void a_known_crc_of_the_payload_gives_the_same_packet(void **state)
{
	const struct iblink h = {.lrh = sample_lrh};
	uint8_t read[LRH_FRAME_MAX], summed[LRH_FRAME_MAX];
	size_t n = make_packet(read, &h);

	memcpy(summed, read, n);
	for (uint32_t bytes = 0; bytes <= INNER - BTH_BYTES; bytes++) {
		uint32_t pad = -bytes & 3;
		const uint8_t *payload =
			summed + LRH_BYTES + INNER - pad - bytes;
		const struct rocev2_sum sum = {
			.bytes = bytes,
			.crc = crc32_update(0, payload, bytes),
			.factor = crc32_factor(bytes)};

		if (INNER - pad - bytes < BTH_BYTES)
			continue;
		memset(summed + LRH_BYTES + INNER, 0, IBLINK_TAIL_BYTES);
		assert_int_equal(iblink_seal_summed(summed, LRH_BYTES,
						    summed + LRH_BYTES, INNER,
						    &sum),
				 INNER + IBLINK_TAIL_BYTES);
		assert_memory_equal(summed, read, n);
	}
}

static void headers_come_back(void **state)
{
	struct iblink h = {.lrh = sample_lrh}, got;
	uint8_t p[LRH_FRAME_MAX];
	struct iblink_inner inner;
	size_t n = make_packet(p, &h);

	assert_true(iblink_open(p, n, &got, &inner));
	assert_int_equal(got.lrh.vl, 7);
	assert_int_equal(got.lrh.sl, 1);
	assert_int_equal(got.lrh.dlid, 0x375c);
	assert_int_equal(got.lrh.slid, 0x17d2);
	assert_int_equal(got.lrh.words, 14);
	assert_ptr_equal(inner.bth, p + LRH_BYTES);
	assert_int_equal(inner.bytes, INNER);
}

/* A switch writes VL and FECN, which the ICRC does not cover (IBTA 7.8.1), and
 * computes the VCRC again. */
static void the_icrc_covers_no_field_that_a_switch_changes(void **state)
{
	struct iblink h = {.lrh = sample_lrh}, got;
	uint8_t p[LRH_FRAME_MAX];
	struct iblink_inner inner;
	size_t n = make_packet(p, &h);

	p[0] = 0x20;
	p[LRH_BYTES + 4] = 0x80;
	assert_false(lrh_is_intact(p, n));
	lrh_seal(p, n - LRH_VCRC_BYTES);
	assert_true(lrh_is_intact(p, n));
	assert_true(iblink_open(p, n, &got, &inner));
	assert_int_equal(got.lrh.vl, 2);
	p[1] ^= 0x10; /* the ICRC of a local packet covers the SL */
	lrh_seal(p, n - LRH_VCRC_BYTES);
	assert_false(iblink_open(p, n, &got, &inner));
}

/* With a GRH the ICRC does not cover the LRH, which a router writes anew. */
static void a_router_may_change_lrh_and_three_fields_of_the_grh(void **state)
{
	uint8_t p[LRH_FRAME_MAX];
	struct iblink_inner inner;
	struct iblink h, got;
	size_t n;

	global_headers(&h);
	n = make_packet(p, &h);
	bytes_put16(p + 2, 9);
	bytes_put16(p + 6, 8);
	p[1] ^= 0x30;
	p[LRH_BYTES] ^= 0x0f;
	p[LRH_BYTES + 1] ^= 0xff;
	p[LRH_BYTES + 7]--;
	lrh_seal(p, n - LRH_VCRC_BYTES);
	assert_true(iblink_open(p, n, &got, &inner));
	p[LRH_BYTES + 8] ^= 1; /* SGID */
	lrh_seal(p, n - LRH_VCRC_BYTES);
	assert_false(iblink_open(p, n, &got, &inner));
}

/* iblink_open checks all but the VCRC. */
static bool is_accepted(const uint8_t *p, size_t n)
{
	struct iblink_inner inner;
	struct iblink h;

	return lrh_is_intact(p, n) && iblink_open(p, n, &h, &inner);
}

static void each_flipped_bit_and_each_cut_is_refused(void **state)
{
	for (int is_global = 0; is_global < 2; is_global++) {
		struct iblink h = {.lrh = sample_lrh};
		uint8_t p[LRH_FRAME_MAX];
		size_t n;

		if (is_global)
			global_headers(&h);
		n = make_packet(p, &h);
		for (size_t bit = 0; bit < 8 * n; bit++) {
			p[bit / 8] ^= (uint8_t)(1 << bit % 8);
			assert_false(is_accepted(p, n));
			p[bit / 8] ^= (uint8_t)(1 << bit % 8);
		}
		for (size_t len = 0; len < n; len++)
			assert_false(is_accepted(p, len));
		assert_true(is_accepted(p, n));
	}
}

/* Each row makes one field wrong.  The VCRC is right, and lrh_frame does not
 * read the ICRC. */
static void a_frame_with_a_wrong_field_is_refused(void **state)
{
	static const struct {
		size_t at;
		uint8_t value;
	} wrong[] = {
		{0, 0x71}, /* link version */
		{1, 0x10}, /* raw */
		{1, 0x12}, /* local: accepted, and the GRH is taken for a BTH */
		{5, 0x17}, /* PktLen */
		{LRH_BYTES, 0x45},
		{LRH_BYTES + 5, 0x2f}, /* PayLen */
		{LRH_BYTES + 6, 0x11}, /* NxtHdr */
	};
	struct lrh lrh;

	for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
		uint8_t p[LRH_FRAME_MAX];
		struct iblink h;
		size_t n, expected;

		global_headers(&h);
		n = make_packet(p, &h);
		assert_int_equal(lrh_frame(p, n, &lrh), LRH_HEAD_MAX);
		p[wrong[i].at] = wrong[i].value;
		lrh_seal(p, n - LRH_VCRC_BYTES);
		expected = wrong[i].value == 0x12 ? LRH_BYTES : 0;
		assert_int_equal(lrh_frame(p, n, &lrh), expected);
	}
}

static void a_wrong_icrc_is_refused_behind_a_right_vcrc(void **state)
{
	struct iblink h = {.lrh = sample_lrh}, got;
	uint8_t p[LRH_FRAME_MAX];
	struct iblink_inner inner;
	size_t n = make_packet(p, &h);

	for (size_t at = LRH_BYTES + BTH_BYTES; at < n - LRH_VCRC_BYTES; at++) {
		p[at] ^= 1;
		lrh_seal(p, n - LRH_VCRC_BYTES);
		assert_false(iblink_open(p, n, &got, &inner));
		p[at] ^= 1;
	}
}

static void a_frame_has_room_for_bth_and_icrc(void **state)
{
	size_t least = LRH_BYTES + BTH_BYTES + ICRC_BYTES;
	uint8_t p[LRH_FRAME_MAX] = {0};

	for (uint16_t words = 0; words <= LRH_WORDS_MAX; words++) {
		size_t n = 4u * words + LRH_VCRC_BYTES;
		struct lrh lrh = {.lnh = LRH_NEXT_LOCAL, .words = words};

		lrh_write(p, &lrh);
		assert_int_equal(lrh_frame(p, n, &lrh),
				 4u * words < least ? 0 : LRH_BYTES);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(crc16_agrees_with_the_bitwise_definition),
		cmocka_unit_test(the_example_of_the_specification_comes_out),
		cmocka_unit_test(
			a_global_packet_covers_the_grh_with_three_fields_masked),
		cmocka_unit_test(
			a_known_crc_of_the_payload_gives_the_same_packet),
		cmocka_unit_test(headers_come_back),
		cmocka_unit_test(
			the_icrc_covers_no_field_that_a_switch_changes),
		cmocka_unit_test(
			a_router_may_change_lrh_and_three_fields_of_the_grh),
		cmocka_unit_test(each_flipped_bit_and_each_cut_is_refused),
		cmocka_unit_test(a_wrong_icrc_is_refused_behind_a_right_vcrc),
		cmocka_unit_test(a_frame_with_a_wrong_field_is_refused),
		cmocka_unit_test(a_frame_has_room_for_bth_and_icrc),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
