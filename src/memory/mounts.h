/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Finds out whether the kernel alone serves a file system.  A file that another
 * process names may lie on a file system that a process or another host serves
 * (FUSE, or a network file system).  An open of such a file waits for that
 * server, perhaps for ever.
 */
#ifndef MEMORY_MOUNTS_H
#define MEMORY_MOUNTS_H

#include <stdbool.h>
#include <sys/types.h>

/*
 * Returns true if this device (st_dev) is that of memfds, or if its file system
 * has one of the types in mounts.c, which the kernel alone serves from memory
 * or a block device.  Returns false for other types, without /proc, and if this
 * mount namespace has no such device, as for a file system that is mounted only
 * in another namespace, or a subvolume of btrfs (util/mountinfo.h).  Does not
 * access the file system itself.
 */
bool mounts_are_kernels(dev_t dev);

#endif
