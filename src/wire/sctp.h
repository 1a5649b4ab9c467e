/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Associations of SCTP for iWARP, by libusrsctp (wire/usrsctp.h), over UDP (RFC
 * 6951) or directly over IP, which needs CAP_NET_RAW.
 *
 *	owner  <-- socketpair -->  thread adverb-sctp  <-- packets -->  peer
 *
 * The thread runs SCTP.  The owner, which is the code that called sctp_connect
 * or sctp_accept, holds one end of a socketpair of type SOCK_SEQPACKET for each
 * association.  It polls that descriptor, and sends and receives messages of
 * the form
 *
 *	PPID, 4 bytes in network order | user message of SCTP
 *
 * The first message of a connection is instead one struct sctp_news.  The owner
 * of an accepted association gets it from sctp_accept.  An owner that called
 * sctp_connect receives it from the descriptor.  If the peer or the owner stops
 * receiving, the socketpair fills and the sender must wait.  The end of the
 * stream (0 bytes) says that the association has ended.  Messages are sent and
 * received unordered, on stream 0.  Each side announces the adaptation
 * indication of DDP.  A peer that announces another indication gets no
 * connection (RFC 5043 11.1).  Nor does a peer that has begun an association
 * with a listener and announces no indication within ten seconds.  If the owner
 * shuts down or closes its descriptor, the association ends as soon as the peer
 * has acknowledged all messages, or ten seconds after libusrsctp has taken the
 * last one.  If libusrsctp meanwhile takes no message for ten seconds, because
 * the peer does not receive, the association ends, too.
 *
 * A service has the same port number for SCTP and for UDP, and so a UDP socket
 * of its own: processes of one host share no socket.  If `udp_port` of the
 * options is set, all services have this UDP port instead.  A client may leave
 * the choice of its port to sctp_bind; the kernel then chooses the client's UDP
 * port.
 *
 * A child of fork has none of its parent's associations.  wire/sctp.c has one
 * lock, which the functions take themselves.  Only sctp_drain waits for peers.
 */
#ifndef WIRE_SCTP_H
#define WIRE_SCTP_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>

#define SCTP_MESSAGE_MAX 65536 /* bytes of a message with its PPID */

struct sctp_options {
	bool is_raw; /* SCTP directly over IP, without UDP */
	/* The UDP port of all services, of this process and of its peers, in
	 * host order.  0: the UDP port of a service equals its SCTP port. */
	uint16_t udp_port;
	/* Called for each packet of SCTP that was sent or received, under the
	 * lock of wire/sctp.c.  The ports are those of UDP; 0: without UDP.
	 * NULL: packets are not captured. */
	void (*capture)(const struct sockaddr_in6 *from,
			const struct sockaddr_in6 *to, const void *packet,
			size_t n);
};

/* The first message of a connection. */
struct sctp_news {
	int32_t err; /* 0, or a positive errno: there is no association */
	/* the longest DDP segment, in bytes, that fits in one packet */
	uint32_t segment_bytes;
	/* The ports are those of SCTP.  IPv4 addresses are ::ffff:a.b.c.d. */
	struct sockaddr_in6 local, remote;
};

/*
 * Loads libusrsctp and starts the thread.  Does nothing if the library is
 * loaded and the thread runs.  The options of the first call that loads the
 * library hold for the whole process.  Returns 0; -ELIBACC: libusrsctp cannot
 * be used; -EIO: the kernel gives no random numbers; or another -errno: the
 * thread or a descriptor for it cannot be made.  After a failure *why is a
 * clause that gives the reason, valid until the next call.
 */
int sctp_start(const struct sctp_options *options, const char **why);
/*
 * Opens the socket of a service or of a client at the address *at, in which
 * IPv4 is ::ffff:a.b.c.d and the port is that of SCTP.  If the port is 0,
 * chooses a port and stores it in *at.  is_v6_only: a socket at an IPv6 address
 * receives no IPv4 packets (IPV6_V6ONLY).  Returns a descriptor, which the
 * caller passes to sctp_listen or sctp_connect or closes; -EADDRINUSE if
 * another socket has the port, or no port is free; -EBADF if the program has
 * closed a socket of this library at the address; -EAFNOSUPPORT for an IPv6
 * address with SCTP directly over IP, or if the kernel has no IPv6; or another
 * -errno.
 */
int sctp_bind(struct sockaddr_in6 *at, bool is_v6_only);
/*
 * Listens on `fd`, which sctp_bind returned for the address `at`, until the
 * caller closes the returned descriptor.  That descriptor becomes readable when
 * sctp_accept has a connection to return.  `backlog` limits the associations
 * that libusrsctp has accepted and that the thread has not taken yet.  Takes
 * ownership of fd even on failure.  Returns the listener's descriptor, or
 * -errno.
 */
int sctp_listen(int fd, const struct sockaddr_in6 *at, int backlog);
/*
 * Ends the listener of sctp_listen, and with it the connections that
 * sctp_accept has not returned.  Takes ownership of the descriptor `listener`
 * even on failure.  Returns a descriptor like that of sctp_bind: the socket
 * stays bound to its address meanwhile.  -EBADF: the descriptor is not a
 * listener's; or another -errno, and the socket is closed.
 */
int sctp_unlisten(int listener);
/*
 * Takes the next connection of the descriptor `listener` and fills in *news.
 * Returns the connection's descriptor, which the caller closes; -EAGAIN if
 * there is no connection; -EMFILE if the process has no free descriptor, and
 * the connection waits; -ECONNABORTED if the listener has ended; or another
 * -errno.
 */
int sctp_accept(int listener, struct sctp_news *news);
/*
 * Starts an association with the service at `to`, from `fd`, which sctp_bind
 * returned for the address `from`.  The IP address in `from` must be one of
 * this host, not the unspecified address, because the peer's packets are
 * matched with the association by the address to which they came.  Takes
 * ownership of fd even on failure.  Returns the connection's descriptor, or
 * -errno.  The first message of the descriptor, a struct sctp_news, says
 * whether the association was made.
 */
int sctp_connect(int fd, const struct sockaddr_in6 *from,
		 const struct sockaddr_in6 *to);
/* Called at the end of the process: waits at most two seconds until the peers
 * have acknowledged all messages, shuts all associations down, and waits at
 * most half a second until that is done. */
void sctp_drain(void);

#endif
