/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The trees of network namespaces that nobody uses any more (device/sysfs.h):
 * folders sysfs-N of our user's runtime folder, each locked (flock, shared) by
 * every process that uses it.  One that nobody holds and whose namespace no
 * process that we can see is in is taken out of the way, whole and at once,
 * and then removed.
 *
 * tree_fd: the folder class/infiniband of a tree.  All goes by descriptors:
 * who gave us ours may see another file system than we.
 */
#ifndef BROKER_SYSFS_GC_H
#define BROKER_SYSFS_GC_H

/* That of our own namespace: the broker ends. */
void sysfs_gc_own(int tree_fd);
/* Those beside it: of namespaces whose brokers were killed. */
void sysfs_gc_others(int tree_fd);

#endif
