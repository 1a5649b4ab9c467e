/* SPDX-License-Identifier: BSD-2-Clause */
/* util/memfile: a file of zeroes, whose size stays once the file is sealed. */
#include "test.h"

#include "util/memfile.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { BYTES = 8192 };

static void a_file_has_its_size_and_can_be_sealed(void **state)
{
	int fd = memfile_new("memfile", BYTES);
	struct stat st;

	assert_true(fd >= 0);
	assert_int_equal(fcntl(fd, F_GETFD), FD_CLOEXEC);
	assert_int_equal(fstat(fd, &st), 0);
	assert_int_equal(st.st_size, BYTES);
	assert_int_equal(fcntl(fd, F_GET_SEALS), 0);
	close(fd);
}

static void a_sealed_file_keeps_its_size_and_its_seals(void **state)
{
	int fd = memfile_new("memfile", BYTES);

	assert_int_equal(memfile_seal(fd), 0);
	assert_int_equal(ftruncate(fd, BYTES / 2), -1);
	assert_int_equal(ftruncate(fd, 2 * BYTES), -1);
	assert_int_equal(memfile_seal(fd), -EPERM);
	close(fd);
	assert_int_equal(memfile_seal(fd), -EBADF);
}

static void a_limit_is_an_error_and_no_signal(void **state)
{
	const struct rlimit limit = {BYTES / 2, BYTES / 2};
	pid_t pid = fork();
	int status;

	assert_true(pid >= 0);
	if (!pid) {
		signal(SIGXFSZ, SIG_DFL);
		setrlimit(RLIMIT_FSIZE, &limit);
		_exit(memfile_new("memfile", BYTES) == -EFBIG ? 0 : 1);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_file_has_its_size_and_can_be_sealed),
		cmocka_unit_test(a_sealed_file_keeps_its_size_and_its_seals),
		cmocka_unit_test(a_limit_is_an_error_and_no_signal),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
