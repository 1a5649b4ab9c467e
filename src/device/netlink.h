/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reads the interfaces and addresses of the caller's network namespace by
 * rtnetlink(7), since /sys may show those of another namespace.  No state, no
 * lock.
 */
#ifndef DEVICE_NETLINK_H
#define DEVICE_NETLINK_H

#include "device/netdev.h"

/*
 * Reads the interfaces and addresses into *scene, which the caller frees by
 * netlink_free.  Reads the routes and sets is_routed only if `routes` is true,
 * since a router may have very many routes.  Returns 0; or, with *scene empty,
 * -EINTR: each of three attempts was interrupted by a change of the interfaces
 * or addresses or, in the first two attempts, of the routes; or another -errno.
 */
int netlink_read(struct netdev_scene *scene, bool routes);
/* Frees the arrays of *scene. */
void netlink_free(struct netdev_scene *scene);
/* Returns a socket that becomes readable when links or addresses change, or
 * -errno.  The caller closes the socket. */
int netlink_watch(void);
/* Discards all messages that wait at the socket; does not block. */
void netlink_drain(int fd);

#endif
