/* SPDX-License-Identifier: BSD-2-Clause */
/* hdr/mpa: the frames that start an MPA connection, written and parsed, and
 * wrong frames. */
#include "test.h"

#include "hdr/mpa.h"

#include <errno.h>

static const uint8_t words[] = "private";

static const struct mpa_frame full = {
	.kind = MPA_REPLY,
	.revision = 2,
	.wants_markers = true,
	.wants_crc = true,
	.is_enhanced = true,
	.enhanced = {.ird = 0x1234,
		     .ord = MPA_DEPTH_MAX,
		     .is_peer_to_peer = true,
		     .rtr = MPA_RTR_READ},
	.private_data = words,
	.private_bytes = sizeof(words),
};

static void a_frame_has_the_bytes_of_the_specification(void **state)
{
	/* RFC 5044 7.1.1, RFC 6581 9 */
	static const uint8_t wire[] = {
		'M',  'P',  'A', ' ', 'I', 'D',	 ' ', 'R', 'e', 'p',  ' ',
		'F',  'r',  'a', 'm', 'e', 0xd0, 2,   0,   12,	0x92, 0x34,
		0x7f, 0xff, 'p', 'r', 'i', 'v',	 'a', 't', 'e', 0};
	uint8_t p[MPA_FRAME_MAX];

	assert_int_equal(mpa_write(p, &full), sizeof(wire));
	assert_memory_equal(p, wire, sizeof(wire));
}

static void a_written_frame_is_parsed_unchanged(void **state)
{
	uint8_t p[MPA_FRAME_MAX + 1];
	struct mpa_frame f;
	int n = mpa_write(p, &full);

	/* more of the stream may follow */
	assert_int_equal(mpa_parse(p, (size_t)n + 1, MPA_REPLY, &f), n);
	assert_int_equal(f.kind, MPA_REPLY);
	assert_int_equal(f.revision, 2);
	assert_true(f.wants_markers && f.wants_crc && f.is_enhanced);
	assert_false(f.is_rejected);
	assert_int_equal(f.enhanced.ird, 0x1234);
	assert_int_equal(f.enhanced.ord, MPA_DEPTH_MAX);
	assert_true(f.enhanced.is_peer_to_peer);
	assert_int_equal(f.enhanced.rtr, MPA_RTR_READ);
	assert_int_equal(f.private_bytes, sizeof(words));
	assert_memory_equal(f.private_data, words, sizeof(words));
}

static void a_cut_frame_is_not_complete_at_any_byte(void **state)
{
	uint8_t p[MPA_FRAME_MAX];
	struct mpa_frame f;
	int n = mpa_write(p, &full);

	for (int i = 0; i < n; i++)
		assert_int_equal(mpa_parse(p, (size_t)i, MPA_REPLY, &f), 0);
}

static void a_wrong_key_is_found_at_its_first_wrong_byte(void **state)
{
	uint8_t p[MPA_FRAME_MAX];
	struct mpa_frame f;

	mpa_write(p, &full);
	/* "MPA ID Re" begins both keys */
	assert_int_equal(mpa_parse(p, 9, MPA_REQUEST, &f), 0);
	assert_int_equal(mpa_parse(p, 10, MPA_REQUEST, &f), -EPROTO);
	p[0] = 'G';
	assert_int_equal(mpa_parse(p, 1, MPA_REPLY, &f), -EPROTO);
}

/* RFC 5044 7.1.1. */
static void private_data_that_is_too_long_is_refused(void **state)
{
	static const uint8_t much[MPA_PRIVATE_MAX + 1];
	struct mpa_frame f = {.kind = MPA_REQUEST,
			      .revision = 1,
			      .private_data = much,
			      .private_bytes = MPA_PRIVATE_MAX};
	uint8_t p[MPA_FRAME_MAX];

	assert_int_equal(mpa_write(p, &f), MPA_FRAME_MAX);
	assert_int_equal(mpa_parse(p, sizeof(p), MPA_REQUEST, &f),
			 MPA_FRAME_MAX);
	p[19] = 1; /* 513 */
	assert_int_equal(mpa_parse(p, MPA_HEAD, MPA_REQUEST, &f), -EMSGSIZE);
	f.private_bytes = MPA_PRIVATE_MAX + 1;
	assert_int_equal(mpa_write(p, &f), -EMSGSIZE);
	f.private_bytes = MPA_PRIVATE_MAX;
	f.is_enhanced = true;
	assert_int_equal(mpa_write(p, &f), -EMSGSIZE);
}

/* RFC 6581 6. */
static void enhanced_data_belongs_to_revision_2(void **state)
{
	uint8_t p[MPA_FRAME_MAX];
	struct mpa_frame f;

	mpa_write(p, &full);
	p[17] = 1;
	assert_true(mpa_parse(p, sizeof(p), MPA_REPLY, &f) > 0);
	assert_false(f.is_enhanced);
	assert_int_equal(f.private_bytes, sizeof(words) + MPA_ENHANCED);
	p[17] = 2;
	p[19] = MPA_ENHANCED - 1;
	assert_int_equal(mpa_parse(p, sizeof(p), MPA_REPLY, &f), -EMSGSIZE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_frame_has_the_bytes_of_the_specification),
		cmocka_unit_test(a_written_frame_is_parsed_unchanged),
		cmocka_unit_test(a_cut_frame_is_not_complete_at_any_byte),
		cmocka_unit_test(a_wrong_key_is_found_at_its_first_wrong_byte),
		cmocka_unit_test(private_data_that_is_too_long_is_refused),
		cmocka_unit_test(enhanced_data_belongs_to_revision_2),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
