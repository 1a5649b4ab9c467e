/* SPDX-License-Identifier: BSD-2-Clause */
#include "memory/mounts.h"

#include "util/mountinfo.h"

#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

/* Types of file system that the kernel alone serves: from memory, or from a
 * disk that only root can mount. */
static const char *const kernels[] = {
	"tmpfs", "hugetlbfs", "ramfs", "ext2", "ext3", "ext4", "xfs", "btrfs",
};

/* Is dev the device of the files that memfd_create makes with these flags?  The
 * file systems of such files are not in mountinfo.  False also if no such file
 * can be made. */
static bool is_memory(dev_t dev, unsigned flags)
{
	int fd = memfd_create("adverb-look", MFD_CLOEXEC | flags);
	struct stat s;
	bool is_it;

	if (fd < 0)
		return false;
	is_it = !fstat(fd, &s) && s.st_dev == dev;
	close(fd);
	return is_it;
}

static bool is_mounted(dev_t dev)
{
	struct mountinfo m;

	if (!mountinfo_find(major(dev), minor(dev), &m))
		return false;
	for (size_t i = 0; i < sizeof(kernels) / sizeof(*kernels); i++)
		if (!strcmp(kernels[i], m.type))
			return true;
	return false;
}

bool mounts_are_kernels(dev_t dev)
{
	return is_memory(dev, 0) || is_memory(dev, MFD_HUGETLB) ||
	       is_mounted(dev);
}
