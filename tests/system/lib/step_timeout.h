/* SPDX-License-Identifier: BSD-2-Clause */
/* step_timeout: words of shared memory by which the processes of a test take
 * turns, and a time limit for each step of such a process. */
#ifndef TESTS_SYSTEM_LIB_STEP_TIMEOUT_H
#define TESTS_SYSTEM_LIB_STEP_TIMEOUT_H

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Ends the process with what errno says. */
static inline void step_timeout_die(const char *what)
{
	printf("%s: %s\n", what, strerror(errno));
	fflush(stdout);
	_exit(1);
}

static inline int step_timeout_look(const int *word)
{
	return __atomic_load_n(word, __ATOMIC_ACQUIRE);
}

static inline void step_timeout_say(int *word, int value)
{
	__atomic_store_n(word, value, __ATOMIC_RELEASE);
}

/*
 * What this process is at, for so long at most: each step has its own time, for
 * where processors are scarce many take long.  One that takes longer, or a
 * SIGALRM, ends the process, which says the step and why.  Both are borrowed.
 */
void step_timeout_watch(const char *why);
void step_timeout_step(const char *what, unsigned seconds);

/* The test's own time limit is the bound. */
static inline void step_timeout_await(const int *word, int value)
{
	while (step_timeout_look(word) != value)
		usleep(100);
}

#endif
