/* SPDX-License-Identifier: BSD-2-Clause */
/* host/post_lock: a thread that posts, and the holder of the progress lock,
 * which takes all post locks. */
#include "test.h"

#include <pthread.h>
#include <sched.h>

#include "host/post_lock.h"

static struct post_locks locks;

static int setup_locks(void **state)
{
	(void)state;
	memset(&locks, 0, sizeof(locks));
	post_lock_init_all(&locks);
	return 0;
}

static int teardown_locks(void **state)
{
	(void)state;
	post_lock_fini_all(&locks);
	return 0;
}

static void
a_poster_does_not_wait_for_a_claim_for_good(void **state) NO_LOCK_ANALYSIS
{
	struct post_lock *l = &locks.of[0];

	(void)state;
	/* another thread has claimed the lock, and has no core to run on */
	shared_store(&l->signs.is_claimed, true);
	for (int i = 0; i < 2; i++) {
		assert_true(post_lock_take_soon(l));
		lock_give(&l->lock);
	}
}

static void a_poster_leaves_a_lock_that_is_kept(void **state) NO_LOCK_ANALYSIS
{
	(void)state;
	post_lock_add(&locks, 3);
	assert_false(post_lock_take_soon(&locks.of[3]));
	assert_true(post_lock_take_soon(&locks.of[2]));
	lock_give(&locks.of[2].lock);
	post_lock_give_all(&locks);
	assert_true(post_lock_take_soon(&locks.of[3]));
	lock_give(&locks.of[3].lock);
}

/* Releases the lock, which the test has taken, when another thread has claimed
 * the lock. */
static void *post_until_claimed(void *lock) NO_LOCK_ANALYSIS
{
	struct post_lock *l = lock;

	while (!shared_load(&l->signs.is_claimed))
		sched_yield();
	lock_give(&l->lock);
	return NULL;
}

static void
a_lock_is_awaited_after_many_tries_in_vain(void **state) NO_LOCK_ANALYSIS
{
	struct post_lock *l = &locks.of[2];
	uint64_t now = 1000;
	pthread_t poster;

	(void)state;
	post_lock_add(&locks, 1);
	post_lock_add(&locks, 2);
	post_lock_give_all(&locks);
	/* the time POST_LOCK_VAIN_NS begins again after each success */
	for (int i = 0; i < 3; i++) {
		assert_true(lock_try(&l->lock));
		assert_false(post_lock_try_all(&locks));
		assert_false(post_lock_insist(&locks, now));
		now += POST_LOCK_VAIN_NS - 1;
		assert_false(post_lock_try_all(&locks));
		assert_false(post_lock_insist(&locks, now));
		/* the other locks are free meanwhile */
		assert_true(lock_try(&locks.of[1].lock));
		lock_give(&locks.of[1].lock);
		lock_give(&l->lock);
		assert_true(post_lock_try_all(&locks));
		post_lock_give_all(&locks);
	}
	assert_true(lock_try(&l->lock));
	assert_false(post_lock_insist(&locks, now));
	assert_int_equal(pthread_create(&poster, NULL, post_until_claimed, l),
			 0);
	assert_true(post_lock_insist(&locks, now + POST_LOCK_VAIN_NS));
	assert_int_equal(pthread_join(poster, NULL), 0);
	assert_false(lock_try(&l->lock));
	post_lock_give_all(&locks);
}

static void
one_queue_pair_of_each_lock_is_taken_over(void **state) NO_LOCK_ANALYSIS
{
	struct ibt_qp *q = (void *)&locks; /* never dereferenced */

	(void)state;
	post_lock_add(&locks, 1);
	post_lock_add(&locks, 4);
	post_lock_set_waiting(&locks.of[4], q);
	assert_true(shared_load(&locks.of[4].signs.waits));
	assert_ptr_equal(post_lock_take_over(&locks, 0), q);
	assert_false(shared_load(&locks.of[4].signs.waits));
	assert_null(post_lock_take_over(&locks, 0));
	post_lock_give_all(&locks);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			a_poster_does_not_wait_for_a_claim_for_good,
			setup_locks, teardown_locks),
		cmocka_unit_test_setup_teardown(
			a_poster_leaves_a_lock_that_is_kept, setup_locks,
			teardown_locks),
		cmocka_unit_test_setup_teardown(
			a_lock_is_awaited_after_many_tries_in_vain, setup_locks,
			teardown_locks),
		cmocka_unit_test_setup_teardown(
			one_queue_pair_of_each_lock_is_taken_over, setup_locks,
			teardown_locks),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
