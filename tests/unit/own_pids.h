/* SPDX-License-Identifier: BSD-2-Clause */
/* PID namespaces of a test's own. */
#ifndef TESTS_UNIT_OWN_PIDS_H
#define TESTS_UNIT_OWN_PIDS_H

#include "test.h"

#include <sched.h>

/* Runs `body` in a PID namespace of its own.  Returns the status of waitpid: 0
 * if `body` returns true; exit status 77 if no namespace can be made. */
static inline int own_pids_run(bool (*body)(void))
{
	pid_t parent = getpid(), pid = fork();
	int status;

	if (!pid) {
		test_begin_child(parent);
		/* the namespace is for the children of this process */
		if (unshare(CLONE_NEWPID) &&
		    unshare(CLONE_NEWUSER | CLONE_NEWPID))
			_exit(77);
		pid = fork();
		if (!pid)
			_exit(!body());
		_exit(pid < 0 || waitpid(pid, &status, 0) != pid || status);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return status;
}

/* Returns whether this status of own_pids_run says that no namespace can be
 * made. */
static inline bool own_pids_lack(int status)
{
	return WIFEXITED(status) && WEXITSTATUS(status) == 77;
}

#endif
