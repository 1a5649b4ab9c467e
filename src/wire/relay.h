/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Datagrams handed on through a unix socket, where the kernel cannot choose
 * the socket of a queue pair itself: the broker receives for all, and a
 * process gets its own as messages of a SOCK_SEQPACKET pair.
 *
 *	+------------------------------+ - - - - - - - - - - - - - +
 *	| from, to, interface, class   | the datagram              |
 *	+------------------------------+ - - - - - - - - - - - - - +
 *
 * What comes is as trustworthy as the broker, who could read and drop it.
 */
#ifndef WIRE_RELAY_H
#define WIRE_RELAY_H

#include "wire/udp.h"

struct relay_head {
	struct inaddr from;
	uint8_t to_ip[16];
	uint32_t ifindex;
	uint8_t tos, reserved[3];
};

/* A pair: [0] to hand on by, [1] to receive from; 0 or -errno. */
int relay_pair(int fds[2]);
/* One datagram; false: there is no room, it is lost.  Never waits. */
bool relay_send(int fd, const struct udp_dgram *d);
/* Takes a message of len bytes apart, whose bytes *d then borrows. */
bool relay_parse(const uint8_t *bytes, size_t len, struct udp_dgram *d);

#endif
