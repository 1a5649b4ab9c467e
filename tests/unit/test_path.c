/* SPDX-License-Identifier: BSD-2-Clause */
/* Which paths the preloaded shim turns. */
#include "test.h"
#include "shim/path.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

static int set_tree(void **state)
{
	return setenv("ADVERB_SYSFS", "/run/tree", 1);
}

static void the_kernels_paths_become_the_trees(void **state)
{
	static const struct {
		const char *from, *to;
	} rows[] = {
		{"/sys/class/infiniband", "/run/tree/class/infiniband"},
		{"/sys/class/infiniband/", "/run/tree/class/infiniband/"},
		{"/sys/class/infiniband/adv0/ports",
		 "/run/tree/class/infiniband/adv0/ports"},
		{"/sys/class/infiniband_verbs/abi_version",
		 "/run/tree/class/infiniband_verbs/abi_version"},
		{"/sys//class/infiniband//adv0",
		 "/run/tree/class/infiniband/adv0"},
		{"/sys/./class/infiniband/./adv0/.",
		 "/run/tree/class/infiniband/adv0/"},
		{"/sys/class/net/../infiniband/adv0/../adv1",
		 "/run/tree/class/infiniband/adv1"},
		{"/../sys/class/infiniband/adv0/..",
		 "/run/tree/class/infiniband/"},
		{"/sys/class/infiniband/../net/lo/mtu",
		 "/sys/class/net/lo/mtu"},
		{"/dev/infiniband/../..", "/"},
		{"/dev/infiniband/uverbs0", "/run/tree/dev/infiniband/uverbs0"},
	};
	struct path room;

	for (size_t i = 0; i < TEST_COUNT(rows); i++)
		assert_string_equal(path_turn(AT_FDCWD, rows[i].from, &room),
				    rows[i].to);
}

static void every_other_path_stays_the_callers_pointer(void **state)
{
	static const char *const paths[] = {
		"",
		"/",
		"/etc/passwd",
		"infiniband",
		"sys/class/infiniband",
		"/sys/class/infinibandage",
		"/dev/infinibands",
		"/home/sys/class/infiniband",
		"/home/../infiniband/x/./y/",
		"/run/tree/class/infiniband/adv0",
	};
	struct path room;

	assert_null(path_turn(AT_FDCWD, NULL, &room));
	for (size_t i = 0; i < TEST_COUNT(paths); i++)
		assert_ptr_equal(path_turn(AT_FDCWD, paths[i], &room),
				 paths[i]);
}

static void a_path_too_long_to_turn_is_left_alone(void **state)
{
	static char path[PATH_MAX + 64];
	struct path room;

	memset(path, 'a', sizeof(path) - 1);
	memcpy(path, "/sys/class/infiniband/", 22);
	path[PATH_MAX - 4] = '\0';
	assert_ptr_equal(path_turn(AT_FDCWD, path, &room), path);
}

/* "sys" from the root folder is /sys, however one comes there. */
static void a_relative_path_begins_at_its_folder(void **state)
{
	static const struct {
		const char *folder, *from, *to;
	} rows[] = {
		{"/", "sys/class/infiniband", "/run/tree/class/infiniband"},
		{"/dev", "infiniband/uverbs0",
		 "/run/tree/dev/infiniband/uverbs0"},
		{"/dev", "./infiniband/../infiniband/x",
		 "/run/tree/dev/infiniband/x"},
		{"/tmp", "../dev/infiniband", "/run/tree/dev/infiniband"},
		{"/tmp", "infiniband", NULL},
		{"/tmp", "dev/infiniband", NULL},
		{"/dev", "infinibands", NULL},
		{"/dev", "null", NULL},
	};
	struct path room;

	for (size_t i = 0; i < TEST_COUNT(rows); i++) {
		const char *from = rows[i].from;
		const char *to = rows[i].to ? rows[i].to : from;
		int dir = open(rows[i].folder, O_PATH | O_DIRECTORY);

		assert_true(dir >= 0);
		assert_string_equal(path_turn(dir, from, &room), to);
		assert_int_equal(fchdir(dir), 0);
		assert_string_equal(path_turn(AT_FDCWD, from, &room), to);
		close(dir);
		errno = ENOTTY;
		assert_ptr_equal(path_turn(dir, from, &room), from);
		assert_int_equal(errno, ENOTTY);
	}
}

static void without_a_tree_the_runtime_folder_holds_it(void **state)
{
	struct path room;
	struct stat ns;
	char want[96], tail[64];
	const char *turned;

	unsetenv("ADVERB_SYSFS");
	unsetenv("ADVERB_RUNTIME");
	assert_int_equal(stat("/proc/self/ns/net", &ns), 0);
	/* another's may be there, and then has a number behind it */
	snprintf(want, sizeof(want), "/tmp/adverb-%u", geteuid());
	snprintf(tail, sizeof(tail), "/sysfs-%ju/dev/infiniband",
		 (uintmax_t)ns.st_ino);
	setenv("XDG_RUNTIME_DIR", "/nowhere", 1);
	turned = path_turn(AT_FDCWD, "/dev/infiniband", &room);
	assert_memory_equal(turned, want, strlen(want));
	assert_non_null(strstr(turned, tail));
	setenv("ADVERB_RUNTIME", "/other", 1);
	snprintf(want, sizeof(want), "/other/sysfs-%ju/dev/infiniband",
		 (uintmax_t)ns.st_ino);
	assert_string_equal(path_turn(AT_FDCWD, "/dev/infiniband", &room),
			    want);
	unsetenv("ADVERB_RUNTIME");
}

/* Root of one user namespace and root of another have one number. */
static void what_is_not_ours_is_not_our_folder(void **state)
{
	char base[] = "/tmp/adverb-path-XXXXXX", taken[64], want[96];
	struct path room;
	struct stat ns;

	unsetenv("ADVERB_SYSFS");
	assert_non_null(mkdtemp(base));
	assert_int_equal(stat("/proc/self/ns/net", &ns), 0);
	setenv("XDG_RUNTIME_DIR", base, 1);
	snprintf(taken, sizeof(taken), "%s/adverb-%u", base, geteuid());
	assert_int_equal(symlink("/", taken), 0);
	snprintf(want, sizeof(want), "%s/adverb-%u-1/sysfs-%ju/dev/infiniband",
		 base, geteuid(), (uintmax_t)ns.st_ino);
	assert_string_equal(path_turn(AT_FDCWD, "/dev/infiniband", &room),
			    want);
	assert_int_equal(unlink(taken), 0);
	assert_int_equal(mkdir(taken, 0700), 0);
	snprintf(want, sizeof(want), "%s/sysfs-%ju/dev/infiniband", taken,
		 (uintmax_t)ns.st_ino);
	assert_string_equal(path_turn(AT_FDCWD, "/dev/infiniband", &room),
			    want);
	rmdir(taken);
	rmdir(base);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_kernels_paths_become_the_trees),
		cmocka_unit_test(every_other_path_stays_the_callers_pointer),
		cmocka_unit_test(a_path_too_long_to_turn_is_left_alone),
		cmocka_unit_test(a_relative_path_begins_at_its_folder),
		cmocka_unit_test(without_a_tree_the_runtime_folder_holds_it),
		cmocka_unit_test(what_is_not_ours_is_not_our_folder),
	};

	return cmocka_run_group_tests(tests, set_tree, NULL);
}
