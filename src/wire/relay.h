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

/* For relay_send: no limit of the bytes that may wait in a relay. */
#define RELAY_NO_BOUND UINT32_MAX

/* Makes a pair: fds[0] sends, fds[1] receives, both owned by the caller.
 * Returns 0 or -errno. */
int relay_pair(int fds[2]);
/* Returns the bytes of kernel memory of the datagrams that wait in a relay, by
 * its sending end fd; 0 if the kernel does not tell. */
uint32_t relay_waiting(int fd);
/*
 * Sends one datagram by the sending end fd, and never waits.  Afterwards at
 * most `most` bytes may wait in the relay, whatever its SO_SNDBUF says, apart
 * from the kernel's own memory for the last datagram.  Returns false if there
 * is no room; the datagram is lost then.
 */
bool relay_send(int fd, uint32_t most, const struct udp_dgram *d);
/* Parses a message of len bytes into *d, whose bytes point into the message.
 * Returns false if the message is too short. */
bool relay_parse(const uint8_t *bytes, size_t len, struct udp_dgram *d);

#endif
