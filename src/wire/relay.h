/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Datagrams that the broker forwards to a process through a unix socket: to
 * each process of another user, and to every process where the kernel cannot
 * choose the socket of a queue pair.  The broker receives the datagrams, and
 * sends each as a message of a SOCK_SEQPACKET pair that the process has.
 *
 *	+------------------------------+ - - - - - - - - - - - - - +
 *	| struct relay_head            | the datagram              |
 *	+------------------------------+ - - - - - - - - - - - - - +
 *
 * A process takes the messages of its broker as they are: the broker could
 * read, change and drop the datagrams in any case.  The broker does not trust
 * the process, which may hold both ends and set SO_SNDBUF.
 */
#ifndef WIRE_RELAY_H
#define WIRE_RELAY_H

#include "wire/udp.h"

/* The members of struct udp_dgram that a receiver needs, of the same names.  In
 * host order: both ends are on one host. */
struct relay_head {
	struct inaddr from;
	uint8_t to_ip[16];
	uint32_t ifindex;
	uint8_t tos;
	uint8_t reserved[3];
};

/* For relay_send: the bytes that may wait in a relay have no limit. */
#define RELAY_NO_BOUND UINT32_MAX

/* Makes a pair: fds[0] sends, fds[1] receives, both owned by the caller.
 * Returns 0 or -errno. */
int relay_pair(int fds[2]);
/* Returns how many bytes of kernel memory the datagrams take that wait in a
 * relay (SIOCOUTQ of its sending end fd); 0 if the kernel does not tell. */
uint32_t relay_waiting(int fd);
/*
 * Sends one datagram through the sending end fd, and never waits.  Drops the
 * datagram if relay_waiting and the bytes of this message together exceed
 * `most`, whatever SO_SNDBUF is; so at most `most` bytes wait, apart from the
 * kernel's overhead for the last message.  Returns false if the datagram was
 * dropped, or if the kernel refused the datagram: the socket is full, or the
 * process has closed its end.
 */
bool relay_send(int fd, uint32_t most, const struct udp_dgram *d);
/* Sets the members of *d that a relay_head has, bytes, which points into the
 * message, len and segment; leaves to.port and ttl as they are.  Returns false
 * if the message of len bytes is shorter than its head. */
bool relay_parse(const uint8_t *bytes, size_t len, struct udp_dgram *d);

#endif
