/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * RoCEv2's wire: UDP datagrams through one dual-stack socket on port 4791
 * (IBTA A17.3.1) that receives, and sends where sport.h has no other.  IPv4
 * addresses are ::ffff:a.b.c.d here as everywhere.
 *
 * The kernel computes UDP's checksum, "don't fragment" is on in both families,
 * and no socket is connected by IPv4: then the fields of its header that the
 * ICRC covers but a socket does not show are known (encap/icrc.h).
 *
 * Owner: struct progress; lock: the progress lock.  Nothing here waits.
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

#define UDP_BATCH	   64
#define UDP_DATAGRAM_BYTES 8192 /* longer ones are no RoCEv2 packets */

/* What the caller allows, and then what the kernel can. */
struct udp_offload {
	bool gso; /* send several datagrams in one call */
	bool gro; /* receive several in one */
};

struct udp_rings; /* buffers of a batch, udp.c */

/*
 * Makes a datagram that was to leave as one of several right for leaving alone:
 * by IPv4 the kernel then gives it another identification, which the ICRC
 * covers.
 */
typedef void udp_alone(const struct inaddr *from, const struct inaddr *to,
		       uint8_t *bytes, size_t len);

struct udp {
	int fd;
	struct udp_offload has;
	bool joins;   /* it does receive several at once, udp_join_datagrams */
	bool v4_only; /* there is no IPv6 on this machine */
	bool is_relayed;      /* fd is the end of a relay, wire/relay.h */
	struct sender tx;     /* around fd, or if that is a relay's, another */
	shared_u32 hang_ups;  /* fd is another file since */
	shared_flag is_lost;  /* the program has closed it: udp_is_ours */
	int full_fd;	      /* what the last udp_send found full */
	struct sports sports; /* what sends to which process */
	struct udp_rings *rings;
	udp_alone *alone;   /* the caller's; needed by who sends several */
	bool is_empty;	    /* the last udp_receive found nothing */
	bool is_drained;    /* or all that there was */
	bool is_behind;	    /* or it filled its batch, and may have left some */
	uint64_t truncated; /* datagrams dropped for their length */
	uint64_t refused;   /* sends that failed for good */
};

/* A socket bound to `port` on every local address: fd or -errno. */
int udp_bind(uint16_t port);
/* Set up around fd (taken), from udp_bind or a broker: a UDP socket or the end
 * of a relay; 0 or -errno.  one_port: all leaves from its port. */
int udp_init(struct udp *u, int fd, struct udp_offload allowed, bool one_port);
void udp_fini(struct udp *u);
/* False: the program has closed the socket, or put a file of its own in its
 * place.  From then on nothing is received, and what is sent is dropped. */
bool udp_is_ours(struct udp *u);
/* What the receive buffer takes, as the kernel counts. */
uint32_t udp_buffer_bytes(const struct udp *u);
/*
 * Up to UDP_BATCH datagrams, 0 when none waits; the bytes last until the next
 * call.
 */
size_t udp_receive(struct udp *u, struct udp_dgram *got);
/*
 * Have the kernel join what comes from here on, if u->has.gro: a stream costs
 * less then, and a message alone a tenth more, for a line of memory that is
 * looked at to see whether it is joined.
 */
void udp_join_datagrams(struct udp *u);
/*
 * Hear a multicast group on an interface; leave it on all.  0 or -errno;
 * joining again is no error.
 */
int udp_join(struct udp *u, const uint8_t ip[16], uint32_t ifindex);
void udp_leave(struct udp *u, const uint8_t ip[16]);
/*
 * Send the first k of n <= UDP_BATCH, each from the port that its `from` says,
 * which is one of sports'; k < n: full_fd is full, wait for its POLLOUT.  A
 * datagram that the kernel refuses is counted and dropped, as a wire would;
 * several at once that it refuses are sent one by one, after `alone`.
 */
size_t udp_send(struct udp *u, const struct udp_dgram *send, size_t n);

#endif
