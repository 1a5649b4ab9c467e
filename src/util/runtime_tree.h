/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Where the synthesised tree lies: the one rule that host, which writes it,
 * and the shim, which shows it, must agree on.  Network namespaces differ in
 * their interfaces, so each has a tree, sysfs-N in the user's runtime folder.
 *
 * Anybody may have a folder in /tmp, and who is root of a user namespace has
 * the number of every other root: the runtime folder is the first of a few
 * names that nobody else has, made for its user alone (0700).  The way to the
 * tree is walked from / by descriptors.  Each folder on it is root's or the
 * caller's and written by nobody else, unless it is sticky; a link counts only
 * as part of what the environment or the system named, and only if root or the
 * caller made it.  No folder lies on a file system that another user's process
 * serves (FUSE): that could say of a file whatever owner it likes.  So nobody
 * else can put another thing in the place of one
 * that was looked at, and what lies below the descriptor is the caller's own.
 *
 * In a program that has more rights than its caller (AT_SECURE) there is no
 * tree.  Allocates nothing, takes no lock, and keeps no descriptor but the one
 * that it returns; errno may change.
 */
#ifndef UTIL_RUNTIME_TREE_H
#define UTIL_RUNTIME_TREE_H

#include <stdbool.h>

#define RUNTIME_TREE_NAMES 16  /* of the runtime folder */
#define RUNTIME_TREE_PATH  200 /* bytes, with the terminating NUL */

struct runtime_tree {
	char path[RUNTIME_TREE_PATH]; /* the tree's folder, there or not */
	char why[RUNTIME_TREE_PATH +
		 128]; /* that it cannot be used, or is not there */
};

/*
 * 0: it is there.  -ENOENT: it is not, and could be made.  Other -errno: it
 * cannot be used, and why says why; -EPERM if that is another user's doing.
 */
int runtime_tree_find(struct runtime_tree *t);
/* Makes what is missing.  A descriptor of the tree's folder, open for reading,
 * which the caller closes; or -errno as above. */
int runtime_tree_make(struct runtime_tree *t);

#endif
