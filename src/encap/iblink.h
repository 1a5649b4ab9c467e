/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A transport packet as a packet of an InfiniBand link: LRH, GRH where needed,
 * ICRC and VCRC (hdr/lrh.h draws the frame).
 *
 * The ICRC covers the following (IBTA Vol 1, 7.8.1).  m marks a field that
 * counts as all ones, because switches or routers may change the field.
 *
 *	without a GRH:	LRH		VL m
 *	with a GRH:	8 bytes of ones in the place of the LRH
 *			GRH		traffic class m, flow label m,
 *					hop limit m
 *	BTH				byte 4 (FECN, BECN, reserved) m
 *	all up to the ICRC
 *
 * Pure functions without state.
 */
#ifndef ENCAP_IBLINK_H
#define ENCAP_IBLINK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "encap/rocev2.h"
#include "hdr/bth.h"
#include "hdr/grh.h"
#include "hdr/lrh.h"

/* Bytes of ICRC and VCRC. */
#define IBLINK_TAIL_BYTES (ICRC_BYTES + LRH_VCRC_BYTES)

/* The headers before a BTH. */
struct iblink {
	struct lrh lrh;
	struct grh grh; /* used if lrh.lnh is LRH_NEXT_GLOBAL */
};

/*
 * Writes the LRH, and the GRH if h->lrh.lnh is LRH_NEXT_GLOBAL, of a packet
 * that has `len` bytes from its BTH to its pad.  Computes PktLen, and PayLen
 * and NxtHdr of the GRH; ignores their values in *h.  `head` has room for
 * LRH_HEAD_MAX bytes.  Returns how many bytes it wrote.  Aborts if `len` is no
 * multiple of 4, or too long for PktLen.
 */
size_t iblink_write(uint8_t *head, const struct iblink *h, size_t len);

/*
 * Writes ICRC and VCRC of a packet to p + len.  `head` has the head_bytes bytes
 * that iblink_write wrote, and p has the `len` bytes from the BTH to the pad.
 * The head need not lie in front of p.  Returns the new length,
 * len + IBLINK_TAIL_BYTES.  Aborts if head_bytes exceeds LRH_HEAD_MAX, or if
 * `len` is less than BTH_BYTES.
 */
size_t iblink_seal(const uint8_t *head, size_t head_bytes, uint8_t *p,
		   size_t len);
/* Does what iblink_seal does, but for the ICRC takes the CRC of the payload
 * from *sum.  The pad follows the payload and ends at p + len.  Aborts if
 * head_bytes exceeds LRH_HEAD_MAX, or if `len` is too short for sum->bytes. */
size_t iblink_seal_summed(const uint8_t *head, size_t head_bytes, uint8_t *p,
			  size_t len, const struct rocev2_sum *sum);

/* The part of a packet from the BTH to the pad, both included; points into the
 * packet. */
struct iblink_inner {
	const uint8_t *bth;
	size_t bytes;
};

/* Reads the packet of `len` bytes at p, VCRC included.  Returns true if the
 * packet's frame (lrh_frame) and its ICRC are right; else *h and *inner are
 * undefined.  h->grh is set if h->lrh.lnh is LRH_NEXT_GLOBAL.  Ignores the
 * VCRC: the fabric's process has checked the VCRC that the sender has written
 * (data_send), or has read the packet in the memory in which the sender has
 * made it (data_lend). */
bool iblink_open(const uint8_t *p, size_t len, struct iblink *h,
		 struct iblink_inner *inner);

#endif
