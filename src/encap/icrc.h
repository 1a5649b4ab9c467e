/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The invariant CRC of RoCEv2 (IBTA Vol 1, 7.8.1; A17.3.3).
 *
 * The ICRC covers the following, in this order.  m marks a field that counts as
 * all ones, because routers may change the field.
 *
 *	8 bytes of ones		in the place of InfiniBand's LRH
 *	IPv4 header		ToS m, TTL m, header checksum m
 *	  or IPv6 header	traffic class m, flow label m, hop limit m
 *	UDP header		checksum m
 *	BTH			byte 4 (FECN, BECN, reserved) m
 *	all up to the ICRC	extension headers, payload, pad
 *
 * The ICRC follows the pad, least significant byte first.
 *
 * The ICRC covers the id and the fragment flags of an IPv4 header, which a
 * socket does not report.  But a CRC is linear.  So take the difference between
 * the received ICRC and the ICRC computed with an assumed id, and shift this
 * difference back to the place of the id.  The result is the difference between
 * the sender's id and the assumed id.
 *
 * Pure functions without state.
 */
#ifndef ENCAP_ICRC_H
#define ENCAP_ICRC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "hdr/bth.h"
#include "hdr/ip.h"
#include "hdr/udp.h"

/*
 * Returns the CRC register after the dummy LRH, an IPv4 header without options
 * and a UDP header.  The lengths in the headers include the ICRC, as on the
 * wire.
 */
uint32_t icrc_headers_v4(const struct ip_v4 *ip, const struct udp *udp);
/*
 * Returns the CRC register after the dummy LRH, an IPv6 header and a UDP
 * header.  The lengths in the headers include the ICRC, as on the wire.
 */
uint32_t icrc_headers_v6(const struct ip_v6 *ip, const struct udp *udp);
/* Returns what icrc_headers_v4 would have returned for `id`, where crc is its
 * result for the same headers with id 0. */
uint32_t icrc_with_id(uint32_t crc, uint16_t id);
/* Returns the CRC register after the BTH_BYTES bytes of the BTH, from register
 * `crc`. */
uint32_t icrc_bth(uint32_t crc, const uint8_t *bth);
/* Returns the CRC register after `bytes` bytes that follow the BTH, from
 * register `crc`. */
uint32_t icrc_update(uint32_t crc, const void *data, size_t bytes);

/* Writes the ICRC that CRC register `crc` gives: ICRC_BYTES bytes at p. */
void icrc_write(uint8_t *p, uint32_t crc);
/* Returns the CRC register that gives the ICRC at p: the inverse of icrc_write.
 */
uint32_t icrc_read(const uint8_t *p);

/* The fields of an IPv4 header that a socket does not report. */
struct icrc_hidden {
	uint16_t id;
	bool df; /* don't fragment */
};

/*
 * Finds the id and DF of an IPv4 datagram of `total_length` bytes (as in its
 * header).  `syndrome` is the register computed with `assumed` in the header,
 * xor the received register.  If the header of an unfragmented datagram, with
 * some id and with DF set or clear, gives the received ICRC, stores this id and
 * DF in *actual and returns true.  Otherwise returns false and leaves *actual
 * as it is.  For one corrupted packet in 2^15, the result is true by chance, so
 * the caller must decide which ids are plausible.
 */
bool icrc_syndrome_id(uint32_t syndrome, uint16_t total_length,
		      struct icrc_hidden assumed, struct icrc_hidden *actual);

#endif
