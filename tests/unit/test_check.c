/* SPDX-License-Identifier: BSD-2-Clause */
#include "test.h"

#include "util/check.h"

#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

/* Runs CHECK(holds) in a child process.  Stores what the child writes to
 * stderr, and returns the child's wait status. */
static int run_check(bool holds, char *text, size_t room)
{
	const struct rlimit none = {0, 0};
	ssize_t got, all = 0;
	int out[2], status;
	pid_t pid;

	assert_int_equal(pipe(out), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (!pid) {
		setrlimit(RLIMIT_CORE, &none);
		signal(SIGABRT, SIG_DFL);
		dup2(out[1], STDERR_FILENO);
		CHECK(holds);
		_exit(0);
	}
	close(out[1]);
	while ((got = read(out[0], text + all, room - 1 - (size_t)all)) > 0)
		all += got;
	text[all] = '\0';
	close(out[0]);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return status;
}

static void a_condition_that_holds_changes_nothing(void **state)
{
	char text[256];
	int status = run_check(true, text, sizeof(text));

	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
	assert_string_equal(text, "");
}

static void a_broken_condition_aborts_and_is_printed(void **state)
{
	char text[256];
	int status = run_check(false, text, sizeof(text));

	assert_true(WIFSIGNALED(status));
	assert_int_equal(WTERMSIG(status), SIGABRT);
	assert_non_null(strstr(text, "test_check.c:"));
	assert_non_null(strstr(text, ": holds: adverb has a bug"));
}

static void the_condition_is_evaluated_once(void **state)
{
	int count = 0;

	CHECK(++count);
	assert_int_equal(count, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_condition_that_holds_changes_nothing),
		cmocka_unit_test(a_broken_condition_aborts_and_is_printed),
		cmocka_unit_test(the_condition_is_evaluated_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
