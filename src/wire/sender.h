/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A socket that sends.  Most datagrams of one socket have the same traffic
 * class and hop limit, which are set as the socket's defaults, and those of
 * IPv6 the same destination, to which the socket is connected.  Only a datagram
 * that differs needs an address and control messages (cmsg) of its own.
 *
 * A socket of IPv4 is not connected: Linux counts up the IPv4 id of the
 * datagrams of a connected socket from an unknown number, and the ICRC covers
 * the id (encap/icrc.h).
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
	int fd;		   /* closed by sender_close, or owned by the caller */
	bool is_v4;	   /* the socket is of IPv4 alone */
	bool is_connected; /* the socket is connected to `to` */
	struct inaddr to;
	uint8_t from[16]; /* the source address of a connected socket */
	uint8_t tos;	  /* the socket's default */
	uint8_t ttl;	  /* the socket's default; 0: the kernel's */
	uint32_t changes; /* how often tos or ttl changed, by system calls */
};

/* The address and control messages of one datagram. */
struct sender_words {
	struct sockaddr_in6 name;
	union {
		struct cmsghdr align;
		uint8_t bytes[256];
	} control;
};

/* Initialises a sender for the socket fd, which stays the caller's, is not
 * connected and has no defaults; turns fragmentation off.  Returns 0 or -errno.
 */
int sender_init(struct sender *s, int fd, bool is_v4);
/* Opens a socket, bound to `port` on every local address, for datagrams that go
 * mostly to `to` and have its family.  Returns 0 or -errno. */
int sender_open(struct sender *s, uint16_t port, const struct inaddr *to);
/* Closes the socket of sender_open. */
void sender_close(struct sender *s);
/* Sets the address and control messages of m for d, in `words`, which must last
 * until m is sent; the caller sets m's iovec.  May set socket options. */
void sender_address(struct sender *s, struct msghdr *m,
		    struct sender_words *words, const struct udp_dgram *d);

#endif
