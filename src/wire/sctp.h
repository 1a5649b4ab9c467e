/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Associations of SCTP for iWARP, by libusrsctp (wire/usrsctp.h), over UDP (RFC
 * 6951) or directly over IP, which needs CAP_NET_RAW.
 *
 *	owner  <-- socketpair -->  thread adverb-sctp  <-- packets -->  peer
 *
 * The thread runs SCTP.  To its owner an association is a descriptor of type
 * SOCK_SEQPACKET, which is polled, sent to and received from as a socket is;
 * its messages are
 *
 *	PPID, 4 bytes | user message of SCTP
 *
 * and before them the owner of a connection receives one struct sctp_news.
 * What the peer does not take fills the socketpair, and so does what the owner
 * does not take.  The end of the stream (0 bytes) says that the association has
 * ended.  Messages are sent and received unordered, on stream 0.  Each side
 * announces the adaptation indication of DDP, and a peer that announces another
 * one gets no connection (RFC 5043 11.1).  An owner that shuts its end down, or
 * closes it, ends the association after the peer has got what was sent.
 *
 * A service listens at one number, which is its SCTP port and, unless the
 * options name another UDP port, its UDP port too.  So processes of one host
 * share no socket.  The kernel chooses a client's UDP port.
 *
 * A child of fork has none of its parent's associations.  All functions take
 * one lock of their own, and none but sctp_drain blocks.
 */
#ifndef WIRE_SCTP_H
#define WIRE_SCTP_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>

#define SCTP_MESSAGE_MAX 65536 /* bytes, with the PPID */

struct sctp_options {
	bool is_raw; /* SCTP over IP, without UDP */
	/* UDP port of services here and of peers; 0: that of the service */
	uint16_t udp_port;
};

/* The first message of a connection. */
struct sctp_news {
	int32_t err; /* 0; an errno: there is no association */
	/* the longest DDP segment that needs no fragments, in bytes */
	uint32_t segment_bytes;
	/* with the ports of SCTP; IPv4 as ::ffff:a.b.c.d */
	struct sockaddr_in6 local, remote;
};

/* Loads the library and starts the thread, unless that was done.  Returns 0, or
 * -errno; then *why is a clause that says why, valid until the next call. */
int sctp_start(const struct sctp_options *options, const char **why);
/*
 * Opens the socket of a service or a client at this address: IPv4 as
 * ::ffff:a.b.c.d.  Port 0: a port is chosen and stored in *at.  Returns the
 * descriptor, or -errno: -EADDRINUSE if another socket has the port.
 */
int sctp_bind(struct sockaddr_in6 *at, bool is_v6_only);
/*
 * Listens at the address that the socket `fd` was bound to, for as long as the
 * returned descriptor stays open; sctp_accept takes the connections.  `backlog`
 * limits those that the library has made and the thread has not taken yet.
 * Takes fd, also if it fails.  Returns the listener's descriptor, or -errno.
 */
int sctp_listen(int fd, const struct sockaddr_in6 *at, int backlog);
/* Takes a connection of a listener with its news.  Returns its descriptor;
 * -EAGAIN: there is none; another -errno. */
int sctp_accept(int listener, struct sctp_news *news);
/* Calls a service.  Takes fd, also if it fails.  Returns the connection's
 * descriptor, whose first message says whether the peer has answered; or
 * -errno. */
int sctp_connect(int fd, const struct sockaddr_in6 *from,
		 const struct sockaddr_in6 *to);
/* The process is about to end: waits, for two seconds at most, until the peers
 * have what owners have sent; then shuts the associations down, for half a
 * second at most. */
void sctp_drain(void);

#endif
