/* SPDX-License-Identifier: BSD-2-Clause */
/* step_timeout: words of shared memory by which the processes of a test take
 * turns, and a time limit for each step of such a process. */
#ifndef TESTS_SYSTEM_LIB_STEP_TIMEOUT_H
#define TESTS_SYSTEM_LIB_STEP_TIMEOUT_H

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Prints @what and the error of errno, and ends the process with status 1. */
static inline void step_timeout_die(const char *what)
{
	printf("%s: %s\n", what, strerror(errno));
	fflush(stdout);
	_exit(1);
}

/* Returns the value of a word of shared memory.  Acquire: the reader then sees
 * all that the writer wrote before step_timeout_say. */
static inline int step_timeout_look(const int *word)
{
	return __atomic_load_n(word, __ATOMIC_ACQUIRE);
}

/* Sets a word of shared memory.  Release: see step_timeout_look. */
static inline void step_timeout_say(int *word, int value)
{
	__atomic_store_n(word, value, __ATOMIC_RELEASE);
}

/*
 * Handles SIGALRM from now on: the process prints the present step and @why,
 * and ends with status 1.  @why is borrowed.
 */
void step_timeout_watch(const char *why);
/*
 * Begins a step with a time limit of its own, since where processors are scarce
 * many steps take long.  A SIGALRM ends the process after @seconds.  @what, the
 * step's name, is borrowed.
 */
void step_timeout_step(const char *what, unsigned seconds);

/* Waits until a word of shared memory has this value; the step's time limit is
 * the bound. */
static inline void step_timeout_await(const int *word, int value)
{
	while (step_timeout_look(word) != value)
		usleep(100);
}

#endif
