/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * VL arbitration (IBTA 7.6.9): which VL sends next, if packets of several VLs
 * wait for one link.  The port has two tables of pairs, a VL and a weight in
 * blocks of 64 bytes.  Packets of the table of high priority go first.  After
 * VLHighLimit times 4096 bytes of them, but at least one packet, one packet of
 * the table of low priority goes, if one waits.  Within a table the VLs take
 * turns by their weights.
 *
 * Owner: struct lanes.  One thread; no lock.
 */
#ifndef FABRIC_ARBITER_H
#define FABRIC_ARBITER_H

#include <stdbool.h>
#include <stdint.h>

enum { ARBITER_ENTRIES = 8 }; /* VLArbHighCap and VLArbLowCap */

/* The place of the arbiter in a table. */
struct arbiter_place {
	uint8_t at;    /* index of the entry */
	uint32_t left; /* blocks that the entry's VL may still send */
};

/* All zeros: no packet was sent yet. */
struct arbiter {
	/* The places in the table of high and in that of low priority. */
	struct arbiter_place high, low;
	/* Blocks of high priority that were sent in a row while packets of low
	 * priority could leave, since the last packet of low priority. */
	uint32_t high_blocks;
};

/* The tables of a port. */
struct arbiter_tables {
	/* ARBITER_ENTRIES pairs each: a byte with the VL in its low 4 bits, and
	 * a byte with the weight.  Borrowed. */
	const uint8_t *high, *low;
	uint8_t high_limit; /* VLHighLimit; 0: one packet; 255: no limit */
};

/* Returns the VL that sends its next packet.  `ready` has a bit for each VL of
 * which a packet may leave, and is not 0.  blocks[vl] is the length of that
 * packet in blocks.  A VL that is in no entry with a weight sends only if no
 * other VL can; of several such VLs the lowest sends. */
uint32_t arbiter_pick(struct arbiter *a, const struct arbiter_tables *t,
		      uint32_t ready, const uint32_t blocks[]);

#endif
