/* SPDX-License-Identifier: BSD-2-Clause */
/* util/user_map: users in the test's own user namespace, in one that maps no
 * user, and in one that maps one user. */
#include "test.h"

#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include "util/user_map.h"

enum { OVERFLOW_UID = 65534 }; /* Linux's default */

static bool maps_all_users(void)
{
	unsigned inside = 1, outside = 1, count = 0;
	FILE *f = fopen("/proc/self/uid_map", "re");

	assert_non_null(f);
	assert_int_equal(fscanf(f, "%u %u %u", &inside, &outside, &count), 3);
	fclose(f);
	return !inside && !outside && count == UINT32_MAX;
}

static void a_process_knows_its_own_user(void **state)
{
	/* if the namespace does not map all users, this number stands for the
	 * others */
	bool is_shared = geteuid() == OVERFLOW_UID && !maps_all_users();

	assert_int_equal(user_map_is_own(geteuid()), !is_shared);
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

static int see_one_mapped(void)
{
	uid_t user = geteuid(), others;
	FILE *f;

	if (unshare(CLONE_NEWUSER))
		return REFUSED;
	others = geteuid();
	f = fopen("/proc/self/uid_map", "we");
	if (!f || fprintf(f, "7 %u 1\n", (unsigned)user) < 0 || fclose(f))
		return REFUSED;
	if (!user_map_is_own(7) || user_map_is_own(8) || !user_map_is_one(0))
		return 1;
	return user_map_is_one(others);
}

static void a_number_of_several_users_is_nobodys_own(void **state)
{
	int (*const see[])(void) = {see_unmapped, see_one_mapped};

	for (size_t i = 0; i < TEST_COUNT(see); i++) {
		int status = -1;
		pid_t pid = fork();

		if (!pid)
			_exit(see[i]());
		assert_int_equal(waitpid(pid, &status, 0), pid);
		if (WIFEXITED(status) && WEXITSTATUS(status) == REFUSED)
			SKIP_FOR("no user namespace can be made here");
		assert_int_equal(status, 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_process_knows_its_own_user),
		cmocka_unit_test(a_number_of_several_users_is_nobodys_own),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
