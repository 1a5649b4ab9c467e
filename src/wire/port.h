/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The owner of a UDP port of this network namespace: the user that made the
 * socket that has it.  Asked of the kernel by sock_diag(7), or where it has not
 * that, read from /proc/net/udp and udp6.  No state, no lock; some
 * microseconds.
 *
 * A port is one user's only if a socket has it at every local address: with
 * sockets at single addresses several users may share a number, and each may
 * send from all addresses of the host.
 */
#ifndef WIRE_PORT_H
#define WIRE_PORT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "util/inaddr.h"

enum port_owner {
	PORT_USER,   /* the user's that is told */
	PORT_NOBODY, /* no socket has it at every address */
	PORT_UNTOLD, /* the kernel does not say */
};

/*
 * The owner of from->port as the caller's user namespace names it, for a
 * datagram that came from there to `to`.  With PORT_NOBODY *user may be set, to
 * one who has it at from->ip alone: to be told, not to be believed.
 */
enum port_owner port_owner(const struct inaddr *from, const struct inaddr *to,
			   uid_t *user);
/*
 * Does a number name one user?  Not the one that the kernel shows for all
 * users that our user namespace does not map (overflowuid).
 */
bool port_user_is_one(uid_t user);
/* The same as port_owner by /proc alone. */
enum port_owner port_owner_listed(const struct inaddr *from, uid_t *user);

#endif
