/* SPDX-License-Identifier: BSD-2-Clause */
/* Helpers for tests of descriptors in flight.  A descriptor is in flight while
 * it is in a message that no process has received.  The helpers are a child
 * process without capabilities, a limit on open files, and a socket that keeps
 * descriptors in flight. */
#ifndef TESTS_UNIT_IN_FLIGHT_H
#define TESTS_UNIT_IN_FLIGHT_H

#include "test.h"

#include "util/scm_rights.h"

#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define UNDER_WAY 1000 /* descriptors that a test leaves in flight */
#define AT_ONCE	  25   /* descriptors in a message */

static inline void limit_files(rlim_t soft, rlim_t hard)
{
	struct rlimit files = {soft, hard};

	assert_int_equal(setrlimit(RLIMIT_NOFILE, &files), 0);
}

/* A process of root takes the uid 65534, if there is this uid, and so loses the
 * capabilities that lift the limit on descriptors in flight. */
static inline void drop_capabilities(void)
{
	if (!geteuid() && setresuid(65534, 65534, 65534))
		print_message("no user 65534: capabilities stay\n");
}

/* Runs @body in a child process, which must end with status 0. */
static inline void run_in_child(void (*body)(void))
{
	pid_t pid = fork();
	int status;

	if (!pid) {
		drop_capabilities();
		body();
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

/* Leaves UNDER_WAY descriptors in flight in a socket that nobody reads; they
 * count against the user's limit until that socket is closed.  Returns the
 * socket. */
static inline int leave_in_flight(void)
{
	int pair[2], fds[AT_ONCE];

	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair), 0);
	for (int i = 0; i < AT_ONCE; i++)
		fds[i] = pair[1];
	for (int i = 0; i < UNDER_WAY / AT_ONCE; i++)
		assert_int_equal(
			scm_rights_send(pair[1], "", 1, fds, AT_ONCE, 0), 1);
	close(pair[1]);
	return pair[0];
}

#endif
