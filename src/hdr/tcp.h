/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * TCP header (RFC 9293, 3.1), as captures contain it.
 *
 *	+-- source port 16 --+-- destination port 16 ------------------+
 *	+-- sequence number 32 ----------------------------------------+
 *	+-- acknowledgment number 32 ----------------------------------+
 *	+-- offset 4, 0 4, flags 8 --+-- window 16 --+
 *	+-- checksum 16 --+-- urgent pointer 16 --+
 *	+-- with SYN: maximum segment size, window scale (RFC 7323, 2.2) --+
 */
#ifndef HDR_TCP_H
#define HDR_TCP_H

#include <stddef.h>
#include <stdint.h>

#include "hdr/ip.h"

#define TCP_BYTES     20 /* of a header without SYN */
#define TCP_SYN_BYTES 28 /* of a header with SYN */

/* Bits of tcp.flags. */
enum tcp_flag {
	TCP_FIN = 0x01,
	TCP_SYN = 0x02,
	TCP_RST = 0x04,
	TCP_PSH = 0x08,
	TCP_ACK = 0x10,
};

struct tcp {
	uint16_t sport;
	uint16_t dport;
	uint32_t seq; /* of the first byte after the header, or of SYN or FIN */
	uint32_t ack; /* the sequence number of the next byte of the peer */
	uint8_t flags; /* bits of enum tcp_flag */
	uint16_t window;
	uint16_t checksum;
	/* With SYN: the greatest payload of a segment that the sender takes, in
	 * bytes. */
	uint16_t segment_max;
	/* With SYN: the number of bits by which the windows of later headers
	 * are shifted, at most 14. */
	uint8_t shift;
};

/* Writes a header at p, and returns its length: TCP_SYN_BYTES with SYN, else
 * TCP_BYTES. */
size_t tcp_write(uint8_t *p, const struct tcp *tcp);

/*
 * Returns the checksum of a segment over IPv4: its header, head_bytes bytes at
 * `head` with a checksum field of 0, and its payload.  head_bytes is even.
 */
uint16_t tcp_checksum_v4(const struct ip_v4 *ip, const uint8_t *head,
			 size_t head_bytes, const uint8_t *payload,
			 size_t bytes);
/* Returns the checksum of a segment over IPv6, as tcp_checksum_v4 does. */
uint16_t tcp_checksum_v6(const struct ip_v6 *ip, const uint8_t *head,
			 size_t head_bytes, const uint8_t *payload,
			 size_t bytes);

#endif
