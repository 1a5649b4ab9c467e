/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Writes the tree that replaces /sys and /dev for RDMA devices (sysfs.h).  Each
 * file is replaced atomically by rename, because another process may be reading
 * it.  A stamp in the tree is a hash of the devices: the tree is written only
 * if the stamp differs.  Needs no lock: a process that writes the tree has a
 * lock on a file there.
 */
#ifndef DEVICE_SYSFS_WRITE_H
#define DEVICE_SYSFS_WRITE_H

#include "device/device.h"

/*
 * Writes the tree of these devices into the folder fd.  Returns 0; -ENOTEMPTY:
 * the folder has files but is no tree; or another -errno.  All files are
 * reached from the descriptor (util/folder.h).  The devices must be a copy,
 * since their ports are read without netif's lock, and their bytes of padding
 * must be 0, since the stamp is a hash of all bytes.
 */
int sysfs_write(int fd, const struct device *devices, uint32_t count);

#endif
