/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The headers of IPv4 (RFC 791, 3.1, with the checksum of RFC 1071) and IPv6
 * (RFC 8200, 3).
 *
 *	 0                   1                   2                   3
 *	 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
 *	+-------+-------+---------------+-------------------------------+
 *	|   4   |  IHL  |      ToS      |         Total Length          |
 *	+-------+-------+---------------+-----+-------------------------+
 *	|        Identification         |0 D M|    Fragment Offset      |
 *	+---------------+---------------+-----+-------------------------+
 *	|      TTL      |   Protocol    |        Header Checksum        |
 *	+---------------+---------------+-------------------------------+
 *	|                        Source Address                         |
 *	+---------------------------------------------------------------+
 *	|                      Destination Address                      |
 *	+---------------------------------------------------------------+
 *
 *	+-------+---------------+---------------------------------------+
 *	|   6   | Traffic Class |              Flow Label               |
 *	+-------+---------------+-------+---------------+---------------+
 *	|        Payload Length         |  Next Header  |   Hop Limit   |
 *	+-------------------------------+---------------+---------------+
 *	|                  Source, then Destination, 128 bits each      |
 *	+---------------------------------------------------------------+
 */
#ifndef HDR_IP_H
#define HDR_IP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define IP_V4_BYTES	 20
#define IP_V6_BYTES	 40
#define IP_PROTOCOL_TCP	 6
#define IP_PROTOCOL_UDP	 17
#define IP_PROTOCOL_SCTP 132

/* The bits of ip_v4.flags_fragment. */
#define IP_V4_DF	    0x4000
#define IP_V4_MF	    0x2000
#define IP_V4_FRAGMENT_MASK 0x1fff

struct ip_v4 {
	uint8_t header_bytes; /* 20..60; ip_v4_write writes 20 */
	uint8_t tos;
	uint16_t total_length; /* bytes of header and payload */
	uint16_t id;
	uint16_t flags_fragment; /* IP_V4_DF, IP_V4_MF and the offset */
	uint8_t ttl;
	uint8_t protocol;
	uint16_t checksum; /* as parsed; ip_v4_write ignores this field */
	uint32_t src;	   /* in host order */
	uint32_t dst;	   /* in host order */
};

struct ip_v6 {
	uint8_t traffic_class;
	uint32_t flow_label;	 /* 20 bits */
	uint16_t payload_length; /* bytes after this header */
	uint8_t next_header;
	uint8_t hop_limit;
	uint8_t src[16];
	uint8_t dst[16];
};

/*
 * Reads an IPv4 header at p.  Returns false if the version is not 4, if the
 * header length is invalid, or if the header or the packet is longer than
 * `len`.  Does not check the checksum.
 */
bool ip_v4_parse(const uint8_t *p, size_t len, struct ip_v4 *ip);
/* Reads an IPv6 header at p.  Returns false if the version is not 6, or if the
 * header or the packet is longer than `len`. */
bool ip_v6_parse(const uint8_t *p, size_t len, struct ip_v6 *ip);
/* Writes IP_V4_BYTES at p, without options and with the right checksum. */
void ip_v4_write(uint8_t *p, const struct ip_v4 *ip);
/* Writes IP_V6_BYTES at p. */
void ip_v6_write(uint8_t *p, const struct ip_v6 *ip);

/* Returns whether the checksum of the header at p is right.  Assumes that
 * ip_v4_parse has accepted the header. */
bool ip_v4_checksum_ok(const uint8_t *p, const struct ip_v4 *ip);

/*
 * Adds `bytes` bytes to the sum of an Internet checksum (RFC 1071) and returns
 * the new sum.  The first sum is 0, or the sum of fields of a pseudo header.
 * Only the last call may add an odd number of bytes.
 */
uint64_t ip_sum(uint64_t sum, const void *data, size_t bytes);
/* Returns the checksum, 16 bits in host order, of a sum that ip_sum returned.
 */
uint16_t ip_sum_fold(uint64_t sum);

#endif
