/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The tree that replaces /sys and /dev for RDMA devices: real directories in
 * the user's runtime folder, to which ibdev_path, ibv_get_sysfs_path and the
 * shim lead.  Each file is replaced atomically by rename, because another
 * process may be reading it.  A stamp in the tree is a hash of its data: the
 * tree is written only if the stamp differs.  Lock: inside.
 */
#ifndef DEVICE_SYSFS_H
#define DEVICE_SYSFS_H

#include "device/device.h"

/* Returns the path of this process's tree, which the first call writes, or NULL
 * if the tree cannot be written.  The string is valid until the process ends.
 */
const char *sysfs_path(void);
/*
 * Writes the tree of these devices into the folder fd.  Returns 0 or -errno:
 * -ENOTEMPTY if the folder holds other files than a tree.  All files are
 * reached from the descriptor (util/folder.h).  Reads the ports without netif's
 * lock: the caller passes a copy.
 */
int sysfs_write(int fd, const struct device *devices, uint32_t count);
/* Writes this process's tree again after a change of its devices, if sysfs_path
 * has written it. */
void sysfs_refresh(void);
/* Returns a descriptor of folder class/infiniband in this process's tree, which
 * the caller closes, or -1. */
int sysfs_devices(void);
/* Initialises the lock in the child of a fork: a thread that does not exist
 * there may have held it. */
void sysfs_forked(void);

#endif
