/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The UDP datagrams of RoCEv2.  One dual-stack socket on port 4791 (IBTA
 * A17.3.2.2) receives them, and sends those for which sport.h has no socket.
 * If a relay (wire/relay.h) receives instead, a socket on another port sends.
 * IPv4 addresses are stored as ::ffff:a.b.c.d.
 *
 * The kernel computes UDP checksums.  The ICRC covers fields of the IPv4 header
 * that a socket does not report (encap/icrc.h).  The sender knows their values,
 * because "Don't fragment" is set for both address families and no IPv4 socket
 * is connected.
 *
 * Owner: struct progress, and in a broker struct gsi; lock: the progress lock,
 * and none in a broker, where one thread uses the socket.  No function blocks.
 */
#ifndef WIRE_UDP_H
#define WIRE_UDP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "util/shared.h"
#include "wire/dgram.h"
#include "wire/sender.h"
#include "wire/sport.h"

#define UDP_BATCH	   64	/* datagrams of one udp_receive or udp_send */
#define UDP_DATAGRAM_BYTES 8192 /* more than any RoCEv2 packet has */

/* The offloads that the caller allows, or that the kernel has. */
struct udp_offload {
	bool gso; /* UDP_SEGMENT: send several datagrams as one */
	bool gro; /* UDP_GRO: receive several datagrams as one */
};

struct udp_rings; /* the buffers of a batch, in udp.c */

/*
 * Changes the ICRC of one segment, `len` bytes at `bytes`, of a datagram that
 * was made for UDP_SEGMENT.  The segment can then be sent as a datagram of its
 * own, which has another IPv4 id; the ICRC covers the id.
 */
typedef void udp_seal(const struct inaddr *from, const struct inaddr *to,
		      uint8_t *bytes, size_t len);

struct udp_socket {
	int fd;			/* the socket or relay that receives */
	struct udp_offload has; /* the allowed offloads that the kernel has */
	bool joins;		/* UDP_GRO is on, see udp_join_datagrams */
	bool v4_only;		/* the kernel has no IPv6 */
	bool is_relayed;	/* fd is the end of a relay, wire/relay.h */
	/* An eventfd that is never ready, which replaces the relay when the
	 * broker has closed its end.  The eventfd is opened in advance, since
	 * there may be no free descriptor then.  -1: there is no relay. */
	int silent_fd;
	/* The main sender.  Its socket is fd, or a UDP socket of its own if fd
	 * is a relay. */
	struct sender tx;
	/* How often fd became another file, because a broker closed its end of
	 * the relay, or because the next broker made a new relay.  After a
	 * change, fd must be added to an epoll set again. */
	shared_u32 hang_ups;
	/* The program has closed a descriptor of u (udp_is_ours,
	 * udp_check_senders), or had lowered RLIMIT_NOFILE below fd when fd was
	 * to become another file. */
	shared_flag is_lost;
	/* The socket that udp_send last found full; at first the main one. */
	int full_fd;
	struct sports sports;	 /* the other senders */
	struct udp_rings *rings; /* owned */
	udp_seal *seal;		 /* set by a caller that sends segments */
	bool is_empty;		 /* the last udp_receive found no datagram */
	bool is_drained;	 /* the last udp_receive left no datagram */
	bool is_behind;		 /* the last udp_receive filled a batch */
	/* how many messages the last udp_receive read, with those that it
	 * dropped */
	size_t read;
	/* Datagrams that udp_receive dropped because they, or their control
	 * data, were too long. */
	uint64_t truncated;
	/* Datagrams that udp_send dropped: the kernel refused them, or is_lost
	 * was set (EBADF). */
	uint64_t refused;
};

/* Returns a socket for a process that sends no packets by UDP, or -errno.  The
 * socket is bound to no port and so receives nothing. */
int udp_unbound(void);
/* Returns a socket that is bound to `port` on every local address, or -errno.
 */
int udp_bind(uint16_t port);
/* Initialises u with fd, which is a UDP socket from udp_bind, udp_unbound or a
 * broker, or the receiving end of a relay.  allowed: the offloads that u may
 * use.  one_port: all datagrams are sent from one port.  Takes ownership of fd.
 * If fd is the number of a standard descriptor, the file gets another number.
 * u->fd is the number of the file.  Returns 0, or closes fd and returns
 * -errno. */
int udp_init(struct udp_socket *u, int fd, struct udp_offload allowed,
	     bool one_port);
/* Closes all sockets and frees the buffers. */
void udp_fini(struct udp_socket *u);
/* Returns false if the program has closed a socket of u, or has put another
 * file in its place, or if fd could not become another file (is_lost).  From
 * then on udp_receive finds nothing and udp_send drops all datagrams. */
bool udp_is_ours(struct udp_socket *u);
/* Checks some of the sockets that send to one process each, and others in the
 * next calls.  If one is lost, udp_is_ours returns false from then on. */
void udp_check_senders(struct udp_socket *u);
/* Returns the size of the receive buffer in bytes as the kernel counts them
 * (SO_RCVBUF); 0: the kernel does not tell. */
uint32_t udp_buffer_bytes(const struct udp_socket *u);
/*
 * Receives datagrams into got, which has room for UDP_BATCH, and returns their
 * number; 0 if none waits, or if all that were read were dropped.  A caller
 * that reads until u->is_drained bounds its work by the sum of u->read, which
 * counts the dropped datagrams, too: a flood of them may have no end.  The
 * bytes of the datagrams are valid until the next call.
 */
size_t udp_receive(struct udp_socket *u, struct udp_dgram *got);
/* Replaces the relay of u by a new one, whose receiving end is fd: udp_receive
 * reads fd from now on.  Takes ownership of fd; does nothing if fd is -1.  If u
 * has no relay, or the program has closed it, only closes fd. */
void udp_take_relay(struct udp_socket *u, int fd);
/*
 * Turns UDP_GRO on if u->has.gro.  Then a stream of datagrams takes less time,
 * but a single message takes up to a tenth more, because the kernel reads for
 * each datagram how it was joined (docs/decisions/013).
 */
void udp_join_datagrams(struct udp_socket *u);
/* Joins a multicast group on an interface.  Returns 0, also if the socket is a
 * member already, or -errno. */
int udp_join(struct udp_socket *u, const uint8_t ip[16], uint32_t ifindex);
/* Leaves a multicast group on all interfaces, as member_leave does. */
void udp_leave(struct udp_socket *u, const uint8_t ip[16]);
/*
 * Sends the first k of n <= UDP_BATCH datagrams, each from the port in its
 * `from`, which must come from u->sports, and returns k.  If k < n, the socket
 * u->full_fd is full, and the caller waits for its POLLOUT.  A datagram that
 * the kernel refuses is dropped and counted in u->refused.  If the refused
 * datagram has segments, they are sent one by one instead, each after a call of
 * u->seal.  Sets the `err` of each of the k datagrams.
 */
size_t udp_send(struct udp_socket *u, struct udp_dgram *send, size_t n);

#endif
