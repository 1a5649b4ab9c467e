/* SPDX-License-Identifier: BSD-2-Clause */
/* util/process: a child has another number than its parent, whatever their
 * process IDs and the call that made the child. */
#include "own_pids.h"

#include <sys/syscall.h>

#include "util/process.h"

static long fork_by_libc(void)
{
	return fork();
}

/* Makes a child that runs no handlers of pthread_atfork. */
static long fork_by_kernel(void)
{
	return syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
}

/* Returns whether a child of this process has a number of its own. */
static bool differs_after(long (*make_child)(void))
{
	uint64_t parent = process_number();
	pid_t child = (pid_t)make_child();
	int status;

	if (!child)
		_exit(!process_number() || process_number() == parent);
	return child > 0 && waitpid(child, &status, 0) == child && !status;
}

static void a_process_keeps_its_number(void **state)
{
	assert_true(process_number() != 0);
	assert_int_equal(process_number(), process_number());
}

static void a_child_has_a_number_of_its_own(void **state)
{
	assert_true(differs_after(fork_by_libc));
	assert_true(differs_after(fork_by_kernel));
}

/* Runs as the first process of a PID namespace. */
static bool first_child_differs(void)
{
	return getpid() == 1 && !unshare(CLONE_NEWPID) &&
	       differs_after(fork_by_libc);
}

static void two_first_processes_have_two_numbers(void **state)
{
	int status;

	NEEDS_KERNEL();
	status = own_pids_run(first_child_differs);
	if (own_pids_lack(status))
		SKIP_FOR("no PID namespace of our own");
	assert_int_equal(status, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_process_keeps_its_number),
		cmocka_unit_test(a_child_has_a_number_of_its_own),
		cmocka_unit_test(two_first_processes_have_two_numbers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
