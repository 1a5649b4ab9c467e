/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * path: which paths the shim replaces, and by which.
 *
 * The kernel's RDMA paths become paths in the tree that libibverbs writes:
 *
 *	/sys/class/infiniband...	<tree>/class/infiniband...
 *	/dev/infiniband...		<tree>/dev/infiniband...
 *
 * where <tree> is ADVERB_SYSFS, else in the runtime folder (runtime_tree.h).
 * Pure but for the search of the tree; allocates nothing, since it may run
 * inside malloc.
 */
#ifndef SHIM_PATH_H
#define SHIM_PATH_H

#include <limits.h>
#include <stdbool.h>
#include <string.h>

struct path {
	char text[PATH_MAX];
};

/* Returns false if path_turn does not replace the path.  A cheap test, since
 * every open of the program runs it. */
static inline bool path_may_turn(const char *path)
{
	return path && strstr(path, "infiniband");
}

/*
 * Returns the path to use in place of @path: @room's text if @path is one of
 * the kernel's RDMA paths, else @path.  A relative path begins at the folder
 * @dir (openat(2); AT_FDCWD).  NULL stays NULL.  "." and ".." are resolved by
 * name; symbolic links are not followed.  In a set-user-ID program, or another
 * of AT_SECURE, no path is replaced.
 */
const char *path_turn(int dir, const char *path, struct path *room);

#endif
