/* SPDX-License-Identifier: BSD-2-Clause */
/* broker/close_others: the descriptors of a starter are closed also where the
 * kernel refuses close_range(2), as some sandboxes do. */
#include "refused_syscall.h"
#include "test.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/resource.h>

#include "broker/close_others.h"

enum { MOST = 100 };

static bool refuses;

static int refused_syscall(long number, long first)
{
	return refuses && number == SYS_close_range ? EPERM : 0;
}

static void fill_table(void)
{
	const struct rlimit most = {.rlim_cur = MOST, .rlim_max = MOST};

	setrlimit(RLIMIT_NOFILE, &most);
	while (dup(STDIN_FILENO) >= 0)
		;
}

/* Ends with status 0 if only the standard descriptors and `kept` are open. */
static void close_and_count(int kept)
{
	bool is_right = true;

	fill_table();
	close_others_but(kept);
	for (int fd = 3; fd < MOST; fd++)
		is_right &= (fcntl(fd, F_GETFD) >= 0) == (fd == kept);
	_exit(!is_right || fcntl(STDERR_FILENO, F_GETFD) < 0);
}

static void only_one_descriptor_is_kept(void **state)
{
	static const int kept[] = {-1, 3, 4, 50, MOST - 1};
	int status;

	NEEDS_KERNEL(); /* close_range */
	for (size_t i = 0; i < 2 * TEST_COUNT(kept); i++) {
		pid_t child = fork();

		assert_true(child >= 0);
		if (!child) {
			refuses = i % 2;
			close_and_count(kept[i / 2]);
		}
		assert_int_equal(waitpid(child, &status, 0), child);
		assert_int_equal(status, 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(only_one_descriptor_is_kept),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
