/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Packets that came before their turn, kept until it comes: requests at the
 * responder, answers to READs at the requester.  Their memory is a pool of all
 * QPs of a process; a packet that finds no place there is lost as on a wire.
 *
 * A packet that is kept takes effect later, so it is the one that a forger
 * would like to place.  Callers keep what is at most IBT_HELD_AHEAD PSNs ahead,
 * for at most IBT_HELD_NS (requests) or until the ACK timeout (answers).
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
 * Keep a copy of a packet, BTH to padding; true also if it is there already.
 * False: there is no room, or a packet of the same PSN that says something else
 * is there; then all that is kept is forgotten, for one of them is forged.
 */
bool reorder_keep(struct ibt *t, struct ibt_qp *q, struct reorder *e,
		  struct serial24 psn, const uint8_t *bytes, size_t len);
/* The next one; NULL: none. */
struct ibt_held *reorder_first(const struct reorder *e);
/* Take the next one out; it goes back to the pool by reorder_give. */
struct ibt_held *reorder_take(struct reorder *e);
void reorder_give(struct ibt *t, struct ibt_held *k);
void reorder_drop(struct ibt *t, struct reorder *e);

#endif
