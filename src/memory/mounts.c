/* SPDX-License-Identifier: BSD-2-Clause */
#include "memory/mounts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

/* Those that only root can mount, on what only root can give them. */
static const char *const kernels[] = {
	"tmpfs", "hugetlbfs", "ramfs", "ext2", "ext3", "ext4", "xfs", "btrfs",
};

/* Memory without a name lies on file systems that are mounted nowhere. */
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

/* A line of proc(5)'s mountinfo: is it of this device, and a kernel's? */
static bool is_mount(const char *line, dev_t dev)
{
	const char *type = strstr(line, " - ");
	unsigned major, minor;
	size_t length;

	if (!type || sscanf(line, "%*u %*u %u:%u", &major, &minor) != 2 ||
	    makedev(major, minor) != dev)
		return false;
	type += 3;
	length = strcspn(type, " ");
	for (size_t i = 0; i < sizeof(kernels) / sizeof(*kernels); i++)
		if (strlen(kernels[i]) == length &&
		    !strncmp(kernels[i], type, length))
			return true;
	return false;
}

static bool is_mounted(dev_t dev)
{
	FILE *f = fopen("/proc/self/mountinfo", "re");
	char *line = NULL;
	size_t size = 0;
	bool found = false;

	while (f && !found && getline(&line, &size, f) > 0)
		found = is_mount(line, dev);
	free(line);
	if (f)
		fclose(f);
	return found;
}

bool mounts_are_kernels(dev_t dev)
{
	return is_memory(dev, 0) || is_memory(dev, MFD_HUGETLB) ||
	       is_mounted(dev);
}
