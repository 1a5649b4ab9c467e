/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * File systems that the kernel alone serves.  A file that another process names
 * may lie on one that a process serves (FUSE, or a file system of the network):
 * to open it there is to wait for that process, for ever if it likes.
 */
#ifndef MEMORY_MOUNTS_H
#define MEMORY_MOUNTS_H

#include <stdbool.h>
#include <sys/types.h>

/*
 * Do files of this device (st_dev) lie in memory or on a disk of this machine,
 * and does the kernel alone serve them?  False if it is not known: it may be
 * mounted where we do not see it.  Asks no file system.
 */
bool mounts_are_kernels(dev_t dev);

#endif
