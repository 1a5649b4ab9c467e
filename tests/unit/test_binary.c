/* SPDX-License-Identifier: BSD-2-Clause */
/* What `adverb run` reads in a program file. */
#include "test.h"
#include "tools/binary.h"

#include <elf.h>
#include <unistd.h>

struct file {
	Elf64_Ehdr head;
	Elf64_Phdr segments[2];
	Elf64_Dyn dynamic[4];
};

/* A dynamic program of this machine with the given entries. */
static struct file sample(Elf64_Sxword tag, Elf64_Sxword tag2)
{
	struct file f = {
		.head.e_phentsize = sizeof(Elf64_Phdr),
		.head.e_phoff = offsetof(struct file, segments),
		.head.e_phnum = 2,
		.segments[0].p_type = PT_INTERP,
		.segments[1].p_type = PT_DYNAMIC,
		.segments[1].p_offset = offsetof(struct file, dynamic),
		.segments[1].p_filesz = sizeof(f.dynamic),
		.dynamic[0].d_tag = tag,
		.dynamic[1].d_tag = tag2,
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
	struct file rpath = sample(DT_RPATH, DT_NULL);
	struct file both = sample(DT_RPATH, DT_RUNPATH);
	struct file none = sample(DT_NULL, DT_RPATH);

	assert_true(read_bytes(&rpath, sizeof(rpath)).rpath);
	assert_false(read_bytes(&both, sizeof(both)).rpath);
	assert_false(read_bytes(&none, sizeof(none)).rpath);
	assert_int_equal(read_bytes(&none, sizeof(none)).kind, BINARY_DYNAMIC);
}

static void no_interpreter_is_static(void **state)
{
	struct file f = sample(DT_NULL, DT_NULL);

	f.segments[0].p_type = PT_LOAD;
	assert_int_equal(read_bytes(&f, sizeof(f)).kind, BINARY_STATIC);
}

static void other_machines_are_foreign(void **state)
{
	struct file f = sample(DT_NULL, DT_NULL);

	f.head.e_machine = EM_68K;
	assert_int_equal(read_bytes(&f, sizeof(f)).kind, BINARY_FOREIGN);
	f = sample(DT_NULL, DT_NULL);
	f.head.e_ident[EI_CLASS] = ELFCLASS32;
	assert_int_equal(read_bytes(&f, sizeof(f)).kind, BINARY_FOREIGN);
}

static void anything_else_is_a_script(void **state)
{
	assert_int_equal(read_bytes("#!/bin/sh\n", 10).kind, BINARY_SCRIPT);
	assert_int_equal(read_bytes("", 0).kind, BINARY_SCRIPT);
}

static void offsets_outside_the_file_are_not_followed(void **state)
{
	struct file f = sample(DT_RPATH, DT_NULL);

	f.segments[1].p_offset = (Elf64_Off)-8;
	assert_false(read_bytes(&f, sizeof(f)).rpath);
	f.head.e_phoff = (Elf64_Off)-8;
	assert_int_equal(read_bytes(&f, sizeof(f)).kind, BINARY_STATIC);
	for (size_t size = 1; size < sizeof(f); size++)
		read_bytes(&f, size);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rpath_counts_only_without_runpath),
		cmocka_unit_test(no_interpreter_is_static),
		cmocka_unit_test(other_machines_are_foreign),
		cmocka_unit_test(anything_else_is_a_script),
		cmocka_unit_test(offsets_outside_the_file_are_not_followed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
