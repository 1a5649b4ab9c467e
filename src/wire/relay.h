/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A relay: a unix socket through which the broker forwards datagrams to a
 * process.  Each process of another user has a relay.  If the kernel cannot
 * choose the socket of a queue pair, every process has a relay.  The broker
 * receives the datagrams, and sends each as a message through a SOCK_SEQPACKET
 * pair, whose receiving end the process has.
 *
 *	+------------------------------+ - - - - - - - - - - - - - +
 *	| struct relay_head            | the datagram              |
 *	+------------------------------+ - - - - - - - - - - - - - +
 *
 * A process does not check the contents of its broker's messages, because the
 * broker receives the datagrams and so could read, change or drop them in any
 * case.  The broker does not trust the process: a process of another user gets
 * the receiving end of its own relay, and no sending end.
 */
#ifndef WIRE_RELAY_H
#define WIRE_RELAY_H

#include <stddef.h>

#include "wire/udp.h"

/* The members of struct udp_dgram that a receiver needs, in host byte order,
 * because both ends are on one host. */
struct relay_head {
	struct inaddr from;
	uint8_t to_ip[16];  /* udp_dgram.to.ip */
	uint8_t aligned[2]; /* 0 */
	uint32_t ifindex;
	uint8_t tos;
	uint8_t reserved[3]; /* 0 */
};

/* Without padding no byte of the broker's stack goes to the process, which may
 * be another user's. */
_Static_assert(offsetof(struct relay_head, ifindex) ==
			       offsetof(struct relay_head, aligned) + 2 &&
		       sizeof(struct relay_head) ==
			       offsetof(struct relay_head, reserved) + 3,
	       "struct relay_head has no padding");

/* A value of relay_send's `most`: only SO_SNDBUF limits the bytes that wait in
 * the relay. */
#define RELAY_NO_BOUND UINT32_MAX

/* Makes a pair: fds[0] sends and fds[1] receives; the kernel refuses messages
 * from fds[1] to fds[0].  The caller owns the two descriptors.  Returns 0 or
 * -errno. */
int relay_pair(int fds[2]);
/* Returns how many bytes of kernel memory are taken by the datagrams that wait
 * in the relay whose sending end is fd (SIOCOUTQ); 0 if the kernel does not
 * tell. */
uint32_t relay_waiting(int fd);
/*
 * Sends one datagram through the sending end fd, and never waits.  Drops the
 * datagram if relay_waiting(fd) and the bytes of this message together exceed
 * `most`, whatever SO_SNDBUF is.  So at most `most` bytes wait, apart from the
 * kernel's overhead for the last message.  Returns false if the datagram was
 * dropped, or if the kernel refused it, for example because the socket is full
 * or because the process has closed its end.
 */
bool relay_send(int fd, uint32_t most, const struct udp_dgram *d);
/* Reads a message of len bytes.  Sets in *d the members that a relay_head has,
 * and len, segment and bytes, which points into the message; leaves to.port and
 * ttl as they are.  Returns false if the message is shorter than its head. */
bool relay_parse(const uint8_t *bytes, size_t len, struct udp_dgram *d);

#endif
