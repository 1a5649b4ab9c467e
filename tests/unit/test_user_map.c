/* SPDX-License-Identifier: BSD-2-Clause */
/* util/user_map: users in the test's own user namespace, and in one that maps
 * no user. */
#include "test.h"

#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include "util/user_map.h"

static void a_process_knows_its_own_user(void **state)
{
	assert_true(user_map_is_own(geteuid()));
	assert_false(user_map_is_own(geteuid() + 1));
	assert_true(user_map_is_one(0));
}

enum { REFUSED = 77 };

static int see_unmapped(void)
{
	if (unshare(CLONE_NEWUSER))
		return REFUSED;
	/* geteuid() is now the overflow user ID, which stands for all users
	 * that the namespace does not map */
	if (user_map_is_one(geteuid()) || user_map_is_own(geteuid()))
		return 1;
	return !user_map_is_one(0);
}

static void a_number_of_several_users_is_nobodys_own(void **state)
{
	int status = -1;
	pid_t pid = fork();

	if (!pid)
		_exit(see_unmapped());
	assert_int_equal(waitpid(pid, &status, 0), pid);
	if (WIFEXITED(status) && WEXITSTATUS(status) == REFUSED)
		SKIP_FOR("no user namespace can be made here");
	assert_int_equal(status, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_process_knows_its_own_user),
		cmocka_unit_test(a_number_of_several_users_is_nobodys_own),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
