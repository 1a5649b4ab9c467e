/* SPDX-License-Identifier: BSD-2-Clause */
/* shim/path: the paths that the preloaded shim replaces. */
#include "test.h"
#include "shim/path.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

static char tree[] = "/tmp/adverb-path-XXXXXX";

static int set_tree(void **state)
{
	return mkdtemp(tree) ? setenv("ADVERB_SYSFS", tree, 1) : -1;
}

static int remove_tree(void **state)
{
	return rmdir(tree);
}

/* Returns @text with the tree's folder in place of "<tree>", in a buffer that
 * the next call overwrites. */
static const char *in_tree(const char *text)
{
	static char path[PATH_MAX];

	if (strncmp(text, "<tree>", 6) != 0)
		return text;
	snprintf(path, sizeof(path), "%s%s", tree, text + 6);
	return path;
}

static void the_kernels_paths_become_paths_of_the_tree(void **state)
{
	static const struct {
		const char *from, *to;
	} rows[] = {
		{"/sys/class/infiniband", "<tree>/class/infiniband"},
		{"/sys/class/infiniband/", "<tree>/class/infiniband/"},
		{"/sys/class/infiniband/adv0/ports",
		 "<tree>/class/infiniband/adv0/ports"},
		{"/sys/class/infiniband_verbs/abi_version",
		 "<tree>/class/infiniband_verbs/abi_version"},
		{"/sys//class/infiniband//adv0",
		 "<tree>/class/infiniband/adv0"},
		{"/sys/./class/infiniband/./adv0/.",
		 "<tree>/class/infiniband/adv0/"},
		{"/sys/class/net/../infiniband/adv0/../adv1",
		 "<tree>/class/infiniband/adv1"},
		{"/../sys/class/infiniband/adv0/..",
		 "<tree>/class/infiniband/"},
		{"/sys/class/infiniband/../net/lo/mtu",
		 "/sys/class/net/lo/mtu"},
		{"/dev/infiniband/../..", "/"},
		{"/dev/infiniband/uverbs0", "<tree>/dev/infiniband/uverbs0"},
	};
	struct path room;

	for (size_t i = 0; i < TEST_COUNT(rows); i++)
		assert_string_equal(path_turn(AT_FDCWD, rows[i].from, &room),
				    in_tree(rows[i].to));
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
		"<tree>/class/infiniband/adv0",
	};
	struct path room;

	assert_null(path_turn(AT_FDCWD, NULL, &room));
	for (size_t i = 0; i < TEST_COUNT(paths); i++) {
		const char *path = in_tree(paths[i]);

		assert_ptr_equal(path_turn(AT_FDCWD, path, &room), path);
	}
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

/* "sys" in the root folder is /sys, whether the folder is a descriptor or the
 * current folder. */
static void a_relative_path_begins_at_its_folder(void **state)
{
	static const struct {
		const char *folder, *from, *to;
	} rows[] = {
		{"/", "sys/class/infiniband", "<tree>/class/infiniband"},
		{"/dev", "infiniband/uverbs0", "<tree>/dev/infiniband/uverbs0"},
		{"/dev", "./infiniband/../infiniband/x",
		 "<tree>/dev/infiniband/x"},
		{"/tmp", "../dev/infiniband", "<tree>/dev/infiniband"},
		{"/tmp", "infiniband", NULL},
		{"/tmp", "dev/infiniband", NULL},
		{"/dev", "infinibands", NULL},
		{"/dev", "null", NULL},
	};
	struct path room;

	for (size_t i = 0; i < TEST_COUNT(rows); i++) {
		const char *from = rows[i].from;
		const char *to = rows[i].to ? in_tree(rows[i].to) : from;
		int dir = open(rows[i].folder, O_PATH | O_DIRECTORY);

		assert_true(dir >= 0);
		assert_string_equal(path_turn(dir, from, &room), to);
		assert_int_equal(fchdir(dir), 0);
		assert_string_equal(path_turn(AT_FDCWD, from, &room), to);
		close(dir);
		/* the folder is closed: neither path nor errno changes */
		errno = ENOTTY;
		assert_ptr_equal(path_turn(dir, from, &room), from);
		assert_int_equal(errno, ENOTTY);
	}
}

/* Without a tree the path becomes a path in /proc/self, where nobody can make a
 * file. */
static void without_a_tree_nothing_is_shown(void **state)
{
	struct path room;

	setenv("ADVERB_SYSFS", "/tmp/adverb-nobody-makes-this", 1);
	assert_string_equal(path_turn(AT_FDCWD, "/dev/infiniband", &room),
			    "/proc/self/adverb/dev/infiniband");
	setenv("ADVERB_SYSFS", tree, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_kernels_paths_become_paths_of_the_tree),
		cmocka_unit_test(every_other_path_stays_the_callers_pointer),
		cmocka_unit_test(a_path_too_long_to_turn_is_left_alone),
		cmocka_unit_test(a_relative_path_begins_at_its_folder),
		cmocka_unit_test(without_a_tree_nothing_is_shown),
	};

	return cmocka_run_group_tests(tests, set_tree, remove_tree);
}
