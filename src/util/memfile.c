/* SPDX-License-Identifier: BSD-2-Clause */
#include "util/memfile.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "util/write_signals.h"

int memfile_new(const char *name, size_t bytes)
{
	int err, fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
	struct write_signals held;

	if (fd < 0)
		return -errno;
	write_signals_hold(&held);
	err = ftruncate(fd, (off_t)bytes) ? errno : 0;
	write_signals_give(&held);
	if (!err)
		return fd;
	close(fd);
	return -err;
}

int memfile_seal(int fd)
{
	return fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)
		       ? -errno
		       : 0;
}
