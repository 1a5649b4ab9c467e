/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Packets that came before their turn, kept until their turn: requests at the
 * responder, responses to READs at the requester.  Their memory is a pool of
 * all QPs of a process; a packet for which the pool has no room is dropped, as
 * if the network had lost it.
 *
 * A packet that is kept takes effect later, so a forger would like to place
 * one.  Callers keep packets that are at most IBT_HELD_AHEAD PSNs ahead, for at
 * most IBT_HELD_NS (requests) or until the ACK timeout (responses).
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

struct reorder {
	struct list held; /* struct ibt_held, in the order of PSNs */
	uint32_t count;
};

void reorder_init(struct reorder *e);
/*
 * Keeps a copy of a packet, BTH to padding; true also if the packet is kept
 * already.  False: there is no room; or another packet with the same PSN is
 * kept, one of the two is forged, and all packets of *e are dropped.
 */
bool reorder_keep(struct ibt *t, struct ibt_qp *q, struct reorder *e,
		  struct serial24 psn, const uint8_t *bytes, size_t len);
/* Returns the packet with the lowest PSN, owned by *e; NULL: there is none. */
struct ibt_held *reorder_first(const struct reorder *e);
/* Takes out the packet with the lowest PSN, which must exist; the caller
 * returns it to the pool by reorder_give. */
struct ibt_held *reorder_take(struct reorder *e);
/* Returns a packet to the pool. */
void reorder_give(struct ibt *t, struct ibt_held *k);
/* Returns all packets of *e to the pool. */
void reorder_drop(struct ibt *t, struct reorder *e);

#endif
