/* SPDX-License-Identifier: BSD-2-Clause */
/* iwarp/tcp_segment: the segments of a connection have its bytes in order, and
 * each FPDU that fits into a segment is one segment, wherever the calls cut the
 * bytes. */
#include "test.h"

#include "hdr/tcp.h"
#include "iwarp/tcp_segment.h"
#include "util/rng.h"

#include <stdlib.h>

#define STREAM	 300000 /* bytes of one direction */
#define MANY	 4000	/* segments */
#define REQUEST	 24	/* bytes of the MPA frame of this side */
#define REPLY	 20	/* bytes of the MPA frame of the peer */
#define NEAR_END 0xfffffff0u

static struct rng rng;

/* The segments that were made, and the bytes of each direction. */
static struct {
	struct tcp_segments segments;
	struct tcp_segment made[MANY]; /* without `bytes` */
	uint32_t count;
	uint8_t bytes[2][STREAM];
	uint32_t got[2];  /* how many bytes of each direction were written */
	uint32_t next[2]; /* the sequence number that must come next */
	uint32_t pure;	  /* ACKs without bytes */
} all;

/* The bytes that each side sends, and their number. */
static uint8_t stream[2][STREAM];
static uint32_t length[2];
/* The positions at which the frame and each FPDU of a direction end. */
static uint32_t ends[2][MANY];
static uint32_t ends_count[2];

/* malloc fails */
static bool has_no_memory;

void *__real_malloc(size_t bytes);
void *__wrap_malloc(size_t bytes);

void *__wrap_malloc(size_t bytes)
{
	return has_no_memory ? NULL : __real_malloc(bytes);
}

static void note_segment(void *arg, const struct tcp_segment *s)
{
	enum tcp_segment_side side = s->from;

	assert_ptr_equal(arg, &all);
	assert_true(all.count < MANY);
	assert_true(s->count <= TCP_SEGMENT_MAX);
	assert_int_equal(s->seq, all.next[side]);
	if (s->flags & TCP_ACK)
		assert_int_equal(s->ack, all.next[!side]);
	else
		assert_int_equal(s->flags, TCP_SYN);
	all.next[side] += s->count + ((s->flags & (TCP_SYN | TCP_FIN)) != 0);
	if (s->count)
		memcpy(all.bytes[side] + all.got[side], s->bytes, s->count);
	all.got[side] += s->count;
	all.pure += s->flags == TCP_ACK && !s->count;
	all.made[all.count] = *s;
	all.made[all.count++].bytes = NULL;
}

/* Appends an FPDU with a ULPDU of `bytes` random bytes. */
static void append_fpdu(int side, struct fpdu_tx *tx, uint32_t bytes)
{
	uint8_t *at = stream[side] + length[side];

	assert_true(length[side] + fpdu_bytes_max(tx, bytes) <= STREAM);
	for (uint32_t i = 0; i < bytes; i++)
		at[FPDU_ULPDU_AT + i] = (uint8_t)rng_below(&rng, 256);
	length[side] += fpdu_seal(tx, at, bytes);
	ends[side][ends_count[side]++] = length[side];
}

/* Makes the bytes of a direction: a frame of MPA and FPDUs of many lengths. */
static void make_stream(int side, uint32_t frame, bool has_markers)
{
	static const uint32_t first[] = {0, 1, 2, 3, 500, 508, 60000};
	struct fpdu_tx tx;

	fpdu_tx_init(&tx, true, has_markers);
	memset(stream[side], 'f', frame);
	length[side] = frame;
	ends_count[side] = 0;
	ends[side][ends_count[side]++] = frame;
	for (size_t i = 0; i < sizeof(first) / sizeof(*first); i++)
		append_fpdu(side, &tx, first[i]);
	for (int i = 0; i < 60; i++)
		append_fpdu(side, &tx, rng_below(&rng, 3000));
}

static void open_with(bool has_markers)
{
	const struct tcp_segment_start start[2] = {
		{NEAR_END, REQUEST, has_markers}, {7, REPLY, has_markers}};

	memset(&all, 0, sizeof(all));
	all.next[0] = NEAR_END;
	all.next[1] = 7;
	all.segments.write = note_segment;
	all.segments.arg = &all;
	tcp_segment_open(&all.segments, TCP_SEGMENT_OWN, start);
}

static int set_up(void **state)
{
	(void)state;
	rng_init(&rng, 11);
	make_stream(0, REQUEST, false);
	make_stream(1, REPLY, false);
	open_with(false);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	has_no_memory = false;
	tcp_segment_fini(&all.segments);
	return 0;
}

/* Checks that the first `bytes` bytes of a direction were written, and no more.
 */
static void expect_bytes(int side, uint32_t bytes)
{
	assert_int_equal(all.got[side], bytes);
	assert_memory_equal(all.bytes[side], stream[side], bytes);
}

/* Checks that, in one direction, each segment with bytes is the frame of MPA or
 * one whole FPDU. */
static void expect_whole(int side)
{
	uint32_t at = 0, unit = 0;

	for (uint32_t i = 0; i < all.count; i++) {
		if (all.made[i].from != (enum tcp_segment_side)side ||
		    !all.made[i].count)
			continue;
		at += all.made[i].count;
		assert_int_equal(at, ends[side][unit++]);
	}
	assert_int_equal(unit, ends_count[side]);
}

static void a_connection_begins_with_a_handshake(void **state)
{
	static const uint8_t flags[] = {TCP_SYN, TCP_SYN | TCP_ACK, TCP_ACK};

	(void)state;
	assert_int_equal(all.count, 3);
	for (uint32_t i = 0; i < 3; i++) {
		assert_int_equal(all.made[i].flags, flags[i]);
		assert_int_equal(all.made[i].from, i & 1);
		assert_int_equal(all.made[i].count, 0);
	}
	assert_int_equal(all.made[1].ack, NEAR_END + 1);
}

/* Gives the streams of both sides in turns, in pieces of at most `most`. */
static void give_all(uint32_t most)
{
	uint32_t at[2] = {0, 0};

	while (at[0] < length[0] || at[1] < length[1])
		for (int side = 0; side < 2; side++) {
			uint32_t left = length[side] - at[side];
			uint32_t n = 1 + rng_below(&rng, most);

			n = n < left ? n : left;
			tcp_segment_bytes(&all.segments,
					  (enum tcp_segment_side)side,
					  stream[side] + at[side], n);
			at[side] += n;
		}
}

static void fpdus_are_whole_wherever_the_bytes_are_cut(void **state)
{
	static const uint32_t most[] = {1, 2, 7, 100, 5000, STREAM};

	(void)state;
	for (int markers = 0; markers < 2; markers++) {
		make_stream(0, REQUEST, markers);
		make_stream(1, REPLY, markers);
		for (size_t i = 0; i < sizeof(most) / sizeof(*most); i++) {
			open_with(markers);
			give_all(most[i]);
			for (int side = 0; side < 2; side++) {
				expect_bytes(side, length[side]);
				expect_whole(side);
				assert_null(all.segments.half[side].held);
			}
		}
	}
}

/* The sequence number passes 2^32 in the first bytes. */
static void sequence_numbers_wrap(void **state)
{
	(void)state;
	tcp_segment_bytes(&all.segments, TCP_SEGMENT_OWN, stream[0], length[0]);
	assert_int_equal(all.next[0], (uint32_t)(NEAR_END + 1 + length[0]));
	assert_true(all.next[0] < NEAR_END);
}

static void many_bytes_of_one_side_are_acknowledged(void **state)
{
	uint32_t given = 0;

	(void)state;
	while (all.pure < 3) {
		assert_true(given < 4 * STREAM);
		all.got[0] = 0;
		tcp_segment_bytes(&all.segments, TCP_SEGMENT_OWN,
				  stream[0] + (given ? REQUEST : 0),
				  length[0] - (given ? REQUEST : 0));
		given += length[0];
	}
	assert_true(given > 2u << 18);
}

static void an_fpdu_longer_than_a_segment_is_cut(void **state)
{
	struct fpdu_tx tx;

	(void)state;
	for (int i = 0; i < 2; i++) {
		uint32_t n;

		open_with(false);
		length[0] = REQUEST;
		fpdu_tx_init(&tx, true, false);
		append_fpdu(0, &tx, FPDU_ULPDU_MAX);
		n = length[0];
		if (i) /* the FPDU is held, and then complete */
			tcp_segment_bytes(&all.segments, TCP_SEGMENT_OWN,
					  stream[0], --n);
		tcp_segment_bytes(&all.segments, TCP_SEGMENT_OWN,
				  stream[0] + (i ? n : 0), i ? 1 : length[0]);
		expect_bytes(0, length[0]);
		assert_int_equal(all.count, 6); /* handshake, frame, 2 parts */
		assert_int_equal(all.made[4].count, TCP_SEGMENT_MAX);
		assert_true(all.made[5].flags & TCP_PSH);
	}
}

/* The end of one side does not keep the other side from sending.  Bytes and a
 * second end of a side that has ended are ignored. */
static void a_half_closed_connection_goes_on(void **state)
{
	(void)state;
	tcp_segment_bytes(&all.segments, TCP_SEGMENT_PEER, stream[1], 30);
	tcp_segment_end(&all.segments, TCP_SEGMENT_PEER);
	expect_bytes(1, 30); /* with the part of an FPDU that was held */
	assert_int_equal(all.made[all.count - 2].flags, TCP_FIN | TCP_ACK);
	assert_int_equal(all.made[all.count - 1].flags, TCP_ACK);
	tcp_segment_bytes(&all.segments, TCP_SEGMENT_PEER, stream[1] + 30, 10);
	tcp_segment_end(&all.segments, TCP_SEGMENT_PEER);
	expect_bytes(1, 30);
	tcp_segment_bytes(&all.segments, TCP_SEGMENT_OWN, stream[0], length[0]);
	expect_bytes(0, length[0]);
	tcp_segment_end(&all.segments, TCP_SEGMENT_OWN);
	assert_int_equal(all.made[all.count - 2].flags, TCP_FIN | TCP_ACK);
	assert_int_equal(all.made[all.count - 1].ack, NEAR_END + 2 + length[0]);
	tcp_segment_reset(&all.segments, TCP_SEGMENT_PEER);
	assert_int_equal(all.made[all.count - 1].flags, TCP_ACK);
}

static void nothing_follows_a_reset(void **state)
{
	uint32_t count;

	(void)state;
	tcp_segment_bytes(&all.segments, TCP_SEGMENT_OWN, stream[0], 33);
	tcp_segment_bytes(&all.segments, TCP_SEGMENT_PEER, stream[1], 25);
	tcp_segment_reset(&all.segments, TCP_SEGMENT_PEER);
	expect_bytes(0, 33);
	expect_bytes(1, 25);
	count = all.count;
	assert_int_equal(all.made[count - 1].flags, TCP_RST | TCP_ACK);
	assert_int_equal(all.made[count - 1].from, TCP_SEGMENT_PEER);
	tcp_segment_bytes(&all.segments, TCP_SEGMENT_OWN, stream[0] + 33, 9);
	tcp_segment_end(&all.segments, TCP_SEGMENT_OWN);
	tcp_segment_end(&all.segments, TCP_SEGMENT_PEER);
	tcp_segment_reset(&all.segments, TCP_SEGMENT_OWN);
	tcp_segment_fini(&all.segments);
	assert_int_equal(all.count, count);
}

static void held_bytes_are_written_at_the_end(void **state)
{
	(void)state;
	tcp_segment_bytes(&all.segments, TCP_SEGMENT_OWN, stream[0],
			  REQUEST + 9);
	expect_bytes(0, REQUEST + 8);
	tcp_segment_fini(&all.segments);
	expect_bytes(0, REQUEST + 9);
}

static void without_memory_no_byte_is_held(void **state)
{
	(void)state;
	has_no_memory = true;
	for (uint32_t at = 0; at < 3000; at += 11)
		tcp_segment_bytes(&all.segments, TCP_SEGMENT_OWN,
				  stream[0] + at, 11);
	expect_bytes(0, all.got[0]);
	assert_true(all.got[0] >= 3000);
}

/* The peer's markers are wrong: the bytes of the peer are written as they come.
 */
static void after_a_wrong_marker_bytes_are_written_at_once(void **state)
{
	(void)state;
	open_with(true);
	memset(stream[1], 0xff, STREAM);
	tcp_segment_bytes(&all.segments, TCP_SEGMENT_PEER, stream[1], 24);
	tcp_segment_bytes(&all.segments, TCP_SEGMENT_PEER, stream[1], 5);
	tcp_segment_bytes(&all.segments, TCP_SEGMENT_PEER, stream[1], 100000);
	expect_bytes(1, 100029);
	assert_null(all.segments.half[1].held);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(a_connection_begins_with_a_handshake),
		CASE(fpdus_are_whole_wherever_the_bytes_are_cut),
		CASE(sequence_numbers_wrap),
		CASE(many_bytes_of_one_side_are_acknowledged),
		CASE(an_fpdu_longer_than_a_segment_is_cut),
		CASE(a_half_closed_connection_goes_on),
		CASE(nothing_follows_a_reset),
		CASE(held_bytes_are_written_at_the_end),
		CASE(without_memory_no_byte_is_held),
		CASE(after_a_wrong_marker_bytes_are_written_at_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
