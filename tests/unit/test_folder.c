/* SPDX-License-Identifier: BSD-2-Clause */
/* util/folder: files are replaced as a whole, and no symbolic link is followed.
 */
#include "test.h"

#include "util/folder.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
	WRITERS = 4,
	PUTS = 500,	/* of each writer */
	PUT_BYTES = 30, /* of a text */
};

static char base[64]; /* the folder of the present test */
static int base_fd;

static int set_up(void **state)
{
	strcpy(base, "/tmp/adverb-folder.XXXXXX");
	if (!mkdtemp(base))
		return -1;
	base_fd = open(base, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return base_fd < 0 ? -1 : 0;
}

static int tear_down(void **state)
{
	folder_empty(base_fd);
	return rmdir(base);
}

static bool file_exists(const char *name)
{
	struct stat s;

	return !fstatat(base_fd, name, &s, AT_SYMLINK_NOFOLLOW);
}

static void write_file(const char *name)
{
	int fd = openat(base_fd, name, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);

	assert_true(fd >= 0);
	close(fd);
}

static void read_file(const char *name, char text[32])
{
	int fd = openat(base_fd, name, O_RDONLY | O_CLOEXEC);
	ssize_t got;

	assert_true(fd >= 0);
	got = read(fd, text, 31);
	assert_true(got >= 0);
	text[got] = '\0';
	close(fd);
}

static void missing_folders_are_made_only_if_asked_for(void **state)
{
	int fd = folder_open(base_fd, "a/b/c", false);

	assert_int_equal(fd, -ENOENT);
	assert_false(file_exists("a"));
	fd = folder_open(base_fd, "a/b/c", true);
	assert_true(fd >= 0);
	close(fd);
	assert_true(file_exists("a/b/c"));
	fd = folder_open(base_fd, "a/b/c", false);
	assert_true(fd >= 0);
	close(fd);
}

static void a_symbolic_link_is_not_entered(void **state)
{
	int made = folder_open(base_fd, "there/inside", true);
	int fd;

	assert_true(made >= 0);
	close(made);
	assert_int_equal(symlinkat("there", base_fd, "link"), 0);
	fd = folder_open(base_fd, "link/inside", true);
	assert_true(fd == -ELOOP || fd == -ENOTDIR);
	fd = folder_open(base_fd, "link", false);
	assert_true(fd == -ELOOP || fd == -ENOTDIR);
}

static void a_name_that_is_too_long_is_refused(void **state)
{
	char name[512];

	memset(name, 'x', sizeof(name));
	name[sizeof(name) - 1] = '\0';
	assert_int_equal(folder_open(base_fd, name, true), -ENAMETOOLONG);
}

static void a_file_is_replaced_as_a_whole(void **state)
{
	char text[32];
	int old;

	assert_int_equal(folder_put(base_fd, "file", "a longer text"), 0);
	old = openat(base_fd, "file", O_RDONLY | O_CLOEXEC);
	assert_int_equal(folder_put(base_fd, "file", "short"), 0);
	read_file("file", text);
	assert_string_equal(text, "short");
	/* A reader of the old file keeps the old file. */
	assert_int_equal(read(old, text, sizeof(text)), 13);
	close(old);
}

/* A process in another PID namespace may have this process's id. */
static void the_temporary_file_of_another_process_stays(void **state)
{
	char temp[64], text[32];

	snprintf(temp, sizeof(temp), ".file.%d~", (int)getpid());
	write_file(temp);
	assert_int_equal(folder_put(base_fd, "file", "new"), 0);
	read_file("file", text);
	assert_string_equal(text, "new");
	assert_true(file_exists(temp));
}

/* Replaces the file by a text of PUT_BYTES equal letters, PUTS times.  Returns
 * NULL, or the text if a call has failed. */
static void *put_letters(void *text)
{
	for (int i = 0; i < PUTS; i++)
		if (folder_put(base_fd, "file", text))
			return text;
	return NULL;
}

static uint32_t count_entries(void)
{
	DIR *d = opendir(base);
	uint32_t count = 0;

	assert_non_null(d);
	while (readdir(d))
		count++;
	closedir(d);
	return count;
}

static void threads_that_replace_a_file_do_not_mix_their_texts(void **state)
{
	static char text[WRITERS][PUT_BYTES + 1];
	char got[32];
	pthread_t thread[WRITERS];
	void *failed;

	for (int i = 0; i < WRITERS; i++) {
		memset(text[i], 'a' + i, PUT_BYTES);
		assert_int_equal(
			pthread_create(&thread[i], NULL, put_letters, text[i]),
			0);
	}
	for (int i = 0; i < WRITERS; i++) {
		pthread_join(thread[i], &failed);
		assert_null(failed);
	}
	read_file("file", got);
	assert_int_equal(strlen(got), PUT_BYTES);
	for (int i = 1; i < PUT_BYTES; i++)
		assert_int_equal(got[i], got[0]);
	assert_int_equal(count_entries(), 3); /* ".", ".." and the file */
}

static void a_folder_is_removed_with_its_contents(void **state)
{
	int fd = folder_open(base_fd, "a/b/c", true);

	assert_true(fd >= 0);
	close(fd);
	write_file("a/file");
	write_file("a/b/c/file");
	write_file("other");
	folder_remove(base_fd, "a");
	assert_false(file_exists("a"));
	assert_true(file_exists("other"));
	folder_remove(base_fd, "other");
	assert_false(file_exists("other"));
}

static void a_link_is_removed_and_not_what_it_names(void **state)
{
	int fd = folder_open(base_fd, "there", true);

	assert_true(fd >= 0);
	close(fd);
	write_file("there/file");
	assert_int_equal(symlinkat("there", base_fd, "link"), 0);
	folder_remove(base_fd, "link");
	assert_false(file_exists("link"));
	assert_true(file_exists("there/file"));
}

static void a_negative_descriptor_has_no_contents(void **state)
{
	write_file("file");
	folder_empty(-1);
	assert_true(file_exists("file"));
}

#define T(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(missing_folders_are_made_only_if_asked_for),
		T(a_symbolic_link_is_not_entered),
		T(a_name_that_is_too_long_is_refused),
		T(a_file_is_replaced_as_a_whole),
		T(the_temporary_file_of_another_process_stays),
		T(threads_that_replace_a_file_do_not_mix_their_texts),
		T(a_folder_is_removed_with_its_contents),
		T(a_link_is_removed_and_not_what_it_names),
		T(a_negative_descriptor_has_no_contents),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
