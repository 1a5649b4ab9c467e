/* SPDX-License-Identifier: BSD-2-Clause */
/* tools/image: a file that could not be written whole is not put, and a list
 * that is damaged is refused. */
#include "test.h"

#include "tools/image.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/syscall.h>

static char root[] = "/tmp/adverb-image-XXXXXX";
static struct image image;

static int close_error, fclose_error; /* errno values; 0: the calls succeed */

/* Replaces libc's close: for a file that was written, close fails with
 * close_error, as it may on a network file system. */
int close(int fd)
{
	bool is_written = (fcntl(fd, F_GETFL) & O_ACCMODE) == O_WRONLY;

	if (syscall(SYS_close, fd))
		return -1;
	if (!is_written || !close_error)
		return 0;
	errno = close_error;
	return -1;
}

/* Replaces libc's fclose: it fails with fclose_error. */
int fclose(FILE *f)
{
	static int (*real)(FILE *);

	if (!real)
		*(void **)&real = dlsym(RTLD_NEXT, "fclose");
	if (real(f))
		return EOF;
	if (!fclose_error)
		return 0;
	errno = fclose_error;
	return EOF;
}

static void open_root(void)
{
	close_error = fclose_error = 0;
	strcpy(root + strlen(root) - 6, "XXXXXX");
	assert_non_null(mkdtemp(root));
	assert_int_equal(image_open(&image, root, "list", false), 0);
}

static void remove_root(void)
{
	char path[IMAGE_PATH];
	const char *const names[] = {"file", "list"};

	image_close(&image);
	for (size_t i = 0; i < TEST_COUNT(names); i++) {
		snprintf(path, sizeof(path), "%s/%s", root, names[i]);
		unlink(path);
	}
	assert_int_equal(rmdir(root), 0);
}

static void a_file_is_put_and_listed(void **state)
{
	NEEDS_KERNEL(); /* openat2 */
	open_root();
	assert_int_equal(image_put_text(&image, "text\n", "file"), 0);
	assert_int_equal(image_announce(&image), 0);
	assert_true(image_contains(&image, "file", "text"));
	assert_true(image_contains(&image, "list", "file"));
	remove_root();
}

static void a_file_whose_close_fails_leaves_the_old_one(void **state)
{
	NEEDS_KERNEL(); /* openat2 */
	open_root();
	assert_int_equal(image_put_text(&image, "old\n", "file"), 0);
	close_error = ENOSPC;
	assert_int_equal(image_put_text(&image, "new\n", "file"), -1);
	assert_true(image_contains(&image, "file", "old"));
	remove_root();
}

static void a_list_that_is_not_whole_is_not_written(void **state)
{
	NEEDS_KERNEL(); /* openat2 */
	open_root();
	assert_int_equal(image_put_text(&image, "text\n", "file"), 0);
	fclose_error = ENOMEM;
	assert_int_equal(image_announce(&image), -1);
	assert_false(image_has(&image, "list"));
	remove_root();
}

/* Opens the closed root again, with these lines as its list. */
static int reopen_with(const char *lines)
{
	char path[sizeof(root) + 8];
	FILE *f;

	snprintf(path, sizeof(path), "%s/list", root);
	f = fopen(path, "w");
	assert_non_null(f);
	fputs(lines, f);
	assert_int_equal(fclose(f), 0);
	return image_open(&image, root, "list", false);
}

static void a_damaged_list_is_refused(void **state)
{
	static const char *const damaged[] = {
		"1 2 file\n3 bytes file2\n",
		"1 2 file\n3 4",
		"no list\n",
	};

	NEEDS_KERNEL(); /* openat2 */
	open_root();
	image_close(&image);
	for (size_t i = 0; i < TEST_COUNT(damaged); i++)
		assert_int_equal(reopen_with(damaged[i]), -1);
	assert_int_equal(reopen_with("1 2 file\n3 4 file2\n"), 0);
	assert_int_equal(image.count, 2);
	remove_root();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_file_is_put_and_listed),
		cmocka_unit_test(a_file_whose_close_fails_leaves_the_old_one),
		cmocka_unit_test(a_list_that_is_not_whole_is_not_written),
		cmocka_unit_test(a_damaged_list_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
