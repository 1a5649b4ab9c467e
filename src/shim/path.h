/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * path: which paths the shim turns elsewhere, and where to.
 *
 * The kernel's RDMA paths become the tree that libibverbs writes:
 *
 *	/sys/class/infiniband...	<tree>/class/infiniband...
 *	/dev/infiniband...		<tree>/dev/infiniband...
 *
 * where <tree> is ADVERB_SYSFS, else in the runtime folder (runtime_tree.h).
 *Pure but for the search of that; allocates nothing, so it may run inside
 *malloc.
 */
#ifndef SHIM_PATH_H
#define SHIM_PATH_H

#include <limits.h>
#include <stdbool.h>
#include <string.h>

struct path {
	char text[PATH_MAX];
};

/* The cheap test first: this runs on every open of the program. */
static inline bool path_may_turn(const char *path)
{
	return path && strstr(path, "infiniband");
}

/*
 * The path to use for @path, which a relative one begins at the folder @dir
 * (openat(2); AT_FDCWD): itself, or @room's text if it is one of ours.  NULL
 * stays NULL.  "." and ".." in it are worked out as written, links are not
 * followed.  A set-user-ID program, and one of the like, sees what is there.
 */
const char *path_turn(int dir, const char *path, struct path *room);

#endif
