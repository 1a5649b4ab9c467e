/* SPDX-License-Identifier: BSD-2-Clause */
#include "util/standard_fds.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <unistd.h>

static bool is_closed(int fd)
{
	return fcntl(fd, F_GETFD) < 0 && errno == EBADF;
}

int standard_fds_fill(void)
{
	for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++) {
		int access = fd == STDIN_FILENO ? O_WRONLY : O_RDONLY;

		/* open returns fd, the lowest number that is free */
		if (is_closed(fd) && open("/dev/null", access | O_CLOEXEC) < 0)
			return -errno;
	}
	return 0;
}
