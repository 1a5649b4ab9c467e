/* SPDX-License-Identifier: BSD-2-Clause */
#include "test.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "util/standard_fds.h"

enum { FDS = 3 };

static bool is_null(int fd)
{
	struct stat st;

	return !fstat(fd, &st) && S_ISCHR(st.st_mode) &&
	       st.st_rdev == makedev(1, 3);
}

/* Closes the standard descriptors in `closed`, a set of bits, and calls
 * standard_fds_fill.  Returns true if each of them is then /dev/null and
 * close-on-exec, reading it (0) or writing to it (1, 2) fails with EBADF, and
 * the next file gets a number above 2.  Prints nothing meanwhile, and restores
 * the descriptors. */
static bool is_filled(unsigned closed)
{
	bool is_good = true;
	int kept[FDS], next;
	char byte = 0;

	for (int fd = 0; fd < FDS; fd++)
		kept[fd] = fcntl(fd, F_DUPFD_CLOEXEC, 10);
	for (int fd = 0; fd < FDS; fd++)
		if (closed >> fd & 1)
			close(fd);
	is_good &= !standard_fds_fill();
	next = dup(kept[0]);
	is_good &= next >= FDS;
	close(next);
	for (int fd = 0; fd < FDS; fd++)
		if (closed >> fd & 1)
			is_good &= is_null(fd) &&
				   fcntl(fd, F_GETFD) == FD_CLOEXEC &&
				   (fd ? write(fd, &byte, 1)
				       : read(fd, &byte, 1)) < 0 &&
				   errno == EBADF;
	for (int fd = 0; fd < FDS; fd++) {
		dup2(kept[fd], fd);
		close(kept[fd]);
	}
	return is_good;
}

static void no_later_file_becomes_a_standard_descriptor(void **state)
{
	for (unsigned closed = 0; closed < 1 << FDS; closed++)
		assert_true(is_filled(closed));
}

static void open_descriptors_stay(void **state)
{
	int own[2], kept = fcntl(0, F_DUPFD_CLOEXEC, 10);
	struct stat before, after;

	assert_int_equal(pipe(own), 0);
	dup2(own[0], 0);
	assert_int_equal(fstat(0, &before), 0);
	assert_int_equal(standard_fds_fill(), 0);
	assert_int_equal(fstat(0, &after), 0);
	assert_int_equal(before.st_ino, after.st_ino);
	assert_int_equal(fcntl(0, F_GETFD), 0);
	dup2(kept, 0);
	close(kept);
	close(own[0]);
	close(own[1]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(no_later_file_becomes_a_standard_descriptor),
		cmocka_unit_test(open_descriptors_stay),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
