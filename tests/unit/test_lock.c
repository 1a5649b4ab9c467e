/* SPDX-License-Identifier: BSD-2-Clause */
/* util/lock: locks in shared memory (struct alock), which threads and processes
 * take.  Some of these processes die.  The last tests are about struct lock,
 * which only the threads of one process take. */
#include "test.h"

#include "util/lock.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define THREADS 4
#define ROUNDS	20000

struct shared {
	/* taken by the threads and processes of a test */
	struct alock lock;
	/* twin: a copy of count, which a holder of the lock makes after it has
	 * added 1 to count.  So the two differ if the holder was killed in
	 * between. */
	uint64_t count, twin;
	/* 1: hold_until_told has the lock; 2: hold_until_told may release the
	 * lock */
	_Atomic int stage;
};

static struct shared *shared;
/* How often report_slow was called. */
static int slow;

/* In this test an owner is a pid.  A child counts as alive until waitpid has
 * reaped it. */
static bool is_dead(alock_owner owner)
{
	return kill((pid_t)owner, 0) && errno == ESRCH;
}

static void report_slow(alock_owner owner)
{
	/* Any memory order would do: let_go_later depends on no store of this
	 * thread but that of this number. */
	__atomic_add_fetch(&slow, 1, __ATOMIC_RELEASE);
}

static const struct alock_judge judge = {is_dead, report_slow};

static int yields;
static bool yields_last;

/* Replaces the C library's sched_yield.  Counts the calls.  With yields_last,
 * each call takes as long as on a busy machine. */
int sched_yield(void)
{
	__atomic_add_fetch(&yields, 1, __ATOMIC_RELAXED);
	if (yields_last)
		usleep(1000);
	return syscall(SYS_sched_yield) ? -1 : 0;
}

static int set_up(void **state)
{
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE,
		      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	alock_open((alock_owner)getpid(), &judge);
	slow = 0;
	return shared == MAP_FAILED;
}

static int tear_down(void **state)
{
	return munmap(shared, sizeof(*shared));
}

static void *count_rounds(void *arg)
{
	for (int i = 0; i < ROUNDS; i++) {
		if (alock_take(&shared->lock))
			abort();
		shared->count++;
		shared->twin = shared->count;
		alock_give(&shared->lock);
	}
	return NULL;
}

static void threads_take_turns(void **state)
{
	pthread_t t[THREADS];

	for (int i = 0; i < THREADS; i++)
		assert_int_equal(
			pthread_create(&t[i], NULL, count_rounds, NULL), 0);
	for (int i = 0; i < THREADS; i++)
		pthread_join(t[i], NULL);
	assert_int_equal(shared->count, THREADS * ROUNDS);
	assert_int_equal(alock_holder(&shared->lock), 0);
}

static pid_t begin_process(void (*what)(void))
{
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (!pid) {
		alock_open((alock_owner)getpid(), &judge);
		what();
		_exit(0);
	}
	return pid;
}

static void count_here(void)
{
	count_rounds(NULL);
}

static void processes_take_turns(void **state)
{
	pid_t a = begin_process(count_here), b = begin_process(count_here);

	waitpid(a, NULL, 0);
	waitpid(b, NULL, 0);
	assert_int_equal(shared->count, 2 * ROUNDS);
}

static void die_inside(void) NO_LOCK_ANALYSIS
{
	alock_take(&shared->lock);
	shared->count++;
	raise(SIGKILL);
}

static void the_lock_of_the_dead_is_inherited_once(void **state)
{
	waitpid(begin_process(die_inside), NULL, 0);
	assert_true(alock_take(&shared->lock));
	assert_int_equal(alock_holder(&shared->lock), getpid());
	alock_give(&shared->lock);
	assert_false(alock_take(&shared->lock));
	alock_give(&shared->lock);
}

/* If a thread yielded many times before it looked whether the owner is dead, a
 * few dead owners would cost seconds where other processes are busy. */
static void the_dead_are_not_waited_for_by_many_long_yields(void **state)
{
	waitpid(begin_process(die_inside), NULL, 0);
	yields_last = true;
	yields = 0;
	assert_true(alock_take(&shared->lock));
	alock_give(&shared->lock);
	yields_last = false;
	assert_uint_in_range(yields, 1, 2);
}

static void a_try_inherits_from_the_dead_and_not_from_the_living(void **state)
	NO_LOCK_ANALYSIS
{
	bool inherited;

	waitpid(begin_process(die_inside), NULL, 0);
	assert_true(alock_try(&shared->lock, &inherited));
	assert_true(inherited);
	assert_false(alock_try(&shared->lock, &inherited));
	assert_false(inherited);
	alock_give(&shared->lock);
	assert_true(alock_try(&shared->lock, &inherited));
	assert_false(inherited);
	alock_give(&shared->lock);
}

static void hold_until_told(void)
{
	alock_take(&shared->lock);
	shared->stage = 1;
	while (shared->stage != 2)
		usleep(1000);
	alock_give(&shared->lock);
}

static void *let_go_later(void *arg)
{
	while (!__atomic_load_n(&slow, __ATOMIC_ACQUIRE))
		usleep(1000);
	kill(*(pid_t *)arg, SIGCONT);
	shared->stage = 2;
	return NULL;
}

static void a_stopped_owner_is_waited_for_and_reported_once(void **state)
{
	pid_t pid = begin_process(hold_until_told);
	pthread_t t;

	while (shared->stage != 1)
		usleep(1000);
	kill(pid, SIGSTOP);
	pthread_create(&t, NULL, let_go_later, &pid);
	assert_false(alock_take(&shared->lock));
	alock_give(&shared->lock);
	pthread_join(t, NULL);
	assert_int_equal(slow, 1);
	waitpid(pid, NULL, 0);
}

/* A caller of alock_wait reads the owner again before each wait.  The owner is
 * 0 if the lock was released in between.  Neither 0 nor ALOCK_NAMELESS names a
 * process that could be reported. */
static void no_owner_without_a_name_is_reported(void **state)
{
	struct alock_wait w = {
		.tries = ALOCK_SOON, .is_late = true, .since_ns = 1};

	assert_false(alock_wait(&w, 0));
	assert_false(alock_wait(&w, ALOCK_NAMELESS));
	assert_int_equal(slow, 0);
	assert_false(alock_wait(&w, (alock_owner)getppid()));
	assert_int_equal(slow, 1);
}

static void *take_one(void *arg)
{
	*(bool *)arg = alock_take(&shared->lock);
	shared->count++;
	alock_give(&shared->lock);
	return NULL;
}

static void
one_of_many_waiters_takes_over_the_lock_of_a_dead_owner(void **state)
{
	bool inherited[THREADS];
	pthread_t t[THREADS];
	int heirs = 0;

	waitpid(begin_process(die_inside), NULL, 0);
	for (int i = 0; i < THREADS; i++)
		pthread_create(&t[i], NULL, take_one, &inherited[i]);
	for (int i = 0; i < THREADS; i++) {
		pthread_join(t[i], NULL);
		heirs += inherited[i];
	}
	assert_int_equal(heirs, 1);
	assert_int_equal(shared->count, 1 + THREADS);
}

/* When the process is killed, count and twin differ by at most one. */
static void count_for_ever(void)
{
	for (;;) {
		if (alock_take(&shared->lock))
			shared->count = shared->twin;
		shared->count++;
		shared->twin = shared->count;
		alock_give(&shared->lock);
	}
}

static void a_process_killed_anywhere_leaves_a_lock_to_inherit(void **state)
{
	for (int i = 0; i < 100; i++) {
		pid_t pid = begin_process(count_for_ever);
		uint64_t before =
			__atomic_load_n(&shared->twin, __ATOMIC_RELAXED);

		while (__atomic_load_n(&shared->twin, __ATOMIC_RELAXED) -
			       before <
		       (uint64_t)i)
			sched_yield();
		kill(pid, SIGKILL);
		waitpid(pid, NULL, 0);
		if (alock_take(&shared->lock))
			assert_true(shared->count - shared->twin <= 1);
		else
			assert_int_equal(shared->count, shared->twin);
		shared->twin = shared->count;
		alock_give(&shared->lock);
	}
}

static void
a_nameless_owners_lock_is_not_inherited(void **state) NO_LOCK_ANALYSIS
{
	bool inherited;

	alock_open(ALOCK_NAMELESS, &judge);
	alock_take(&shared->lock);
	alock_open((alock_owner)getpid(), &judge);
	assert_false(alock_try(&shared->lock, &inherited));
	assert_false(inherited);
}

/* ---- the lock of one process ---- */

static struct lock own;

/* Most holders release the lock at once.  Some sleep, so that other threads
 * sleep until the release. */
static void *count_under_own(void *arg)
{
	const struct timespec nap = {0, 20000};

	for (int i = 0; i < ROUNDS / 4; i++) {
		if (i % 16 || !lock_try(&own))
			lock_take(&own);
		shared->count++;
		shared->twin = shared->count;
		if (i % 64 == 0)
			nanosleep(&nap, NULL);
		lock_give(&own);
	}
	return NULL;
}

static void each_thread_that_waits_for_a_lock_gets_it(void **state)
{
	pthread_t t[THREADS];

	lock_init(&own);
	for (int i = 0; i < THREADS; i++)
		assert_int_equal(
			pthread_create(&t[i], NULL, count_under_own, NULL), 0);
	for (int i = 0; i < THREADS; i++)
		pthread_join(t[i], NULL);
	assert_int_equal(shared->count, THREADS * (ROUNDS / 4));
	lock_fini(&own);
}

static void *try_own(void *arg) NO_LOCK_ANALYSIS
{
	*(bool *)arg = lock_try(&own);
	if (*(bool *)arg)
		lock_give(&own);
	return NULL;
}

static bool is_free_for_another(void)
{
	bool got = false;
	pthread_t t;

	assert_int_equal(pthread_create(&t, NULL, try_own, &got), 0);
	pthread_join(t, NULL);
	return got;
}

static void a_try_does_not_wait(void **state)
{
	lock_init(&own);
	assert_true(is_free_for_another());
	lock_take(&own);
	assert_false(is_free_for_another());
	lock_give(&own);
	assert_true(is_free_for_another());
	lock_fini(&own);
}

#define EACH(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		EACH(threads_take_turns),
		EACH(processes_take_turns),
		EACH(the_lock_of_the_dead_is_inherited_once),
		EACH(the_dead_are_not_waited_for_by_many_long_yields),
		EACH(a_try_inherits_from_the_dead_and_not_from_the_living),
		EACH(a_stopped_owner_is_waited_for_and_reported_once),
		EACH(no_owner_without_a_name_is_reported),
		EACH(one_of_many_waiters_takes_over_the_lock_of_a_dead_owner),
		EACH(a_process_killed_anywhere_leaves_a_lock_to_inherit),
		EACH(a_nameless_owners_lock_is_not_inherited),
		EACH(each_thread_that_waits_for_a_lock_gets_it),
		EACH(a_try_does_not_wait),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
