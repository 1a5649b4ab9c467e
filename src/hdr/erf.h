/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The header of Endace's Extensible Record Format (ERF) before a packet of an
 * InfiniBand link in a capture.  tshark reads such packets in this form, but
 * not in libpcap's own link type of InfiniBand (247).
 *
 *	 0  fraction of a second, in 2^-32 s, little-endian
 *	 4  seconds since 1970, little-endian
 *	 8  type: 21, InfiniBand
 *	 9  flags: 4, the lengths of records differ
 *	10  bytes of this header and the packet together, big-endian
 *	12  lost packets, big-endian: 0
 *	14  bytes of the packet, big-endian
 */
#ifndef HDR_ERF_H
#define HDR_ERF_H

#include <stddef.h>
#include <stdint.h>

#define ERF_LINK_TYPE 197 /* ERF in pcap and pcapng files */
#define ERF_BYTES     16

/* Writes the header of a packet of `bytes` bytes, from LRH to VCRC, at the time
 * s + ns/10^9 seconds.  bytes: at most 65519. */
void erf_write(uint8_t p[ERF_BYTES], uint64_t s, uint32_t ns, size_t bytes);

#endif
