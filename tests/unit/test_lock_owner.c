/* SPDX-License-Identifier: BSD-2-Clause */
/* memory/lock_owner: which owners of shared locks are dead.  The process that
 * asks may have no descriptor left, and its thread may be cancelled. */
#include "test.h"

#include <pthread.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "memory/lock_owner.h"

/* The state that this process shares with its child. */
static struct world {
	_Atomic alock_owner child; /* the child's name; 0: not yet known */
	struct alock lock;
} * shared;

static pid_t child; /* the child's PID; 0: the child was killed */

/* The child holds the lock until it is killed. */
static void hold_lock(pid_t parent) NO_LOCK_ANALYSIS
{
	alock_owner self;

	test_begin_child(parent);
	self = lock_owner_open();
	alock_take(&shared->lock);
	shared->child = self;
	for (;;)
		pause();
}

static int set_up(void **state)
{
	pid_t parent = getpid();

	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE,
		      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	lock_owner_open();
	child = fork();
	if (child < 0)
		return -1;
	if (!child)
		hold_lock(parent);
	while (!shared->child)
		usleep(100);
	return 0;
}

/* Kills the child, unless the child was killed before: another process may then
 * have the PID. */
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
	lock_owner_close();
	return munmap(shared, sizeof(*shared));
}

static void an_owner_is_dead_when_its_thread_has_ended(void **state)
{
	assert_false(alock_is_dead(shared->child));
	end_child();
	assert_true(alock_is_dead(shared->child));
}

/* The number of the owner's thread may belong to a later thread. */
static void an_owner_with_another_start_time_is_dead(void **state)
{
	assert_true(alock_is_dead(shared->child ^ 1ull << 40));
	assert_true(alock_is_dead(shared->child & UINT32_MAX));
}

static struct rlimit files;

static void allow_files(rlim_t count)
{
	struct rlimit few = {count, files.rlim_max};

	assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
}

static void without_descriptors_the_living_are_not_dead(void **state)
{
	bool is_living_dead, are_dead_dead, inherited;

	assert_int_equal(getrlimit(RLIMIT_NOFILE, &files), 0);
	allow_files(0);
	is_living_dead = alock_is_dead(shared->child) ||
			 alock_try(&shared->lock, &inherited);
	end_child();
	are_dead_dead = alock_is_dead(shared->child);
	allow_files(files.rlim_cur);
	assert_false(is_living_dead);
	assert_true(are_dead_dead);
}

/* If the name of this process had no start time, other processes would take
 * this process for dead. */
static void without_descriptors_a_process_gets_no_name(void **state)
{
	alock_owner before = alock_self(), self;

	assert_int_equal(getrlimit(RLIMIT_NOFILE, &files), 0);
	allow_files(0);
	self = lock_owner_open();
	allow_files(files.rlim_cur);
	assert_int_equal(self, 0);
	assert_int_equal(alock_self(), before);
}

/* ---- cancellation ---- */

/* The cancelled thread has reached its pthread_testcancel. */
static bool is_through;

static void *judge_while_cancelled(void *arg)
{
	pthread_cancel(pthread_self());
	*(bool *)arg = alock_is_dead(shared->child);
	alock_halt_of((uint32_t)shared->child);
	is_through = true;
	pthread_testcancel();
	return NULL;
}

static void a_waiter_is_not_cancelled_while_it_judges_the_owner(void **state)
{
	bool is_dead = true;
	pthread_t thread;

	is_through = false;
	assert_int_equal(
		pthread_create(&thread, NULL, judge_while_cancelled, &is_dead),
		0);
	pthread_join(thread, NULL);
	assert_true(is_through);
	assert_false(is_dead);
}

static void *wait_while_cancelled(void *arg)
{
	pthread_cancel(pthread_self());
	alock_take(&shared->lock);
	is_through = true;
	alock_give(&shared->lock);
	pthread_testcancel();
	return NULL;
}

/* Returns the first message that a thread prints while it waits for the child's
 * lock, and kills the child.  SIGALRM ends the test if no message comes. */
static const char *said_while_it_waits(void)
{
	static char text[512];
	int fds[2], old = dup(STDERR_FILENO);
	pthread_t thread;
	void *how;
	ssize_t n;

	assert_int_equal(pipe(fds), 0);
	assert_int_equal(dup2(fds[1], STDERR_FILENO), STDERR_FILENO);
	assert_int_equal(
		pthread_create(&thread, NULL, wait_while_cancelled, NULL), 0);
	alarm(TEST_WAIT_S);
	n = read(fds[0], text, sizeof(text) - 1);
	end_child();
	assert_int_equal(pthread_join(thread, &how), 0);
	alarm(0);
	dup2(old, STDERR_FILENO);
	close(old);
	close(fds[0]);
	close(fds[1]);
	text[n > 0 ? n : 0] = '\0';
	return text;
}

static void a_waiter_is_not_cancelled_while_it_reports_the_owner(void **state)
{
	const char *said;
	char whose[64];

	snprintf(whose, sizeof(whose), "thread %d (test_lock_owner) of a peer",
		 child);
	is_through = false;
	said = said_while_it_waits();
	assert_non_null(strstr(said, whose));
	assert_non_null(strstr(said, "that of a queue pair"));
	assert_true(is_through);
}

#define EACH(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		EACH(an_owner_is_dead_when_its_thread_has_ended),
		EACH(an_owner_with_another_start_time_is_dead),
		EACH(without_descriptors_the_living_are_not_dead),
		EACH(without_descriptors_a_process_gets_no_name),
		EACH(a_waiter_is_not_cancelled_while_it_judges_the_owner),
		EACH(a_waiter_is_not_cancelled_while_it_reports_the_owner),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
