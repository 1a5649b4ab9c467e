/* SPDX-License-Identifier: BSD-2-Clause */
/* The parts of a program file that `adverb run` reads. */
#include "test.h"
#include "tools/binary.h"

#include <elf.h>
#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

/* After so many calls of fstat and pread the file becomes empty; 0: never. */
static int calls_left;

static void count_call(int fd)
{
	char name[32];

	if (!calls_left || --calls_left)
		return;
	snprintf(name, sizeof(name), "/proc/self/fd/%d", fd);
	assert_int_equal(truncate(name, 0), 0);
}

int __real_fstat64(int fd, struct stat64 *st);
int __wrap_fstat64(int fd, struct stat64 *st);
int __wrap_fstat64(int fd, struct stat64 *st)
{
	int err = __real_fstat64(fd, st);

	count_call(fd);
	return err;
}

ssize_t __real_pread64(int fd, void *to, size_t size, off64_t offset);
ssize_t __wrap_pread64(int fd, void *to, size_t size, off64_t offset);
ssize_t __wrap_pread64(int fd, void *to, size_t size, off64_t offset)
{
	ssize_t n = __real_pread64(fd, to, size, offset);

	count_call(fd);
	return n;
}

/* a program file that has only these parts */
struct file {
	Elf64_Ehdr head;
	Elf64_Phdr segments[3];
	Elf64_Dyn dynamic[6];
	char strings[64];
	char loader[32];
};

#define ADDRESS 0x10000 /* at which the file is loaded */

/* Returns a dynamic program of this machine; `tag` and `tag2` are the tags of
 * the first entries of the dynamic section. */
static struct file sample_program(Elf64_Sxword tag, Elf64_Sxword tag2)
{
	struct file f = {
		.head.e_phentsize = sizeof(Elf64_Phdr),
		.head.e_phoff = offsetof(struct file, segments),
		.head.e_phnum = 3,
		.segments[0].p_type = PT_INTERP,
		.segments[0].p_offset = offsetof(struct file, loader),
		.segments[1].p_type = PT_DYNAMIC,
		.segments[1].p_offset = offsetof(struct file, dynamic),
		.segments[1].p_filesz = sizeof(f.dynamic),
		.segments[2].p_type = PT_LOAD,
		.segments[2].p_vaddr = ADDRESS,
		.segments[2].p_filesz = sizeof(f),
		.dynamic[0].d_tag = tag,
		.dynamic[1].d_tag = tag2,
		.loader = "/lib64/ld-linux-x86-64.so.2",
	};
	FILE *self = fopen("/proc/self/exe", "re");
	Elf64_Ehdr own;

	assert_non_null(self);
	assert_int_equal(fread(&own, sizeof(own), 1, self), 1);
	fclose(self);
	memcpy(f.head.e_ident, own.e_ident, EI_NIDENT);
	f.head.e_machine = own.e_machine;
	return f;
}

static struct binary_facts read_bytes(const void *bytes, size_t size)
{
	struct binary_facts facts;
	char name[] = "/tmp/adverb-test-binary-XXXXXX";
	int fd = mkstemp(name);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, bytes, size), size);
	close(fd);
	assert_int_equal(binary_read(name, &facts), 0);
	unlink(name);
	return facts;
}

static void rpath_counts_only_without_runpath(void **state)
{
	struct file rpath = sample_program(DT_RPATH, DT_NULL);
	struct file both = sample_program(DT_RPATH, DT_RUNPATH);
	struct file none = sample_program(DT_NULL, DT_RPATH);

	assert_true(read_bytes(&rpath, sizeof(rpath)).rpath);
	assert_false(read_bytes(&both, sizeof(both)).rpath);
	assert_false(read_bytes(&none, sizeof(none)).rpath);
	assert_int_equal(read_bytes(&none, sizeof(none)).kind, BINARY_DYNAMIC);
}

/* Returns a sample program with a string table that has @text at offset 1 and
 * @text2 at offset 33. */
static struct file with_strings(Elf64_Sxword tag, const char *text,
				Elf64_Sxword tag2, const char *text2)
{
	struct file f = sample_program(tag, tag2);

	f.dynamic[0].d_un.d_val = 1;
	f.dynamic[1].d_un.d_val = 33;
	f.dynamic[2].d_tag = DT_STRTAB;
	f.dynamic[2].d_un.d_ptr = ADDRESS + offsetof(struct file, strings);
	snprintf(f.strings + 1, 32, "%s", text);
	snprintf(f.strings + 33, 31, "%s", text2);
	return f;
}

static void the_programs_own_folders_are_found(void **state)
{
	struct file both = with_strings(DT_RPATH, "/r", DT_RUNPATH, "$ORIGIN");
	struct file rpath = with_strings(DT_RPATH, "/r:/s", DT_NULL, "");
	struct file none = with_strings(DT_NEEDED, "libc.so.6", DT_NULL, "");
	struct file beyond = with_strings(DT_RUNPATH, "/r", DT_NEEDED, "libc");

	assert_string_equal(read_bytes(&both, sizeof(both)).search, "$ORIGIN");
	/* with_strings has put DT_NULL, which ends the section, before
	 * DT_STRTAB; here DT_STRTAB takes the place of DT_NULL */
	rpath.dynamic[1] = rpath.dynamic[2];
	assert_string_equal(read_bytes(&rpath, sizeof(rpath)).search, "/r:/s");
	assert_string_equal(read_bytes(&none, sizeof(none)).search, "");
	beyond.dynamic[0].d_un.d_val = sizeof(beyond);
	assert_string_equal(read_bytes(&beyond, sizeof(beyond)).search, "");
	beyond.dynamic[0].d_un.d_val = 1;
	beyond.dynamic[2].d_un.d_ptr = ADDRESS - 1;
	assert_string_equal(read_bytes(&beyond, sizeof(beyond)).search, "");
}

static void sanitizers_that_must_come_first_are_found(void **state)
{
	static const struct {
		const char *needed;
		bool old;
	} rows[] = {
		{"libasan.so.4", true},	 {"libasan.so.0", true},
		{"libasan.so.5", false}, {"libasan.so.10", false},
		{"libasan.so", false},	 {"libtsan.so.0", false},
	};

	for (size_t i = 0; i < TEST_COUNT(rows); i++) {
		struct file f = with_strings(DT_NEEDED, "libc.so.6", DT_NEEDED,
					     rows[i].needed);

		assert_int_equal(read_bytes(&f, sizeof(f)).old_asan,
				 rows[i].old);
	}
}

static void musls_loader_is_recognized(void **state)
{
	struct file f = sample_program(DT_NULL, DT_NULL);

	assert_false(read_bytes(&f, sizeof(f)).musl);
	strcpy(f.loader, "/lib/ld-musl-x86_64.so.1");
	assert_true(read_bytes(&f, sizeof(f)).musl);
}

static void a_program_without_interpreter_is_static(void **state)
{
	struct file f = sample_program(DT_NULL, DT_NULL);

	f.segments[0].p_type = PT_LOAD;
	assert_int_equal(read_bytes(&f, sizeof(f)).kind, BINARY_STATIC);
}

static void programs_of_other_machines_are_foreign(void **state)
{
	struct file f = sample_program(DT_NULL, DT_NULL);

	f.head.e_machine = EM_68K;
	assert_int_equal(read_bytes(&f, sizeof(f)).kind, BINARY_FOREIGN);
	f = sample_program(DT_NULL, DT_NULL);
	f.head.e_ident[EI_CLASS] = ELFCLASS32;
	assert_int_equal(read_bytes(&f, sizeof(f)).kind, BINARY_FOREIGN);
}

static void anything_else_is_a_script(void **state)
{
	assert_int_equal(read_bytes("#!/bin/sh\n", 10).kind, BINARY_SCRIPT);
	assert_int_equal(read_bytes("", 0).kind, BINARY_SCRIPT);
}

/* An open of a FIFO without O_NONBLOCK waits for a writer. */
static void a_fifo_is_refused_at_once(void **state)
{
	char path[] = "/tmp/adverb-test-XXXXXX";
	struct binary_facts facts;

	assert_non_null(mkdtemp(path));
	assert_int_equal(rmdir(path), 0);
	assert_int_equal(mkfifo(path, 0600), 0);
	alarm(TEST_WAIT_S);
	assert_int_equal(binary_read(path, &facts), -EACCES);
	alarm(0);
	assert_int_equal(facts.kind, BINARY_SCRIPT);
	assert_int_equal(unlink(path), 0);
}

static void a_scripts_interpreter_is_found(void **state)
{
	static const struct {
		const char *text, *interpreter;
	} rows[] = {
		{"#!/bin/sh\n", "/bin/sh"},
		{"#! \t/usr/bin/env python3\n", "/usr/bin/env"},
		{"#!/bin/sh", "/bin/sh"},
		{"#!", ""},
		{"#", ""},
		{"#!\n/bin/sh", ""},
		{"echo /bin/sh", ""},
	};
	static char much[PATH_MAX + 99];

	for (size_t i = 0; i < TEST_COUNT(rows); i++)
		assert_string_equal(
			read_bytes(rows[i].text, strlen(rows[i].text))
				.interpreter,
			rows[i].interpreter);
	memset(much, 'x', sizeof(much));
	memcpy(much, "#!", 2);
	assert_int_equal(strlen(read_bytes(much, sizeof(much)).interpreter),
			 PATH_MAX - 1);
}

static void offsets_outside_the_file_are_not_followed(void **state)
{
	struct file f = sample_program(DT_RPATH, DT_NULL);

	f.segments[1].p_offset = (Elf64_Off)-8;
	assert_false(read_bytes(&f, sizeof(f)).rpath);
	f.head.e_phoff = (Elf64_Off)-8;
	assert_int_equal(read_bytes(&f, sizeof(f)).kind, BINARY_STATIC);
	for (size_t size = 1; size < sizeof(f); size++)
		read_bytes(&f, size);
}

/* The file becomes empty after each call in turn.  If adverb mapped the file,
 * an access behind the new end of the file would raise SIGBUS. */
static void a_file_may_become_shorter_meanwhile(void **state)
{
	struct file f = sample_program(DT_RPATH, DT_NULL);
	struct binary_facts facts;
	int calls = 0;

	do {
		calls_left = ++calls;
		facts = read_bytes(&f, sizeof(f));
	} while (!calls_left);
	calls_left = 0;
	assert_true(calls > 1);
	assert_true(facts.rpath);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rpath_counts_only_without_runpath),
		cmocka_unit_test(the_programs_own_folders_are_found),
		cmocka_unit_test(sanitizers_that_must_come_first_are_found),
		cmocka_unit_test(musls_loader_is_recognized),
		cmocka_unit_test(a_program_without_interpreter_is_static),
		cmocka_unit_test(programs_of_other_machines_are_foreign),
		cmocka_unit_test(anything_else_is_a_script),
		cmocka_unit_test(a_fifo_is_refused_at_once),
		cmocka_unit_test(a_scripts_interpreter_is_found),
		cmocka_unit_test(offsets_outside_the_file_are_not_followed),
		cmocka_unit_test(a_file_may_become_shorter_meanwhile),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
