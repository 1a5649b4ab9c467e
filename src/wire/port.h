/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The owner of a UDP port of this network namespace: the user that created the
 * socket bound to the port.  The answer comes from the kernel by sock_diag(7),
 * or where the kernel lacks that, from /proc/net/udp and udp6.  No lock; takes
 * some microseconds.
 *
 * A user owns a port only if a socket of this user is bound to the port at
 * every local address: sockets that are bound to single addresses may share a
 * port between users, and each of them may send from all addresses of the host.
 */
#ifndef WIRE_PORT_H
#define WIRE_PORT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "util/inaddr.h"

enum port_owner {
	PORT_USER,   /* *user owns the port */
	PORT_NOBODY, /* no socket is bound to the port at every address */
	PORT_UNTOLD, /* the kernel does not tell */
};

/*
 * Finds the owner of from->port for a datagram from `from` to `to`, and sets
 * *user to the number of the owner in the caller's user namespace.  With
 * PORT_NOBODY *user may be set to a user with a socket at from->ip alone, which
 * is good for a message but proves nothing.
 */
enum port_owner port_owner(const struct inaddr *from, const struct inaddr *to,
			   uid_t *user);
/*
 * Returns whether the number stands for one user.  False for overflowuid, which
 * the kernel reports for all users that this user namespace does not map.
 */
bool port_user_is_one(uid_t user);
/* Finds the owner of from->port by /proc alone, and sets *user to the number of
 * the owner in the caller's user namespace.  Without /proc returns PORT_UNTOLD
 * for an IPv4 address, and PORT_NOBODY for an IPv6 address. */
enum port_owner port_owner_listed(const struct inaddr *from, uid_t *user);

#endif
