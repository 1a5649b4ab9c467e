/* SPDX-License-Identifier: BSD-2-Clause */
/* broker/entropy: the numbers differ, also from those of a thread that a child
 * of fork makes, and no bit is constant. */
#include "test.h"

#include "broker/entropy.h"

#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

enum { DRAWS = 1000 }; /* more numbers than one system call brings */

/* Two of 1000 numbers are equal with a probability of 2^-45. */
static void no_number_is_given_twice(void **state)
{
	static uint64_t drawn[DRAWS];

	for (int i = 0; i < DRAWS; i++) {
		drawn[i] = entropy();
		assert_int_not_equal(drawn[i], 0);
		for (int k = 0; k < i; k++)
			assert_int_not_equal(drawn[i], drawn[k]);
	}
}

static void every_bit_takes_both_values(void **state)
{
	uint64_t ones = 0, zeros = 0;

	for (int i = 0; i < DRAWS; i++) {
		uint64_t n = entropy();

		ones |= n;
		zeros |= ~n;
	}
	assert_int_equal(ones, UINT64_MAX);
	assert_int_equal(zeros, UINT64_MAX);
}

static void *draw_number(void *to)
{
	*(uint64_t *)to = entropy();
	return NULL;
}

/* After a fork, a thread of the parent and a thread of the child may each run a
 * broker. */
static void a_forks_child_draws_other_numbers(void **state)
{
	uint64_t theirs = 0;
	pthread_t thread;
	int fds[2], status;
	pid_t child;

	assert_int_equal(pipe(fds), 0);
	assert_int_not_equal(entropy(), 0); /* this thread keeps numbers now */
	child = fork();
	assert_true(child >= 0);
	if (!child) {
		if (!pthread_create(&thread, NULL, draw_number, &theirs))
			pthread_join(thread, NULL);
		_exit(write(fds[1], &theirs, sizeof(theirs)) != sizeof(theirs));
	}
	assert_int_equal(read(fds[0], &theirs, sizeof(theirs)), sizeof(theirs));
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	assert_int_not_equal(theirs, 0);
	assert_int_not_equal(theirs, entropy());
	close(fds[0]);
	close(fds[1]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(no_number_is_given_twice),
		cmocka_unit_test(every_bit_takes_both_values),
		cmocka_unit_test(a_forks_child_draws_other_numbers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
