/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The tree that replaces /sys and /dev for RDMA devices.  It consists of real
 * folders and files in the user's runtime folder.  Programs find the tree by
 * ibdev_path, by ibv_get_sysfs_path and by the shim.  sysfs_write.h writes the
 * files.  Lock: the functions take their own.
 */
#ifndef DEVICE_SYSFS_H
#define DEVICE_SYSFS_H

#include <stddef.h>

/* Returns the path of this process's tree, or NULL if the tree cannot be
 * written.  The first call writes the tree.  The string is valid until the
 * process ends. */
const char *sysfs_path(void);
/* Writes to `why` why sysfs_path has returned NULL, and what to do. */
void sysfs_failure(char *why, size_t room);
/* Called after a change of the devices: writes this process's tree again if
 * sysfs_path has opened the tree's folder, even if sysfs_path has failed to
 * write the tree there.  If the program has closed the folder's descriptor, and
 * the last attempt had written the tree, looks for the folder again. */
void sysfs_refresh(void);
/* Returns a descriptor of the folder class/infiniband in this process's tree,
 * which the caller closes.  Returns -1 if the tree was not written, if the last
 * attempt to write it has failed, or if the folder cannot be opened. */
int sysfs_devices(void);
/* Initialises the lock in the child of a fork: a thread that does not exist
 * there may have held it. */
void sysfs_forked(void);

#endif
