/* SPDX-License-Identifier: BSD-2-Clause */
/* fabric/packet_memory: the memory of freed packets is used again. */
#include "test.h"

#include <string.h>

#include "fabric/packet_memory.h"

enum { BYTES = 100, MORE = PACKET_MEMORY_KEPT + 10 };

/* Takes MORE pieces, and writes each byte of them. */
static void take_all(struct packet_memory *m, void *pieces[MORE])
{
	for (int i = 0; i < MORE; i++) {
		pieces[i] = packet_memory_take(m, BYTES);
		assert_non_null(pieces[i]);
		memset(pieces[i], i, BYTES);
	}
}

static void check_all(void *pieces[MORE])
{
	for (int i = 0; i < MORE; i++)
		for (int k = 0; k < BYTES; k++)
			assert_int_equal(((uint8_t *)pieces[i])[k], (uint8_t)i);
}

static void pieces_do_not_overlap_after_they_were_freed(void **state)
{
	struct packet_memory m = {0};
	void *pieces[MORE];

	(void)state;
	for (int round = 0; round < 3; round++) {
		take_all(&m, pieces);
		check_all(pieces);
		assert_int_equal(m.count, 0);
		for (int i = 0; i < MORE; i++)
			packet_memory_give(&m, pieces[(i * 7) % MORE]);
		assert_true(m.count <= PACKET_MEMORY_KEPT);
	}
	packet_memory_clear(&m);
	assert_null(m.first);
	assert_int_equal(m.count, 0);
}

static void the_piece_that_was_freed_last_is_taken_first(void **state)
{
	struct packet_memory m = {0};
	void *one = packet_memory_take(&m, BYTES);
	void *two = packet_memory_take(&m, BYTES);

	(void)state;
	packet_memory_give(&m, one);
	packet_memory_give(&m, two);
	if (m.count) { /* 0 with AddressSanitizer, where nothing is kept */
		assert_int_equal(m.count, 2);
		assert_ptr_equal(packet_memory_take(&m, BYTES), two);
		assert_ptr_equal(packet_memory_take(&m, BYTES), one);
		packet_memory_give(&m, one);
		packet_memory_give(&m, two);
	}
	packet_memory_clear(&m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(pieces_do_not_overlap_after_they_were_freed),
		cmocka_unit_test(the_piece_that_was_freed_last_is_taken_first),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
