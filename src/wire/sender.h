/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A socket that sends.  Most that leaves by one has one traffic class and hop
 * limit, which become the socket's own, and by IPv6 goes to one place, to which
 * it is connected: what differs from that is said with the datagram, and what
 * does not needs no words.
 *
 * Not connected by IPv4: Linux counts the identification of what a connected
 * socket sends, from a number that nobody knows, and the ICRC covers it
 * (encap/icrc.h).
 *
 * Owner: the wire; lock: the progress lock.
 */
#ifndef WIRE_SENDER_H
#define WIRE_SENDER_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#include "wire/dgram.h"

struct sender {
	int fd;		   /* owned by whoever opened it */
	bool is_v4;	   /* it knows no other addresses */
	bool is_connected; /* to `to`, and then the source is `from` */
	struct inaddr to;
	uint8_t from[16];
	uint8_t tos, ttl; /* of what has no words; ttl 0: the kernel's */
	uint32_t changes; /* of these two: each costs a system call */
};

/* Room for what a datagram says. */
struct sender_words {
	struct sockaddr_in6 name;
	union {
		struct cmsghdr align;
		uint8_t bytes[256];
	} control;
};

/* Around a socket for both families, or IPv4: each datagram says all.  0 or
 * -errno: it cannot send as RoCE wants it. */
int sender_init(struct sender *s, int fd, bool is_v4);
/* A socket bound to `port` on every local address, for datagrams to where `to`
 * is most of all, and of its family.  0 or -errno. */
int sender_open(struct sender *s, uint16_t port, const struct inaddr *to);
void sender_close(struct sender *s);
/* Where m is to go, and how; m's iovec is the caller's. */
void sender_address(struct sender *s, struct msghdr *m,
		    struct sender_words *words, const struct udp_dgram *d);

#endif
