/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Trap 128 (IBTA 14.3.9): a switch tells the subnet manager that the state of a
 * link has changed.  The switch repeats the trap until the manager represses it
 * by TrapRepress, or until it was sent often enough.
 */
#ifndef FABRIC_TRAP_H
#define FABRIC_TRAP_H

#include "fabric/inside.h"

/* Begins trap 128 of a switch, if the switch knows the LID of a subnet manager.
 * trap_tick sends it. */
void trap_link_changed(struct node *node);
/* Executes TrapRepress: ends the trap if it has this transaction ID. */
void trap_repress(struct node *node, uint64_t transaction_id);
/* Sends the traps that are due at f->now_ms. */
void trap_tick(struct fabric *f);
/* Returns when the next trap is due, in ms; FABRIC_NEVER: there is none. */
uint64_t trap_deadline(const struct fabric *f);

#endif
