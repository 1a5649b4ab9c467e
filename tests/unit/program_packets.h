/* SPDX-License-Identifier: BSD-2-Clause */
/* Packets between the programs of fabric_programs.h. */
#ifndef TESTS_UNIT_PROGRAM_PACKETS_H
#define TESTS_UNIT_PROGRAM_PACKETS_H

#include "fabric_programs.h"

#include "fabric/data.h"
#include "hdr/bth.h"
#include "hdr/lrh.h"

enum {
	SEND_ONLY = 0x04,
	PAYLOAD = 1024,
	ICRC = 4, /* the fabric does not read it */
	BYTES = LRH_BYTES + BTH_BYTES + PAYLOAD + ICRC + LRH_VCRC_BYTES,
	WORDS = (BYTES - LRH_VCRC_BYTES) / 4,
};

/* Makes a packet from A to a QP of the data end `number` at B.  Each byte of
 * the payload is `mark`. */
static inline void make_packet(uint8_t p[BYTES], uint32_t number, int mark)
{
	const struct lrh lrh = {.lnh = LRH_NEXT_LOCAL,
				.dlid = LID_B,
				.slid = LID_A1,
				.words = WORDS};
	const struct bth bth = {.opcode = SEND_ONLY,
				.pkey = 0xffff,
				.dest_qpn = number << DATA_REST_BITS | 5};

	memset(p, mark, BYTES);
	lrh_write(p, &lrh);
	bth_write(p + LRH_BYTES, &bth);
	lrh_seal(p, BYTES - LRH_VCRC_BYTES);
}

#endif
