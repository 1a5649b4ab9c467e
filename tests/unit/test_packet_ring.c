/* SPDX-License-Identifier: BSD-2-Clause */
/* fabric/packet_ring: packets come out whole and in order, no wake-up is lost,
 * and a peer that writes wrong values breaks only the ring. */
#include "test.h"

#include "fabric/packet_ring.h"

enum { MOST = 8190, BLOCK = PACKET_RING_BLOCK, BLOCKS = PACKET_RING_BLOCKS };

static uint8_t *memory;
static struct packet_ring_out out;
static struct packet_ring_in in;

static void assert_within(uintptr_t at, uintptr_t first, uintptr_t last)
{
	assert_true(first <= at && at <= last);
}

static int set_up(void **state)
{
	memory = aligned_alloc(4096, PACKET_RING_BYTES);
	assert_non_null(memory);
	memset(memory, 0, PACKET_RING_BYTES);
	packet_ring_init_out(&out, memory);
	packet_ring_init_in(&in, memory);
	return 0;
}

static int tear_down(void **state)
{
	free(memory);
	return 0;
}

static bool put_packet(size_t n, uint8_t byte)
{
	uint8_t *p = packet_ring_room(&out, n);

	if (!p)
		return false;
	assert_within((uintptr_t)p, (uintptr_t)memory + PACKET_RING_DATA,
		      (uintptr_t)memory + PACKET_RING_BYTES - n);
	memset(p, byte, n);
	packet_ring_put(&out, n);
	return true;
}

static void expect_packet(size_t n, uint8_t byte)
{
	size_t got = 0;
	const uint8_t *p = packet_ring_next(&in, MOST, &got);

	assert_non_null(p);
	assert_int_equal(got, n);
	for (size_t i = 0; i < n; i++)
		assert_int_equal(p[i], byte);
}

static bool is_empty(void)
{
	size_t n;

	return !packet_ring_next(&in, MOST, &n);
}

static void packets_of_all_lengths_come_out_in_order(void **state)
{
	uint8_t put = 0, got = 0;

	for (size_t n = 1; n <= MOST; n += 37) {
		for (int i = 0; i < 3; i++)
			assert_true(put_packet(n, put++));
		assert_true(is_empty());
		packet_ring_publish(&out);
		for (int i = 0; i < 3; i++)
			expect_packet(n, got++);
		assert_true(is_empty());
		packet_ring_release(&in);
	}
	assert_false(out.is_broken || in.is_broken);
}

static void a_full_ring_takes_no_packet_until_room_is_released(void **state)
{
	size_t count = 0, n;

	while (put_packet(4000, (uint8_t)count))
		count++;
	assert_int_equal(count, BLOCKS / 63);
	packet_ring_publish(&out);
	assert_non_null(packet_ring_next(&in, MOST, &n));
	assert_false(put_packet(4000, 0));
	packet_ring_release(&in);
	assert_true(put_packet(4000, 0));
	assert_false(out.is_broken);
}

/* The indices wrap at 2^32. */
static void indices_wrap(void **state)
{
	const uint32_t from = UINT32_MAX - 100;

	shared_store(&out.words->tail, from);
	shared_store(&out.words->head, from);
	out.tail = out.shown = out.head = from;
	in.head = in.tail = in.freed = from;
	for (int i = 0; i < 300; i++) {
		assert_true(put_packet(100, (uint8_t)i));
		packet_ring_publish(&out);
		expect_packet(100, (uint8_t)i);
		packet_ring_release(&in);
	}
	assert_false(out.is_broken || in.is_broken);
}

static void a_consumer_that_waits_is_woken_once(void **state)
{
	assert_true(packet_ring_idle(&in));
	assert_true(put_packet(10, 1));
	assert_true(packet_ring_publish(&out));
	assert_false(packet_ring_publish(&out));
	assert_true(put_packet(10, 2));
	assert_false(packet_ring_publish(&out));
	assert_true(packet_ring_has(&in));
	assert_false(packet_ring_idle(&in)); /* packets have come */
	expect_packet(10, 1);
	expect_packet(10, 2);
	assert_true(packet_ring_idle(&in));
}

static void a_producer_that_waits_is_woken_once_at_half_a_ring(void **state)
{
	uint32_t left;
	size_t n;

	while (put_packet(4000, 0))
		;
	packet_ring_publish(&out);
	packet_ring_want_room(&out);
	assert_null(packet_ring_room(&out, 4000));
	for (left = out.tail; left > BLOCKS / 2 + 63; left -= 63) {
		assert_non_null(packet_ring_next(&in, MOST, &n));
		assert_false(packet_ring_release(&in));
	}
	while (packet_ring_next(&in, MOST, &n))
		;
	assert_true(packet_ring_release(&in));
	assert_true(put_packet(10, 1));
	packet_ring_publish(&out);
	expect_packet(10, 1);
	assert_false(packet_ring_release(&in));
}

/* After a wrong index of the consumer the producer puts no more packets, and so
 * overwrites none. */
static void a_wrong_index_of_the_consumer_breaks_the_ring(void **state)
{
	const uint32_t wrong[] = {1, BLOCKS, UINT32_MAX, 1u << 31};

	for (size_t i = 0; i < TEST_COUNT(wrong); i++) {
		tear_down(state);
		set_up(state);
		while (put_packet(4000, 0))
			;
		/* nothing is published, so this index is too far ahead */
		shared_store(&out.words->head, wrong[i]);
		assert_null(packet_ring_room(&out, 4000));
		assert_true(out.is_broken);
		shared_store(&out.words->head, 0);
		assert_null(packet_ring_room(&out, 1));
	}
}

static void a_consumer_cannot_go_back(void **state)
{
	while (put_packet(4000, 0))
		;
	packet_ring_publish(&out);
	shared_store(&out.words->head, BLOCKS / 2);
	assert_true(put_packet(4000, 0));
	while (put_packet(4000, 0))
		;
	shared_store(&out.words->head, BLOCKS / 4);
	assert_null(packet_ring_room(&out, 4000));
	assert_true(out.is_broken);
}

static void a_wrong_index_of_the_producer_breaks_the_ring(void **state)
{
	const uint32_t wrong[] = {BLOCKS + 1, UINT32_MAX, 1u << 31};

	for (size_t i = 0; i < TEST_COUNT(wrong); i++) {
		tear_down(state);
		set_up(state);
		shared_store(&in.words->tail, wrong[i]);
		assert_true(is_empty());
		assert_true(in.is_broken);
		assert_false(packet_ring_has(&in));
		assert_false(packet_ring_idle(&in));
	}
}

static void a_producer_cannot_go_back(void **state)
{
	put_packet(10, 1);
	put_packet(10, 1);
	packet_ring_publish(&out);
	expect_packet(10, 1);
	expect_packet(10, 1);
	shared_store(&in.words->tail, 1);
	assert_true(is_empty());
	assert_true(in.is_broken);
}

/* Sets the word at the start of a block. */
static void set_length(uint32_t block, uint32_t n)
{
	memcpy(memory + PACKET_RING_DATA + (size_t)block * BLOCK, &n,
	       sizeof(n));
}

static void a_wrong_length_breaks_the_ring(void **state)
{
	static const struct {
		uint32_t at, tail, length;
	} wrong[] = {
		{0, 1, 0},     /* skips the whole ring */
		{0, 1, BLOCK}, /* more than is published */
		{0, BLOCKS, MOST + 1},
		{0, BLOCKS, UINT32_MAX},
		{0, BLOCKS, UINT32_MAX - PACKET_RING_HEAD + 1},
		{BLOCKS - 1, BLOCKS + 9, 100}, /* across the end */
		{BLOCKS - 2, BLOCKS - 1, 0},   /* skips more than is there */
	};

	for (size_t i = 0; i < TEST_COUNT(wrong); i++) {
		tear_down(state);
		set_up(state);
		in.head = in.tail = in.freed = wrong[i].at;
		shared_store(&in.words->tail, wrong[i].tail);
		set_length(wrong[i].at, wrong[i].length);
		assert_true(is_empty());
		assert_true(in.is_broken);
		assert_true(is_empty());
	}
}

/* Whatever stands in the memory, the consumer reads only the ring. */
static void nonsense_stays_inside(void **state)
{
	uint32_t random = 1;

	for (int round = 0; round < 20000; round++) {
		const uint8_t *p;
		size_t n;

		in = (struct packet_ring_in){.words = in.words,
					     .data = in.data};
		for (int i = 0; i < 20; i++) {
			random = random * 1664525 + 1013904223;
			set_length(random >> 8 & (i & 1 ? 15 : BLOCKS - 1),
				   random >> 20 & (i & 2 ? 0x3f : 0x1fff));
		}
		shared_store(&in.words->tail, random >> 12 & 0x1fff);
		while ((p = packet_ring_next(&in, MOST, &n)))
			assert_within((uintptr_t)p,
				      (uintptr_t)memory + PACKET_RING_DATA,
				      (uintptr_t)memory + PACKET_RING_BYTES -
					      n);
	}
}

int main(void)
{
#define RUN(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		RUN(packets_of_all_lengths_come_out_in_order),
		RUN(a_full_ring_takes_no_packet_until_room_is_released),
		RUN(indices_wrap),
		RUN(a_consumer_that_waits_is_woken_once),
		RUN(a_producer_that_waits_is_woken_once_at_half_a_ring),
		RUN(a_wrong_index_of_the_consumer_breaks_the_ring),
		RUN(a_consumer_cannot_go_back),
		RUN(a_wrong_index_of_the_producer_breaks_the_ring),
		RUN(a_producer_cannot_go_back),
		RUN(a_wrong_length_breaks_the_ring),
		RUN(nonsense_stays_inside),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
