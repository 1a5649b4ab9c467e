/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Announcements of an interface's addresses.  An interface that starts again
 * has another QPN, and tells the hosts that know the old one: by ARP for IPv4
 * (RFC 5227, 2.3) and by neighbour advertisements for IPv6 (RFC 4861, 7.2.6).
 * A subnet manager answers a join before it has written the tables of all
 * switches, so the first announcements may be lost: they are repeated, with
 * pauses that grow.  No I/O.  Owner: struct ipoib.
 */
#ifndef IPOIB_ANNOUNCE_H
#define IPOIB_ANNOUNCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ipoib/hwaddr.h"

#define ANNOUNCE_FRAME_MAX 86 /* bytes of a frame */
#define ANNOUNCE_NEVER	   UINT64_MAX

struct announce_address {
	bool is_v6;
	uint8_t ip[16]; /* IPv4: the first 4 bytes */
};

/* All zero: nothing is to be announced. */
struct announce {
	uint64_t began_ms; /* when the interface came up last */
	uint32_t left;	   /* how many announcements are still to come */
};

/* Begins announcements: the interface has come up. */
void announce_begin(struct announce *a, uint64_t now_ms);
/* Ends announcements: the interface has gone down, or ends. */
void announce_end(struct announce *a);
/* Returns whether an announcement is due, and removes all that are due: the
 * caller announces the addresses once in place of all of them. */
bool announce_take(struct announce *a, uint64_t now_ms);
/* Returns when the next announcement is due, or ANNOUNCE_NEVER. */
uint64_t announce_deadline(const struct announce *a);
/* Writes the Ethernet frame that announces an address of the interface with the
 * MAC.  Returns the frame's length in bytes. */
size_t announce_write(const uint8_t mac[HWADDR_MAC_BYTES],
		      const struct announce_address *address,
		      uint8_t frame[ANNOUNCE_FRAME_MAX]);

#endif
