/* SPDX-License-Identifier: BSD-2-Clause */
/* The text that functions write to stderr, for tests of messages. */
#ifndef TESTS_UNIT_SAID_BY_H
#define TESTS_UNIT_SAID_BY_H

#include "test.h"

#include <sys/wait.h>
#include <unistd.h>

/* Runs `calls` in a child process, where no cause has been explained yet.
 * Stores the text that `calls` writes to stderr, at most size - 1 bytes, and a
 * final 0.  The test fails if the child process ends with another status than
 * 0. */
static inline void said_by(void (*calls)(void), char *text, size_t size)
{
	ssize_t got;
	int ends[2], status;
	pid_t child;

	assert_int_equal(pipe(ends), 0);
	child = fork();
	assert_true(child >= 0);
	if (child == 0) {
		dup2(ends[1], STDERR_FILENO);
		calls();
		_exit(0);
	}
	close(ends[1]);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	got = read(ends[0], text, size - 1);
	assert_true(got >= 0);
	text[got] = '\0';
	close(ends[0]);
}

#endif
