/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A socket that sends.  Most datagrams of one socket have the same traffic
 * class and hop limit, which are set as the socket's defaults.  Most datagrams
 * of an IPv6 socket also have the same destination, to which the socket is
 * connected, unless the destination is link-local or an address of this host,
 * or several destinations share the socket (sender_disconnect).  A datagram
 * with another source or destination has an address and control messages (cmsg)
 * of its own, and so has each datagram of a socket that is not connected.  For
 * a datagram with another class or limit, the sender changes the defaults or,
 * once sender.changes is at its limit, adds control messages.
 *
 * An IPv4 socket is not connected.  Linux would give the datagrams of a
 * connected socket IPv4 ids that count up from an unknown number, and the ICRC
 * covers the id (encap/icrc.h).
 *
 * Owner: struct udp_socket or struct sports, whose lock protects the sender
 * (wire/udp.h).
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
	struct inaddr to;  /* the destination of a connected socket */
	uint8_t from[16];  /* the source address of a connected socket */
	uint8_t tos;	   /* the socket's default ToS or traffic class */
	/* The socket's default TTL or hop limit; 0: the kernel's. */
	uint8_t ttl;
	/* How often tos or ttl was changed by a system call, up to a limit at
	 * which the defaults stay as they are. */
	uint32_t changes;
};

/* The address and control messages of one datagram. */
struct sender_head {
	struct sockaddr_in6 name;
	union {
		struct cmsghdr align;
		uint8_t bytes[256];
	} control;
};

/* Initialises a sender for the socket fd, which the caller owns, turns off
 * fragmentation of the socket's datagrams, and enlarges its send buffer
 * (bind_buffer).  The sender does not connect the socket and does not change
 * the socket's default ToS and TTL.  is_v4: the socket is of IPv4 alone.
 * Returns 0 or -errno. */
int sender_init(struct sender *s, int fd, bool is_v4);
/* Initialises a sender with a new socket, bound to `port` on every local
 * address.  All its datagrams have the address family of `to`, and most go to
 * `to`.  Returns 0 or -errno. */
int sender_open(struct sender *s, uint16_t port, const struct inaddr *to);
/*
 * Disconnects the socket of sender_open, so that it is again bound to its port
 * at every local address.  A socket that also sends to this host must not be
 * connected: a receiver of this host asks the kernel which user owns the source
 * port of a datagram.  A user owns a port only by a socket that is bound to the
 * port at every address (port.h), and connect(2) binds a socket to one address.
 */
void sender_disconnect(struct sender *s);
/* Closes the socket that sender_open has opened. */
void sender_close(struct sender *s);
/* Sets the address and the control messages of m for the datagram d.  They are
 * stored in `head`, which must last until m is sent; the caller sets m's
 * iovec.  May change the default ToS and TTL of a socket of sender_open. */
void sender_address(struct sender *s, struct msghdr *m,
		    struct sender_head *head, const struct udp_dgram *d);

#endif
