/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Removes the trees of network namespaces that nobody uses any more
 * (device/sysfs.h): folders sysfs-N of this user's runtime folder, each locked
 * (flock, shared) by every process that uses it.  A tree that no process has
 * locked, of a namespace in which no visible process is, is renamed, whole and
 * at once, and then removed.
 *
 * tree_fd: the folder class/infiniband of a tree.  All steps go by descriptors:
 * the process that sent this one may see another file system.
 */
#ifndef BROKER_SYSFS_GC_H
#define BROKER_SYSFS_GC_H

/* Removes the tree of the broker's own namespace, when the broker ends. */
void sysfs_gc_own(int tree_fd);
/* Removes the trees beside the tree of tree_fd that brokers left when they were
 * killed. */
void sysfs_gc_others(int tree_fd);

#endif
