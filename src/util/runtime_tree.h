/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Finds the folder of the synthesised sysfs tree, which device/sysfs.c makes
 * and the shim shows to the program.  Network namespaces differ in their
 * interfaces, so each has its own tree: the folder sysfs-N in the user's
 * runtime folder, where N is the inode of the namespace.  A host of a fabric
 * has the adapter of its node and no interface: its tree is the folder
 * sysfs-N-H, where H is a hash of ADVERB_FABRIC and ADVERB_FABRIC_HOST.
 * ADVERB_SYSFS names another folder for the tree, and ADVERB_RUNTIME another
 * runtime folder.
 *
 * Without ADVERB_RUNTIME the runtime folder lies in XDG_RUNTIME_DIR, /run (for
 * root), /tmp or /dev/shm.  Any user can create a folder in /tmp, and the roots
 * of all user namespaces may have the same uid.  So the runtime folder has the
 * first of a few names that no other user has taken, and is created with mode
 * 0700.
 *
 * The path to the tree is walked from / by descriptors (util/walk.h).  A
 * symbolic link is followed only in a path that the environment or the system
 * names.  So no other user, except root and members of group 0, can replace an
 * object that was checked.  The folder of the tree is the caller's own.
 *
 * A program that has more rights than its caller (AT_SECURE) has no tree.
 *
 * The functions allocate nothing, take no lock, and leave no descriptor open
 * but the one that runtime_tree_make returns.  They may change errno.
 */
#ifndef UTIL_RUNTIME_TREE_H
#define UTIL_RUNTIME_TREE_H

#include <stdbool.h>

#define RUNTIME_TREE_NAMES 16  /* the names tried for the runtime folder */
#define RUNTIME_TREE_PATH  200 /* bytes, with the terminating NUL */

struct runtime_tree {
	/* The path of the tree's folder or, after runtime_tree_folder, of the
	 * runtime folder, whether the folder exists or not. */
	char path[RUNTIME_TREE_PATH];
	/* A clause that says why the folder cannot be used; empty: it can. */
	char why[RUNTIME_TREE_PATH + 128];
};

/* Returns what a user can do if the tree's folder cannot be used because of
 * `err`, a positive errno: a clause, to be printed after runtime_tree.why. */
const char *runtime_tree_remedy(int err);
/*
 * Looks for the tree and sets t->path.  Returns 0 if the tree's folder exists.
 * Otherwise sets t->why and returns -ENOENT if the folder does not exist but
 * can be created; -EPERM if a link, a folder that others can write, or another
 * user's folder or file is in the way, or if the program has more rights than
 * its caller; or another -errno.
 */
int runtime_tree_find(struct runtime_tree *t);
/*
 * Looks for the tree, creates missing folders, and sets t->path.  Returns a
 * descriptor of the tree's folder, open for reading, which the caller closes.
 * On failure sets t->why and returns -EPERM, as runtime_tree_find does, or
 * another -errno.
 */
int runtime_tree_make(struct runtime_tree *t);
/*
 * Looks for the user's runtime folder, which ADVERB_SYSFS does not change, and
 * sets t->path to it.  If `makes`, creates missing folders.  Returns 0, or sets
 * t->why and returns what runtime_tree_find returns.
 */
int runtime_tree_folder(struct runtime_tree *t, bool makes);

#endif
