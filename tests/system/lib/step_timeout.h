/* SPDX-License-Identifier: BSD-2-Clause */
/* step_timeout: words of shared memory by which the processes of a test take
 * turns, and a time limit for each step of such a process. */
#ifndef TESTS_SYSTEM_LIB_STEP_TIMEOUT_H
#define TESTS_SYSTEM_LIB_STEP_TIMEOUT_H

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* Prints @what and the error of errno, and ends the process with status 1. */
static inline void step_timeout_die(const char *what)
{
	printf("%s: %s\n", what, strerror(errno));
	fflush(stdout);
	_exit(1);
}

/* Prints @what, a failure that has no error of errno, and ends the process with
 * status 1. */
static inline void step_timeout_fail(const char *what)
{
	printf("%s\n", what);
	fflush(stdout);
	_exit(1);
}

/* Maps @bytes of zeroed memory, which this process and the processes that it
 * forks later share.  Returns the memory, which stays mapped until the process
 * ends.  If the kernel gives no memory, ends the process by step_timeout_die.
 */
static inline void *step_timeout_share(size_t bytes)
{
	void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
		       MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		step_timeout_die("mmap");
	return p;
}

/* Forks, and returns what fork(2) returns.  If fork(2) fails, ends the process
 * by step_timeout_die.  If this function returned -1 instead, a caller could
 * pass that as a PID to kill(2), which would signal every process of the user.
 */
static inline pid_t step_timeout_fork(void)
{
	pid_t pid = fork();

	if (pid < 0)
		step_timeout_die("fork");
	return pid;
}

/* Returns the value of a word of shared memory.  Acquire: this load precedes
 * the reader's later loads of the memory that the writer has set before
 * step_timeout_say.  Without this order the reader could use addresses that are
 * not yet there. */
static inline int step_timeout_look(const int *word)
{
	return __atomic_load_n(word, __ATOMIC_ACQUIRE);
}

/* Sets a word of shared memory.  Release: the writer's earlier stores, such as
 * those of addresses, precede this store.  Without this order a process that
 * sees the new value by step_timeout_look could read old addresses. */
static inline void step_timeout_say(int *word, int value)
{
	__atomic_store_n(word, value, __ATOMIC_RELEASE);
}

/*
 * Handles SIGALRM from now on: the process prints the current step and @why,
 * and exits with status 1.  @why is borrowed until the process ends.
 */
void step_timeout_watch(const char *why);
/*
 * Begins a step: a SIGALRM ends the process if the step takes more than
 * @seconds.  Each step has its own limit, since many steps together take long
 * on a busy machine.  @what, the step's name, is borrowed until the next step.
 */
void step_timeout_step(const char *what, unsigned seconds);

/* Waits until a word of shared memory has this value.  The wait has no limit of
 * its own: only the time limit of a step that the process has begun ends the
 * process. */
static inline void step_timeout_await(const int *word, int value)
{
	while (step_timeout_look(word) != value)
		usleep(100);
}

#endif
