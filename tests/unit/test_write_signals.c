/* SPDX-License-Identifier: BSD-2-Clause */
/* util/write_signals: between write_signals_hold and write_signals_give, a file
 * above RLIMIT_FSIZE and a pipe without a reader are errors and no signals;
 * signals of the program stay as they were. */
#include "test.h"

#include "util/write_signals.h"

#include <errno.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

enum { LIMIT = 4096 };

/* Makes a memory file larger than RLIMIT_FSIZE; returns errno, or 0. */
static int exceed_limit(void)
{
	int fd = memfd_create("long", MFD_CLOEXEC), err;

	err = ftruncate(fd, 2 * LIMIT) ? errno : 0;
	close(fd);
	return err;
}

/* Runs `steps` in a child process with an RLIMIT_FSIZE of LIMIT, in which
 * SIGXFSZ has its default action.  Returns the wait status. */
static int run_limited(int (*steps)(void))
{
	const struct rlimit limit = {LIMIT, LIMIT}, none = {0, 0};
	pid_t pid = fork();
	int status;

	assert_true(pid >= 0);
	if (!pid) {
		signal(SIGXFSZ, SIG_DFL);
		setrlimit(RLIMIT_CORE, &none);
		setrlimit(RLIMIT_FSIZE, &limit);
		_exit(steps());
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return status;
}

static int exceed_between(void)
{
	struct write_signals held;

	write_signals_hold(&held);
	if (exceed_limit() != EFBIG)
		return 1;
	errno = EXDEV;
	write_signals_give(&held);
	return errno == EXDEV ? 0 : 2;
}

static int exceed_after(void)
{
	struct write_signals held;

	write_signals_hold(&held);
	write_signals_give(&held);
	return exceed_limit();
}

/* SIGXFSZ is blocked, SIGPIPE is not. */
static int write_to_nobody(void)
{
	struct write_signals held;
	sigset_t set;
	int fds[2];

	signal(SIGPIPE, SIG_DFL);
	sigemptyset(&set);
	sigaddset(&set, SIGXFSZ);
	sigprocmask(SIG_BLOCK, &set, NULL);
	if (pipe(fds) || close(fds[0]))
		return 1;
	write_signals_hold(&held);
	if (write(fds[1], "", 1) >= 0 || errno != EPIPE)
		return 2;
	write_signals_give(&held);
	sigprocmask(SIG_SETMASK, NULL, &set);
	return sigismember(&set, SIGPIPE) || !sigismember(&set, SIGXFSZ);
}

static void a_pipe_without_a_reader_is_an_error_and_no_signal(void **state)
{
	int status = run_limited(write_to_nobody);

	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
}

static int exceed_while_blocked(void)
{
	sigset_t set, pending, now;
	struct write_signals held;

	sigemptyset(&set);
	sigaddset(&set, SIGXFSZ);
	sigprocmask(SIG_BLOCK, &set, NULL);
	if (exceed_limit() != EFBIG)
		return 1;
	write_signals_hold(&held);
	write_signals_give(&held);
	sigpending(&pending);
	sigprocmask(SIG_SETMASK, NULL, &now);
	return sigismember(&pending, SIGXFSZ) && sigismember(&now, SIGXFSZ) ? 0
									    : 2;
}

static void a_file_above_the_limit_is_an_error_and_no_signal(void **state)
{
	int status = run_limited(exceed_between);

	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
}

static void the_signal_is_delivered_again_afterwards(void **state)
{
	int status = run_limited(exceed_after);

	assert_true(WIFSIGNALED(status));
	assert_int_equal(WTERMSIG(status), SIGXFSZ);
}

static void a_signal_that_the_program_blocks_stays_pending(void **state)
{
	int status = run_limited(exceed_while_blocked);

	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
			a_file_above_the_limit_is_an_error_and_no_signal),
		cmocka_unit_test(
			a_pipe_without_a_reader_is_an_error_and_no_signal),
		cmocka_unit_test(the_signal_is_delivered_again_afterwards),
		cmocka_unit_test(
			a_signal_that_the_program_blocks_stays_pending),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
