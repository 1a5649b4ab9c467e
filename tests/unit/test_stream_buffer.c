/* SPDX-License-Identifier: BSD-2-Clause */
/* host/stream_buffer: a connection that has reserved a buffer gets one, even if
 * no memory is left. */
#include "test.h"

#include <errno.h>
#include <sys/mman.h>

#include "host/stream_buffer.h"

#define MANY (3 * STREAM_BUFFER_BLOCK + 1)

static bool has_no_memory; /* mmap fails */
static int mapped;	   /* how many blocks are mapped */

void *__real_mmap64(void *at, size_t bytes, int prot, int flags, int fd,
		    off_t offset);
void *__wrap_mmap64(void *at, size_t bytes, int prot, int flags, int fd,
		    off_t offset);
int __real_munmap(void *at, size_t bytes);
int __wrap_munmap(void *at, size_t bytes);

void *__wrap_mmap64(void *at, size_t bytes, int prot, int flags, int fd,
		    off_t offset)
{
	if (has_no_memory) {
		errno = ENOMEM;
		return MAP_FAILED;
	}
	mapped++;
	return __real_mmap64(at, bytes, prot, flags, fd, offset);
}

int __wrap_munmap(void *at, size_t bytes)
{
	mapped--;
	return __real_munmap(at, bytes);
}

static void reserve_many(struct stream_buffers *b)
{
	for (int i = 0; i < MANY; i++)
		assert_true(stream_buffer_reserve(b));
}

static void release_many(struct stream_buffers *b)
{
	for (int i = 0; i < MANY; i++)
		stream_buffer_release(b);
}

static void each_reservation_is_a_buffer_without_further_memory(void **state)
{
	struct stream_buffers b = {0};
	uint8_t *buffer[MANY];

	reserve_many(&b);
	has_no_memory = true;
	for (int i = 0; i < MANY; i++) {
		buffer[i] = stream_buffer_take(&b);
		memset(buffer[i], i, STREAM_BUFFER_BYTES);
	}
	has_no_memory = false;
	for (int i = 0; i < MANY; i++) {
		assert_int_equal(buffer[i][0], i);
		assert_int_equal(buffer[i][STREAM_BUFFER_BYTES - 1], i);
		stream_buffer_give(&b, buffer[i]);
	}
	release_many(&b);
	stream_buffer_fini(&b);
	assert_int_equal(mapped, 0);
}

static void a_buffer_that_was_given_back_is_used_again(void **state)
{
	struct stream_buffers b = {0};
	uint8_t *first, *second;

	reserve_many(&b);
	first = stream_buffer_take(&b);
	second = stream_buffer_take(&b);
	stream_buffer_give(&b, first);
	assert_ptr_equal(stream_buffer_take(&b), first);
	stream_buffer_give(&b, second);
	assert_ptr_equal(stream_buffer_take(&b), second);
	stream_buffer_fini(&b);
}

/* A page whose memory was given back to the kernel reads as zeros. */
static void unused_blocks_have_no_memory(void **state)
{
	struct stream_buffers b = {0};
	uint8_t *buffer[MANY];

	reserve_many(&b);
	for (int i = 0; i < MANY; i++) {
		buffer[i] = stream_buffer_take(&b);
		buffer[i][0] = 1;
	}
	for (int i = 0; i < MANY - 2; i++)
		stream_buffer_give(&b, buffer[i]);
	/* the first block keeps its memory */
	assert_int_equal(buffer[0][0], 1);
	for (int i = STREAM_BUFFER_BLOCK; i < MANY - 2; i++)
		assert_int_equal(buffer[i][0],
				 i >= MANY - 1 - STREAM_BUFFER_BLOCK);
	stream_buffer_give(&b, buffer[MANY - 2]);
	assert_int_equal(buffer[MANY - 2][0], 0);
	assert_int_equal(buffer[MANY - 1][0], 1);
	stream_buffer_fini(&b);
}

static void a_reservation_fails_without_memory(void **state)
{
	struct stream_buffers b = {0};

	has_no_memory = true;
	assert_false(stream_buffer_reserve(&b));
	has_no_memory = false;
	reserve_many(&b);
	assert_int_equal(b.reserved, MANY);
	stream_buffer_fini(&b);
}

static void most_memory_is_freed_after_the_last_connection(void **state)
{
	struct stream_buffers b = {0};

	reserve_many(&b);
	assert_int_equal(mapped, 4);
	release_many(&b);
	assert_int_equal(mapped, 1);
	assert_true(stream_buffer_reserve(&b));
	assert_int_equal(mapped, 1);
	stream_buffer_fini(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
			each_reservation_is_a_buffer_without_further_memory),
		cmocka_unit_test(a_buffer_that_was_given_back_is_used_again),
		cmocka_unit_test(unused_blocks_have_no_memory),
		cmocka_unit_test(a_reservation_fails_without_memory),
		cmocka_unit_test(
			most_memory_is_freed_after_the_last_connection),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
