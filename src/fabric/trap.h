/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Traps (IBTA 13.4.8, 14.2.5.1): a port tells the subnet manager that something
 * has happened.  The port repeats a trap until the subnet manager sends
 * TrapRepress, but not without limit.  A port has at most one trap of each
 * number at a time.  A port begins a trap of each of the numbers 256 to 259 at
 * most once in 2 s.  No trap begins at a port that has no LID, or knows no LID
 * of a subnet manager.  Traps 129 to 131 report errors of a physical link,
 * which an emulated link does not have, and trap 145 reports a new
 * SystemImageGUID, which never changes here.
 */
#ifndef FABRIC_TRAP_H
#define FABRIC_TRAP_H

#include "fabric/inside.h"

/* Begins trap 128 of a switch: the state of a link has changed.  A link that
 * changes again begins another trap in place of the first. */
void trap_link_changed(struct node *node);
/* Begins trap 144 of `port`: the port's CapabilityMask has changed. */
void trap_capabilities(struct port *port);
/* Begins trap 256: `port` refuses the SMP p, because the M_Key of p is wrong.
 */
void trap_mkey(struct port *port, const struct packet *p);
/* Begins trap 257: the adapter's port refuses p, because no P_Key in the port's
 * table fits that of p (gate_fits). */
void trap_pkey(struct port *port, const struct packet *p);
/* Begins trap 258: a queue pair at `port` refuses p, because the Q_Key of p is
 * wrong. */
void trap_qkey(struct port *port, const struct packet *p);
/* Begins trap 259: the port `at` of a switch refuses p, because no P_Key in the
 * port's table fits that of p. */
void trap_switch_pkey(struct port *at, const struct packet *p);

/* Executes TrapRepress at `port`: ends the port's trap whose transaction ID has
 * the same lower half as `transaction_id`. */
void trap_repress(struct port *port, uint64_t transaction_id);
/* Sends the traps that are due at f->now_ms. */
void trap_tick(struct fabric *f);
/* Returns the time at which the next trap is due, in ms; FABRIC_NEVER: no port
 * has a trap to send. */
uint64_t trap_deadline(const struct fabric *f);
/* Frees the traps of a port. */
void trap_free_all(struct port *port);

#endif
