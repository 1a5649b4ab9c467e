/* SPDX-License-Identifier: BSD-2-Clause */
/* broker/sysfs_gc: the sysfs tree of a network namespace is removed when no
 * process holds the tree, and no other folder is removed.  A program that
 * starts during a removal has a whole tree. */
#include "test.h"

#include "remove_tree.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "broker/proto.h"
#include "broker/sysfs_gc.h"
#include "device/sysfs.h"
#include "device/sysfs_write.h"

#define UNUSED_TREE "sysfs-12345" /* no namespace has this number */
#define OF_FABRIC   "-0123456789abcdef"
/* processes that start programs at the same time, and programs that each of
 * them starts */
#define STARTERS 8
#define STARTS	 30

static char runtime[64];
static struct device device;

static const char *path_of(const char *name)
{
	static char path[256];

	snprintf(path, sizeof(path), "%s/%s", runtime, name);
	return path;
}

static const char *own_name(void)
{
	static char name[64];

	snprintf(name, sizeof(name), "sysfs-%llu", proto_namespace());
	return name;
}

/* Writes a tree of this name into the runtime folder. */
static int write_tree(const char *name)
{
	int fd, err;

	if (mkdir(path_of(name), 0755))
		return -1;
	fd = open(path_of(name), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	err = sysfs_write(fd, &device, 1);
	close(fd);
	return err;
}

static int set_up(void **state)
{
	strcpy(runtime, "/tmp/adverb-sweep-XXXXXX");
	strcpy(device.name, "adv0");
	strcpy(device.netdev, "eth0");
	device.ifindex = 2;
	return mkdtemp(runtime) && !write_tree(own_name()) ? 0 : -1;
}

static int tear_down(void **state)
{
	return remove_tree(runtime);
}

static int open_tree(const char *name)
{
	char path[300];

	snprintf(path, sizeof(path), "%s/class/infiniband", path_of(name));
	return open(path, O_RDONLY | O_DIRECTORY);
}

static void remove_others(void)
{
	int fd = open_tree(own_name());

	assert_true(fd >= 0);
	sysfs_gc_others(fd);
	close(fd);
}

static bool is_there(const char *name)
{
	return access(path_of(name), F_OK) == 0;
}

static uint32_t count_entries(void)
{
	DIR *dir = opendir(runtime);
	uint32_t n = 0;

	while (readdir(dir))
		n++;
	closedir(dir);
	return n - 2;
}

static void a_tree_that_no_process_holds_is_removed(void **state)
{
	assert_int_equal(write_tree(UNUSED_TREE), 0);
	assert_int_equal(write_tree(UNUSED_TREE OF_FABRIC), 0);
	remove_others();
	assert_false(is_there(UNUSED_TREE));
	assert_false(is_there(UNUSED_TREE OF_FABRIC));
	assert_true(is_there(own_name()));
	assert_int_equal(count_entries(), 1);
}

/* Forks a process that takes a tree, as a program does when it starts, and
 * stays until SIGKILL or the end of the test.  The process writes 1 to `ready`
 * if it holds the tree, else 0. */
static pid_t fork_user(const char *name, int ready)
{
	pid_t pid = fork();
	char byte;

	assert_true(pid >= 0);
	if (pid)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	setenv("ADVERB_SYSFS", path_of(name), 1);
	byte = sysfs_path() != NULL;
	while (write(ready, &byte, 1) == 1)
		pause();
	_exit(1);
}

static void a_tree_stays_until_the_process_that_holds_it_ends(void **state)
{
	int ready[2], status;
	char byte = 0;
	pid_t pid;

	assert_int_equal(pipe2(ready, O_CLOEXEC), 0);
	pid = fork_user(UNUSED_TREE, ready[1]);
	assert_int_equal(read(ready[0], &byte, 1), 1);
	assert_int_equal(byte, 1);
	remove_others();
	assert_true(is_there(UNUSED_TREE));
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	remove_others();
	assert_false(is_there(UNUSED_TREE));
	close(ready[0]);
	close(ready[1]);
}

static void the_own_tree_stays_while_a_process_is_in_the_namespace(void **state)
{
	int fd = open_tree(own_name());
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		pause();
	}
	sysfs_gc_own(fd);
	assert_true(is_there(own_name()));
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	close(fd);
}

static void only_unused_trees_beside_the_own_tree_are_removed(void **state)
{
	int chosen;

	assert_int_equal(mkdir(path_of("sysfs-1"), 0755), 0);
	assert_int_equal(mkdir(path_of(".gone-by"), 0755), 0);
	assert_int_equal(mkdir(path_of("sysfs-2b"), 0755), 0);
	assert_int_equal(write_tree("sysfs-12345-0123456789abcdefg"), 0);
	remove_others();
	assert_int_equal(count_entries(), 5);
	/* Beside a tree at a path that the user chose, no tree is removed. */
	assert_int_equal(write_tree("chosen"), 0);
	assert_int_equal(write_tree(UNUSED_TREE), 0);
	chosen = open_tree("chosen");
	sysfs_gc_others(chosen);
	sysfs_gc_own(chosen);
	assert_true(is_there("chosen") && is_there(UNUSED_TREE));
	close(chosen);
}

/* Does what a program does when it starts: finds the tree, or writes it.
 * Returns 0 if the tree then stays. */
static int start_once(void)
{
	char path[300];

	setenv("ADVERB_SYSFS", path_of(UNUSED_TREE), 1);
	if (!sysfs_path())
		return 1;
	snprintf(path, sizeof(path), "%s/class/infiniband_verbs/abi_version",
		 path_of(UNUSED_TREE));
	for (int i = 0; i < 20; i++) {
		if (access(path, F_OK))
			return 2;
		usleep(100);
	}
	return 0;
}

static pid_t fork_starter(void)
{
	pid_t pid = fork(), one;
	int status = 0;

	assert_true(pid >= 0);
	if (pid)
		return pid;
	for (int i = 0; i < STARTS && !status; i++) {
		one = fork();
		if (!one)
			_exit(start_once());
		if (waitpid(one, &status, 0) != one)
			_exit(4);
	}
	_exit(WIFEXITED(status) ? WEXITSTATUS(status) : 3);
}

static void
a_program_that_starts_during_a_removal_has_a_whole_tree(void **state)
{
	int status, left = STARTERS;

	for (int i = 0; i < STARTERS; i++)
		fork_starter();
	while (left) {
		remove_others();
		if (waitpid(-1, &status, WNOHANG) <= 0)
			continue;
		left--;
		assert_int_equal(status, 0);
	}
	remove_others();
	assert_int_equal(count_entries(), 1);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		T(a_tree_that_no_process_holds_is_removed),
		T(a_tree_stays_until_the_process_that_holds_it_ends),
		T(the_own_tree_stays_while_a_process_is_in_the_namespace),
		T(only_unused_trees_beside_the_own_tree_are_removed),
		T(a_program_that_starts_during_a_removal_has_a_whole_tree),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
