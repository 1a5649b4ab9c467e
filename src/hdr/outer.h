/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Whole headers of Ethernet, IP, and UDP or TCP, with right lengths and
 * checksums, in front of a payload.  A program that sends by sockets sees only
 * the payload; a capture needs the headers.  Pure.
 */
#ifndef HDR_OUTER_H
#define HDR_OUTER_H

#include <stddef.h>
#include <stdint.h>

#include "hdr/eth.h"
#include "hdr/ip.h"
#include "hdr/tcp.h"
#include "hdr/udp.h"
#include "util/inaddr.h"

/* The most bytes of headers. */
#define OUTER_IP_MAX  (ETH_BYTES + IP_V6_BYTES)
#define OUTER_UDP_MAX (OUTER_IP_MAX + UDP_BYTES)
#define OUTER_TCP_MAX (OUTER_IP_MAX + TCP_SYN_BYTES)

/* The addresses of a packet, and the fields of its IP header. */
struct outer {
	uint8_t from_mac[ETH_ADDRESS_BYTES], to_mac[ETH_ADDRESS_BYTES];
	/* The addresses and ports, borrowed.  The IP header is of IPv4 if
	 * from->ip is an address of IPv4. */
	const struct inaddr *from, *to;
	uint16_t id; /* the identification of the IPv4 header */
	uint8_t tos; /* the type of service or traffic class */
	uint8_t ttl; /* the TTL or hop limit */
};

/* Writes the headers of Ethernet and IP before `bytes` bytes of a protocol, and
 * returns the length of the headers, at most OUTER_IP_MAX.  The IP header
 * and the bytes together must not exceed 65535 bytes; the same holds for the
 * next two functions. */
size_t outer_write_ip(uint8_t *p, const struct outer *o, uint8_t protocol,
		      size_t bytes);
/* Writes a whole frame with the UDP payload bytes[0..n), and returns its
 * length, at most OUTER_UDP_MAX + n. */
size_t outer_write_udp(uint8_t *p, const struct outer *o, const uint8_t *bytes,
		       size_t n);
/* Writes the headers of a TCP segment with the payload bytes[0..n), and returns
 * the length of the headers, at most OUTER_TCP_MAX.  The ports and the checksum
 * of *tcp are ignored. */
size_t outer_write_tcp(uint8_t *p, const struct outer *o, const struct tcp *tcp,
		       const uint8_t *bytes, size_t n);

#endif
