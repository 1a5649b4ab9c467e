/* SPDX-License-Identifier: BSD-2-Clause */
/* memory/mr_file: the name of a file that is longer than PATH_MAX, and looks
 * like a line of /proc/PID/maps, is not taken for a mapping. */
#include "test.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "memory/mr_file.h"

#define PAGE 4096u
/* mr_file.c reads a longer line in texts of this size. */
#define TEXT_MAX  (PATH_MAX + 128 - 1)
#define NAME_AT	  73			   /* where the name begins in a line */
#define FORGED_VA UINT64_C(0x200000000000) /* no program maps it */

/* Makes folders, one in the other, until their path needs room for one more
 * name.  Returns a descriptor of the innermost folder; *depth: how many folders
 * were made. */
static int go_deep(const char *top, size_t *path_bytes, unsigned *depth)
{
	char name[201], real[PATH_MAX];
	int fd = open(top, O_PATH | O_DIRECTORY), next;

	memset(name, 'd', sizeof(name) - 1);
	name[sizeof(name) - 1] = 0;
	*path_bytes = strlen(realpath(top, real));
	for (*depth = 0; *path_bytes + sizeof(name) + 1 < TEXT_MAX - NAME_AT;
	     ++*depth) {
		assert_int_equal(mkdirat(fd, name, 0700), 0);
		next = openat(fd, name, O_PATH | O_DIRECTORY);
		assert_true(next >= 0);
		close(fd);
		fd = next;
		*path_bytes += sizeof(name);
	}
	return fd;
}

/* Removes the folders of go_deep, from the innermost one. */
static void leave_deep(int fd, unsigned depth)
{
	char name[201];

	memset(name, 'd', sizeof(name) - 1);
	name[sizeof(name) - 1] = 0;
	for (; depth; depth--) {
		int up = openat(fd, "..", O_PATH | O_DIRECTORY);

		close(fd);
		fd = up;
		assert_int_equal(unlinkat(fd, name, AT_REMOVEDIR), 0);
	}
	close(fd);
}

/* Does a line of /proc/self/maps have the forged text where a part begins? */
static bool is_forged_in_maps(const char *forged)
{
	FILE *f = fopen("/proc/self/maps", "r");
	char *line = NULL;
	size_t room = 0;
	bool found = false;

	while (f && !found && getline(&line, &room, f) > 0)
		found = strlen(line) > TEXT_MAX &&
			!strncmp(line + TEXT_MAX, forged, strlen(forged));
	free(line);
	assert_non_null(f);
	fclose(f);
	return found;
}

static void a_files_name_is_not_taken_for_a_mapping(void **state)
{
	static const char forged[] =
		"200000000000-200000001000 rw-s 00000000 00:01 4711 ";
	char top[] = "/tmp/adverb-maps.XXXXXX", name[NAME_MAX + 1] = "";
	struct mr_file_mapping m;
	struct share what;
	size_t path_bytes;
	unsigned depth;
	int deep, fd;
	uint8_t *p;

	assert_non_null(mkdtemp(top));
	deep = go_deep(top, &path_bytes, &depth);
	memset(name, 'n', TEXT_MAX - NAME_AT - path_bytes - 1);
	strcat(name, forged);
	fd = openat(deep, name, O_RDWR | O_CREAT, 0600);
	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, PAGE), 0);
	p = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	assert_ptr_not_equal(p, MAP_FAILED);
	assert_true(is_forged_in_maps(forged));
	assert_false(mr_file_look_by_text(FORGED_VA, PAGE, &m, &what));
	munmap(p, PAGE);
	close(fd);
	assert_int_equal(unlinkat(deep, name, 0), 0);
	leave_deep(deep, depth);
	assert_int_equal(rmdir(top), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_files_name_is_not_taken_for_a_mapping),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
