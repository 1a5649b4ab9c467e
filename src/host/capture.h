/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ADVERB_PCAP=FILE: writes every frame that is sent or received by UDP to a
 * pcapng file, with Ethernet, IP and UDP headers.  These headers are made here,
 * since the socket does not show them: the MAC of another host is zero, and the
 * TTL of a received frame is 64.  On a host of an emulated subnet, writes every
 * packet from LRH to VCRC instead.  The connections of iWARP are written as TCP
 * segments (host/capture_stream.h), or as the packets of SCTP.  Most frames are
 * written under the progress lock, so a slow file delays progress: a user who
 * asks for a capture wants each frame rather than speed.  Under this lock
 * adverb writes no other file but stderr.
 *
 * Owner: this file; one capture for each process.  Lock: the functions take a
 * lock of this file themselves, under which they take only that of netif.h.
 * The caller makes sure that no two threads are in capture_open and
 * capture_close at once.
 */
#ifndef HOST_CAPTURE_H
#define HOST_CAPTURE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/engine.h"
#include "hdr/tcp.h"
#include "util/inaddr.h"

/* The most bytes of payload in a segment that fits in a packet of IPv4. */
#define CAPTURE_SEGMENT_MAX (65535 - IP_V4_BYTES - TCP_BYTES)

/* A segment of TCP. */
struct capture_segment {
	/* The sender and the receiver, with their ports; borrowed. */
	const struct inaddr *from, *to;
	uint8_t tos;	/* the type of service or traffic class */
	struct tcp tcp; /* without ports and checksum, which are computed */
	const uint8_t *bytes; /* the payload; borrowed */
	size_t count;	      /* of `bytes`, at most CAPTURE_SEGMENT_MAX */
	uint64_t at_ns;	      /* when it was sent or received: capture_now */
};

/* Opens the file that ADVERB_PCAP names.  Does nothing if the variable is not
 * set or the file is open.  is_by_lid: the file is for capture_packet alone;
 * otherwise the file is for the other functions.  So each section of the file
 * has packets of one kind of link.  No other user may be able to change the
 * path to the file (util/walk.h).  On failure prints why, and there is no
 * capture. */
void capture_open(bool is_by_lid);
/* Closes the file, if it is open. */
void capture_close(void);
/* Are frames captured? */
bool capture_is_open(void);
/* Writes the frame of a UDP payload bytes[0..len).  Does nothing if there is no
 * capture, if the file is for packets by LID, or if the payload is longer than
 * 10140 bytes.  id: the identification of the IPv4 header.  tos: the type of
 * service or traffic class.  ttl: the TTL or hop limit, 0 for 64. */
void capture_frame(const struct inaddr *from, const struct inaddr *to,
		   const uint8_t *bytes, size_t len, uint16_t id, uint8_t tos,
		   uint8_t ttl);
/* Writes a packet of an InfiniBand link, whose LRH and GRH are head[0..n) and
 * whose other bytes, to the VCRC, are bytes[0..len).  n may be 0 if the headers
 * are in `bytes`.  Does nothing if there is no capture, if the file is for
 * Ethernet frames, or if the packet is longer than 10140 bytes. */
void capture_packet(const uint8_t *head, size_t n, const uint8_t *bytes,
		    size_t len);
/* Writes the frame of a TCP segment.  Does nothing if there is no capture, if
 * the file is for packets by LID, or if s->count is above
 * CAPTURE_SEGMENT_MAX. */
void capture_segment(const struct capture_segment *s);
/* Writes the frame of a packet of SCTP, in UDP if the ports of UDP in *from and
 * *to are not 0.  Does nothing in the cases in which capture_frame does
 * nothing.  Any thread may call this function under any lock but those of this
 * file and of netif.h. */
void capture_sctp(const struct inaddr *from, const struct inaddr *to,
		  const uint8_t *packet, size_t len);
/* Returns the time of CLOCK_REALTIME in ns, for capture_segment. */
uint64_t capture_now(void);
/* Writes the packets of a frame of the engine that was sent by UDP: one packet
 * for each segment, as on the wire (capture_frame). */
void capture_sent(const struct engine_frame *f);
/* Writes the packets of a datagram that was received: one packet for each
 * segment (capture_frame). */
void capture_received(const struct engine_dgram *d);

#endif
