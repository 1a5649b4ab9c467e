/* SPDX-License-Identifier: BSD-2-Clause */
/* The text that functions write to stderr, for tests of messages. */
#ifndef TESTS_UNIT_SAID_BY_H
#define TESTS_UNIT_SAID_BY_H

#include "test.h"

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

/* Runs `calls` in a child process, so that a cause that was explained there is
 * explained again in the next child.  Stores the first size - 1 bytes that
 * `calls` writes to stderr, and a final 0; further bytes are dropped.  The test
 * fails if the child process ends with another status than 0. */
static inline void said_by(void (*calls)(void), char *text, size_t size)
{
	/* The child writes to a file: a write to a pipe that nobody reads waits
	 * after 64 KiB. */
	int said = memfd_create("said", MFD_CLOEXEC), status;
	ssize_t got;
	pid_t parent = getpid(), child;

	assert_true(said >= 0);
	child = fork();
	assert_true(child >= 0);
	if (child == 0) {
		test_begin_child(parent);
		dup2(said, STDERR_FILENO);
		calls();
		_exit(0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	got = pread(said, text, size - 1, 0);
	assert_true(got >= 0);
	text[got] = '\0';
	close(said);
}

#endif
