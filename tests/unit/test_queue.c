/* SPDX-License-Identifier: BSD-2-Clause */
/* verbs/queue: the descriptor is readable while an event waits that no thread
 * has claimed. */
#include "test.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sys/ioctl.h>

#include "verbs/queue.h"

static bool is_readable(const struct v_queue *q)
{
	struct pollfd p = {q->fd, POLLIN, 0};

	return poll(&p, 1, 0) == 1;
}

static void open_queue(struct v_queue *q)
{
	assert_int_equal(v_queue_init(q), 0);
	assert_int_equal(fcntl(q->fd, F_SETFL, O_NONBLOCK), 0);
}

static void a_readable_descriptor_means_that_an_event_waits(void **state)
{
	struct v_queue q;
	struct v_source a, b;

	open_queue(&q);
	v_source_init(&a, &a, 1);
	v_source_init(&b, &b, 2);
	assert_false(is_readable(&q));
	assert_null(v_queue_get(&q));
	assert_int_equal(errno, EAGAIN);
	v_queue_post(&q, &a);
	v_queue_post(&q, &b);
	v_queue_post(&q, &a);
	for (int i = 0; i < 3; i++) {
		assert_true(is_readable(&q));
		assert_non_null(v_queue_get(&q));
	}
	assert_false(is_readable(&q));
	assert_int_equal(a.taken, 2);
	assert_int_equal(b.taken, 1);
	v_queue_fini(&q);
}

/* The program has closed the descriptors that it does not know, and opened a
 * file whose descriptor has the number of the queue's. */
static void a_file_of_the_program_holds_no_event(void **state)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	struct v_source a;
	struct v_queue q;

	open_queue(&q);
	v_source_init(&a, &a, 1);
	v_queue_post(&q, &a);
	assert_int_equal(dup2(null, q.fd), q.fd);
	assert_ptr_equal(v_queue_get(&q), &a);
	assert_null(v_queue_get(&q));
	assert_int_equal(errno, EBADF);
	v_queue_fini(&q);
	assert_int_equal(close(q.fd), 0);
	close(null);
}

/* The program's file has bytes, or there is no file. */
static void a_file_of_the_program_is_not_read(void **state)
{
	struct v_source a;
	struct v_queue q;
	int ends[2], bytes = 0;

	open_queue(&q);
	v_source_init(&a, &a, 1);
	assert_int_equal(pipe(ends), 0);
	assert_int_equal(write(ends[1], "of the program..", 16), 16);
	assert_int_equal(dup2(ends[0], q.fd), q.fd);
	assert_null(v_queue_get(&q));
	assert_int_equal(errno, EBADF);
	assert_int_equal(ioctl(q.fd, FIONREAD, &bytes), 0);
	assert_int_equal(bytes, 16);
	close(q.fd);
	v_queue_post(&q, &a);
	assert_ptr_equal(v_queue_get(&q), &a);
	v_queue_fini(&q);
	close(ends[0]);
	close(ends[1]);
}

static void forgetting_a_source_leaves_other_sources(void **state)
{
	struct v_queue q;
	struct v_source a, b;

	NEEDS_KERNEL(); /* RWF_NOWAIT */
	open_queue(&q);
	v_source_init(&a, &a, 1);
	v_source_init(&b, &b, 2);
	v_queue_post(&q, &a);
	v_queue_post(&q, &a);
	v_queue_post(&q, &b);
	assert_ptr_equal(v_queue_get(&q), &a);
	assert_int_equal(v_queue_forget(&q, &a), 1);
	assert_true(is_readable(&q));
	assert_ptr_equal(v_queue_get(&q), &b);
	assert_false(is_readable(&q));
	assert_null(v_queue_get(&q));
	v_queue_fini(&q);
}

/* how often count_wake was called */
static int woken;

static void count_wake(void *arg)
{
	(void)arg;
	woken++;
}

static void *post_one(void *arg)
{
	struct v_queue *q = ((void **)arg)[0];

	v_queue_post(q, ((void **)arg)[1]);
	return NULL;
}

/* Posts an event of the source in another thread, which has no claim. */
static void post_elsewhere(struct v_queue *q, struct v_source *s)
{
	void *both[] = {q, s};
	pthread_t thread;

	assert_int_equal(pthread_create(&thread, NULL, post_one, both), 0);
	pthread_join(thread, NULL);
}

/* Ends the claim of this thread.  takes: also takes the claimed event.  Returns
 * the source of that event; NULL: no event was taken. */
static struct v_source *end_claim(struct v_queue *q, bool takes)
{
	struct v_source *s;

	assert_true(v_queue_unclaim(q, takes, &s));
	return s;
}

static void a_claimed_event_has_no_token(void **state)
{
	struct v_queue q;
	struct v_source a, b;

	open_queue(&q);
	v_source_init(&a, &a, 1);
	v_source_init(&b, &b, 2);
	woken = 0;
	assert_true(v_queue_claim(&q, count_wake, NULL));
	assert_false(v_queue_claim(&q, count_wake, NULL));
	v_queue_post(&q, &a);
	assert_int_equal(woken, 0); /* this thread has the claim */
	assert_true(v_queue_has_claimed(&q));
	assert_false(is_readable(&q));
	v_queue_post(&q, &b);
	assert_true(is_readable(&q));
	assert_ptr_equal(end_claim(&q, true), &a);
	assert_false(v_queue_has_claimed(&q));
	assert_ptr_equal(v_queue_get(&q), &b);
	assert_false(is_readable(&q));
	assert_true(v_queue_claim(&q, count_wake, NULL));
	post_elsewhere(&q, &a);
	assert_int_equal(woken, 1);
	assert_ptr_equal(end_claim(&q, true), &a);
	v_queue_fini(&q);
}

static void a_claim_given_back_leaves_its_event(void **state)
{
	struct v_queue q;
	struct v_source a;

	open_queue(&q);
	v_source_init(&a, &a, 1);
	assert_true(v_queue_claim(&q, count_wake, NULL));
	assert_null(end_claim(&q, false));
	assert_true(v_queue_claim(&q, count_wake, NULL));
	v_queue_post(&q, &a);
	assert_null(end_claim(&q, false));
	assert_true(is_readable(&q));
	assert_false(v_queue_claim(&q, count_wake, NULL));
	assert_ptr_equal(v_queue_get(&q), &a);
	assert_false(is_readable(&q));
	v_queue_fini(&q);
}

/* After v_queue_forget each event except the claimed event has a token. */
static void a_claimed_source_is_forgotten(void **state)
{
	struct v_queue q;
	struct v_source a, b;

	NEEDS_KERNEL(); /* RWF_NOWAIT */
	open_queue(&q);
	v_source_init(&a, &a, 1);
	v_source_init(&b, &b, 2);
	assert_true(v_queue_claim(&q, count_wake, NULL));
	v_queue_post(&q, &a);
	assert_int_equal(v_queue_forget(&q, &a), 0);
	assert_false(v_queue_has_claimed(&q));
	v_queue_post(&q, &b);
	assert_true(v_queue_has_claimed(&q));
	v_queue_post(&q, &a);
	v_queue_forget(&q, &b);
	assert_ptr_equal(end_claim(&q, true), &a);
	assert_false(is_readable(&q));
	assert_true(v_queue_claim(&q, count_wake, NULL));
	v_queue_fini(&q);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
			a_readable_descriptor_means_that_an_event_waits),
		cmocka_unit_test(a_file_of_the_program_holds_no_event),
		cmocka_unit_test(a_file_of_the_program_is_not_read),
		cmocka_unit_test(forgetting_a_source_leaves_other_sources),
		cmocka_unit_test(a_claimed_event_has_no_token),
		cmocka_unit_test(a_claim_given_back_leaves_its_event),
		cmocka_unit_test(a_claimed_source_is_forgotten),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
