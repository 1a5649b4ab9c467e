/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * UDP header (RFC 768; over IPv6 RFC 8200, 8.1).
 *
 *	+-- source port 16 --+-- destination port 16 --+
 *	+-- length 16 -------+-- checksum 16 ----------+
 */
#ifndef HDR_UDP_H
#define HDR_UDP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "hdr/ip.h"

#define UDP_BYTES	8
#define UDP_PORT_ROCEV2 4791 /* IBTA A17.3.2.2 */

struct udp {
	uint16_t sport;
	uint16_t dport;
	uint16_t length;   /* bytes of header and payload */
	uint16_t checksum; /* 0: the datagram has no checksum */
};

/* Reads a header at p.  Returns false if the header or the datagram is longer
 * than `len`, or if the length field is less than UDP_BYTES. */
bool udp_parse(const uint8_t *p, size_t len, struct udp *udp);
/* Writes UDP_BYTES at p. */
void udp_write(uint8_t *p, const struct udp *udp);

/*
 * Returns the checksum of a datagram over IPv4, which is at p and has `len`
 * bytes of header and payload; its checksum field must be 0.  The result is
 * never 0.
 */
uint16_t udp_checksum_v4(const struct ip_v4 *ip, const uint8_t *p, size_t len);
/*
 * Returns the checksum of a datagram over IPv6, which is at p and has `len`
 * bytes of header and payload; its checksum field must be 0.  The result is
 * never 0.
 */
uint16_t udp_checksum_v6(const struct ip_v6 *ip, const uint8_t *p, size_t len);

/* Returns whether the checksum of a datagram over IPv4, which is at p and has
 * `len` bytes of header and payload, is right or absent (0). */
bool udp_checksum_v4_ok(const struct ip_v4 *ip, const uint8_t *p, size_t len);
/* Returns whether the checksum of a datagram over IPv6, which is at p and has
 * `len` bytes of header and payload, is right or absent (0).  A receiver may
 * allow an absent checksum (RFC 6935). */
bool udp_checksum_v6_ok(const struct ip_v6 *ip, const uint8_t *p, size_t len);

#endif
