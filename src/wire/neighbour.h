/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The kernel's routes and neighbours in this network namespace, by
 * rtnetlink(7), for addresses of IPv6 or ::ffff:a.b.c.d.  Needs no capability.
 * No state, no lock; no call blocks.
 */
#ifndef WIRE_NEIGHBOUR_H
#define WIRE_NEIGHBOUR_H

#include <stdbool.h>
#include <stdint.h>

#define NEIGHBOUR_MAC_BYTES 6

/* The interface that has an address. */
struct neighbour_interface {
	uint32_t ifindex;
	char name[16]; /* with a NUL at the end */
	/* Zeros: the interface's address has another length, or is all zeros,
	 * as that of lo is. */
	uint8_t mac[NEIGHBOUR_MAC_BYTES];
};

/* Finds the interface that has the address ip.  scope: the index of the
 * interface of a link-local address; 0: any.  Returns 0; -EADDRNOTAVAIL: no
 * interface has the address; or another -errno. */
int neighbour_own(const uint8_t ip[16], uint32_t scope,
		  struct neighbour_interface *i);
/* The next hop of packets to an address. */
struct neighbour_hop {
	uint32_t ifindex; /* of the interface that sends the packets */
	uint8_t ip[16];	  /* a gateway's address, or the address itself */
};

/*
 * Finds the next hop of packets from the address `from` of this host to the
 * address `to`.  scope: the index of the interface of a link-local `to`; 0: the
 * route decides.  Returns 0; -EADDRNOTAVAIL: packets to `to` need no MAC, since
 * `to` is an address of this host, or since the interface has no neighbours, as
 * lo and tunnels have none; or another -errno, that of the route or of the
 * failed question to the kernel.
 */
int neighbour_find_hop(const uint8_t to[16], const uint8_t from[16],
		       uint32_t scope, struct neighbour_hop *hop);
/* Stores the address of the next hop of packets to the address `to` that are
 * sent by the interface: the address of a gateway, which may be one of IPv6
 * also for a `to` of IPv4, or `to` itself.  Returns 0, or -errno: that of the
 * route, for example -ENETUNREACH, if no packet can be sent by the interface;
 * or that of the failed question to the kernel. */
int neighbour_route(const uint8_t to[16], uint32_t ifindex, uint8_t hop[16]);
/* Stores the MAC of a neighbour; zeros: its hardware address has another
 * length.  Returns 0; -EAGAIN: the kernel asks for the address, or has got no
 * answer; -ENOENT: nobody has made the kernel ask; or another -errno. */
int neighbour_look(uint32_t ifindex, const uint8_t hop[16],
		   uint8_t mac[NEIGHBOUR_MAC_BYTES]);
/* Does what neighbour_look does by a search of the kernel's whole table, for a
 * kernel that cannot look up a single neighbour (before Linux 5.0). */
int neighbour_search(uint32_t ifindex, const uint8_t hop[16],
		     uint8_t mac[NEIGHBOUR_MAC_BYTES]);
/* Makes the kernel ask for the MAC of a neighbour, by an empty datagram to the
 * neighbour's port "discard".  The kernel keeps the datagram until it knows the
 * MAC or gives up. */
void neighbour_ask(uint32_t ifindex, const uint8_t hop[16]);
/* Makes the kernel a member of a group at the interface.  Returns a socket, or
 * -errno.  The membership lasts until the caller closes the socket. */
int neighbour_join(uint32_t ifindex, const uint8_t group[16]);
/* Returns a socket that becomes readable when a neighbour changes, or -errno.
 * The caller closes the socket. */
int neighbour_watch(void);
/* Makes a socket of neighbour_watch readable, which ends another thread's wait
 * for the socket. */
void neighbour_wake(int fd);
/* Discards all messages that wait at a socket of neighbour_watch. */
void neighbour_drain(int fd);

#endif
