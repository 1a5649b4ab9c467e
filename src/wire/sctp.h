/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Associations of SCTP for iWARP, by libusrsctp (wire/usrsctp.h), over UDP (RFC
 * 6951) or over IP as a program with CAP_NET_RAW may have them.
 *
 *	owner  <-- socketpair -->  thread adverb-sctp  <-- packets -->  peer
 *
 * The thread runs SCTP.  To its owner an association is a descriptor of type
 * SOCK_SEQPACKET, which is polled, sent to and received from as a socket is;
 *its messages are
 *
 *	PPID, 4 bytes | user message of SCTP
 *
 * and before them the owner of a connection receives one struct sctp_news. What
 * the peer does not take fills the socketpair, and so does what the owner does
 * not take.  The end of the stream (0 bytes) says that the association has
 *ended. Messages are sent and received unordered, on stream 0, with the
 *adaptation indication of DDP: a peer with another one gets no connection (RFC
 *5043 11.1). An owner that shuts its end down, or closes it, ends the
 *association in order.
 *
 * The port of a service is that of SCTP, and unless the options say otherwise
 *the UDP port too, so processes of one host share no socket.  A client's UDP
 *port is the kernel's choice.
 *
 * A child of fork has none of its parent's associations.  All functions take
 *one lock of their own, and none blocks.
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

/* Loads the library and starts the thread, unless that was done.  0; -errno
 * with a clause that says why, static until the next call. */
int sctp_start(const struct sctp_options *options, const char **why);
/*
 * Opens the socket of a service or a client at this address: IPv4 as
 * ::ffff:a.b.c.d.  Port 0: the kernel chooses it, and *at gets it.  Returns the
 * descriptor, or -errno: -EADDRINUSE: another socket has the port.
 */
int sctp_bind(struct sockaddr_in6 *at, bool is_v6_only);
/*
 * Listens at the address that the socket `fd` was bound to, for as long as the
 * descriptor that is returned stays open; sctp_accept takes the connections, of
 * which it has `backlog` at most.  -errno: the caller keeps fd, which else
 * belongs to the thread.
 */
int sctp_listen(int fd, const struct sockaddr_in6 *at, int backlog);
/* Takes a connection of a listener with its news.  Returns its descriptor;
 * -EAGAIN: there is none; another -errno. */
int sctp_accept(int listener, struct sctp_news *news);
/* Calls a service.  Returns the connection's descriptor, whose first message
 * says whether the peer has answered.  -errno: the caller keeps fd, which else
 * belongs to the thread. */
int sctp_connect(int fd, const struct sockaddr_in6 *from,
		 const struct sockaddr_in6 *to);
/* Waits, for two seconds at most, until the peers have what owners have sent,
 * and ends the associations in order: the process is about to end. */
void sctp_drain(void);

#endif
