/* SPDX-License-Identifier: BSD-2-Clause */
/* broker/user: users that cannot be told from others in a user namespace. */
#include "test.h"

#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "broker/user.h"

#define UNMAPPED 65534 /* the kernel shows this for all unmapped users */
#define OURS	 1234
#define FORKS	 200

static bool write_text(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	bool done = fd >= 0 &&
		    write(fd, text, strlen(text)) == (ssize_t)strlen(text);

	close(fd);
	return done;
}

/* Calls functions of broker/user in a user namespace where only this user is
 * mapped.  Returns 0, or the number of the failed step; 77: no user namespace
 * can be made. */
static int look_from_inside(void)
{
	const struct ucred stranger = {.pid = getppid(), .uid = UNMAPPED},
			   self = {.pid = getpid(), .uid = OURS};
	char map[64];

	snprintf(map, sizeof(map), "%d %u 1", OURS, (unsigned)geteuid());
	if (unshare(CLONE_NEWUSER) || !write_text("/proc/self/uid_map", map))
		return 77;
	if (geteuid() != OURS || !user_is_nobody(UNMAPPED))
		return 1;
	if (user_of(&stranger) != USER_NONE)
		return 2;
	if (user_of(&self) != OURS || user_is_nobody(OURS))
		return 3;
	return 0;
}

/* Two unmapped users may be different users, although the kernel shows the same
 * number for both. */
static void
users_without_a_number_in_the_namespace_are_never_the_same(void **state)
{
	int status;
	pid_t pid = fork();

	if (!pid)
		_exit(look_from_inside());
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	if (WEXITSTATUS(status) == 77)
		SKIP_FOR("no user namespace can be made");
	assert_int_equal(WEXITSTATUS(status), 0);
	assert_false(user_is_same(USER_NONE, USER_NONE));
	assert_true(user_is_same(OURS, OURS));
	assert_false(user_is_same(OURS, USER_NONE));
}

static atomic_bool is_over;

static void *ask_on(void *arg)
{
	while (!atomic_load(&is_over))
		user_prepare();
	return arg;
}

/* The thread may hold the lock of user_prepare when the process forks. */
static void a_child_of_fork_can_call_user_prepare(void **state)
{
	pthread_t thread;

	assert_int_equal(pthread_create(&thread, NULL, ask_on, NULL), 0);
	for (int i = 0; i < FORKS; i++) {
		int status;
		pid_t pid = fork();

		if (!pid) {
			alarm(TEST_WAIT_S);
			user_prepare();
			_exit(0);
		}
		assert_int_equal(waitpid(pid, &status, 0), pid);
		assert_int_equal(status, 0);
	}
	atomic_store(&is_over, true);
	assert_int_equal(pthread_join(thread, NULL), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
			users_without_a_number_in_the_namespace_are_never_the_same),
		cmocka_unit_test(a_child_of_fork_can_call_user_prepare),

	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
