/* SPDX-License-Identifier: BSD-2-Clause */
/* MPA framing: FPDUs that are sent are received, wherever the stream is cut. */
#include "test.h"

#include "iwarp/fpdu.h"
#include "util/crc.h"
#include "util/rng.h"

#include <errno.h>
#include <string.h>

#define STREAM 400000 /* bytes */
#define PIECES 1000

static struct rng rng;
static uint8_t message[FPDU_ULPDU_MAX + 1], stream[STREAM];
static uint32_t length; /* bytes of the stream */

static int setup_message(void **state)
{
	(void)state;
	rng_init(&rng, 7);
	length = 0;
	for (uint32_t i = 0; i < sizeof(message); i++)
		message[i] = (uint8_t)rng_below(&rng, 256);
	return 0;
}

/* Appends an FPDU of the first `bytes` of message, in three pieces. */
static void append_fpdu(struct fpdu_tx *tx, uint32_t bytes)
{
	static uint8_t scratch[FPDU_SCRATCH];
	static struct fpdu_piece out[PIECES];
	const struct fpdu_piece in[] = {
		{message, bytes / 3},
		{message + bytes / 3, 0},
		{message + bytes / 3, bytes - bytes / 3},
	};
	int n = fpdu_write(tx, in, 3, scratch, out, PIECES);

	assert_true(n > 0);
	for (int i = 0; i < n; i++) {
		memcpy(stream + length, out[i].p, out[i].bytes);
		length += out[i].bytes;
	}
}

/* The FPDUs that a receiver has found in a stream. */
struct received {
	struct fpdu_rx rx;
	uint8_t ulpdu[FPDU_ULPDU_MAX];
	uint32_t bytes;	   /* bytes of ulpdu that have come */
	uint32_t fpdus;	   /* complete */
	uint32_t sizes[8]; /* bytes of the first ULPDUs */
	enum fpdu_result error;
};

static void receive_bytes(struct received *r, const uint8_t *p, uint32_t n)
{
	while (n && !r->error) {
		struct fpdu_want want = fpdu_rx_want(&r->rx);
		uint32_t part = n < want.bytes ? n : want.bytes;
		enum fpdu_result said;

		if (want.part == FPDU_ULPDU) {
			memcpy(r->ulpdu + r->bytes, p, part);
			r->bytes += part;
		}
		said = fpdu_rx_take(&r->rx, p, part);
		if (said == FPDU_BEGUN)
			r->bytes = 0;
		if (said == FPDU_WHOLE) {
			assert_int_equal(r->bytes, r->rx.ulpdu_bytes);
			assert_memory_equal(r->ulpdu, message, r->bytes);
			if (r->fpdus < 8)
				r->sizes[r->fpdus] = r->bytes;
			r->fpdus++;
		}
		if (said == FPDU_BAD_CRC || said == FPDU_BAD_MARKER)
			r->error = said;
		p += part;
		n -= part;
	}
}

static void begin_receive(struct received *r, bool has_crc, bool has_markers)
{
	memset(r, 0, sizeof(*r));
	fpdu_rx_init(&r->rx, has_crc, has_markers);
}

/* RFC 5044 4.1. */
static void an_empty_fpdu_has_the_bytes_of_the_specification(void **state)
{
	/* CRC32C of four zero bytes is 0x48674bc7 */
	static const uint8_t wire[] = {0, 0, 0, 0, 0xc7, 0x4b, 0x67, 0x48};
	static const uint8_t bare[8];
	struct fpdu_tx tx;

	fpdu_tx_init(&tx, true, false);
	append_fpdu(&tx, 0);
	assert_int_equal(length, sizeof(wire));
	assert_memory_equal(stream, wire, sizeof(wire));
	length = 0;
	fpdu_tx_init(&tx, false, false);
	append_fpdu(&tx, 0);
	assert_memory_equal(stream, bare, sizeof(bare));
}

/* RFC 5044 4.2 and 4.3. */
static void markers_stand_at_each_512_bytes_and_tell_the_distance(void **state)
{
	struct fpdu_tx tx;

	fpdu_tx_init(&tx, true, true);
	append_fpdu(&tx, 1000);
	/* the first marker stands before the FPDU */
	assert_memory_equal(stream, "\0\0\0\0\x03\xe8", 6);
	assert_memory_equal(stream + 512, "\0\0\x01\xfc", 4);
	assert_int_equal(length, 4 + 2 + 1000 + 2 + 4 + 4);
	/* this FPDU of 8 bytes ends where the next marker is due */
	append_fpdu(&tx, 2);
	assert_memory_equal(stream + 1016, "\0\x02", 2);
	/* the marker that is due at 1024 belongs to the next FPDU */
	assert_int_equal(length, 1024);
	append_fpdu(&tx, 2);
	assert_memory_equal(stream + 1024, "\0\0\0\0\0\x02", 6);
}

/* The examples of RFC 5044 4.4: SENDs of 24 zero bytes. */
static void an_fpdu_has_the_crc_of_the_specification(void **state)
{
	static const uint8_t send[42] = {0x41, 0x43, [13] = 1};
	struct fpdu_tx tx;

	fpdu_tx_init(&tx, true, true);
	memcpy(message, send, sizeof(send));
	append_fpdu(&tx, sizeof(send));
	assert_int_equal(length, 0x34);
	assert_memory_equal(stream + 0x30, "\x52\x23\x99\x83", 4);
	/* the second FPDU has a marker, and begins at 492 */
	tx.position = 492;
	length = 0;
	message[13] = 2;
	append_fpdu(&tx, sizeof(send));
	assert_memory_equal(stream + 20, "\0\0\0\x14", 4);
	assert_memory_equal(stream + length - 4, "\x84\x92\x58\x98", 4);
}

/* RFC 5044 4.2: the lowest two bits of the distance count as 0. */
static void the_lowest_bits_of_a_marker_are_ignored(void **state)
{
	static struct received r;
	struct fpdu_tx tx;

	fpdu_tx_init(&tx, false, true);
	append_fpdu(&tx, 1000);
	for (uint8_t bits = 0; bits < 8; bits++) {
		stream[515] = 0xf8 | bits;
		begin_receive(&r, false, true);
		receive_bytes(&r, stream, length);
		assert_int_equal(r.fpdus, bits >= 4);
		assert_int_equal(r.error, bits >= 4 ? 0 : FPDU_BAD_MARKER);
	}
}

/* The sizes need pads of each length.  In streams with markers the FPDUs have
 * no marker, one, two, and over a hundred.  All sizes are sent with and without
 * CRC, and with and without markers. */
static void each_size_is_received_as_it_was_sent(void **state)
{
	static const uint32_t sizes[] = {0,   1,   2,	3,   4,	   5,	497,
					 498, 499, 500, 501, 502,  503, 504,
					 505, 506, 507, 508, 1010, 1014};
	static struct received r;
	struct fpdu_tx tx;

	for (int choice = 0; choice < 4; choice++) {
		bool crc = choice & 1, markers = choice & 2;

		length = 0;
		fpdu_tx_init(&tx, crc, markers);
		begin_receive(&r, crc, markers);
		for (uint32_t i = 0; i < TEST_COUNT(sizes); i++)
			append_fpdu(&tx, sizes[i]);
		append_fpdu(&tx, markers ? FPDU_MARKED_MAX : FPDU_ULPDU_MAX);
		receive_bytes(&r, stream, length);
		assert_int_equal(r.error, 0);
		assert_int_equal(r.fpdus, TEST_COUNT(sizes) + 1);
		for (int i = 0; i < 8; i++)
			assert_int_equal(r.sizes[i], sizes[i]);
	}
}

/* Appends a few FPDUs.  If tx has markers, they stand before the first FPDU,
 * before the CRC of the FPDU of 6 bytes, inside the ULPDU of 1514 bytes, and
 * between this FPDU and the last one. */
static void append_few(struct fpdu_tx *tx)
{
	static const uint32_t sizes[] = {18, 0, 461, 6, 1514, 490};

	for (uint32_t i = 0; i < TEST_COUNT(sizes); i++)
		append_fpdu(tx, sizes[i]);
}

/* RFC 5044 5.2, RFC 5044 6. */
static void a_stream_may_be_cut_at_any_byte(void **state)
{
	static struct received r;
	struct fpdu_tx tx;

	for (int choice = 0; choice < 2; choice++) {
		length = 0;
		fpdu_tx_init(&tx, true, choice);
		append_few(&tx);
		for (uint32_t cut = 1; cut < length; cut++) {
			begin_receive(&r, true, choice);
			receive_bytes(&r, stream, cut);
			receive_bytes(&r, stream + cut, length - cut);
			assert_int_equal(r.error, 0);
			assert_int_equal(r.fpdus, 6);
		}
		/* byte by byte, and in parts of random sizes */
		for (int round = 0; round < 50; round++) {
			begin_receive(&r, true, choice);
			for (uint32_t at = 0, n; at < length; at += n) {
				n = round ? 1 + rng_below(&rng, 700) : 1;
				n = n < length - at ? n : length - at;
				receive_bytes(&r, stream + at, n);
			}
			assert_int_equal(r.error, 0);
			assert_int_equal(r.fpdus, 6);
		}
	}
}

/* The CRC of an FPDU may be computed while its ULPDU is copied. */
static void an_fpdu_that_is_summed_early_is_the_same(void **state)
{
	uint8_t sealed[100], summed[100];
	struct fpdu_tx tx;
	uint32_t n, crc;

	fpdu_tx_init(&tx, true, false);
	assert_true(fpdu_may_sum(&tx));
	for (uint32_t bytes = 0; bytes <= 80; bytes++) {
		uint32_t head = bytes / 3;

		memset(sealed, 0xee, sizeof(sealed));
		for (uint32_t i = 0; i < bytes; i++)
			sealed[FPDU_ULPDU_AT + i] = (uint8_t)(i * 31 + bytes);
		memcpy(summed, sealed, sizeof(sealed));
		n = fpdu_seal(&tx, sealed, bytes);
		crc = fpdu_sum_head(summed, head, bytes);
		crc = crc32c_update(crc, summed + FPDU_ULPDU_AT + head,
				    bytes - head);
		assert_int_equal(fpdu_seal_summed(summed, bytes, crc), n);
		assert_memory_equal(summed, sealed, sizeof(sealed));
	}
	fpdu_tx_init(&tx, true, true);
	assert_false(fpdu_may_sum(&tx));
	fpdu_tx_init(&tx, false, false);
	assert_false(fpdu_may_sum(&tx));
}

/* RFC 5044 4.4, RFC 5044 8: each flipped bit is an error, or leaves the
 * receiver waiting for bytes that a greater length promises.  No damaged FPDU
 * is taken for a whole FPDU. */
static void no_flipped_bit_passes(void **state)
{
	static struct received r;
	struct fpdu_tx tx;

	fpdu_tx_init(&tx, true, true);
	append_fpdu(&tx, 600);
	for (uint32_t bit = 0; bit < 8 * length; bit++) {
		stream[bit / 8] ^= (uint8_t)(1 << bit % 8);
		begin_receive(&r, true, true);
		for (uint32_t at = 0; at < length && !r.error;) {
			struct fpdu_want want = fpdu_rx_want(&r.rx);
			enum fpdu_result said;

			if (want.bytes > length - at)
				want.bytes = length - at;
			said = fpdu_rx_take(&r.rx, stream + at, want.bytes);
			at += want.bytes;
			assert_int_not_equal(said, FPDU_WHOLE);
			if (said == FPDU_BAD_CRC || said == FPDU_BAD_MARKER)
				r.error = said;
		}
		stream[bit / 8] ^= (uint8_t)(1 << bit % 8);
	}
}

static void an_fpdu_without_room_is_refused_and_changes_nothing(void **state)
{
	static uint8_t scratch[FPDU_SCRATCH];
	struct fpdu_piece in = {message, FPDU_ULPDU_MAX + 1}, out[8];
	struct fpdu_tx tx, before;

	fpdu_tx_init(&tx, true, true);
	append_fpdu(&tx, 100);
	before = tx;
	assert_int_equal(fpdu_write(&tx, &in, 1, scratch, out, 8), -EMSGSIZE);
	in.bytes = FPDU_MARKED_MAX + 1;
	assert_int_equal(fpdu_write(&tx, &in, 1, scratch, out, 8), -EMSGSIZE);
	in.bytes = FPDU_MARKED_MAX; /* more than 100 markers */
	assert_int_equal(fpdu_write(&tx, &in, 1, scratch, out, 8), -EMSGSIZE);
	assert_int_equal(tx.position, before.position);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(
			an_empty_fpdu_has_the_bytes_of_the_specification,
			setup_message),
		cmocka_unit_test_setup(
			markers_stand_at_each_512_bytes_and_tell_the_distance,
			setup_message),
		cmocka_unit_test_setup(an_fpdu_has_the_crc_of_the_specification,
				       setup_message),
		cmocka_unit_test_setup(the_lowest_bits_of_a_marker_are_ignored,
				       setup_message),
		cmocka_unit_test_setup(each_size_is_received_as_it_was_sent,
				       setup_message),
		cmocka_unit_test_setup(a_stream_may_be_cut_at_any_byte,
				       setup_message),
		cmocka_unit_test(an_fpdu_that_is_summed_early_is_the_same),
		cmocka_unit_test_setup(no_flipped_bit_passes, setup_message),
		cmocka_unit_test_setup(
			an_fpdu_without_room_is_refused_and_changes_nothing,
			setup_message),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
