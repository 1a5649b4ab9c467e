/* SPDX-License-Identifier: BSD-2-Clause */
#include "test.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "util/fd_table.h"

/* Returns how many descriptors the kernel's table of this process has, or 0. */
static int table_size(void)
{
	FILE *f = fopen("/proc/self/status", "r");
	char line[256];
	int size = 0;

	if (!f)
		return 0;
	while (!size && fgets(line, sizeof(line), f))
		sscanf(line, "FDSize: %d", &size);
	fclose(f);
	return size;
}

/* Returns how many descriptors are open below FD_TABLE_ENTRIES. */
static int count_open(void)
{
	int n = 0;

	for (int fd = 0; fd < FD_TABLE_ENTRIES; fd++)
		n += fcntl(fd, F_GETFD) >= 0;
	return n;
}

/* Does the hard limit on open files allow all limits that the tests set? */
static bool has_room(void)
{
	struct rlimit r;

	return !getrlimit(RLIMIT_NOFILE, &r) && r.rlim_max > FD_TABLE_ENTRIES;
}

#define NEEDS_FILES()                                                          \
	do {                                                                   \
		if (!has_room())                                               \
			SKIP_FOR("the hard limit on open files is too low");   \
	} while (0)

static void set_limit(rlim_t most)
{
	struct rlimit r;

	getrlimit(RLIMIT_NOFILE, &r);
	r.rlim_cur = most;
	if (setrlimit(RLIMIT_NOFILE, &r))
		_exit(2);
}

/* Runs the check in a child, because a table never shrinks.  A child starts
 * with a table of the size that its descriptors need. */
static void in_child(bool (*check)(void))
{
	pid_t child = fork();
	int status;

	if (!child)
		_exit(check() ? 0 : 1);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
}

static bool takes_all_entries(void)
{
	int before = count_open();

	set_limit(FD_TABLE_ENTRIES + 1);
	if (table_size() >= FD_TABLE_ENTRIES)
		return false;
	fd_table_enlarge();
	return table_size() == FD_TABLE_ENTRIES && count_open() == before;
}

static bool takes_what_the_limit_allows(void)
{
	set_limit(1024);
	fd_table_enlarge();
	return table_size() == 1024;
}

static bool takes_nothing_at_a_low_limit(void)
{
	int before = table_size();

	set_limit(0);
	fd_table_enlarge();
	set_limit(1);
	fd_table_enlarge();
	set_limit(FD_TABLE_ENTRIES);
	return table_size() == before;
}

static void *wait_for_end(void *fd)
{
	char c;

	return read(*(int *)fd, &c, 1) ? fd : NULL;
}

static bool takes_nothing_beside_a_thread(void)
{
	int before = table_size(), ends[2];
	pthread_t thread;

	set_limit(FD_TABLE_ENTRIES);
	if (pipe(ends) || pthread_create(&thread, NULL, wait_for_end, ends))
		return false;
	fd_table_enlarge();
	close(ends[1]);
	pthread_join(thread, NULL);
	return table_size() == before;
}

static void the_table_gets_all_entries(void **state)
{
	NEEDS_KERNEL();
	NEEDS_FILES();
	in_child(takes_all_entries);
}

static void the_table_gets_no_more_than_the_limit(void **state)
{
	NEEDS_KERNEL();
	NEEDS_FILES();
	in_child(takes_what_the_limit_allows);
	in_child(takes_nothing_at_a_low_limit);
}

static void the_table_of_several_threads_stays_as_it_is(void **state)
{
	NEEDS_KERNEL();
	NEEDS_FILES();
	in_child(takes_nothing_beside_a_thread);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_table_gets_all_entries),
		cmocka_unit_test(the_table_gets_no_more_than_the_limit),
		cmocka_unit_test(the_table_of_several_threads_stays_as_it_is),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
