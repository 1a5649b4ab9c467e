/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Packets that came before their turn, held until their turn: requests at the
 * responder, and responses at the requester.  Their memory is a pool of all QPs
 * of a process; a struct reorder has at most IBT_HELD_PER_QP packets of it.  A
 * packet for which there is no room is dropped, as if the network had lost it.
 *
 * A packet that is held takes effect later, so a forger can send a packet whose
 * PSN is not the next one, and wait until the packet's turn comes.
 * Therefore callers hold only packets that are at most IBT_HELD_AHEAD PSNs
 * ahead, and hold them for at most IBT_HELD_NS (requests) or until the ACK
 * timeout (responses).
 *
 * Owner: the QP; lock: the progress lock.  Sans-IO.
 */
#ifndef IBT_REORDER_H
#define IBT_REORDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "util/list.h"
#include "util/serial24.h"

struct ibt;
struct ibt_held;
struct ibt_qp;

/* The packets that the requester or the responder of one QP holds. */
struct reorder {
	struct list held; /* struct ibt_held, in the order of PSNs */
	uint32_t count;	  /* how many packets are held */
};

/* Initialises *e without packets. */
void reorder_init(struct reorder *e);
/*
 * Holds a copy of the packet at bytes, BTH to padding, whose PSN is psn.  True:
 * the packet is held, or a copy of it was held already.  False: there is no
 * room, or the packet is longer than IBT_PACKET_BYTES; or a different packet
 * with the same PSN is held, so one of the two is forged, and all packets of *e
 * are dropped.  @q: the QP of *e, whose device counts the packet.
 */
bool reorder_keep(struct ibt *t, struct ibt_qp *q, struct reorder *e,
		  struct serial24 psn, const uint8_t *bytes, size_t len);
/* Returns the packet with the oldest PSN, owned by *e; NULL: there is none. */
struct ibt_held *reorder_first(const struct reorder *e);
/* Takes the packet with the oldest PSN, which must exist, out of *e; the caller
 * returns it to the pool by reorder_give. */
struct ibt_held *reorder_take(struct reorder *e);
/* Returns a packet to the pool. */
void reorder_give(struct ibt *t, struct ibt_held *k);
/* Returns all packets of *e to the pool. */
void reorder_drop(struct ibt *t, struct reorder *e);

#endif
