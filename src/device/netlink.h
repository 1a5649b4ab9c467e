/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * This machine's interfaces and addresses, asked of the kernel by rtnetlink:
 * unlike /sys, it answers for the caller's own network namespace.
 */
#ifndef DEVICE_NETLINK_H
#define DEVICE_NETLINK_H

#include "device/netdev.h"

/*
 * Reads the scene, to be freed by netlink_free; 0 or -errno.  Routes are read
 * only if asked for: a router has very many.
 */
int netlink_read(struct netdev_scene *scene, bool routes);
void netlink_free(struct netdev_scene *scene);
/* A socket that becomes readable when links or addresses change: fd or
 * -errno. */
int netlink_watch(void);
/* Takes all that waits there; never waits itself. */
void netlink_drain(int fd);

#endif
