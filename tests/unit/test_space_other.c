/* SPDX-License-Identifier: BSD-2-Clause */
/* memory/space_other: mapped memory of another process is copied, other memory
 * is refused. */
#include "test.h"

#include "memory/space_other.h"
#include "memory/space_self.h"
#include "util/bits.h"
#include "util/rng.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define PAGE  4096u
#define BYTES (64 * PAGE)

/*
 * `memory` is private, and has the same address in the child and in this
 * process; an unmapped page follows.  `mirror` is shared.  The child copies
 * between its `memory` and the mirror.
 */
static uint8_t *memory, *mirror;
/* The next task of the child, behind the bytes of the mirror; WAIT: the child
 * has finished the last one. */
static _Atomic int *order;
static struct space_self initiator;
static struct space_other target;
static pid_t child; /* the PID of the target; 0: the target was killed */

enum { WAIT, SHOW, TAKE };

/* In the child: copies `memory` to the mirror, or the mirror to `memory`, on
 * each order. */
static void serve_orders(void)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (;;) {
		if (*order == SHOW)
			memcpy(mirror, memory, BYTES);
		else if (*order == TAKE)
			memcpy(memory, mirror, BYTES);
		*order = WAIT;
		while (*order == WAIT)
			usleep(50);
	}
}

static void give_order(int what)
{
	*order = what;
	while (*order != WAIT)
		usleep(50);
}

static int set_up(void **state)
{
	memory = mmap(NULL, BYTES + PAGE, PROT_READ | PROT_WRITE,
		      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	mirror = mmap(NULL, BYTES + PAGE, PROT_READ | PROT_WRITE,
		      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	order = (_Atomic int *)(void *)(mirror + BYTES);
	assert_int_equal(munmap(memory + BYTES, PAGE), 0);
	space_self_init(&initiator);
	*order = SHOW;
	child = fork();
	if (child < 0)
		return -1;
	if (!child)
		serve_orders();
	space_other_init(&target, child);
	while (*order != WAIT)
		usleep(50);
	return 0;
}

/* Kills the target, unless the target was killed before: another process may
 * then have the PID. */
static void end_child(void)
{
	if (!child)
		return;
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	child = 0;
}

static int tear_down(void **state)
{
	end_child();
	munmap(memory, BYTES);
	return munmap(mirror, BYTES + PAGE);
}

static uint64_t va_at(uint32_t at)
{
	return (uintptr_t)memory + at;
}

static void fill_random(uint8_t *m, uint64_t seed)
{
	struct rng r;

	rng_init(&r, seed);
	for (uint32_t i = 0; i < BYTES; i++)
		m[i] = (uint8_t)rng_u32(&r);
}

/* Sets up to 12 random pieces of one side, of at most `max` bytes together, in
 * order and without overlap.  Returns how many bytes the pieces have together.
 */
static uint32_t set_pieces(struct rng *r, struct space_vec *v, uint32_t *n,
			   uint32_t max)
{
	uint32_t at = rng_below(r, PAGE), bytes = 0;

	*n = 1 + rng_below(r, 12);
	for (uint32_t i = 0; i < *n; i++) {
		uint32_t take = rng_below(r, max / *n + 1);

		v[i] = (struct space_vec){va_at(at), take};
		bytes += take;
		at += take + rng_below(r, PAGE);
	}
	return bytes;
}

static void shorten_pieces(struct space_vec *v, uint32_t n, uint32_t bytes)
{
	for (uint32_t i = 0; i < n; i++) {
		v[i].bytes = bits_min_u64(v[i].bytes, bytes);
		bytes -= (uint32_t)v[i].bytes;
	}
}

static void copy_pieces(uint8_t *to, const struct space_vec *tv, uint32_t n,
			const uint8_t *from, const struct space_vec *fv,
			uint32_t m)
{
	static uint8_t all[BYTES];
	uint8_t *p = all;

	for (uint32_t i = 0; i < m; p += fv[i++].bytes)
		memcpy(p, from + (fv[i].va - va_at(0)), fv[i].bytes);
	p = all;
	for (uint32_t i = 0; i < n; p += tv[i++].bytes)
		memcpy(to + (tv[i].va - va_at(0)), p, tv[i].bytes);
}

static void any_pieces_move_in_both_directions(void **state)
{
	static uint8_t want[BYTES];
	struct rng r;

	rng_init(&r, 17);
	for (uint32_t i = 0; i < 200; i++) {
		struct space_vec a[12], b[12];
		uint32_t na, nb, bytes = set_pieces(&r, a, &na, BYTES / 8);
		uint32_t same = set_pieces(&r, b, &nb, BYTES / 8);
		struct space_move put, get;
		size_t done;

		bytes = bits_min_u32(bytes, same);
		shorten_pieces(a, na, bytes);
		shorten_pieces(b, nb, bytes);
		put = (struct space_move){b, a, nb, na};
		get = (struct space_move){a, b, na, nb};
		fill_random(memory, i);
		fill_random(mirror, i + 1000);
		give_order(TAKE);
		memcpy(want, mirror, BYTES);
		copy_pieces(want, b, nb, memory, a, na);
		assert_int_equal(space_put(&target.space, &initiator.space,
					   &put, 1, &done),
				 0);
		give_order(SHOW);
		assert_memory_equal(mirror, want, BYTES);
		fill_random(memory, i + 2000);
		memcpy(want, memory, BYTES);
		copy_pieces(want, a, na, mirror, b, nb);
		assert_int_equal(space_get(&target.space, &initiator.space,
					   &get, 1, &done),
				 0);
		assert_memory_equal(memory, want, BYTES);
	}
}

static void more_messages_than_a_call_takes_move_in_order(void **state)
{
	enum { MOVES = 500 };
	struct space_vec a[MOVES], b[MOVES];
	struct space_move m[MOVES];
	size_t done;

	fill_random(memory, 5);
	for (uint32_t i = 0; i < MOVES; i++) {
		a[i] = (struct space_vec){va_at(i * 64), 61};
		b[i] = (struct space_vec){va_at(BYTES / 2 + i * 8), 61};
		m[i] = (struct space_move){&b[i], &a[i], 1, 1};
	}
	assert_int_equal(
		space_put(&target.space, &initiator.space, m, MOVES, &done), 0);
	assert_int_equal(done, MOVES);
	give_order(SHOW);
	for (uint32_t i = 0; i + 1 < MOVES; i++)
		assert_memory_equal(mirror + BYTES / 2 + i * 8, memory + i * 64,
				    8);
}

static void the_write_and_read_operations_move_bytes_too(void **state)
{
	struct space_vec v[2] = {{va_at(100), 50}, {va_at(9000), 51}};
	uint8_t src[101], dst[101];

	fill_random(memory, 9);
	memcpy(src, memory, sizeof(src));
	assert_int_equal(target.space.ops->write(&target.space, v, 2, src), 0);
	assert_int_equal(target.space.ops->read(&target.space, v, 2, dst), 0);
	assert_memory_equal(src, dst, sizeof(src));
	give_order(SHOW);
	assert_memory_equal(mirror + 9000, src + 50, 51);
}

static void a_copy_reports_which_memory_is_missing(void **state)
{
	struct space_vec good = {va_at(0), PAGE + 8};
	struct space_vec bad = {va_at(BYTES - PAGE), PAGE + 8};
	/* no process has this address: the kernel refuses the whole call */
	struct space_vec mad = {1ull << 63, PAGE + 8};
	const struct space_move far_put[] = {{&good, &good, 1, 1},
					     {&bad, &good, 1, 1}};
	const struct space_move near_put[] = {{&good, &good, 1, 1},
					      {&good, &bad, 1, 1}};
	const struct space_move far_mad[] = {{&good, &good, 1, 1},
					     {&mad, &good, 1, 1}};
	const struct space_move near_mad[] = {{&good, &good, 1, 1},
					      {&good, &mad, 1, 1}};
	const struct {
		const struct space_move *m;
		int put, get;
	} row[] = {{far_put, -EFAULT, -ENXIO},
		   {near_put, -ENXIO, -EFAULT},
		   {far_mad, -EFAULT, -ENXIO},
		   {near_mad, -ENXIO, -EFAULT}};
	size_t done;

	for (size_t i = 0; i < ARRAY_COUNT(row); i++) {
		assert_int_equal(space_put(&target.space, &initiator.space,
					   row[i].m, 2, &done),
				 row[i].put);
		assert_int_equal(done, 1);
		assert_int_equal(space_get(&target.space, &initiator.space,
					   row[i].m, 2, &done),
				 row[i].get);
		assert_int_equal(done, 1);
	}
}

/* The target is this process.  The second move changes the source of the first
 * one, so that a repetition of the first shows. */
static void a_move_before_a_fault_is_made_once(void **state)
{
	struct space_vec a = {va_at(0), 64}, b = {va_at(PAGE), 64},
			 c = {va_at(2 * PAGE), 64},
			 bad = {va_at(BYTES - 32), 64};
	const struct space_move m[] = {
		{&b, &a, 1, 1}, {&a, &c, 1, 1}, {&bad, &c, 1, 1}};
	struct space_other self;
	uint8_t want[64];
	size_t done;

	space_other_init(&self, getpid());
	fill_random(memory, 3);
	memcpy(want, memory, sizeof(want));
	assert_int_equal(space_put(&self.space, &initiator.space, m, 3, &done),
			 -EFAULT);
	assert_int_equal(done, 2);
	assert_memory_equal(memory + PAGE, want, sizeof(want));
}

static void memory_that_may_not_be_written_is_refused(void **state)
{
	struct space_vec v = {va_at(0), 64};
	const struct space_move m = {&v, &v, 1, 1};
	size_t done;

	assert_int_equal(mprotect(memory, PAGE, PROT_READ), 0);
	assert_int_equal(
		space_put(&target.space, &initiator.space, &m, 1, &done), 0);
	assert_int_equal(
		space_get(&target.space, &initiator.space, &m, 1, &done),
		-ENXIO);
	assert_int_equal(mprotect(memory, PAGE, PROT_READ | PROT_WRITE), 0);
}

static void a_process_that_is_gone_has_no_memory(void **state)
{
	struct space_vec v = {va_at(0), 64};
	const struct space_move m = {&v, &v, 1, 1};
	size_t done;

	end_child();
	assert_int_equal(
		space_put(&target.space, &initiator.space, &m, 1, &done),
		-ESRCH);
	assert_int_equal(
		space_get(&target.space, &initiator.space, &m, 1, &done),
		-ESRCH);
	assert_int_equal(done, 0);
}

static void a_stopped_process_is_written_and_read(void **state)
{
	struct space_vec v = {va_at(0), PAGE};
	const struct space_move m = {&v, &v, 1, 1};
	size_t done;
	int status;

	assert_int_equal(kill(child, SIGSTOP), 0);
	assert_int_equal(waitpid(child, &status, WUNTRACED), child);
	assert_true(WIFSTOPPED(status));
	fill_random(memory, 21);
	assert_int_equal(
		space_put(&target.space, &initiator.space, &m, 1, &done), 0);
	assert_int_equal(
		space_get(&target.space, &initiator.space, &m, 1, &done), 0);
	kill(child, SIGCONT);
	give_order(SHOW);
	assert_memory_equal(mirror, memory, PAGE);
}

static void an_atomic_in_another_process_is_refused(void **state)
{
	uint64_t old;

	assert_int_equal(target.space.ops->atomic(&target.space,
						  SPACE_FETCH_ADD, va_at(0), 1,
						  0, &old),
			 -EPERM);
}

static void moves_within_a_process_work_too(void **state)
{
	struct space_vec a = {va_at(3), 3 * PAGE},
			 b = {va_at(8 * PAGE), 3 * PAGE};
	struct space_vec bad = {va_at(BYTES - PAGE), 3 * PAGE};
	const struct space_move m = {&b, &a, 1, 1}, no_far = {&bad, &a, 1, 1},
				no_near = {&b, &bad, 1, 1};
	size_t done;

	fill_random(memory, 2);
	assert_int_equal(
		space_put(&initiator.space, &initiator.space, &m, 1, &done), 0);
	assert_memory_equal(memory + 3, memory + 8 * PAGE, 3 * PAGE);
	assert_int_equal(space_put(&initiator.space, &initiator.space, &no_far,
				   1, &done),
			 -EFAULT);
	assert_int_equal(space_put(&initiator.space, &initiator.space, &no_near,
				   1, &done),
			 -ENXIO);
}

#define EACH(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		EACH(any_pieces_move_in_both_directions),
		EACH(more_messages_than_a_call_takes_move_in_order),
		EACH(the_write_and_read_operations_move_bytes_too),
		EACH(a_copy_reports_which_memory_is_missing),
		EACH(a_move_before_a_fault_is_made_once),
		EACH(memory_that_may_not_be_written_is_refused),
		EACH(a_process_that_is_gone_has_no_memory),
		EACH(a_stopped_process_is_written_and_read),
		EACH(an_atomic_in_another_process_is_refused),
		EACH(moves_within_a_process_work_too),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
