/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Traps of switches to the subnet manager (IBTA 14.3.9): trap 128, the state of
 * a link has changed.  A trap is sent again until the manager represses it.
 */
#ifndef FABRIC_TRAP_H
#define FABRIC_TRAP_H

#include "fabric/inside.h"

/* A switch sends trap 128, if it knows the LID of a manager. */
void trap_link_changed(struct node *node);
/* TrapRepress: ends the trap with that transaction ID. */
void trap_repress(struct node *node, uint64_t transaction_id);
/* Sends the traps that are due. */
void trap_tick(struct fabric *f);
/* When the next trap is due, or FABRIC_NEVER. */
uint64_t trap_deadline(const struct fabric *f);

#endif
