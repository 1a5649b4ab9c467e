/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Multicast groups of this process (IBTA A17.9.1.2).  The GID ::ffff:a.b.c.d is
 * the IPv4 group a.b.c.d; any other multicast GID is the IPv6 group of the same
 * bits.  A datagram from an IPv4 address cannot go to an IPv6 group.  So adverb
 * sends such a datagram to the group's alias, an IPv4 group of 239.192.0.0/14
 * whose address is a hash of the GID.  A process that joins an IPv6 group also
 * joins the group's alias.
 *
 * The socket of the main sender (wire/udp.h) is a member of a group as long as
 * a queue pair is attached to the group.  For queue pairs by LID, the data end
 * of their port is the member (fabric_link.h), and no alias exists.  Owner:
 * struct progress (its groups); lock: the progress lock.
 */
#ifndef HOST_MCAST_SOCKET_H
#define HOST_MCAST_SOCKET_H

#include "host/host.h"
#include "host/progress.h"

/* Sets ip to the alias of gid, an IPv6 group, as ::ffff:a.b.c.d. */
void mcast_socket_alias(const uint8_t gid[16], uint8_t ip[16]);
/*
 * Attaches q to the group gid.  Joins the group on the interfaces of dev or, if
 * q sends by LID, at q's port, unless the process has already joined the group
 * there.
 *
 * Returns 0, also if q is attached already, or -errno with a constant sentence
 * in *why.  -EINVAL: gid is no multicast GID, or q sends by LID and has no
 * port; -ENOSPC: there are too many groups, members or attachments; -ENOMEM;
 * any other -errno: the group cannot be joined.
 */
int mcast_socket_attach(struct progress *p, const struct device *dev,
			struct ibt_qp *q, const uint8_t gid[16],
			const char **why);
/* Detaches q from the group gid, and leaves the group if no queue pair uses it
 * any more.  Returns 0, or -EINVAL with a constant sentence in *why: q is not
 * attached to the group. */
int mcast_socket_detach(struct progress *p, struct ibt_qp *q,
			const uint8_t gid[16], const char **why);
/* Leaves the groups that no queue pair is attached to. */
void mcast_socket_sweep(struct progress *p);

#endif
