/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The sockets that carry the packets of SCTP, and the paths of associations.
 *
 * libusrsctp knows a path by a number of 64 bits: a keyed hash of the local
 * socket, both addresses and the peer's UDP port.  So a packet from another
 * address or port belongs to another path, and a packet of an unknown peer
 * allocates nothing here.
 *
 * Lock: that of wire/sctp.c, which the caller of each function holds.
 */
#ifndef WIRE_SCTP_PATH_H
#define WIRE_SCTP_PATH_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>

#include "util/list.h"

/* A UDP or raw socket.  All listeners and connections of this process at the
 * socket's address share it. */
struct sctp_socket {
	struct list link; /* in sctp_conn_all.sockets */
	uint32_t key;	  /* in sctp_conn_all.objects and the epoll set; even */
	/* How many listeners, connections and calls in progress use the
	 * socket. */
	uint32_t users;
	int fd;	     /* owned; -1 in a child of fork */
	bool is_raw; /* carries SCTP over IP, without UDP */
	/* a socket of IPv4: raw, or on a kernel without IPv6 */
	bool is_ipv4;
	/* the address to which the socket is bound, with its UDP port, or port
	 * 0 if the socket is raw */
	struct sockaddr_in6 at;
	uint64_t checked_ns; /* when sctp_conn_is_ours last checked fd */
};

/* The socket and the addresses by which an association sends its packets. */
struct sctp_path {
	struct sctp_socket *socket;
	/* This host's address; 0: the kernel chooses the source address. */
	struct in6_addr local;
	struct sockaddr_in6 remote; /* the peer's address and UDP port */
	uint64_t id;		    /* from sctp_path_number; 0: not set */
};

/* Draws the key of the paths' hash at random.  False: the kernel gives no
 * random numbers. */
bool sctp_path_begin(void);
/* Opens a raw socket of SCTP (`is_raw`) or a UDP socket, bound to *at, in which
 * IPv4 is ::ffff:a.b.c.d.  A UDP port that the kernel chooses is stored in *at.
 * is_v6_only: a UDP socket at an IPv6 address receives no IPv4 packets.
 * Returns a descriptor that the caller closes; -EAFNOSUPPORT for an IPv6
 * address if the socket is raw or the kernel has no IPv6; or another -errno. */
int sctp_path_open(struct sockaddr_in6 *at, bool is_v6_only, bool is_raw);
/* Is fd, which sctp_path_open has returned, a socket of IPv4? */
bool sctp_path_is_ipv4(int fd);
/* Reads the address that a socket of sctp_path_open is bound to, in which IPv4
 * is ::ffff:a.b.c.d.  The port of a raw socket is 0.  False: the descriptor is
 * no socket; *at is unchanged. */
bool sctp_path_address(int fd, struct sockaddr_in6 *at);
/* Computes p->id from the other members. */
void sctp_path_number(struct sctp_path *p);
/* Sends a packet of n bytes.  False: the kernel has refused the packet, which
 * is lost; SCTP sends it again. */
bool sctp_path_send(const struct sctp_path *p, const void *packet, size_t n);
/* Receives a packet of at most `room` bytes and fills in its path, whose socket
 * is s; the path does not count as a user of s.  Returns the packet's length in
 * bytes; 0 for a packet to ignore; or -errno: -EAGAIN if there is no packet. */
ssize_t sctp_path_receive(struct sctp_socket *s, void *packet, size_t room,
			  struct sctp_path *p);
/*
 * Takes an ICMP error from the socket's error queue.  If the error says that
 * the peer's port has no socket, stores at most `room` bytes from the start of
 * the refused packet, and sets `socket` and `remote` of *p.  Returns the number
 * of bytes; 0 for another error; or -errno: -EAGAIN if there is no error.
 */
ssize_t sctp_path_refused(struct sctp_socket *s, uint8_t *packet, size_t room,
			  struct sctp_path *p);
/* Returns how many bytes of chunks fit in a packet of the path; a multiple of
 * 4. */
uint32_t sctp_path_mtu(const struct sctp_path *p);

#endif
