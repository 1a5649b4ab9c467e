/* SPDX-License-Identifier: BSD-2-Clause */
/* hca/space: a move through a buffer copies all bytes from one space to another
 * in order, and an error tells which side lacks memory. */
#include "test.h"

#include "hca/space.h"
#include "util/bits.h"
#include "util/rng.h"

#include <errno.h>
#include <string.h>

#define BYTES 65536

struct memory {
	struct space space;
	uint8_t bytes[BYTES]; /* the va of a byte is its index */
	uint32_t written;     /* the end of the last write */
};

static struct memory initiator, target;

static int mem_write(struct space *s, const struct space_vec *to, size_t n,
		     const void *src)
{
	struct memory *m = (struct memory *)(void *)s;
	const uint8_t *from = src;

	for (size_t i = 0; i < n; from += to[i++].bytes) {
		if (to[i].va > BYTES || to[i].bytes > BYTES - to[i].va)
			return -EFAULT;
		memcpy(m->bytes + to[i].va, from, to[i].bytes);
		m->written = (uint32_t)(to[i].va + to[i].bytes);
	}
	return 0;
}

static int mem_read(struct space *s, const struct space_vec *from, size_t n,
		    void *dst)
{
	struct memory *m = (struct memory *)(void *)s;
	uint8_t *to = dst;

	for (size_t i = 0; i < n; to += from[i++].bytes) {
		if (from[i].va > BYTES || from[i].bytes > BYTES - from[i].va)
			return -EFAULT;
		memcpy(to, m->bytes + from[i].va, from[i].bytes);
	}
	return 0;
}

static const struct space_ops ops = {.write = mem_write, .read = mem_read};

static int set_up(void **state)
{
	struct rng r;

	rng_init(&r, 3);
	initiator.space.ops = target.space.ops = &ops;
	for (int i = 0; i < BYTES; i++) {
		initiator.bytes[i] = (uint8_t)rng_u32(&r);
		target.bytes[i] = (uint8_t)rng_u32(&r);
	}
	return 0;
}

/* Divides `bytes` into n pieces that lie at random places and do not overlap.
 */
static void cut_pieces(struct rng *r, struct space_vec *v, uint32_t n,
		       uint32_t bytes)
{
	uint32_t left = bytes, room = BYTES / n;

	for (uint32_t i = 0; i < n; i++) {
		uint32_t take =
			i + 1 == n ? left : rng_below(r, left / (n - i) + 1);

		take = bits_min_u32(take, room);
		v[i] = (struct space_vec){
			i * room + rng_below(r, room - take + 1), take};
		left -= take;
	}
	assert_int_equal(left, 0);
}

static void gather_pieces(struct memory *m, const struct space_vec *v,
			  uint32_t n, uint8_t *out)
{
	for (uint32_t i = 0; i < n; out += v[i++].bytes)
		memcpy(out, m->bytes + v[i].va, v[i].bytes);
}

static void any_pieces_move_in_both_directions(void **state)
{
	static uint8_t before[BYTES], after[BYTES];
	struct rng r;

	rng_init(&r, 11);
	for (int i = 0; i < 500; i++) {
		struct space_vec a[8], b[8];
		uint32_t na = 1 + rng_below(&r, 8), nb = 1 + rng_below(&r, 8);
		uint32_t bytes = rng_below(&r, BYTES / 8);
		struct space_move put = {b, a, nb, na}, get = {a, b, na, nb};
		size_t done;

		cut_pieces(&r, a, na, bytes);
		cut_pieces(&r, b, nb, bytes);
		gather_pieces(&initiator, a, na, before);
		assert_int_equal(space_put(&target.space, &initiator.space,
					   &put, 1, &done),
				 0);
		assert_int_equal(done, 1);
		gather_pieces(&target, b, nb, after);
		assert_memory_equal(before, after, bytes);
		if (bytes && b[nb - 1].bytes)
			assert_int_equal(target.written,
					 b[nb - 1].va + b[nb - 1].bytes);
		for (uint32_t k = 0; k < BYTES; k++)
			initiator.bytes[k] ^= 0x55;
		assert_int_equal(space_get(&target.space, &initiator.space,
					   &get, 1, &done),
				 0);
		gather_pieces(&initiator, a, na, after);
		assert_memory_equal(before, after, bytes);
	}
}

static void
an_error_tells_the_side_without_memory_and_the_moves_done(void **state)
{
	const struct space_vec good = {0, 64}, bad = {BYTES - 63, 64};
	const struct space_move no_far[] = {{&good, &good, 1, 1},
					    {&bad, &good, 1, 1}};
	const struct space_move no_near[] = {{&good, &good, 1, 1},
					     {&good, &bad, 1, 1}};
	size_t done;

	assert_int_equal(
		space_put(&target.space, &initiator.space, no_far, 2, &done),
		-EFAULT);
	assert_int_equal(done, 1);
	assert_int_equal(
		space_put(&target.space, &initiator.space, no_near, 2, &done),
		-ENXIO);
	assert_int_equal(done, 1);
	assert_int_equal(
		space_get(&target.space, &initiator.space, no_far, 2, &done),
		-ENXIO);
	assert_int_equal(
		space_get(&target.space, &initiator.space, no_near, 2, &done),
		-EFAULT);
	assert_int_equal(done, 1);
}

static void moves_of_no_bytes_succeed(void **state)
{
	const struct space_move none = {NULL, NULL, 0, 0};
	size_t done = 7;

	assert_int_equal(
		space_put(&target.space, &initiator.space, &none, 1, &done), 0);
	assert_int_equal(done, 1);
	assert_int_equal(
		space_get(&target.space, &initiator.space, &none, 0, &done), 0);
	assert_int_equal(done, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(any_pieces_move_in_both_directions),
		cmocka_unit_test(
			an_error_tells_the_side_without_memory_and_the_moves_done),
		cmocka_unit_test(moves_of_no_bytes_succeed),
	};

	return cmocka_run_group_tests(tests, set_up, NULL);
}
