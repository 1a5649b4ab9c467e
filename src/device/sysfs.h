/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The tree that stands for /sys and /dev: real directories in the user's
 * runtime folder, so that ibdev_path, ibv_get_sysfs_path and the path shim
 * have something to point at.  Each file is whole or not there (rename),
 * because another process may be reading it; the tree is written anew only
 * when it differs from what the stamp in it says.
 */
#ifndef DEVICE_SYSFS_H
#define DEVICE_SYSFS_H

#include "device/device.h"

/* The path of the process's tree, which is written if it is not there yet;
 * NULL if it cannot be written.  The string lasts until the process ends. */
const char *sysfs_path(void);
/*
 * The tree of these devices in the folder fd, which is empty or has a tree; 0
 * or -errno, -ENOTEMPTY for one that holds something else.  All is reached from
 * the descriptor (util/folder.h).  The ports are read as they are, without
 * netif's lock.
 */
int sysfs_write(int fd, const struct device *devices, uint32_t count);
/* The process's devices have changed: write theirs again, if it ever was. */
void sysfs_refresh(void);
/* The folder class/infiniband of the process's tree, which the caller closes;
 * or -1. */
int sysfs_devices(void);
/* In a forked child: who held the lock is not here. */
void sysfs_forked(void);

#endif
