/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Multicast groups of this process (IBTA A17.9.1.2): a GID ::ffff:a.b.c.d is
 * the IPv4 group a.b.c.d, any other the IPv6 group of the same bits.  Datagrams
 * from an IPv4 address cannot go to an IPv6 group: between processes with
 * adverb they go to an IPv4 group of 239.192/14 that follows from the GID,
 * which is joined, too.
 *
 * The receive socket is a member as long as a queue pair is attached.  Lock:
 * the progress lock.
 */
#ifndef HOST_MCAST_SOCKET_H
#define HOST_MCAST_SOCKET_H

#include "host/host.h"
#include "host/progress.h"

/* Sets ip to the IPv4 group to which datagrams for gid go from an IPv4
 * address. */
void mcast_socket_alias(const uint8_t gid[16], uint8_t ip[16]);
/* Attaches q to a group, and joins the group.  0 or -errno with *why. */
int mcast_socket_attach(struct progress *l, const struct device *dev,
			struct ibt_qp *q, const uint8_t gid[16],
			const char **why);
/* Detaches q from a group, and leaves the group if no queue pair uses it.  0 or
 * -errno with *why. */
int mcast_socket_detach(struct progress *l, struct ibt_qp *q,
			const uint8_t gid[16], const char **why);
/* Leaves the groups that no queue pair is attached to. */
void mcast_socket_sweep(struct progress *l);

#endif
