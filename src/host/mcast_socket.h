/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Multicast groups of this process (IBTA A17.9.1.2): a GID ::ffff:a.b.c.d is
 * the IPv4 group a.b.c.d, any other the IPv6 group of the same bits.  Datagrams
 * from an IPv4 address cannot go to the latter: between adverbs they go to an
 * IPv4 group of 239.192/14 that follows from the GID, which is joined too.
 *
 * The receive socket is a member as long as a queue pair is attached.  Lock:
 * the lane's.
 */
#ifndef HOST_MCAST_SOCKET_H
#define HOST_MCAST_SOCKET_H

#include "host/host.h"
#include "host/progress.h"

/* The IPv4 group for what an IPv4 address sends to gid. */
void mcast_socket_alias(const uint8_t gid[16], uint8_t ip[16]);
/* 0 or -errno with *why. */
int mcast_socket_attach(struct progress *l, const struct device *dev,
			struct ibt_qp *q, const uint8_t gid[16],
			const char **why);
int mcast_socket_detach(struct progress *l, struct ibt_qp *q,
			const uint8_t gid[16], const char **why);
/* Leave the groups that no queue pair is in any more. */
void mcast_socket_sweep(struct progress *l);

#endif
