/* SPDX-License-Identifier: BSD-2-Clause */
#include "util/random.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#define DEVICE	     "/dev/urandom"
#define DEVICE_MAJOR 1
#define DEVICE_MINOR 9

/* This file makes system calls directly: libc's read, open and getrandom are
 * cancellation points. */
static bool read_all(int fd, uint8_t *p, size_t n)
{
	while (n) {
		ssize_t got = syscall(SYS_read, fd, p, n);

		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			return false;
		p += got;
		n -= (size_t)got;
	}
	return true;
}

/* Returns whether fd is the device.  In a chroot any file may have the device's
 * name. */
static bool is_device(int fd)
{
	struct stat s;

	return !fstat(fd, &s) && S_ISCHR(s.st_mode) &&
	       s.st_rdev == makedev(DEVICE_MAJOR, DEVICE_MINOR);
}

static bool fill_by_device(uint8_t *p, size_t n)
{
	int fd = (int)syscall(SYS_openat, AT_FDCWD, DEVICE,
			      O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	bool is_full = fd >= 0 && is_device(fd) && read_all(fd, p, n);

	if (fd >= 0)
		syscall(SYS_close, fd);
	return is_full;
}

bool random_fill(void *buf, size_t n, bool waits)
{
	uint8_t *p = buf;

	while (n) {
		ssize_t got =
			syscall(SYS_getrandom, p, n, waits ? 0 : GRND_NONBLOCK);

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return errno != EAGAIN && fill_by_device(p, n);
		p += got;
		n -= (size_t)got;
	}
	return true;
}
