/* SPDX-License-Identifier: BSD-2-Clause */
/* memory/copy_revocable: signals neither damage a copy nor repeat an atomic;
 * copies and atomics fail where no memory is mapped, and store nothing after
 * another process has ended them. */
#include "test.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "memory/copy_nofault.h"
#include "memory/copy_revocable.h"
#include "util/monotonic.h"
#include "util/rng.h"

#define PAGE   4096u
#define LONG   (64u << 20)
#define COPIES 50000 /* the most copies to compare */
#define ENDED  99u   /* of `word`: the copies are ended */

/* Memory that a child process shares. */
static struct {
	_Atomic uint64_t word; /* ENDED: the copies of this process are ended */
	_Atomic int stage;     /* 1: the child copies; disturb_thread is to end
				*/
} * shared;

static struct copy_revocable copy_revocable;

/* Returns a time late enough for copy_nofault_turn to check the handlers again.
 */
static uint64_t later_ns(void)
{
	static uint64_t now;

	return now += 1000000;
}

#define NO_COPIES "this machine has no revocable copies"

/* Sets the signal handlers of guarded copies, and prepares this thread for
 * revocable copies.  Each test calls this function itself, since cmocka sets
 * signal handlers around a test.  Returns false if this machine has no such
 * copies. */
static bool take_word(void)
{
	copy_nofault_open();
	copy_nofault_turn(later_ns());
	return copy_revocable_take(&copy_revocable, &shared->word, ENDED);
}

static void *map_memory(size_t bytes, int kind)
{
	void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
		       kind | MAP_ANONYMOUS, -1, 0);

	assert_ptr_not_equal(p, MAP_FAILED);
	return p;
}

static int set_up(void **state)
{
	shared = map_memory(PAGE, MAP_SHARED);
	return 0;
}

static int tear_down(void **state)
{
	copy_nofault_close();
	return munmap(shared, PAGE);
}

/* ---- the bytes that are copied ---- */

#define ROOM 2000u

/* Cuts `bytes` bytes from base + *at on into random pieces, with gaps between
 * them. Returns the number of pieces, and moves *at to the end of the last
 * piece. */
static size_t cut_pieces(struct rng *rng, uint8_t *base, uint32_t bytes,
			 struct space_vec *v, uint32_t *at)
{
	size_t n = 0;

	while (bytes) {
		uint32_t take = 1 + rng_u32(rng) % bytes;

		*at += rng_u32(rng) % 9;
		v[n++] = (struct space_vec){(uintptr_t)base + *at, take};
		if (!(rng_u32(rng) % 3))
			v[n++] = (struct space_vec){(uintptr_t)base, 0};
		*at += take;
		bytes -= take;
		if (n > 8 && bytes) {
			v[n++] = (struct space_vec){(uintptr_t)base + *at,
						    bytes};
			*at += bytes;
			bytes = 0;
		}
	}
	return n;
}

static uint8_t byte_at(const struct space_vec *v, uint32_t i)
{
	while (i >= v->bytes)
		i -= (uint32_t)(v++)->bytes;
	return *(const uint8_t *)(uintptr_t)(v->va + i);
}

static uint32_t sum_of(const uint8_t *bytes)
{
	uint32_t sum = 0;

	for (uint32_t i = 0; i < ROOM; i++)
		sum += bytes[i];
	return sum;
}

static void any_pieces_are_copied_to_any_other_pieces(void **state)
{
	struct space_vec to[SPACE_VEC_MAX], from[SPACE_VEC_MAX];
	uint8_t source[ROOM], target[ROOM];
	struct rng rng;

	if (!take_word())
		SKIP_FOR(NO_COPIES);
	rng_init(&rng, 1);
	for (int round = 0; round < 20000; round++) {
		uint32_t bytes = rng_u32(&rng) % (round % 2 ? 30 : 700);
		uint32_t in = 0, out = 0, sum = 0;
		struct space_move m = {to, from, 0, 0};

		m.to_count = (uint32_t)cut_pieces(&rng, target, bytes, to, &in);
		m.from_count =
			(uint32_t)cut_pieces(&rng, source, bytes, from, &out);
		assert_true(in <= ROOM && out <= ROOM);
		for (uint32_t i = 0; i < ROOM; i++)
			source[i] = (uint8_t)rng_u32(&rng);
		memset(target, 0, ROOM);
		assert_int_equal(copy_revocable_move(&copy_revocable, &m),
				 COPY_REVOCABLE_DONE);
		for (uint32_t i = 0; i < bytes; i++) {
			assert_int_equal(byte_at(to, i), byte_at(from, i));
			sum += byte_at(to, i);
		}
		assert_int_equal(sum_of(target), sum); /* no other byte */
	}
}

/* Copies bytes, and returns how many ns that took. */
static uint64_t copy_ns(uint8_t *to, const uint8_t *from, uint32_t bytes)
{
	struct space_vec a = {(uintptr_t)to, bytes};
	struct space_vec b = {(uintptr_t)from, bytes};
	struct space_move m = {&a, &b, 1, 1};
	uint64_t began = monotonic_ns();

	assert_int_equal(copy_revocable_move(&copy_revocable, &m),
			 COPY_REVOCABLE_DONE);
	return monotonic_ns() - began;
}

/* Some processors are slow at `rep movsb` if the addresses' last 12 bits differ
 * by a few bytes.  The least times of many copies are compared, because other
 * programs only make a copy slower.  All of 200 copies, which take 40 us, may
 * be slower for such a reason, but not all of COPIES. */
static void a_copy_takes_as_long_at_each_distance(void **state)
{
	uint8_t *from = map_memory(PAGE, MAP_PRIVATE);
	uint8_t *to = map_memory(2 * PAGE, MAP_PRIVATE);

	if (!take_word())
		SKIP_FOR(NO_COPIES);
	for (uint32_t d = 1; d < 16; d++) {
		uint64_t least = UINT64_MAX, near = UINT64_MAX;

		memset(from, (int)d, PAGE);
		for (int i = 0;
		     i < 200 || (i < COPIES && near > 6 * least + 50); i++) {
			uint64_t ns = copy_ns(to, from, PAGE);

			least = ns < least ? ns : least;
			ns = copy_ns(to + d, from, PAGE);
			near = ns < near ? ns : near;
		}
		assert_memory_equal(to + d, from, PAGE);
		assert_true(near <= 6 * least + 50);
	}
	munmap(from, PAGE);
	munmap(to, 2 * PAGE);
}

/* At these distances the copy first moves words of 8 bytes, and then single
 * bytes for the rest. */
static void a_copy_by_words_ends_at_its_last_byte(void **state)
{
	uint8_t *from = map_memory(PAGE, MAP_PRIVATE);
	uint8_t *to = map_memory(PAGE, MAP_PRIVATE);

	if (!take_word())
		SKIP_FOR(NO_COPIES);
	for (uint32_t i = 0; i < PAGE; i++)
		from[i] = (uint8_t)(1 + i % 251);
	for (uint32_t d = 1; d < 16; d++)
		for (uint32_t n = 0; n < 64; n++) {
			memset(to, 0, 128);
			copy_ns(to + d, from, n);
			assert_memory_equal(to + d, from, n);
			assert_int_equal(to[d - 1], 0);
			assert_int_equal(to[d + n], 0);
		}
	munmap(from, PAGE);
	munmap(to, PAGE);
}

/* ---- memory that is not mapped ---- */

static void memory_that_is_not_there_faults(void **state)
{
	uint8_t *gone = map_memory(2 * PAGE, MAP_PRIVATE), there[PAGE];

	if (!take_word())
		SKIP_FOR(NO_COPIES);
	mprotect(gone + PAGE, PAGE, PROT_NONE);
	for (uint32_t n = 1; n < 100; n++) {
		struct space_vec a = {(uintptr_t)there, n};
		struct space_vec b = {(uintptr_t)gone + PAGE - n / 2, n};
		struct space_move put = {&b, &a, 1, 1}, get = {&a, &b, 1, 1};

		assert_int_equal(copy_revocable_move(&copy_revocable, &put),
				 COPY_REVOCABLE_FAULT);
		assert_int_equal(copy_revocable_move(&copy_revocable, &get),
				 COPY_REVOCABLE_FAULT);
	}
	munmap(gone, 2 * PAGE);
}

/* ---- the process that ends the copy ---- */

static void nothing_is_copied_after_the_copy_was_ended(void **state)
{
	uint8_t to[64] = {0}, from[64];
	struct space_vec a = {(uintptr_t)to, 0}, b = {(uintptr_t)from, 0};
	struct space_move m = {&a, &b, 1, 1};

	if (!take_word())
		SKIP_FOR(NO_COPIES);
	memset(from, 1, sizeof(from));
	shared->word = ENDED;
	for (a.bytes = 1; a.bytes <= 64; a.bytes++) {
		b.bytes = a.bytes;
		assert_int_equal(copy_revocable_move(&copy_revocable, &m),
				 COPY_REVOCABLE_ENDED);
		assert_int_equal(to[0], 0);
	}
}

static void atomics_find_and_change_a_word(void **state)
{
	uint64_t word = 5, old = 0;

	if (!take_word())
		SKIP_FOR(NO_COPIES);
	assert_int_equal(copy_revocable_atomic(&copy_revocable, SPACE_FETCH_ADD,
					       &word, 2, 0, &old),
			 COPY_REVOCABLE_DONE);
	assert_int_equal(old, 5);
	assert_int_equal(word, 7);
	assert_int_equal(copy_revocable_atomic(&copy_revocable, SPACE_CAS,
					       &word, 9, 6, &old),
			 COPY_REVOCABLE_DONE);
	assert_int_equal(old, 7);
	assert_int_equal(word, 7);
	assert_int_equal(copy_revocable_atomic(&copy_revocable, SPACE_CAS,
					       &word, 9, 7, &old),
			 COPY_REVOCABLE_DONE);
	assert_int_equal(old, 7);
	assert_int_equal(word, 9);
	shared->word = ENDED;
	assert_int_equal(copy_revocable_atomic(&copy_revocable, SPACE_FETCH_ADD,
					       &word, 2, 0, &old),
			 COPY_REVOCABLE_ENDED);
	assert_int_equal(word, 9);
	shared->word = 0;
	assert_int_equal(copy_revocable_atomic(&copy_revocable, SPACE_FETCH_ADD,
					       (void *)8, 2, 0, &old),
			 COPY_REVOCABLE_FAULT);
}

static void do_nothing(int number)
{
}

static void *disturb_thread(void *thread)
{
	while (shared->stage < 1) {
		pthread_kill(*(pthread_t *)thread, SIGUSR1);
		usleep(50);
	}
	return NULL;
}

/* Signals restart the sequence of instructions, and each atomic is still done
 * once. */
static void an_atomic_is_done_once(void **state)
{
	struct sigaction act = {.sa_handler = do_nothing};
	pthread_t self = pthread_self(), other;
	uint64_t word = 0, old;

	if (!take_word())
		SKIP_FOR(NO_COPIES);
	sigaction(SIGUSR1, &act, NULL);
	shared->stage = 0;
	assert_int_equal(pthread_create(&other, NULL, disturb_thread, &self),
			 0);
	for (uint64_t i = 0; i < 20000000; i++) {
		copy_revocable_atomic(&copy_revocable, SPACE_FETCH_ADD, &word,
				      1, 0, &old);
		assert_true(old == i);
	}
	assert_int_equal(word, 20000000);
	shared->stage = 1;
	pthread_join(other, NULL);
}

/* Each signal restarts the sequence of instructions. */
static void a_copy_continues_after_interruptions(void **state)
{
	struct sigaction act = {.sa_handler = do_nothing};
	uint8_t *to = map_memory(LONG, MAP_PRIVATE),
		*from = map_memory(LONG, MAP_PRIVATE);
	pthread_t self = pthread_self(), other;

	if (!take_word())
		SKIP_FOR(NO_COPIES);
	sigaction(SIGUSR1, &act, NULL);
	for (uint32_t i = 0; i < LONG; i++)
		from[i] = (uint8_t)(i * 31 + i / 4096);
	assert_int_equal(pthread_create(&other, NULL, disturb_thread, &self),
			 0);
	for (uint32_t i = 0; i < 10; i++) {
		uint32_t d = i % 2 * 5; /* 5: words are copied */

		memset(to, 0, LONG);
		copy_ns(to + d, from, LONG - d);
		assert_memory_equal(to + d, from, LONG - d);
	}
	shared->stage = 1;
	pthread_join(other, NULL);
	munmap(to, LONG);
	munmap(from, LONG);
}

static void copy_until_it_ends(uint8_t *to, const uint8_t *from)
{
	struct space_vec a = {(uintptr_t)to, LONG}, b = {(uintptr_t)from, LONG};
	struct space_move m = {&a, &b, 1, 1};
	enum copy_revocable_end end = COPY_REVOCABLE_DONE;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	shared->stage = 1;
	while (!end)
		end = copy_revocable_move(&copy_revocable, &m);
	_exit(end == COPY_REVOCABLE_ENDED ? 0 : 1);
}

static void stop_process(pid_t pid)
{
	int status;

	kill(pid, SIGSTOP);
	assert_int_equal(waitpid(pid, &status, WUNTRACED), pid);
	assert_true(WIFSTOPPED(status));
}

/* A thread is stopped at any instruction, and its copies are ended meanwhile.
 * After it continues, it stores nothing. */
static void a_stopped_thread_finds_its_copy_ended(void **state)
{
	uint8_t *to = map_memory(LONG, MAP_SHARED),
		*from = map_memory(LONG, MAP_PRIVATE);

	if (!take_word())
		SKIP_FOR(NO_COPIES);
	memset(from, 1, LONG);
	for (int round = 0; round < 20; round++) {
		int status = -1;
		pid_t pid;

		shared->word = 0;
		shared->stage = 0;
		pid = fork();
		assert_true(pid >= 0);
		if (!pid)
			copy_until_it_ends(to, from);
		while (!shared->stage)
			sched_yield();
		usleep((useconds_t)(round * 397 % 5000));
		stop_process(pid);
		shared->word = ENDED;
		memset(to, 7, LONG);
		kill(pid, SIGCONT);
		assert_int_equal(waitpid(pid, &status, 0), pid);
		assert_int_equal(status, 0);
		for (uint32_t i = 0; i < LONG; i += 64)
			assert_int_equal(to[i], 7);
	}
	munmap(to, LONG);
	munmap(from, LONG);
}

#define EACH(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		EACH(any_pieces_are_copied_to_any_other_pieces),
		EACH(a_copy_takes_as_long_at_each_distance),
		EACH(a_copy_by_words_ends_at_its_last_byte),
		EACH(memory_that_is_not_there_faults),
		EACH(nothing_is_copied_after_the_copy_was_ended),
		EACH(atomics_find_and_change_a_word),
		EACH(an_atomic_is_done_once),
		EACH(a_copy_continues_after_interruptions),
		EACH(a_stopped_thread_finds_its_copy_ended),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
