/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * path: the paths that the shim replaces, and the paths that take their place.
 *
 * The kernel's RDMA paths become paths in the tree that libibverbs writes:
 *
 *	/sys/class/infiniband...	<tree>/class/infiniband...
 *	/dev/infiniband...		<tree>/dev/infiniband...
 *
 * where <tree> is ADVERB_SYSFS, or else a folder in the runtime folder
 * (util/runtime_tree.h).  path_turn looks for the tree, and may print one
 * message if there is no tree.  path_turn allocates nothing, since it may run
 * inside malloc.
 */
#ifndef SHIM_PATH_H
#define SHIM_PATH_H

#include <limits.h>
#include <stdbool.h>
#include <string.h>

/* Room for a path. */
struct path {
	char text[PATH_MAX]; /* ends with a NUL */
};

/* Returns true if path_turn may replace the path.  The test is cheap, since
 * every open of the program runs it. */
static inline bool path_may_turn(const char *path)
{
	return path && strstr(path, "infiniband");
}

/*
 * Returns the path to use in place of @path: the text of @room, which this
 * function has set, if @path is one of the kernel's RDMA paths, or goes through
 * one and leaves it again by ".."; otherwise @path.  A relative path begins at
 * the folder @dir, as with openat(2), or at the working directory if @dir is
 * AT_FDCWD.  For a @path of NULL, returns NULL.  "." and ".." are resolved by
 * name, and symbolic links are not followed.  In a program that has more rights
 * than its caller (AT_SECURE), or if the result is too long, no path is
 * replaced.  Leaves errno unchanged.
 */
const char *path_turn(int dir, const char *path, struct path *room);

#endif
