/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Trap 128 (IBTA 14.3.9): a switch tells the subnet manager that the state of a
 * link has changed.  The switch repeats the trap until the subnet manager sends
 * TrapRepress, but not without limit.
 */
#ifndef FABRIC_TRAP_H
#define FABRIC_TRAP_H

#include "fabric/inside.h"

/* Begins trap 128 of a switch, which trap_tick sends.  Does nothing if the
 * switch has no LID, or knows no LID of a subnet manager. */
void trap_link_changed(struct node *node);
/* Executes TrapRepress: ends the trap if the lower halves of its transaction ID
 * and of `transaction_id` are equal. */
void trap_repress(struct node *node, uint64_t transaction_id);
/* Sends the traps that are due at f->now_ms. */
void trap_tick(struct fabric *f);
/* Returns the time at which the next trap is due, in ms; FABRIC_NEVER: no node
 * has a trap to send. */
uint64_t trap_deadline(const struct fabric *f);

#endif
