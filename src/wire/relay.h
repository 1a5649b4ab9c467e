/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Datagrams that the broker hands to a process through a unix socket, where the
 * kernel cannot choose the socket of a queue pair itself: the broker receives
 * for all, and a process gets its own datagrams as messages of a SOCK_SEQPACKET
 * pair.
 *
 *	+------------------------------+ - - - - - - - - - - - - - +
 *	| from, to, interface, class   | the datagram              |
 *	+------------------------------+ - - - - - - - - - - - - - +
 *
 * A process trusts these messages as far as the broker, which could read and
 * drop the datagrams.  The broker does not trust the process, which may hold
 * both ends and set SO_SNDBUF.
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

/* The caller sets no bound to what waits in a relay. */
#define RELAY_NO_BOUND UINT32_MAX

/* Makes a pair: fds[0] sends, fds[1] receives, both owned by the caller.  0 or
 * -errno. */
int relay_pair(int fds[2]);
/* The bytes of kernel memory that wait in the relay of the sending end fd. */
uint32_t relay_waiting(int fd);
/*
 * Sends one datagram, and never waits.  most: the bytes that may wait in the
 * relay then, whatever its SO_SNDBUF says; the last datagram may exceed that
 * by what the kernel needs besides the bytes.  False: there is no room, and the
 * datagram is lost.
 */
bool relay_send(int fd, uint32_t most, const struct udp_dgram *d);
/* Parses a message of len bytes, which *d then borrows.  False: the message is
 * too short. */
bool relay_parse(const uint8_t *bytes, size_t len, struct udp_dgram *d);

#endif
