/* SPDX-License-Identifier: BSD-2-Clause */
#include "broker/close_others.h"

#include <dirent.h>
#include <limits.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#define FIRST_FD 3 /* the first that is not a standard one */

static bool close_range_to(unsigned first, unsigned last)
{
	return first > last || !syscall(SYS_close_range, first, last, 0);
}

/* Closes all descriptors from FIRST_FD on, except `kept`.  False: the kernel
 * lacks or refuses close_range(2). */
static bool close_ranges(int kept)
{
	if (kept < FIRST_FD)
		return close_range_to(FIRST_FD, UINT_MAX);
	return close_range_to(FIRST_FD, (unsigned)kept - 1) &&
	       close_range_to((unsigned)kept + 1, UINT_MAX);
}

/* Closes each descriptor that /proc lists. */
static void close_listed(int kept)
{
	struct dirent *e;
	DIR *dir;

	/* frees a descriptor, which opendir needs */
	close(kept == FIRST_FD ? FIRST_FD + 1 : FIRST_FD);
	dir = opendir("/proc/thread-self/fd");
	while (dir && (e = readdir(dir))) {
		int fd = atoi(e->d_name);

		if (fd >= FIRST_FD && fd != kept && fd != dirfd(dir))
			close(fd);
	}
	if (dir)
		closedir(dir);
}

void close_others_but(int kept)
{
	if (!close_ranges(kept))
		close_listed(kept);
}
