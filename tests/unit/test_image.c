/* SPDX-License-Identifier: BSD-2-Clause */
/* tools/image: a file that could not be written whole is not put, and a list
 * that is damaged is refused. */
#include "test.h"

#include "tools/image.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

static char root[] = "/tmp/adverb-image-XXXXXX";
static struct image image;
/* the name of a file that cannot be removed */
static const char *stuck = "";

static int close_error, fclose_error; /* errno values; 0: the calls succeed */

/* Replaces libc's close: for a descriptor that was opened for writing only,
 * close fails with close_error, as it may on a network file system. */
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

/* Replaces libc's fclose: closes the file, and then fails with fclose_error
 * unless that is 0. */
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

static int flock_error;	   /* errno of flock; 0: none; EINTR: once */
static bool has_no_memory; /* fdopen fails with ENOMEM */

int flock(int fd, int operation)
{
	int err = flock_error;

	if (!err)
		return (int)syscall(SYS_flock, fd, operation);
	if (err == EINTR)
		flock_error = 0;
	errno = err;
	return -1;
}

FILE *fdopen(int fd, const char *mode)
{
	static FILE *(*real)(int, const char *);

	if (!real)
		*(void **)&real = dlsym(RTLD_NEXT, "fdopen");
	if (!has_no_memory)
		return real(fd, mode);
	errno = ENOMEM;
	return NULL;
}

int unlinkat(int folder, const char *name, int flags)
{
	if (!strcmp(name, stuck)) {
		errno = EPERM;
		return -1;
	}
	return (int)syscall(SYS_unlinkat, folder, name, flags);
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

static void put_and_list(const char *path)
{
	assert_int_equal(image_expect(&image, NULL, "text\n", path), 0);
	assert_int_equal(image_announce(&image), 0);
	assert_int_equal(image_put_text(&image, "text\n", path), 0);
}

/* A later file may name an earlier one, as ld.so.preload names the shim. */
static void a_file_that_stays_keeps_the_files_before_it(void **state)
{
	NEEDS_KERNEL(); /* openat2 */
	open_root();
	put_and_list("file");
	put_and_list("later");
	put_and_list("last");
	assert_int_equal(image_settle(&image), 0);
	stuck = "later";
	assert_int_equal(image_clear(&image), -1);
	assert_true(image_has(&image, "file"));
	assert_true(image_has(&image, "later"));
	assert_false(image_has(&image, "last"));
	assert_true(image_contains(&image, "list", "file"));
	stuck = "";
	assert_int_equal(image_clear(&image), 0);
	assert_false(image_has(&image, "file"));
	assert_false(image_has(&image, "later"));
	assert_false(image_has(&image, "list"));
	remove_root();
}

/* An update may list a file behind the file of /etc that names it. */
static void a_file_of_etc_that_stays_keeps_all_others(void **state)
{
	char etc[sizeof(root) + 8];

	NEEDS_KERNEL(); /* openat2 */
	open_root();
	put_and_list("first");
	put_and_list("etc/names");
	put_and_list("file");
	stuck = "names";
	assert_int_equal(image_clear(&image), -1);
	assert_true(image_has(&image, "first"));
	assert_true(image_has(&image, "file"));
	/* an update that puts none of the files */
	image_close(&image);
	assert_int_equal(image_open(&image, root, "list", false), 0);
	assert_int_equal(image_settle(&image), -1);
	assert_true(image_has(&image, "first"));
	assert_true(image_has(&image, "file"));
	stuck = "";
	assert_int_equal(image_settle(&image), 0);
	assert_false(image_has(&image, "etc/names"));
	assert_false(image_has(&image, "first"));
	snprintf(etc, sizeof(etc), "%s/etc", root);
	assert_int_equal(rmdir(etc), 0);
	remove_root();
}

static void a_file_that_stays_is_listed(void **state)
{
	NEEDS_KERNEL(); /* openat2 */
	open_root();
	put_and_list("old");
	assert_int_equal(image_settle(&image), 0);
	image_close(&image);
	assert_int_equal(image_open(&image, root, "list", false), 0);
	put_and_list("file");
	stuck = "old";
	assert_int_equal(image_settle(&image), -1);
	assert_true(image_contains(&image, "list", "old"));
	assert_true(image_contains(&image, "list", "file"));
	stuck = "";
	assert_int_equal(image_settle(&image), 0);
	assert_false(image_has(&image, "old"));
	assert_false(image_contains(&image, "list", "old"));
	remove_root();
}

/* image_contains searches no comment, however long, and finds a word far in a
 * long line, too. */
static void a_long_line_is_searched_as_one_line(void **state)
{
	char line[1200];

	NEEDS_KERNEL(); /* openat2 */
	open_root();
	for (int before = 500; before < 1100; before++) {
		snprintf(line, sizeof(line), "#%*s\n", before, "word");
		assert_int_equal(image_put_text(&image, line, "file"), 0);
		assert_false(image_contains(&image, "file", "word"));
		line[0] = ' ';
		assert_int_equal(image_put_text(&image, line, "file"), 0);
		assert_true(image_contains(&image, "file", "word"));
	}
	assert_int_equal(image_announce(&image), 0);
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

/* Returns the text that `calls` prints to `stream`, whose descriptor is fd. */
static char *printed_by(void (*calls)(void), int fd, FILE *stream)
{
	static char text[512];
	int was = dup(fd), to = memfd_create("printed", 0);
	ssize_t n;

	fflush(stream);
	dup2(to, fd);
	calls();
	fflush(stream);
	dup2(was, fd);
	n = pread(to, text, sizeof(text) - 1, 0);
	assert_true(n >= 0);
	text[n] = '\0';
	close(was);
	close(to);
	return text;
}

static void reopen_root(void)
{
	image_close(&image);
	assert_int_equal(image_open(&image, root, "list", false), 0);
}

/* Is the lock of the root folder taken? */
static bool is_locked(void)
{
	int fd = open(root, O_RDONLY | O_DIRECTORY);
	bool is = syscall(SYS_flock, fd, LOCK_EX | LOCK_NB) != 0;

	close(fd);
	return is;
}

static void a_signal_does_not_end_the_wait_for_the_lock(void **state)
{
	NEEDS_KERNEL(); /* openat2 */
	open_root();
	flock_error = EINTR;
	assert_string_equal(printed_by(reopen_root, STDERR_FILENO, stderr), "");
	assert_int_equal(flock_error, 0);
	assert_true(is_locked());
	remove_root();
}

static void a_file_system_without_locks_is_reported(void **state)
{
	NEEDS_KERNEL(); /* openat2 */
	open_root();
	flock_error = ENOLCK;
	assert_non_null(strstr(printed_by(reopen_root, STDERR_FILENO, stderr),
			       "cannot lock the root folder /tmp/"));
	flock_error = 0;
	assert_false(is_locked());
	remove_root();
}

static void reopen_damaged(void)
{
	image_close(&image);
	assert_int_equal(reopen_with("no list\n"), -1);
}

static void add_too_many(void)
{
	char path[32];

	for (int i = 0; i < IMAGE_MAX; i++) {
		snprintf(path, sizeof(path), "file%d", i);
		assert_int_equal(image_expect(&image, NULL, "text", path), 0);
	}
	assert_int_equal(image_expect(&image, NULL, "text", "file"), -1);
}

static void put_dry(void)
{
	assert_int_equal(image_put(&image, "/etc/passwd", "file", 0644), 0);
	assert_int_equal(image_put_text(&image, "text\n", "text"), 0);
}

static void remove_dry(void)
{
	assert_int_equal(image_clear(&image), 0);
}

/* Does `calls` print the path of the root's file @leaf after @words? */
static bool names_file(void (*calls)(void), int fd, FILE *stream,
		       const char *words, const char *leaf)
{
	char want[IMAGE_PATH];

	snprintf(want, sizeof(want), "%s %s/%s", words, root, leaf);
	return strstr(printed_by(calls, fd, stream), want);
}

/* Without the root, a path in a message would name a file of the machine
 * itself. */
static void messages_name_the_files_of_the_root(void **state)
{
	NEEDS_KERNEL(); /* openat2 */
	open_root();
	assert_true(names_file(reopen_damaged, STDERR_FILENO, stderr,
			       "the list", "list"));
	assert_int_equal(reopen_with(""), 0);
	assert_true(names_file(add_too_many, STDERR_FILENO, stderr,
			       "cannot install", "file"));
	image_close(&image);
	assert_int_equal(reopen_with(""), 0);
	assert_int_equal(image_put_text(&image, "text\n", "file"), 0);
	image.dry = true;
	assert_true(names_file(put_dry, STDOUT_FILENO, stdout, "to", "file"));
	assert_true(names_file(put_dry, STDOUT_FILENO, stdout, "would write",
			       "text"));
	assert_true(names_file(remove_dry, STDOUT_FILENO, stdout,
			       "would remove", "file"));
	remove_root();
}

static int lowest_free(void)
{
	int fd = dup(0);

	close(fd);
	return fd;
}

static void a_file_that_cannot_be_read_leaves_no_descriptor(void **state)
{
	int before;

	NEEDS_KERNEL(); /* openat2 */
	open_root();
	assert_int_equal(image_put_text(&image, "text\n", "file"), 0);
	assert_int_equal(image_announce(&image), 0);
	before = lowest_free();
	has_no_memory = true;
	assert_false(image_contains(&image, "file", "text"));
	image_close(&image);
	assert_int_equal(image_open(&image, root, "list", false), -1);
	has_no_memory = false;
	assert_int_equal(image_open(&image, root, "list", false), 0);
	assert_int_equal(lowest_free(), before);
	remove_root();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_file_is_put_and_listed),
		cmocka_unit_test(a_file_that_stays_keeps_the_files_before_it),
		cmocka_unit_test(a_file_of_etc_that_stays_keeps_all_others),
		cmocka_unit_test(a_file_that_stays_is_listed),
		cmocka_unit_test(a_long_line_is_searched_as_one_line),
		cmocka_unit_test(a_file_whose_close_fails_leaves_the_old_one),
		cmocka_unit_test(a_list_that_is_not_whole_is_not_written),
		cmocka_unit_test(a_damaged_list_is_refused),
		cmocka_unit_test(a_signal_does_not_end_the_wait_for_the_lock),
		cmocka_unit_test(a_file_system_without_locks_is_reported),
		cmocka_unit_test(messages_name_the_files_of_the_root),
		cmocka_unit_test(
			a_file_that_cannot_be_read_leaves_no_descriptor),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
