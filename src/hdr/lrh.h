/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Local Route Header, and the frame of a packet on an InfiniBand link
 * (IBTA Vol 1, 7.7, 7.8.2).
 *
 *	+-------+-------+-------+---+---+-------------------------------+
 *	|  VL   | LVer  |  SL   |rsv|LNH|              DLID             |
 *	+-------+-------+-------+---+---+-------------------------------+
 *	|  rsv    |      PktLen         |              SLID             |
 *	+---------+---------------------+-------------------------------+
 *
 *	+-----+-------+-----+ - - - - - - - - - - - - - +------+------+
 *	| LRH | (GRH) | BTH | extension headers, payload | ICRC | VCRC |
 *	+-----+-------+-----+ - - - - - - - - - - - - - +------+------+
 *
 * PktLen counts 32-bit words from the LRH to the ICRC.  The VCRC follows, 16
 * bits, least significant byte first, over all bytes before it.  A switch that
 * changes the VL computes the VCRC again; the ICRC (encap/iblink.h) stays.
 */
#ifndef HDR_LRH_H
#define HDR_LRH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define LRH_BYTES	8
#define LRH_VCRC_BYTES	2
#define LRH_WORDS_MAX	2047 /* the greatest PktLen */
#define LRH_VL_MGMT	15   /* the VL that only SMPs use */
#define LRH_NEXT_LOCAL	2    /* LNH: a BTH follows */
#define LRH_NEXT_GLOBAL 3    /* LNH: a GRH follows, then a BTH */
/* Bytes of an LRH and a GRH together. */
#define LRH_HEAD_MAX 48
/* Bytes of the longest packet, VCRC included. */
#define LRH_FRAME_MAX (4 * LRH_WORDS_MAX + LRH_VCRC_BYTES)

struct lrh {
	uint8_t vl;
	uint8_t lver; /* link version, 0 */
	uint8_t sl;
	uint8_t lnh; /* which header follows: LRH_NEXT_* */
	uint16_t dlid;
	uint16_t words; /* PktLen, 11 bits */
	uint16_t slid;
};

/* Reads an LRH.  Returns false if len < LRH_BYTES. */
bool lrh_parse(const uint8_t *p, size_t len, struct lrh *lrh);
/* Writes LRH_BYTES at p, reserved bits as zero. */
void lrh_write(uint8_t *p, const struct lrh *lrh);

/*
 * Reads the LRH of the packet at p, whose `len` bytes include the VCRC, and
 * judges the packet's frame.  The frame is right if the link version is 0, a
 * BTH follows the LRH or a GRH, the lengths in LRH and GRH fit `len`, and the
 * packet has room for the BTH and an ICRC.  Returns the offset of the BTH in
 * bytes; 0: the frame is wrong.  Checks no CRC.
 */
size_t lrh_frame(const uint8_t *p, size_t len, struct lrh *lrh);

/*
 * Returns the length of the packet that begins at p, from LRH to VCRC, by its
 * LRH; 0: the `len` bytes at p do not begin with a whole packet, or the length
 * is less than that of LRH, BTH and CRCs.  Checks no other field.
 */
size_t lrh_first(const uint8_t *p, size_t len);

/* Writes a VCRC of LRH_VCRC_BYTES at p.  @state: the state of CRC-16
 * (util/crc16.h) after all bytes that the VCRC covers. */
void lrh_write_vcrc(uint8_t *p, uint16_t state);
/* Writes the VCRC of the `len` bytes at p to p + len. */
void lrh_seal(uint8_t *p, size_t len);
/* Returns whether the VCRC, which ends the `len` bytes at p, is right.  Returns
 * false if len < LRH_VCRC_BYTES. */
bool lrh_is_intact(const uint8_t *p, size_t len);

#endif
