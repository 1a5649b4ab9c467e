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
 * Returns whether the file system of this device (st_dev) lies in memory or on
 * a disk of this machine, and the kernel alone serves it.  Also returns false
 * if this mount namespace has no such device, as for a file system that is
 * mounted only in another namespace.  Does not access the file system itself.
 */
bool mounts_are_kernels(dev_t dev);

#endif
