/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The sockets that carry the packets of SCTP, and the paths of associations.
 *
 * libusrsctp knows a path by a number of 64 bits: a keyed hash of the addresses
 * and UDP ports of both ends, so a packet that comes from elsewhere belongs to
 * another path, and a stranger's packet needs no memory here.
 *
 * Lock: that of wire/sctp.c.
 */
#ifndef WIRE_SCTP_PATH_H
#define WIRE_SCTP_PATH_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>

#include "util/list.h"

/* A socket: of a service and its connections, or of one client. */
struct sctp_socket {
	struct list link; /* all of them */
	uint32_t key;	  /* in the thread's epoll set */
	uint32_t users;
	int fd;
	bool is_raw;
	struct sockaddr_in6 at;
	uint64_t checked_ns;
};

/* How packets get to a peer. */
struct sctp_path {
	struct sctp_socket *socket;
	struct in6_addr local;
	struct sockaddr_in6 remote; /* with the UDP port */
	uint64_t id;
};

/* Draws the key of the hash.  False: the kernel gives no random numbers. */
bool sctp_path_begin(void);
/* Opens a socket, as sctp_bind. */
int sctp_path_open(struct sockaddr_in6 *at, bool is_v6_only, bool is_raw);
/* Fills in the number of a path whose other members are set. */
void sctp_path_number(struct sctp_path *p);
/* Sends a packet of n bytes.  What the kernel does not take is lost. */
void sctp_path_send(const struct sctp_path *p, const void *packet, size_t n);
/* Receives a packet of at most `room` bytes with its path.  Returns its length,
 * or -errno. */
ssize_t sctp_path_receive(struct sctp_socket *s, void *packet, size_t room,
			  struct sctp_path *p);
/*
 * Takes an ICMP error of the socket: the first bytes of the packet that was
 * refused, and its path.  Returns how many bytes; 0: an error that says
 * nothing; -errno: there is none.
 */
ssize_t sctp_path_refused(struct sctp_socket *s, uint8_t *packet, size_t room,
			  struct sctp_path *p);
/* Returns the longest packet of SCTP for the path, in bytes. */
uint32_t sctp_path_mtu(const struct sctp_path *p);

#endif
