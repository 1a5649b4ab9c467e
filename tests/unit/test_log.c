/* SPDX-License-Identifier: BSD-2-Clause */
/* log/log, and the explanations of librdmacm and libibumad: where a sentence is
 * written, and how often. */
#include "log/log.h"
#include "test.h"

#include "host/host.h"
#include "rdmacm/explain.h"
#include "umad/explain.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define CHILDREN 200
#define HANGS_S	 20

static int stderr_before;

/* Puts a memfd in the place of stderr, and returns another descriptor of it. */
static int replace_stderr(unsigned int flags)
{
	int fd = memfd_create("stderr", 0);

	assert_true(fd >= 0);
	stderr_before = dup(STDERR_FILENO);
	assert_int_equal(dup3(fd, STDERR_FILENO, (int)flags), STDERR_FILENO);
	return fd;
}

static off_t restore_stderr(int fd)
{
	off_t size = lseek(fd, 0, SEEK_END);

	dup2(stderr_before, STDERR_FILENO);
	close(stderr_before);
	close(fd);
	return size;
}

static void a_sentence_goes_to_stderr(void **state)
{
	int fd = replace_stderr(0);

	errno = ENOTTY;
	log_say(LOG_TEST, 1, "one");
	assert_int_equal(errno, ENOTTY);
	assert_int_equal(restore_stderr(fd), strlen("adverb: one\n"));
}

static void a_sentence_is_not_printed_twice(void **state)
{
	int fd = replace_stderr(0);

	for (int i = 0; i < 3; i++) {
		log_say(LOG_TEST, 6, "six");
		r_say("seven");
	}
	assert_int_equal(restore_stderr(fd),
			 strlen("adverb: six\nadverb: seven\n"));
}

static void each_cause_and_each_object_has_its_own_sentence(void **state)
{
	int fd = replace_stderr(0);

	log_say(LOG_TEST, 7, "a");
	log_say(LOG_TEST, 8, "b");
	log_say(LOG_JUNK, 7, "c");
	log_say(LOG_VERB, 7 | 1ull << 55, "d");
	log_say(LOG_VERB, 7, "e");
	log_say(LOG_JUNK, 7, "f");
	assert_int_equal(restore_stderr(fd), 5 * strlen("adverb: a\n"));
}

/* In a program that has closed stderr, number 2 may be a descriptor of adverb.
 */
static void
nothing_is_written_to_a_descriptor_that_took_the_number(void **state)
{
	int fd = replace_stderr(O_CLOEXEC);

	errno = ENOTTY;
	log_say(LOG_TEST, 2, "two");
	r_say("three");
	assert_int_equal(errno, ENOTTY);
	assert_int_equal(u_no_port("umad_open_port"), -ENODEV);
	assert_int_equal(restore_stderr(fd), 0);
}

/* Called in a child of a fork.  The parent never prints these sentences, so the
 * child's copies of the sets of printed sentences lack them and have room. */
static _Noreturn void print_in_child(void)
{
	alarm(HANGS_S);
	log_say(LOG_TEST, 20, "child");
	r_say("child");
	u_say("child");
	_exit(0);
}

#define CHILD_BYTES (3 * strlen("adverb: child\n"))

/* Forks a child that prints, and fails unless the child ends by itself. */
static void fork_a_printer(void)
{
	pid_t child = fork();
	int status;

	if (child == 0)
		print_in_child();
	assert_true(child > 0);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
}

static atomic_bool is_over;

static void *keep_talking(void *arg)
{
	do {
		log_say(LOG_TEST, 4, "four");
		r_say("five");
	} while (!is_over);
	return NULL;
}

/* The child has the memory of a thread that was printing, but not the thread.
 */
static void the_child_of_a_fork_can_print(void **state)
{
	pthread_t talker;
	int fd;

	NEEDS_KERNEL();
	fd = replace_stderr(0);
	assert_int_equal(pthread_create(&talker, NULL, keep_talking, NULL), 0);
	for (int i = 0; i < CHILDREN; i++)
		fork_a_printer();
	is_over = true;
	pthread_join(talker, NULL);
	assert_int_equal(restore_stderr(fd),
			 strlen("adverb: four\nadverb: five\n") +
				 CHILDREN * CHILD_BYTES);
}

static atomic_bool is_to_stop; /* the next write to stderr waits */
static sem_t has_stopped, may_go_on;

/* Replaces libc's write for all code that is linked into the test. */
ssize_t write(int fd, const void *bytes, size_t n)
{
	if (fd == STDERR_FILENO && atomic_exchange(&is_to_stop, false)) {
		sem_post(&has_stopped);
		sem_wait(&may_go_on);
	}
	return syscall(SYS_write, fd, bytes, n);
}

static void *print_by_log(void *arg)
{
	log_say(LOG_TEST, 9, "thread");
	return NULL;
}

static void *print_by_rdmacm(void *arg)
{
	r_say("thread");
	return NULL;
}

static void *print_by_umad(void *arg)
{
	u_say("thread");
	return NULL;
}

static void
the_child_of_a_fork_can_print_while_a_thread_is_in_the_call(void **state)
{
	void *(*const print[])(void *) = {print_by_log, print_by_rdmacm,
					  print_by_umad};
	int fd;

	NEEDS_KERNEL();
	fd = replace_stderr(0);
	sem_init(&has_stopped, 0, 0);
	sem_init(&may_go_on, 0, 0);
	for (size_t i = 0; i < TEST_COUNT(print); i++) {
		pthread_t thread;

		is_to_stop = true;
		assert_int_equal(pthread_create(&thread, NULL, print[i], NULL),
				 0);
		sem_wait(&has_stopped);
		fork_a_printer();
		sem_post(&may_go_on);
		pthread_join(thread, NULL);
	}
	assert_int_equal(restore_stderr(fd),
			 TEST_COUNT(print) *
				 (strlen("adverb: thread\n") + CHILD_BYTES));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_sentence_goes_to_stderr),
		cmocka_unit_test(a_sentence_is_not_printed_twice),
		cmocka_unit_test(
			each_cause_and_each_object_has_its_own_sentence),
		cmocka_unit_test(
			nothing_is_written_to_a_descriptor_that_took_the_number),
		cmocka_unit_test(the_child_of_a_fork_can_print),
		cmocka_unit_test(
			the_child_of_a_fork_can_print_while_a_thread_is_in_the_call),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
