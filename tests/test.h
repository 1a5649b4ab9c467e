/* SPDX-License-Identifier: BSD-2-Clause */
/* Includes and macros of every cmocka test.  cmocka.h needs the four includes
 * before it. */
#ifndef TESTS_TEST_H
#define TESTS_TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

/* Skips the test that calls this macro, and prints the reason.  Each test must
 * give one, so cmocka's skip(), which takes none, is not for tests. */
#define SKIP_FOR(why)                                                          \
	do {                                                                   \
		printf("skipped %s: %s\n", __func__, why);                     \
		fflush(stdout);                                                \
		_skip(__FILE__, __LINE__);                                     \
	} while (0)
#undef skip
/* The time after which a wait for an event that must come has failed, in
 * seconds and in milliseconds: far longer than a busy machine needs, because a
 * test that passes does not wait so long. */
enum { TEST_WAIT_S = 120, TEST_WAIT_MS = TEST_WAIT_S * 1000 };
/* The reason for SKIP_FOR if test_can_be returns false. */
#define ONE_USER "only root can be two users"

/* Raises the soft limit on open files of each test program, as adverbd raises
 * its own: the descriptors that all programs of the user have in flight count
 * against that limit, and leave_in_flight of in_flight.h leaves 1000 in flight.
 */
__attribute__((constructor)) static void test_raise_files(void)
{
	const rlim_t enough = 65536;
	struct rlimit files;

	if (getrlimit(RLIMIT_NOFILE, &files) || files.rlim_cur >= enough)
		return;
	files.rlim_cur = files.rlim_max < enough ? files.rlim_max : enough;
	setrlimit(RLIMIT_NOFILE, &files);
}

/* Returns whether a child process can become @user: the caller must be root, in
 * a user namespace that maps @user.  A test calls this before it opens
 * anything, because SKIP_FOR closes nothing. */
static inline bool test_can_be(uid_t user)
{
	pid_t pid = geteuid() ? -1 : fork();
	int status;

	if (!pid)
		_exit(!!setresuid(user, user, user));
	return pid > 0 && waitpid(pid, &status, 0) == pid && !status;
}

/* A child process that `parent` has forked in a test calls this function first.
 * The child ends with its parent.  The child also ends if one of its assertions
 * fails: otherwise cmocka would let it run the tests that follow, as its parent
 * does. */
static inline void test_begin_child(pid_t parent)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(1);
	setenv("CMOCKA_TEST_ABORT", "1", 1);
}

/* Skips the test that calls this macro if an emulator (ci/test-arm64) runs it.
 * Some system calls of an emulator do not behave as those of the kernel. */
#define NEEDS_KERNEL()                                                         \
	do {                                                                   \
		if (getenv("TEST_EMULATED"))                                   \
			SKIP_FOR("an emulator runs the test");                 \
	} while (0)

/* cmocka 2 has this macro in place of assert_in_range, which no test may use.
 */
#ifndef assert_uint_in_range
#define assert_uint_in_range(value, least, most)                               \
	_assert_in_range(cast_to_largest_integral_type(value),                 \
			 cast_to_largest_integral_type(least),                 \
			 cast_to_largest_integral_type(most), __FILE__,        \
			 __LINE__)
#endif
#undef assert_in_range

#define TEST_COUNT(array) (sizeof(array) / sizeof((array)[0]))

#endif
