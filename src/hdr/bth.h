/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Base Transport Header (IBTA Vol 1, 9.2; FECN and BECN: A17.9).
 *
 *	 0                   1                   2                   3
 *	 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
 *	+---------------+-+-+---+-------+-------------------------------+
 *	|    OpCode     |S|M|Pad| TVer  |             P_Key             |
 *	+-+-+-----------+-+-+---+-------+-------------------------------+
 *	|F|B|   resv    |                Destination QP                 |
 *	+-+-+-----------+-----------------------------------------------+
 *	|A|    resv     |           Packet Sequence Number              |
 *	+-+-------------+-----------------------------------------------+
 *
 * Reserved bits are sent as zero and ignored when received.
 */
#ifndef HDR_BTH_H
#define HDR_BTH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define BTH_BYTES	 12
#define ICRC_BYTES	 4 /* the CRC after the pad: IBTA 7.8 */
#define BTH_PSN_MASK	 0xffffffu
#define BTH_QPN_MASK	 0xffffffu
#define BTH_DEFAULT_PKEY 0xffffu

struct bth {
	uint8_t opcode; /* enum opcode, or a number that no opcode has */
	bool se;	/* S: solicited event */
	bool migreq;	/* M: migration state */
	uint8_t pad;	/* bytes of padding after the payload, 0..3 */
	uint8_t tver;	/* transport header version, 0 */
	uint16_t pkey;
	bool fecn;	   /* F: forward congestion notification */
	bool becn;	   /* B: backward congestion notification */
	uint32_t dest_qpn; /* 24 bits */
	bool ackreq;	   /* A: the packet asks for an ACK */
	uint32_t psn;	   /* 24 bits */
};

/* Reads a BTH from the len bytes at p.  Returns false if len < BTH_BYTES. */
bool bth_parse(const uint8_t *p, size_t len, struct bth *bth);
/* Writes BTH_BYTES at p. */
void bth_write(uint8_t *p, const struct bth *bth);
/* Replaces the PSN and the AckReq bit of the BTH at p. */
void bth_number(uint8_t *p, uint32_t psn, bool ackreq);
/* Replaces the P_Key of the BTH at p. */
void bth_put_pkey(uint8_t *p, uint16_t pkey);
/* Returns whether a port or QP with P_Key a may receive packets with P_Key b:
 * the low 15 bits of a and b are equal and not 0, and a or b has the bit of a
 * full member (IBTA Vol 1, 10.9.3). */
bool bth_is_same_partition(uint16_t a, uint16_t b);

#endif
