/* SPDX-License-Identifier: BSD-2-Clause */
/* tools/ldcache: finds the library that the loader would load, and finds no
 * library in a damaged cache.  The test writes the cache files. */
#include "test.h"
#include "tools/ldcache.h"

#include <elf.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

static char folder[64], cache[96], first[96], second[96];
static bool shortens; /* the cache becomes empty after the next fstat(2) */

int __real_fstat64(int fd, struct stat64 *st);
int __wrap_fstat64(int fd, struct stat64 *st);
int __wrap_fstat64(int fd, struct stat64 *st)
{
	int err = __real_fstat64(fd, st);

	if (shortens)
		assert_int_equal(truncate(cache, 0), 0);
	shortens = false;
	return err;
}

/* The layout of the file, as in glibc's dl-cache.h. */
struct file {
	char magic[20];
	uint32_t count, strings, unused[5];
	struct {
		int32_t flags;
		uint32_t library, path, os;
		uint64_t hwcap;
	} rows[3];
	char text[512];
};

static uint32_t place_text(struct file *f, size_t *used, const char *text)
{
	size_t at = *used;

	strcpy(f->text + at, text);
	*used += strlen(text) + 1;
	return (uint32_t)(offsetof(struct file, text) + at);
}

/* Returns a cache with two files of libx.so.1, and with one file of libxx.so.1,
 * a name that begins like the one that the tests look for. */
static struct file sample_cache(void)
{
	struct file f = {.magic = "", .count = 3};
	size_t used = 0;

	memcpy(f.magic, "glibc-ld.so.cache1.1", sizeof(f.magic));
	f.rows[0].library = place_text(&f, &used, "libxx.so.1");
	f.rows[0].path = place_text(&f, &used, "/no");
	f.rows[1].library = f.rows[2].library =
		place_text(&f, &used, "libx.so.1");
	f.rows[1].path = place_text(&f, &used, first);
	f.rows[2].path = place_text(&f, &used, second);
	return f;
}

static void write_file(const char *path, const void *bytes, size_t size)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, bytes, size), size);
	close(fd);
}

/* Writes the ELF header of a library for this machine, with this class. */
static void put_library(const char *path, unsigned char class)
{
	FILE *self = fopen("/proc/self/exe", "re");
	Elf64_Ehdr head;

	assert_non_null(self);
	assert_int_equal(fread(&head, sizeof(head), 1, self), 1);
	fclose(self);
	head.e_ident[EI_CLASS] = class;
	head.e_phnum = 0;
	write_file(path, &head, sizeof(head));
}

static int set_up(void **state)
{
	strcpy(folder, "/tmp/adverb-ldcache-XXXXXX");
	if (!mkdtemp(folder))
		return -1;
	snprintf(cache, sizeof(cache), "%s/cache", folder);
	snprintf(first, sizeof(first), "%s/first", folder);
	snprintf(second, sizeof(second), "%s/second", folder);
	put_library(first, ELFCLASS64);
	put_library(second, ELFCLASS64);
	return 0;
}

static int tear_down(void **state)
{
	unlink(cache);
	unlink(first);
	unlink(second);
	return rmdir(folder);
}

static const char *find_library(const void *bytes, size_t size)
{
	static char path[PATH_MAX];

	write_file(cache, bytes, size);
	return ldcache_read(cache, "libx.so.1", path) ? path : NULL;
}

static void the_first_of_a_name_is_found(void **state)
{
	struct file f = sample_cache();

	assert_string_equal(find_library(&f, sizeof(f)), first);
}

static void a_table_of_the_older_form_may_come_first(void **state)
{
	struct {
		char old[24];
		struct file f;
	} both = {"ld.so-1.7.0", sample_cache()};

	assert_string_equal(find_library(&both, sizeof(both)), first);
}

static void missing_and_32_bit_libraries_are_passed_over(void **state)
{
	struct file f = sample_cache();

	put_library(first, ELFCLASS32);
	assert_string_equal(find_library(&f, sizeof(f)), second);
	unlink(first);
	assert_string_equal(find_library(&f, sizeof(f)), second);
	unlink(second);
	assert_null(find_library(&f, sizeof(f)));
}

static void a_file_that_is_no_cache_has_no_library(void **state)
{
	char path[PATH_MAX];
	struct file f = sample_cache();

	assert_false(ldcache_read("/no/cache", "libx.so.1", path));
	assert_null(find_library("", 0));
	assert_null(find_library("glibc-ld.so.cache1.1", 20));
	f.count = UINT32_MAX;
	assert_null(find_library(&f, sizeof(f)));
	f = sample_cache();
	f.rows[1].library = f.rows[2].library = UINT32_MAX;
	assert_null(find_library(&f, sizeof(f)));
	f = sample_cache();
	f.rows[1].path = f.rows[2].path = sizeof(f) - 1;
	f.text[sizeof(f.text) - 1] = 'x'; /* the path does not end */
	assert_null(find_library(&f, sizeof(f)));
	f = sample_cache();
	for (size_t size = 0; size < offsetof(struct file, text); size++)
		assert_null(find_library(&f, size));
}

/* ldcache_read gets fewer bytes than fstat(2) has announced. */
static void a_cache_may_become_shorter_meanwhile(void **state)
{
	struct file f = sample_cache();

	shortens = true;
	assert_null(find_library(&f, sizeof(f)));
	assert_false(shortens);
}

/* The loader reads the cache before its default folders, which have a libc, and
 * after LD_LIBRARY_PATH. */
static void the_cache_comes_after_the_environment(void **state)
{
	char path[PATH_MAX], own[128], value[160];
	struct file f = sample_cache();
	size_t used = strlen(first) + strlen(second) + 64;

	f.rows[2].library = place_text(&f, &used, "libc.so.6");
	write_file(cache, &f, sizeof(f));
	unsetenv("LD_LIBRARY_PATH");
	assert_true(ldcache_find(cache, "libc.so.6", path));
	assert_string_equal(path, second);
	assert_true(ldcache_find("/no/cache", "libc.so.6", path));
	assert_string_not_equal(path, second);
	snprintf(own, sizeof(own), "%s/libc.so.6", folder);
	snprintf(value, sizeof(value), "/no:%s", folder);
	put_library(own, ELFCLASS64);
	setenv("LD_LIBRARY_PATH", value, 1);
	assert_true(ldcache_find(cache, "libc.so.6", path));
	assert_string_equal(path, own);
	unlink(own);
	assert_true(ldcache_find(cache, "libc.so.6", path));
	assert_string_equal(path, second);
	unsetenv("LD_LIBRARY_PATH");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(the_first_of_a_name_is_found,
						set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			a_table_of_the_older_form_may_come_first, set_up,
			tear_down),
		cmocka_unit_test_setup_teardown(
			missing_and_32_bit_libraries_are_passed_over, set_up,
			tear_down),
		cmocka_unit_test_setup_teardown(
			a_file_that_is_no_cache_has_no_library, set_up,
			tear_down),
		cmocka_unit_test_setup_teardown(
			a_cache_may_become_shorter_meanwhile, set_up,
			tear_down),
		cmocka_unit_test_setup_teardown(
			the_cache_comes_after_the_environment, set_up,
			tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
