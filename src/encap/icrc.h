/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The invariant CRC of RoCEv2 (IBTA Vol 1, 7.8.1; A17.3.2).
 *
 * What it covers, in order; m marks a field taken as all ones, because routers
 * may change it:
 *
 *	8 bytes of ones		where InfiniBand has its LRH
 *	IPv4 header		ToS m, TTL m, header checksum m
 *	  or IPv6 header	traffic class m, flow label m, hop limit m
 *	UDP header		checksum m
 *	BTH			byte 4 (FECN, BECN, reserved) m
 *	all up to the ICRC	extension headers, payload, pad
 *
 * It stands behind the padding, least significant byte first.
 *
 * IPv4 has id and fragment flags inside the coverage, which no socket tells
 * its reader.  A CRC being linear, the difference between the ICRC computed
 * with a guess and the one received, taken back over the bytes that follow,
 * is the difference between the guess and what was sent.
 *
 * Pure functions, no state.
 */
#ifndef ENCAP_ICRC_H
#define ENCAP_ICRC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "hdr/ip.h"
#include "hdr/udp.h"

#define ICRC_BYTES 4

/*
 * The CRC register after the dummy LRH, IP and UDP headers.  IP and UDP lengths
 * include the ICRC, as on the wire; an IPv4 header is taken to be without
 * options.
 */
uint32_t icrc_headers_v4(const struct ip_v4 *ip, const struct udp *udp);
uint32_t icrc_headers_v6(const struct ip_v6 *ip, const struct udp *udp);
/* The same of an IPv4 header with `id`, from that of one with id 0. */
uint32_t icrc_with_id(uint32_t crc, uint16_t id);
/* Then over the BTH_BYTES on the wire, and over what follows. */
uint32_t icrc_bth(uint32_t crc, const uint8_t *bth);
uint32_t icrc_update(uint32_t crc, const void *data, size_t bytes);

/* From register to wire and back: icrc_write(p, c), then icrc_read(p) is c. */
void icrc_write(uint8_t *p, uint32_t crc);
uint32_t icrc_read(const uint8_t *p);

/* The part of an IPv4 header that a socket does not tell. */
struct icrc_hidden {
	uint16_t id;
	bool df; /* don't fragment */
};

/*
 * `syndrome` is the computed register xor the received one, of an IPv4
 * datagram of `total_length` bytes (as in its header) for which `assumed` was
 * put into the header.  True if a header of some id and DF, and not a fragment,
 * explains it: then *actual is what was sent.  One corrupted packet in 2^15
 * is explained so by chance; which ids to believe is the caller's to decide.
 */
bool icrc_syndrome_id(uint32_t syndrome, uint16_t total_length,
		      struct icrc_hidden assumed, struct icrc_hidden *actual);

#endif
