/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * host/progress_thread: the end of the thread, also if the thread cannot be
 * woken because the program has closed the eventfd.  The test has functions of
 * its own in place of leader.c, and says when a turn of the thread ends, and
 * when progress_thread_stop has waited long enough.
 */
#include "test.h"

#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <time.h>
#include <unistd.h>

#include "host/leader.h"
#include "host/progress_thread.h"
#include "util/count.h"

void __wrap_leader_open(struct progress *p);
void __wrap_leader_close(struct progress *p);
void __wrap_leader_closed(void);
void __wrap_leader_forget(void);
void __wrap_leader_take(void);
void __wrap_leader_give(void);
void __wrap_leader_turn(struct progress *p);
int __wrap_pthread_clockjoin_np(pthread_t thread, void **result, clockid_t id,
				const struct timespec *until);

static struct progress progress;
static sem_t turn;   /* posted: the turn of the thread ends */
static sem_t began;  /* posted: the thread leads, and its turn has begun */
static sem_t given;  /* posted: the thread has released the lock */
static sem_t ended;  /* posted: the thread has ended */
static bool is_open; /* the eventfd of progress is open */
/* If set, the thread releases the lock just before pthread_clockjoin_np says
 * that the time is over. */
static bool ends_last;
static struct count gives, closes, forgets;
static pthread_key_t key; /* its destructor posts `ended` */

void __wrap_leader_open(struct progress *p)
{
}

void __wrap_leader_close(struct progress *p)
{
	if (is_open)
		sem_post(&turn);
}

void __wrap_leader_closed(void)
{
	count_up(&closes);
}

void __wrap_leader_forget(void)
{
	count_up(&forgets);
}

void __wrap_leader_take(void)
{
	pthread_setspecific(key, &ended);
}

void __wrap_leader_give(void)
{
	count_up(&gives);
	sem_post(&given);
}

static void await_post(sem_t *s)
{
	while (sem_wait(s))
		; /* EINTR */
}

void __wrap_leader_turn(struct progress *p)
{
	sem_post(&began);
	await_post(&turn);
}

int __wrap_pthread_clockjoin_np(pthread_t thread, void **result, clockid_t id,
				const struct timespec *until)
{
	if (ends_last) {
		sem_post(&turn);
		await_post(&given);
	}
	return ETIMEDOUT;
}

static void post_end(void *s)
{
	sem_post(s);
}

static int set_up(void **state)
{
	sem_init(&turn, 0, 0);
	sem_init(&began, 0, 0);
	sem_init(&given, 0, 0);
	sem_init(&ended, 0, 0);
	gives = closes = forgets = (struct count){0};
	is_open = true;
	ends_last = false;
	return pthread_key_create(&key, post_end);
}

static int tear_down(void **state)
{
	return pthread_key_delete(key);
}

static void start_thread(void)
{
	assert_int_equal(progress_thread_start(&progress), 0);
	/* a thread whose turn has not begun would end without being woken */
	await_post(&began);
}

static void close_eventfd(void)
{
	close(progress.wake.fd);
	is_open = false;
}

static void assert_counts(uint32_t given_count, uint32_t closed_count,
			  uint32_t forgotten_count)
{
	assert_int_equal(count_now(&gives), given_count);
	assert_int_equal(count_now(&closes), closed_count);
	assert_int_equal(count_now(&forgets), forgotten_count);
}

static void a_thread_that_is_woken_releases_its_locks(void **state)
{
	start_thread();
	assert_true(progress_thread_stop(&progress));
	await_post(&ended);
	assert_counts(1, 1, 0);
}

/* The locks of a thread that has begun to release them are not made free a
 * second time, since the next thread may have taken them meanwhile. */
static void a_thread_that_ends_at_the_last_moment_is_awaited(void **state)
{
	start_thread();
	close_eventfd();
	ends_last = true;
	assert_true(progress_thread_stop(&progress));
	await_post(&ended);
	assert_counts(1, 1, 0);
}

static void a_thread_that_wakes_up_too_late_releases_nothing(void **state)
{
	start_thread();
	close_eventfd();
	assert_false(progress_thread_stop(&progress));
	sem_post(&turn);
	await_post(&ended);
	assert_counts(0, 0, 1);
	is_open = true;
	start_thread();
	assert_true(progress_thread_stop(&progress));
	await_post(&ended);
	assert_counts(1, 1, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			a_thread_that_is_woken_releases_its_locks, set_up,
			tear_down),
		cmocka_unit_test_setup_teardown(
			a_thread_that_ends_at_the_last_moment_is_awaited,
			set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			a_thread_that_wakes_up_too_late_releases_nothing,
			set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
