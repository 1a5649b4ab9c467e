/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Removes the sysfs trees (device/sysfs.h) of network namespaces that nobody
 * uses any more.  Such a tree is a folder sysfs-N or sysfs-N-H
 * (util/runtime_tree.h) of this user's runtime folder, and every process that
 * uses the tree has a shared lock on it (flock).  A tree is removed if no
 * process has locked it, and the broker sees no process other than itself in
 * the tree's namespace.  The tree is first renamed, so that it vanishes as a
 * whole.
 *
 * tree_fd is the folder class/infiniband of a tree.  All steps go by
 * descriptors and not by paths: the process that sent tree_fd may see another
 * file system.
 */
#ifndef BROKER_SYSFS_GC_H
#define BROKER_SYSFS_GC_H

/* Removes the tree of the broker's own namespace, if tree_fd is in that tree
 * and no process uses it.  The broker calls this when it ends. */
void sysfs_gc_own(int tree_fd);
/* Removes the unused trees beside the tree of tree_fd: those that killed
 * brokers have left, and those of hosts of fabrics, which have no broker.  Does
 * nothing if tree_fd is not in the tree of the broker's own namespace.  Looks
 * only at the first few entries, so that the call is short. */
void sysfs_gc_others(int tree_fd);

#endif
