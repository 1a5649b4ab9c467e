/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Sends packets to neighbours, and asks the subnet administration for the paths
 * of these packets.
 */
#ifndef IPOIB_WAY_H
#define IPOIB_WAY_H

#include "ipoib/inside.h"

/* Learns that the interface with the address *a exists.  from: the sender of
 * the packet that told the address.  Returns the interface's MAC; NULL: another
 * interface has that MAC, or no memory is left. */
const uint8_t *way_learn(struct ipoib *m, const struct hwaddr *a,
			 const struct ipoib_from *from, uint64_t now_ms);
/* Sends a packet to a neighbour.  If the path is not known, keeps the packet
 * until the path is known; if a question for the path has just failed, drops
 * the packet. */
void way_send(struct ipoib *m, struct neigh *n, const uint8_t *p, size_t bytes,
	      uint64_t now_ms);
/* Takes the answer to a question for a path.  False: the answer is not to such
 * a question. */
bool way_answer(struct ipoib *m, const struct sa_answer *answer,
		uint64_t now_ms);
/* Forgets all paths.  A path is asked for again when a packet is sent, or at
 * once if packets wait for it. */
void way_renew(struct ipoib *m);
/* Forgets all neighbours. */
void way_forget(struct ipoib *m);
/* Asks the SA for the paths that are due.  Returns the time of the next
 * call, or ASK_NEVER. */
uint64_t way_turn(struct ipoib *m, uint64_t now_ms);

#endif
