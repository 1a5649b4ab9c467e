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
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define CHILDREN 20

static int stderr_before;

/* Puts a memfd in the place of stderr, with these flags of the descriptor, and
 * returns another descriptor of the memfd.  O_APPEND: the kernel does not lock
 * the position of a memfd during a write, so without O_APPEND a process and its
 * child could write to the same place. */
static int replace_stderr(unsigned int flags)
{
	int fd = memfd_create("stderr", 0);

	assert_true(fd >= 0);
	assert_int_equal(fcntl(fd, F_SETFL, O_APPEND), 0);
	stderr_before = dup(STDERR_FILENO);
	assert_int_equal(dup3(fd, STDERR_FILENO, (int)flags), STDERR_FILENO);
	return fd;
}

/* Restores stderr, closes fd, and returns how many bytes were printed since
 * replace_stderr. */
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

/* SIGPIPE has its default action, and would end this process. */
static void a_pipe_without_a_reader_loses_the_sentence_alone(void **state)
{
	int fds[2], before = dup(STDERR_FILENO);

	assert_true(signal(SIGPIPE, SIG_DFL) != SIG_ERR);
	assert_int_equal(pipe(fds), 0);
	close(fds[0]);
	dup2(fds[1], STDERR_FILENO);
	errno = ENOTTY;
	log_say(LOG_TEST, 9, "nine");
	assert_int_equal(errno, ENOTTY);
	dup2(before, STDERR_FILENO);
	close(before);
	close(fds[1]);
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

/* Prints by log_say, r_say and u_say in a child of fork, and ends the child.
 * The parent never prints these sentences, so the child's copies of the sets of
 * printed sentences lack them and have room. */
static _Noreturn void print_in_child(void)
{
	alarm(TEST_WAIT_S);
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

static sem_t may_print;

static void *print_on_demand(void *arg)
{
	for (uint64_t i = 0; i < CHILDREN; i++) {
		sem_wait(&may_print);
		log_say(LOG_TEST, 100 + i, "four");
		r_say("five");
	}
	return NULL;
}

/* The child has the memory of a thread that was perhaps printing, but not the
 * thread.  A lock that the thread held would stay held, and SIGALRM would end
 * the child. */
static void the_child_of_a_fork_can_print(void **state)
{
	pthread_t thread;
	int fd;

	NEEDS_KERNEL();
	fd = replace_stderr(0);
	sem_init(&may_print, 0, 0);
	assert_int_equal(pthread_create(&thread, NULL, print_on_demand, NULL),
			 0);
	for (int i = 0; i < CHILDREN; i++) {
		sem_post(&may_print);
		fork_a_printer();
	}
	pthread_join(thread, NULL);
	assert_int_equal(restore_stderr(fd),
			 CHILDREN * (strlen("adverb: four\n") + CHILD_BYTES) +
				 strlen("adverb: five\n"));
}

/* The point in a call at which the next thread waits: none, before the sentence
 * counts as printed, or just before the sentence is written. */
enum stop { STOPS_NOWHERE, STOPS_AT_BEGIN, STOPS_AT_WRITE };

static _Atomic enum stop next_stop;
static sem_t has_stopped, may_go_on;

static void stop_at(enum stop here)
{
	enum stop found = here;

	if (!atomic_compare_exchange_strong(&next_stop, &found, STOPS_NOWHERE))
		return;
	sem_post(&has_stopped);
	sem_wait(&may_go_on);
}

/* These replace libc's functions for all code that is linked into the test. */
char *secure_getenv(const char *name)
{
	stop_at(STOPS_AT_BEGIN);
	return getenv(name);
}

ssize_t write(int fd, const void *bytes, size_t n)
{
	if (fd == STDERR_FILENO)
		stop_at(STOPS_AT_WRITE);
	return syscall(SYS_write, fd, bytes, n);
}

/* *stop: the thread waits there. */
static void *print_by_log(void *stop)
{
	log_say(LOG_TEST, 200 + *(enum stop *)stop, "thread");
	return NULL;
}

static void *print_by_rdmacm(void *stop)
{
	if (*(enum stop *)stop == STOPS_AT_BEGIN)
		r_say("thread");
	else
		r_say("%s", "thread");
	return NULL;
}

static void *print_by_umad(void *stop)
{
	if (*(enum stop *)stop == STOPS_AT_BEGIN)
		u_say("thread");
	else
		u_say("%s", "thread");
	return NULL;
}

/* Forks a child that prints while a thread waits at this stop in print(). */
static void fork_during(void *(*print)(void *), enum stop stop)
{
	pthread_t thread;

	next_stop = stop;
	assert_int_equal(pthread_create(&thread, NULL, print, &stop), 0);
	sem_wait(&has_stopped);
	fork_a_printer();
	sem_post(&may_go_on);
	pthread_join(thread, NULL);
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
		fork_during(print[i], STOPS_AT_BEGIN);
		fork_during(print[i], STOPS_AT_WRITE);
	}
	assert_int_equal(restore_stderr(fd),
			 2 * TEST_COUNT(print) *
				 (strlen("adverb: thread\n") + CHILD_BYTES));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_sentence_goes_to_stderr),
		cmocka_unit_test(
			a_pipe_without_a_reader_loses_the_sentence_alone),
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
