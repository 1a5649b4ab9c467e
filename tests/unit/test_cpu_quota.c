/* SPDX-License-Identifier: BSD-2-Clause */
/* tools/cpu_quota: the lowest quota of the process's control groups. */
#include "test.h"

#include "remove_tree.h"
#include "tools/cpu_quota.h"

#include <stdarg.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

static char root[] = "/tmp/adverb-quota-XXXXXX";
static char membership[64];

static void make_folder(const char *name)
{
	char path[128];

	snprintf(path, sizeof(path), "%s/%s", root, name);
	assert_int_equal(mkdir(path, 0700), 0);
}

static void write_text(const char *name, const char *text)
{
	char path[128];
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", root, name);
	f = fopen(path, "w");
	assert_non_null(f);
	assert_true(fputs(text, f) >= 0);
	assert_int_equal(fclose(f), 0);
}

/* Returns the quota of a process with these groups. */
static long quota_of(const char *groups)
{
	write_text("membership", groups);
	return cpu_quota_percent(root, membership);
}

static int set_up(void **state)
{
	if (!mkdtemp(root))
		return -1;
	snprintf(membership, sizeof(membership), "%s/membership", root);
	make_folder("a.slice");
	make_folder("a.slice/b.service");
	make_folder("c");
	make_folder("cpu");
	make_folder("cpu/d");
	return 0;
}

static int tear_down(void **state)
{
	int err = remove_tree(root);

	snprintf(root, sizeof(root), "/tmp/adverb-quota-XXXXXX");
	return err;
}

static void without_a_quota_there_is_none(void **state)
{
	assert_int_equal(quota_of("0::/a.slice/b.service\n"), 0);
	write_text("a.slice/cpu.max", "max 100000\n");
	assert_int_equal(quota_of("0::/a.slice/b.service\n"), 0);
	assert_int_equal(quota_of(""), 0);
	assert_int_equal(quota_of("nonsense\n::\n:\n0:\n"), 0);
	assert_int_equal(cpu_quota_percent(root, "/nonexistent"), 0);
}

static void the_lowest_quota_up_to_the_root_counts(void **state)
{
	write_text("a.slice/cpu.max", "150000 100000\n");
	assert_int_equal(quota_of("0::/a.slice/b.service\n"), 150);
	assert_int_equal(quota_of("0::/c\n"), 0);
	write_text("a.slice/b.service/cpu.max", "50000 100000\n");
	assert_int_equal(quota_of("0::/a.slice/b.service\n"), 50);
	write_text("cpu.max", "20000 100000\n");
	assert_int_equal(quota_of("0::/a.slice/b.service\n"), 20);
	assert_int_equal(quota_of("0::/\n"), 20);
	write_text("a.slice/cpu.max", "1 1000000\n");
	assert_int_equal(quota_of("0::/a.slice/b.service\n"), 1);
	assert_int_equal(quota_of("0::/c\n"), 20);
}

/* In a container the uppermost group may be the container's own, while /proc
 * still names the group by its path on the host. */
static void a_path_outside_is_passed_over(void **state)
{
	write_text("cpu.max", "70000 100000\n");
	assert_int_equal(quota_of("0::/docker/0123/x\n"), 70);
	assert_int_equal(quota_of("0::/../../other\n"), 70);
}

static void groups_of_version_1_count(void **state)
{
	write_text("cpu/d/cpu.cfs_quota_us", "-1\n");
	write_text("cpu/d/cpu.cfs_period_us", "100000\n");
	assert_int_equal(quota_of("5:memory:/d\n4:cpu,cpuacct:/d\n0::/\n"), 0);
	write_text("cpu/d/cpu.cfs_quota_us", "30000\n");
	assert_int_equal(quota_of("5:memory:/d\n4:cpu,cpuacct:/d\n0::/\n"), 30);
	assert_int_equal(quota_of("4:cpuacct,cpu:/d\n"), 30);
	assert_int_equal(quota_of("4:cpuacct,cpuset:/d\n"), 0);
}

#define CASE(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(without_a_quota_there_is_none),
		CASE(the_lowest_quota_up_to_the_root_counts),
		CASE(a_path_outside_is_passed_over),
		CASE(groups_of_version_1_count),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
