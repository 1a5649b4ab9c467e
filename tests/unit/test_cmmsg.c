/* SPDX-License-Identifier: BSD-2-Clause */
/* hdr/cmmsg: a message of each kind except LAP and APR, and the header of RDMA
 * IP CM, keep every field when they are written and parsed. */
#include "test.h"

#include "hdr/cmmsg.h"
#include "hdr/mad.h"
#include "util/rng.h"

static const enum cmmsg_kind sent[] = {
	CMMSG_REQ,  CMMSG_MRA,	CMMSG_REJ,	CMMSG_REP,     CMMSG_RTU,
	CMMSG_DREQ, CMMSG_DREP, CMMSG_SIDR_REQ, CMMSG_SIDR_REP};

/* Makes a MAD of this kind with random contents. */
static void random_mad(struct rng *r, uint8_t *mad, enum cmmsg_kind kind)
{
	const struct mad head = {
		1, CMMSG_CLASS, CMMSG_CLASS_VERSION, CMMSG_METHOD_SEND, 0,
		0, rng_u64(r),	(uint16_t)kind,	     rng_u32(r)};

	for (int i = 0; i < MAD_BYTES; i++)
		mad[i] = (uint8_t)rng_u32(r);
	mad_write(mad, &head);
	if (kind == CMMSG_REJ)
		mad[MAD_HEADER_BYTES + 9] = CMMSG_INFO_MAX << 1;
	if (kind == CMMSG_SIDR_REP)
		mad[MAD_HEADER_BYTES + 5] = CMMSG_INFO_MAX;
}

static void a_parsed_message_is_written_and_parsed_again(void **state)
{
	struct rng r;

	rng_init(&r, 1);
	for (int round = 0; round < 2000; round++)
		for (size_t k = 0; k < TEST_COUNT(sent); k++) {
			uint8_t a[MAD_BYTES], b[MAD_BYTES];
			struct cmmsg m, n;

			random_mad(&r, a, sent[k]);
			assert_true(cmmsg_parse(a, sizeof(a), &m));
			assert_int_equal(m.kind, sent[k]);
			cmmsg_write(b, &m);
			assert_true(cmmsg_parse(b, sizeof(b), &n));
			assert_memory_equal(&m, &n, sizeof(m));
		}
}

/* Only reserved bits may differ after a round trip: the test counts the bits
 * that differ. */
static void no_bit_but_reserved_ones_is_lost(void **state)
{
	/* IBTA 12.6.5 to 12.6.11, 12.11.2: how many reserved bits of each kind
	 * are 1 in `ones` */
	static const unsigned reserved[TEST_COUNT(sent)] = {
		8 + 32 + 2 * (6 + 3 + 3), 6 + 3, 6, 4, 0, 8, 0, 16, 16 + 8};

	for (size_t k = 0; k < TEST_COUNT(sent); k++) {
		uint8_t ones[MAD_BYTES], again[MAD_BYTES];
		unsigned lost = 0;
		struct cmmsg m;

		memset(ones, 0xff, sizeof(ones));
		cmmsg_write(again, &(struct cmmsg){.kind = sent[k]});
		memcpy(ones, again, MAD_HEADER_BYTES);
		if (sent[k] == CMMSG_REJ)
			ones[MAD_HEADER_BYTES + 9] = CMMSG_INFO_MAX << 1;
		if (sent[k] == CMMSG_SIDR_REP)
			ones[MAD_HEADER_BYTES + 5] = CMMSG_INFO_MAX;
		assert_true(cmmsg_parse(ones, sizeof(ones), &m));
		cmmsg_write(again, &m);
		for (int i = 0; i < MAD_BYTES; i++)
			lost += (unsigned)__builtin_popcount(
				(unsigned)(ones[i] ^ again[i]));
		if (lost != reserved[k])
			fail_msg("kind %#x loses %u bits", (unsigned)sent[k],
				 lost);
	}
}

static void a_mad_that_is_no_cm_message_is_refused(void **state)
{
	static const struct {
		int at;
		uint8_t value;
	} wrong[] = {{0, 2}, {1, 3}, {2, 1}, {3, 0x81}, {17, 0x0f}, {17, 0x1b}};
	uint8_t mad[MAD_BYTES + 1];
	struct cmmsg m;

	cmmsg_write(mad, &(struct cmmsg){.kind = CMMSG_RTU});
	assert_true(cmmsg_parse(mad, MAD_BYTES, &m));
	for (size_t len = 0; len < MAD_BYTES; len++)
		assert_false(cmmsg_parse(mad, len, &m));
	for (size_t i = 0; i < TEST_COUNT(wrong); i++) {
		cmmsg_write(mad, &(struct cmmsg){.kind = CMMSG_RTU});
		mad[wrong[i].at] = wrong[i].value;
		assert_false(cmmsg_parse(mad, MAD_BYTES, &m));
	}
	cmmsg_write(mad, &(struct cmmsg){.kind = CMMSG_REJ, .info_bytes = 73});
	assert_false(cmmsg_parse(mad, MAD_BYTES, &m));
}

static void the_ip_part_keeps_ports_and_both_families(void **state)
{
	struct cmmsg_ip a = {0xc5f1,
			     {[10] = 0xff, 0xff, 10, 77, 0, 3},
			     {[10] = 0xff, 0xff, 10, 77, 0, 2}},
			b;
	uint8_t p[CMMSG_IP_BYTES];

	cmmsg_ip_write(p, &a);
	assert_int_equal(p[1], 0x40);
	assert_int_equal(p[16], 10);
	assert_true(cmmsg_ip_parse(p, &b));
	assert_memory_equal(&a, &b, sizeof(a));
	memset(a.src, 0x20, 16);
	memset(a.dst, 0x21, 16);
	cmmsg_ip_write(p, &a);
	assert_int_equal(p[1], 0x60);
	assert_true(cmmsg_ip_parse(p, &b));
	assert_memory_equal(&a, &b, sizeof(a));
	p[1] = 0x50;
	assert_false(cmmsg_ip_parse(p, &b));
	p[1] = 0x60;
	p[0] = 1;
	assert_false(cmmsg_ip_parse(p, &b));
	assert_true(cmmsg_service_id(0x0106, 7174) == 0x01061c06);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_parsed_message_is_written_and_parsed_again),
		cmocka_unit_test(no_bit_but_reserved_ones_is_lost),
		cmocka_unit_test(a_mad_that_is_no_cm_message_is_refused),
		cmocka_unit_test(the_ip_part_keeps_ports_and_both_families),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
