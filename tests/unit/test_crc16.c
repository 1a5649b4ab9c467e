/* SPDX-License-Identifier: BSD-2-Clause */
/* util/crc16: the CRC is that of the definition, with each implementation that
 * this processor has, at each length n up to LENGTHS with the alignment
 * n % ALIGNMENTS, whole and in two parts.  A fork while another thread computes
 * the first CRC does not stop the child. */
#include "test.h"

#include <pthread.h>
#include <semaphore.h>

#include "util/crc16.h"
#include "util/crcfactor.h"
#include "util/crctier.h"
#include "util/rng.h"

#define LENGTHS	   1100
#define ALIGNMENTS 16

static uint8_t bytes[LENGTHS + ALIGNMENTS];

static uint16_t slow_crc(uint16_t crc, const uint8_t *p, size_t n)
{
	for (; n; n--, p++) {
		crc ^= *p;
		for (int bit = 0; bit < 8; bit++)
			crc = (uint16_t)(crc >> 1 ^ (crc & 1 ? 0xd008 : 0));
	}
	return crc;
}

/* begun: posted when the thread that fills the tables is in crcfactor_init.
 * may_end: posted when that thread may leave crcfactor_init. */
static sem_t begun, may_end;
/* the thread that fills the tables, and whether that thread has begun */
static pthread_t filler;
static bool has_filler;

void __real_crcfactor_init(struct crcfactor *f);
void __wrap_crcfactor_init(struct crcfactor *f);
void __wrap_crcfactor_init(struct crcfactor *f)
{
	__real_crcfactor_init(f);
	if (!has_filler || !pthread_equal(filler, pthread_self()))
		return;
	sem_post(&begun);
	sem_wait(&may_end);
}

static void *compute_first(void *arg)
{
	filler = pthread_self();
	has_filler = true;
	crc16_update(CRC16_INIT, bytes, 1);
	return arg;
}

/* This test is the first, since the tables are filled only once.  The thread
 * that fills them holds a lock, and does not exist in the child.  If the child
 * waits for that lock, SIGALRM ends the child. */
static void a_child_does_not_wait_for_a_thread_of_its_parent(void **state)
{
	pid_t parent = getpid(), child;
	pthread_t thread;
	int status;

	sem_init(&begun, 0, 0);
	sem_init(&may_end, 0, 0);
	assert_int_equal(pthread_create(&thread, NULL, compute_first, NULL), 0);
	sem_wait(&begun);
	child = fork();
	assert_true(child >= 0);
	if (!child) {
		test_begin_child(parent);
		alarm(TEST_WAIT_S);
		_exit(crc16_update(CRC16_INIT, bytes, LENGTHS) !=
		      slow_crc(CRC16_INIT, bytes, LENGTHS));
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	sem_post(&may_end);
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_int_equal(status, 0);
}

static int fill_bytes(void **state)
{
	struct rng rng;

	rng_init(&rng, 16);
	for (size_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = (uint8_t)rng_u32(&rng);
	return 0;
}

static void check_length(size_t n)
{
	const uint8_t *p = bytes + n % ALIGNMENTS;
	uint16_t seed = (uint16_t)(n * 40503), want = slow_crc(seed, p, n);
	size_t cut = n * 5 / 7;

	assert_int_equal(crc16_update(seed, p, n), want);
	assert_int_equal(
		crc16_update(crc16_update(seed, p, cut), p + cut, n - cut),
		want);
}

static void each_implementation_agrees_with_the_definition(void **state)
{
	struct crctier chosen = crctier_chosen;

	for (size_t i = 0; i < crctier_count; i++) {
		if (!crctier_all[i].is_here())
			continue;
		crctier_choose(&crctier_all[i]);
		for (size_t n = 0; n <= LENGTHS; n++)
			check_length(n);
	}
	crctier_chosen = chosen;
}

static void each_bit_changes_the_crc_of_a_packet(void **state)
{
	uint16_t whole = crc16_update(CRC16_INIT, bytes, LENGTHS);

	for (size_t bit = 0; bit < LENGTHS * 8; bit++) {
		bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
		assert_int_not_equal(crc16_update(CRC16_INIT, bytes, LENGTHS),
				     whole);
		bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
			a_child_does_not_wait_for_a_thread_of_its_parent),
		cmocka_unit_test(
			each_implementation_agrees_with_the_definition),
		cmocka_unit_test(each_bit_changes_the_crc_of_a_packet),
	};

	return cmocka_run_group_tests(tests, fill_bytes, NULL);
}
