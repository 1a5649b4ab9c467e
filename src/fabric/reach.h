/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Would the packets of a queue pair arrive?  The answer follows the tables and
 * the states that a packet would meet on its way (move.h, gate.h), and counts
 * nothing.  It says nothing about time: full buffers and the discards after
 * HOQLife are no part of it.
 *
 * An answer holds until reach_changes returns another number, or until one of
 * the two data ends closes or becomes deaf (data_deafen).
 */
#ifndef FABRIC_REACH_H
#define FABRIC_REACH_H

#include <stdbool.h>
#include <stdint.h>

struct data_end;
struct fabric;

/* The packets of a connected queue pair. */
struct reach {
	uint32_t dest_qpn;
	uint16_t dlid;
	/* The index of the packets' P_Key in the table of the sender's port.
	 * reach_find reads the table, since the caller may not know yet that
	 * the subnet manager has changed the table. */
	uint16_t pkey_index;
	uint8_t sl;
	/* The path bits of the source LID.  Only the lowest bits count, as many
	 * as the LMC of the sender's port says. */
	uint8_t path_bits;
	uint8_t mtu; /* path MTU: 1 to 5, for 256 to 4096 bytes */
	/* Not 0: the packets of both ends have a GRH, with these GIDs. */
	uint8_t has_grh;
	uint8_t sgid[16], dgid[16];
};

/* The peer at which such packets arrive, and how its packets come back. */
struct reach_peer {
	/* Bit i: the peer may send its packets by entry i of its port's P_Key
	 * table.  That entry fits the P_Key of the packets, and packets with
	 * the entry's P_Key and with the same SL come back to the source LID.
	 */
	uint64_t pkeys;
	uint16_t slid; /* the source LID of the packets */
	uint8_t port;  /* the number of the peer's port */
	/* The path bits of the DLID, which is the peer's base LID plus these
	 * bits. */
	uint8_t path_bits;
	/* The bits of a LID that are path bits at the peer: the lowest ones, as
	 * many as the peer's LMC says. */
	uint8_t path_mask;
};

/* Returns the data end that the packets `r` of `from` reach, and whose answers
 * reach `from`, and describes that data end in *peer.  NULL: packets in one of
 * the two directions would be dropped, a GID of `r` is not that of its port, or
 * no data end has the destination QPN. */
struct data_end *reach_find(const struct data_end *from, const struct reach *r,
			    struct reach_peer *peer);
/* Returns a number that changes at the latest when a state or a table of the
 * subnet changes an answer of reach_find.  A data end that opens, closes or
 * becomes deaf changes answers, and not this number. */
uint32_t reach_changes(const struct fabric *f);

#endif
