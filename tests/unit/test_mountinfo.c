/* SPDX-License-Identifier: BSD-2-Clause */
/* util/mountinfo: file systems as the kernel names them. */
#include "test.h"

#include "util/mountinfo.h"

#include <sys/stat.h>
#include <sys/sysmacros.h>

static void proc_is_of_type_proc(void **state)
{
	struct mountinfo m;
	struct stat s;

	if (stat("/proc/self/mountinfo", &s))
		skip();
	assert_true(mountinfo_find(major(s.st_dev), minor(s.st_dev), &m));
	assert_string_equal(m.type, "proc");
	assert_memory_equal(m.options, "rw", 2);
}

/* Against what each line says, read in another way. */
static void every_mount_is_found(void **state)
{
	FILE *f = fopen("/proc/self/mountinfo", "re");
	static char line[16384];
	unsigned major, minor;
	char type[64];

	if (!f)
		skip();
	while (fgets(line, sizeof(line), f)) {
		const char *behind = strstr(line, " - ");
		struct mountinfo m;

		assert_non_null(behind);
		assert_int_equal(sscanf(line, "%*u %*u %u:%u", &major, &minor),
				 2);
		assert_int_equal(sscanf(behind, " - %63s", type), 1);
		assert_true(mountinfo_find(major, minor, &m));
		assert_string_equal(m.type, type);
	}
	fclose(f);
}

static void what_is_not_mounted_is_not_found(void **state)
{
	struct mountinfo m;

	assert_false(mountinfo_find(4095, 1048575, &m));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(proc_is_of_type_proc),
		cmocka_unit_test(every_mount_is_found),
		cmocka_unit_test(what_is_not_mounted_is_not_found),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
