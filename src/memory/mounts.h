/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * File systems that the kernel alone serves.  A file that another process names
 * may lie on a file system that a process serves (FUSE, or a network file
 * system): an open of such a file waits for that process, perhaps for ever.
 */
#ifndef MEMORY_MOUNTS_H
#define MEMORY_MOUNTS_H

#include <stdbool.h>
#include <sys/types.h>

/*
 * Returns whether files of this device (st_dev) lie in memory or on a disk of
 * this machine and the kernel alone serves them.  False if that is not known:
 * the file system may be mounted in another mount namespace.  Does not access
 * the file system itself.
 */
bool mounts_are_kernels(dev_t dev);

#endif
