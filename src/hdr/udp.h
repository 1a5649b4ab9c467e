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
#define UDP_PORT_ROCEV2 4791 /* IBTA A17.3.1 */

struct udp {
	uint16_t sport;
	uint16_t dport;
	uint16_t length;   /* header and payload */
	uint16_t checksum; /* 0: none */
};

/* False unless the datagram it announces lies within `len`. */
bool udp_parse(const uint8_t *p, size_t len, struct udp *udp);
void udp_write(uint8_t *p, const struct udp *udp);

/*
 * The checksum of a datagram of `len` bytes (header and payload) whose
 * checksum field holds zero; never 0.
 */
uint16_t udp_checksum_v4(const struct ip_v4 *ip, const uint8_t *p, size_t len);
uint16_t udp_checksum_v6(const struct ip_v6 *ip, const uint8_t *p, size_t len);

/*
 * Whether a received datagram's checksum is right; none at all (0) is right
 * over IPv4, and over IPv6 where the receiver asks for it (RFC 6935).
 */
bool udp_checksum_v4_ok(const struct ip_v4 *ip, const uint8_t *p, size_t len);
bool udp_checksum_v6_ok(const struct ip_v6 *ip, const uint8_t *p, size_t len);

#endif
