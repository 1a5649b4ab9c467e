/* SPDX-License-Identifier: BSD-2-Clause */
/* tools/vendor: the vendors' libraries that adverb has, and whether a program
 * finds a vendor's own library. */
#include "test.h"

#include "remove_tree.h"
#include "tools/vendor.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

static char top[64];

/* Makes an empty file below top, and the folders on the way to the file. */
static void make_file(const char *path)
{
	char all[PATH_MAX];
	int fd;

	snprintf(all, sizeof(all), "%s/%s", top, path);
	for (char *p = all + strlen(top) + 1; (p = strchr(p, '/')); p++) {
		*p = '\0';
		mkdir(all, 0700);
		*p = '/';
	}
	fd = open(all, O_WRONLY | O_CREAT, 0600);
	assert_true(fd >= 0);
	close(fd);
}

static int set_up(void **state)
{
	strcpy(top, "/tmp/adverb-vendor-XXXXXX");
	return mkdtemp(top) ? 0 : -1;
}

static int tear_down(void **state)
{
	return remove_tree(top);
}

static void each_folder_has_one_library(void **state)
{
	struct vendor all[VENDOR_MAX];

	assert_int_equal(vendor_list(top, all), 0);
	make_file("vendor/b/libb.so");
	make_file("vendor/b/libb.so.1.p/x.o");
	make_file("vendor/b/libb.so.1");
	make_file("vendor/a/liba.so.2");
	make_file("vendor/empty/README");
	make_file("vendor/.hidden/libx.so.1");
	make_file("vendor/file");
	assert_int_equal(vendor_list(top, all), 2);
	assert_string_equal(all[0].library, "liba.so.2");
	assert_string_equal(all[1].library, "libb.so.1");
	assert_string_equal(strrchr(all[1].folder, '/'), "/b");
}

static void a_library_that_the_program_brings_is_found(void **state)
{
	static const struct {
		const char *search;
		bool found;
	} rows[] = {
		{"", false},
		{"$ORIGIN/../lib", true},
		{"/no:${ORIGIN}/../lib", true},
		{"/no:$ORIGIN", false},
		{"$ORIGINAL/../lib", false},
		{"$ORIGIN_/../lib", false},
		{"$ORIGIN/../lib2:", false},
		{":", false},
	};
	struct vendor v = {.library = "libnobodys.so.1", .folder = "/x"};
	static struct binary_facts facts;
	char origin[96];

	make_file("bin/program");
	make_file("binAL/program");
	make_file("bin_/program");
	make_file("lib/libnobodys.so.1");
	snprintf(origin, sizeof(origin), "%s/bin", top);
	for (size_t i = 0; i < TEST_COUNT(rows); i++) {
		strcpy(facts.search, rows[i].search);
		assert_int_equal(vendor_is_installed(&v, &facts, origin),
				 rows[i].found);
	}
	snprintf(facts.search, sizeof(facts.search), "%s/lib", top);
	assert_true(vendor_is_installed(&v, &facts, origin));
}

static void a_library_that_the_loader_finds_is_found(void **state)
{
	struct vendor c = {.library = "libc.so.6", .folder = "/x"};
	struct vendor nobodys = {.library = "libnobodys.so.1", .folder = "/x"};

	assert_true(vendor_is_installed(&c, NULL, ""));
	assert_false(vendor_is_installed(&nobodys, NULL, ""));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(each_folder_has_one_library,
						set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			a_library_that_the_program_brings_is_found, set_up,
			tear_down),
		cmocka_unit_test(a_library_that_the_loader_finds_is_found),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
