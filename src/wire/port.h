/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The owner of a UDP port of this network namespace: the user that created the
 * socket bound to the port.  The answer comes from the kernel by sock_diag(7)
 * or, where the kernel lacks sock_diag, from /proc/net/udp and udp6.  The
 * functions take no lock.  port_owner takes some microseconds, or 200 ms if the
 * kernel does not answer.
 *
 * A user owns a port only if a socket of this user is bound to the port at
 * every local address.  Sockets of several users may be bound to one port at
 * single addresses, and each of these sockets may send from all addresses of
 * the host.
 */
#ifndef WIRE_PORT_H
#define WIRE_PORT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "util/inaddr.h"

enum port_owner {
	PORT_USER,    /* *user owns the port */
	PORT_NOBODY,  /* no socket is bound to the port at every address */
	PORT_UNKNOWN, /* the kernel does not tell who owns the port */
};

/*
 * Finds the owner of from->port for a datagram from `from` to `to`.  With
 * PORT_USER *user is the number of the owner in the caller's user namespace.
 * With PORT_NOBODY *user may be set to a user that has a socket at from->ip
 * alone: a message may name this user, but another user may have sent the
 * datagram.
 */
enum port_owner port_owner(const struct inaddr *from, const struct inaddr *to,
			   uid_t *user);
/* Finds the owner of from->port by /proc alone.  With PORT_USER *user is the
 * number of the owner in the caller's user namespace.  Without /proc returns
 * PORT_UNKNOWN.  If the process lacks descriptors or memory, returns
 * PORT_NOBODY. */
enum port_owner port_owner_listed(const struct inaddr *from, uid_t *user);

#endif
