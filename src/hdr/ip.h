/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * IPv4 (RFC 791, 3.1; the checksum RFC 1071) and IPv6 (RFC 8200, 3) headers.
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

#define IP_V4_BYTES	20
#define IP_V6_BYTES	40
#define IP_PROTOCOL_UDP 17

/* In ip_v4.flags_fragment. */
#define IP_V4_DF	    0x4000
#define IP_V4_MF	    0x2000
#define IP_V4_FRAGMENT_MASK 0x1fff

struct ip_v4 {
	uint8_t header_bytes; /* 20..60; written as 20 */
	uint8_t tos;
	uint16_t total_length;
	uint16_t id;
	uint16_t flags_fragment;
	uint8_t ttl;
	uint8_t protocol;
	uint16_t checksum; /* as parsed; computed when written */
	uint32_t src;
	uint32_t dst;
};

struct ip_v6 {
	uint8_t traffic_class;
	uint32_t flow_label; /* 20 bits */
	uint16_t payload_length;
	uint8_t next_header;
	uint8_t hop_limit;
	uint8_t src[16];
	uint8_t dst[16];
};

/*
 * False unless version and lengths hold: the header, and the packet it
 * announces, lie within `len`.  The checksum is not looked at.
 */
bool ip_v4_parse(const uint8_t *p, size_t len, struct ip_v4 *ip);
bool ip_v6_parse(const uint8_t *p, size_t len, struct ip_v6 *ip);
void ip_v4_write(uint8_t *p, const struct ip_v4 *ip);
void ip_v6_write(uint8_t *p, const struct ip_v6 *ip);

/* Whether the checksum over a header that ip_v4_parse accepted is right. */
bool ip_v4_checksum_ok(const uint8_t *p, const struct ip_v4 *ip);

/*
 * The Internet checksum.  Sums are started at 0 and may be continued after an
 * even number of bytes; ip_sum_fold gives the 16 bits to store.
 */
uint64_t ip_sum(uint64_t sum, const void *data, size_t bytes);
uint16_t ip_sum_fold(uint64_t sum);

#endif
