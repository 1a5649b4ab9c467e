/* SPDX-License-Identifier: BSD-2-Clause */
/* broker/procfs: CAP_NET_BIND_SERVICE counts only in the reader's user
 * namespace. */
#include "test.h"

#include "broker/procfs.h"

#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define LOW_PORT 80
#define GROUPS	 4000
#define NO_SPACE 77 /* the exit status if no namespace can be made */

static bool write_file(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY);
	bool is_written =
		write(fd, text, strlen(text)) == (ssize_t)strlen(text);

	close(fd);
	return is_written;
}

static bool write_map(const char *path, unsigned inside, unsigned outside)
{
	char map[40];

	snprintf(map, sizeof(map), "%u %u 1\n", inside, outside);
	return write_file(path, map);
}

/* Enters a new user namespace that maps this process's @user to @inside.  This
 * process then has all capabilities there, and other processes can read its
 * files in /proc, as they can read those of most programs.  Returns false if no
 * such namespace can be made. */
static bool enter_namespace(uid_t user, uid_t inside)
{
	gid_t group = getegid();

	/* in a new network namespace the low ports end at 1023 */
	return !unshare(CLONE_NEWUSER | CLONE_NEWNET) &&
	       write_map("/proc/self/uid_map", inside, user) &&
	       write_file("/proc/self/setgroups", "deny") &&
	       write_map("/proc/self/gid_map", group, group) &&
	       !prctl(PR_SET_DUMPABLE, 1);
}

static void drop_capabilities(void)
{
	struct __user_cap_header_struct head = {
		.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct none[2] = {{0}};

	syscall(SYS_capset, &head, none);
	prctl(PR_SET_DUMPABLE, 1);
}

/* Starts a process in a user namespace of its own.  Returns the pid when the
 * process is there, or -1 if there is no process.  *hold: a descriptor; the
 * process ends when the caller closes the descriptor. */
static pid_t begin_inner(uid_t user, int *hold)
{
	int there[2], lasts[2];
	char byte = 0;
	pid_t pid;

	if (pipe(there) || pipe(lasts))
		return -1;
	pid = fork();
	if (!pid) {
		close(there[0]);
		close(lasts[1]);
		byte = enter_namespace(user, user);
		_exit(write(there[1], &byte, 1) != 1 ||
		      read(lasts[0], &byte, 1) != 0);
	}
	close(there[1]);
	close(lasts[0]);
	*hold = lasts[1];
	/* The read ends without a byte if fork has failed, or if the process
	 * has ended. */
	if (read(there[0], &byte, 1) != 1)
		byte = 0;
	close(there[0]);
	if (byte)
		return pid;
	close(lasts[1]);
	if (pid > 0)
		waitpid(pid, NULL, 0);
	return -1;
}

/* Enters a user namespace that maps one user, and starts an inner process, in a
 * user namespace inside that one.  May the inner process bind a low port?
 * @drops: this process drops its capabilities before it asks.  The kernel shows
 * this process the namespace of the inner process nevertheless, since the user
 * of this process has made that namespace.  Returns 0 or 1; 2: not even this
 * process may bind the port; NO_SPACE: no namespace can be made. */
static int judge_inner(uid_t user, bool drops)
{
	bool is_let;
	pid_t inner;
	int hold;

	if (!enter_namespace(user, user))
		return NO_SPACE;
	if (!procfs_may_bind(getpid(), user, LOW_PORT))
		return 2;
	inner = begin_inner(user, &hold);
	if (inner < 0)
		return NO_SPACE;
	if (drops)
		drop_capabilities();
	is_let = procfs_may_bind(inner, user, LOW_PORT);
	close(hold);
	waitpid(inner, NULL, 0);
	return is_let;
}

/* Enters a user namespace that maps @user to @inside, starts a process there,
 * and drops this process's capabilities.  The kernel then does not show this
 * process the namespace of the process that has them.  May that process bind a
 * low port?  Returns 0 or 1; 2: the kernel shows the namespace; NO_SPACE: no
 * namespace can be made. */
static int judge_hidden(uid_t user, uid_t inside)
{
	char link[40], text[40];
	int lasts[2];
	bool is_let;
	pid_t pid;

	if (!enter_namespace(user, inside) || pipe(lasts))
		return NO_SPACE;
	pid = fork();
	if (!pid) {
		close(lasts[1]);
		_exit(read(lasts[0], link, 1) != 0);
	}
	drop_capabilities();
	snprintf(link, sizeof(link), "/proc/%d/ns/user", (int)pid);
	if (pid < 0 || readlink(link, text, sizeof(text)) >= 0)
		return 2;
	is_let = procfs_may_bind(pid, inside, LOW_PORT);
	close(lasts[1]);
	waitpid(pid, NULL, 0);
	return is_let;
}

/* The ways in which a process asks about another process. */
enum way { INNER, INNER_DROPPED, HIDDEN, HIDDEN_OTHER };

/* Returns the exit status of a child process, which asks in one way. */
static int status_of(enum way way)
{
	uid_t user = geteuid() ? geteuid() : 65534;
	pid_t pid = fork();
	int status;

	if (!pid) {
		if (setresuid(user, user, user) || prctl(PR_SET_DUMPABLE, 1))
			_exit(NO_SPACE);
		if (way == HIDDEN || way == HIDDEN_OTHER)
			_exit(judge_hidden(user, way == HIDDEN ? user : 0));
		_exit(judge_inner(user, way == INNER_DROPPED));
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

static void a_capability_in_an_inner_namespace_does_not_count(void **state)
{
	NEEDS_KERNEL();
	if (status_of(INNER) == NO_SPACE)
		SKIP_FOR("no user namespace can be made");
	assert_int_equal(status_of(INNER), 0);
	assert_int_equal(status_of(INNER_DROPPED), 0);
}

/* An ordinary user of a namespace that maps a number to itself can make another
 * namespace with the same map.  The same is not possible if the namespace maps
 * another number to 0. */
static void a_capability_in_a_hidden_namespace_counts_by_its_map(void **state)
{
	NEEDS_KERNEL();
	if (status_of(HIDDEN) == NO_SPACE)
		SKIP_FOR("no user namespace can be made");
	assert_int_equal(status_of(HIDDEN), 0);
	assert_int_equal(status_of(HIDDEN_OTHER), 1);
}

/* In /proc/PID/status the long line of the groups precedes that of the
 * capabilities. */
static void a_process_in_many_groups_may_bind(void **state)
{
	static gid_t groups[GROUPS];
	int status;
	pid_t pid;

	if (geteuid())
		SKIP_FOR("only root can be in many groups");
	for (unsigned i = 0; i < GROUPS; i++)
		groups[i] = 100000 + i;
	pid = fork();
	if (!pid)
		_exit(setgroups(GROUPS, groups)
			      ? NO_SPACE
			      : !procfs_may_bind(getpid(), 0, LOW_PORT));
	assert_int_equal(waitpid(pid, &status, 0), pid);
	if (WIFEXITED(status) && WEXITSTATUS(status) == NO_SPACE)
		SKIP_FOR("this root may not set groups");
	assert_int_equal(status, 0);
}

static void a_process_binds_high_ports_and_acts_as_its_user(void **state)
{
	assert_true(procfs_may_bind(getpid(), geteuid(), 65535));
	assert_true(procfs_acts_as(getpid(), geteuid()));
	assert_false(procfs_acts_as(getpid(), geteuid() + 1));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
			a_capability_in_a_hidden_namespace_counts_by_its_map),
		cmocka_unit_test(
			a_capability_in_an_inner_namespace_does_not_count),
		cmocka_unit_test(a_process_in_many_groups_may_bind),
		cmocka_unit_test(
			a_process_binds_high_ports_and_acts_as_its_user),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
