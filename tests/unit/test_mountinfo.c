/* SPDX-License-Identifier: BSD-2-Clause */
/* util/mountinfo: file systems as the kernel names them. */
#include "test.h"

#include "util/mountinfo.h"

#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#define NO_PROC "/proc is not mounted"

static void proc_is_of_type_proc(void **state)
{
	struct mountinfo m;
	struct stat s;

	if (stat("/proc/self/mountinfo", &s))
		SKIP_FOR(NO_PROC);
	assert_true(mountinfo_find(major(s.st_dev), minor(s.st_dev), &m));
	assert_string_equal(m.type, "proc");
	assert_false(m.has_user);
}

/* Returns whether the file still has the line: another process may have
 * unmounted the file system. */
static bool is_still_mounted(const char *line)
{
	FILE *f = fopen("/proc/self/mountinfo", "re");
	static char now[16384];
	bool is_there = false;

	assert_non_null(f);
	while (!is_there && fgets(now, sizeof(now), f))
		is_there = !strcmp(now, line);
	fclose(f);
	return is_there;
}

/* Compares the type of each mount with that in the line of the file, which the
 * test reads by sscanf. */
static void every_mount_is_found(void **state)
{
	FILE *f = fopen("/proc/self/mountinfo", "re");
	static char line[16384];
	unsigned major, minor;
	char type[64];

	if (!f)
		SKIP_FOR(NO_PROC);
	while (fgets(line, sizeof(line), f)) {
		const char *behind = strstr(line, " - ");
		struct mountinfo m;

		assert_non_null(behind);
		assert_int_equal(sscanf(line, "%*u %*u %u:%u", &major, &minor),
				 2);
		assert_int_equal(sscanf(behind, " - %63s", type), 1);
		if (mountinfo_find(major, minor, &m))
			assert_string_equal(m.type, type);
		else
			assert_false(is_still_mounted(line));
	}
	fclose(f);
}

static void a_file_system_that_is_not_mounted_is_not_found(void **state)
{
	struct mountinfo m;

	assert_false(mountinfo_find(4095, 1048575, &m));
}

#define HEAD "40 28 0:50 / /mnt rw,nosuid shared:9 master:1 - fuse.sshfs srv "
#define LABEL                                                                  \
	"context=\"system_u:object_r:"                                         \
	"a_type_with_a_name_that_fills_all_the_room_of_an_option_t:s0:c1,c2\""

/* Returns the file system of device 0:50 in this text. */
static struct mountinfo look_into(const char *text)
{
	int fd = memfd_create("mountinfo", MFD_CLOEXEC);
	struct mountinfo m;

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
	assert_true(mountinfo_find_in(fd, 0, 50, &m));
	assert_string_equal(m.type, "fuse.sshfs");
	close(fd);
	return m;
}

static void the_user_is_found_behind_options_of_any_length(void **state)
{
	struct mountinfo m =
		look_into(HEAD "rw,user_id=1000,group_id=1000,allow_other\n");

	assert_true(m.has_user);
	assert_int_equal(m.user, 1000);
	m = look_into(HEAD "rw," LABEL ",user_id=4294967294,group_id=0\n");
	assert_true(m.has_user);
	assert_int_equal(m.user, 4294967294u);
	/* the first 64 bytes of the options end within the digits */
	m = look_into(HEAD "rw,context=a_label_that_has_just_the_length_to_"
			   "split,user_id=1000\n");
	assert_true(m.has_user);
	assert_int_equal(m.user, 1000);
}

static void a_label_names_no_user(void **state)
{
	struct mountinfo m = look_into(
		HEAD "rw,context=\"a:b:user_id=0,user_id=0\",user_id=1000\n");

	assert_true(m.has_user);
	assert_int_equal(m.user, 1000);
	assert_false(look_into(HEAD "rw,xuser_id=0\n").has_user);
}

static void without_a_number_there_is_no_user(void **state)
{
	const char *const none[] = {
		HEAD "rw\n",
		HEAD "rw," LABEL "\n",
		HEAD "rw,user_id=\n",
		HEAD "rw,user_id=-1\n",
		HEAD "rw,user_id= 0\n",
		HEAD "rw,user_id=0x\n",
		HEAD "rw,user_id=4294967296\n",
		HEAD "rw,user_id=0,user_id=x\n",
	};

	for (size_t i = 0; i < sizeof(none) / sizeof(*none); i++) {
		struct mountinfo m = look_into(none[i]);

		assert_false(m.has_user);
		assert_int_equal(m.user, 0);
	}
}

/* user_id of another mount, or in the options of the mount point, does not
 * count. */
static void the_user_is_of_this_file_system(void **state)
{
	assert_false(look_into("39 28 0:49 / /x rw - fuse srv rw,user_id=7\n"
			       "40 28 0:50 / /y rw,user_id=7 - fuse.sshfs srv "
			       "rw\n"
			       "41 28 0:51 / /z rw - fuse srv rw,user_id=7\n")
			     .has_user);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(proc_is_of_type_proc),
		cmocka_unit_test(every_mount_is_found),
		cmocka_unit_test(
			a_file_system_that_is_not_mounted_is_not_found),
		cmocka_unit_test(
			the_user_is_found_behind_options_of_any_length),
		cmocka_unit_test(a_label_names_no_user),
		cmocka_unit_test(without_a_number_there_is_no_user),
		cmocka_unit_test(the_user_is_of_this_file_system),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
