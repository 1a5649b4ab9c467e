/* SPDX-License-Identifier: BSD-2-Clause */
/* Trees of namespaces that are gone, and processes that start while these trees
 * are removed. */
#include "test.h"

#include <dirent.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "broker/proto.h"
#include "broker/sysfs_gc.h"
#include "device/sysfs.h"

#define NOBODYS	 "sysfs-12345" /* no namespace has this number */
#define STARTERS 8
#define STARTS	 30

static char runtime[64];
static struct device device;

static int remove_one(const char *path, const struct stat *st, int type,
		      struct FTW *ftw)
{
	return remove(path);
}

static const char *at(const char *name)
{
	static char path[256];

	snprintf(path, sizeof(path), "%s/%s", runtime, name);
	return path;
}

static const char *ours(void)
{
	static char name[64];

	snprintf(name, sizeof(name), "sysfs-%llu", proto_namespace());
	return name;
}

/* A tree of this name in the runtime folder. */
static int write_tree(const char *name)
{
	int fd, err;

	if (mkdir(at(name), 0755))
		return -1;
	fd = open(at(name), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
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
	return mkdtemp(runtime) && !write_tree(ours()) ? 0 : -1;
}

static int tear_down(void **state)
{
	return nftw(runtime, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

static int open_tree(const char *name)
{
	char path[300];

	snprintf(path, sizeof(path), "%s/class/infiniband", at(name));
	return open(path, O_RDONLY | O_DIRECTORY);
}

static void others(void)
{
	int fd = open_tree(ours());

	assert_true(fd >= 0);
	sysfs_gc_others(fd);
	close(fd);
}

static bool is_there(const char *name)
{
	return access(at(name), F_OK) == 0;
}

static uint32_t count(void)
{
	DIR *dir = opendir(runtime);
	uint32_t n = 0;

	while (readdir(dir))
		n++;
	closedir(dir);
	return n - 2;
}

static void a_tree_that_nobody_holds_goes(void **state)
{
	assert_int_equal(write_tree(NOBODYS), 0);
	others();
	assert_false(is_there(NOBODYS));
	assert_true(is_there(ours()));
	assert_int_equal(count(), 1);
}

/* As a program that has started; until it is killed or the test has failed. */
static pid_t user_of(const char *name, int ready)
{
	pid_t pid = fork();
	char byte;

	if (pid)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	setenv("ADVERB_SYSFS", at(name), 1);
	byte = sysfs_path() != NULL;
	while (write(ready, &byte, 1) == 1)
		pause();
	_exit(1);
}

static void one_that_a_process_holds_stays_until_it_ends(void **state)
{
	int ready[2], status;
	char byte = 0;
	pid_t pid;

	assert_int_equal(pipe2(ready, O_CLOEXEC), 0);
	pid = user_of(NOBODYS, ready[1]);
	assert_int_equal(read(ready[0], &byte, 1), 1);
	assert_int_equal(byte, 1);
	others();
	assert_true(is_there(NOBODYS));
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	others();
	assert_false(is_there(NOBODYS));
	close(ready[0]);
	close(ready[1]);
}

static void that_of_our_own_namespace_stays_while_we_live_here(void **state)
{
	int fd = open_tree(ours());
	pid_t pid = fork();

	if (!pid)
		pause();
	sysfs_gc_own(fd);
	assert_true(is_there(ours()));
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	close(fd);
}

static void a_file_with_such_a_name_alone_stays(void **state)
{
	int chosen;

	assert_int_equal(mkdir(at("sysfs-1"), 0755), 0);
	assert_int_equal(mkdir(at(".gone-by"), 0755), 0);
	assert_int_equal(mkdir(at("sysfs-2b"), 0755), 0);
	others();
	assert_int_equal(count(), 4);
	/* and beside a tree at a path that the user chose nothing is touched */
	assert_int_equal(write_tree("chosen"), 0);
	assert_int_equal(write_tree(NOBODYS), 0);
	chosen = open_tree("chosen");
	sysfs_gc_others(chosen);
	sysfs_gc_own(chosen);
	assert_true(is_there("chosen") && is_there(NOBODYS));
	close(chosen);
}

/* 0 if what was found as it started stays. */
static int start(void)
{
	char path[300];

	setenv("ADVERB_SYSFS", at(NOBODYS), 1);
	if (!sysfs_path())
		return 1;
	snprintf(path, sizeof(path), "%s/class/infiniband_verbs/abi_version",
		 at(NOBODYS));
	for (int i = 0; i < 20; i++) {
		if (access(path, F_OK))
			return 2;
		usleep(100);
	}
	return 0;
}

static pid_t starter(void)
{
	pid_t pid = fork(), one;
	int status = 0;

	if (pid)
		return pid;
	for (int i = 0; i < STARTS && !status; i++) {
		one = fork();
		if (!one)
			_exit(start());
		waitpid(one, &status, 0);
	}
	_exit(WIFEXITED(status) ? WEXITSTATUS(status) : 3);
}

static void
a_program_that_starts_during_a_removal_has_a_whole_tree(void **state)
{
	int status, left = STARTERS;

	for (int i = 0; i < STARTERS; i++)
		starter();
	while (left) {
		others();
		if (waitpid(-1, &status, WNOHANG) <= 0)
			continue;
		left--;
		assert_int_equal(status, 0);
	}
	others();
	assert_int_equal(count(), 1);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		T(a_tree_that_nobody_holds_goes),
		T(one_that_a_process_holds_stays_until_it_ends),
		T(that_of_our_own_namespace_stays_while_we_live_here),
		T(a_file_with_such_a_name_alone_stays),
		T(a_program_that_starts_during_a_removal_has_a_whole_tree),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
