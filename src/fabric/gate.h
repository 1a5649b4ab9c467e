/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The checks that a port makes on the packets of data ends: partitions (IBTA
 * 10.9.3, 10.9.6), VLs by SL (IBTA 7.6.6) and the MTU of the link.  The port
 * counts the packets that it refuses, and its switch begins trap 259 for those
 * that it refuses because of the P_Key (trap.h).
 */
#ifndef FABRIC_GATE_H
#define FABRIC_GATE_H

#include "fabric/inside.h"

/* Returns the VL to which `out` maps an SL, for packets from the ingress port
 * `in`; NULL: for packets that begin at `out`.  An adapter's port has no
 * ingress ports, so its table has one row. */
uint8_t gate_vl(const struct port *out, const struct port *in, uint8_t sl);
/* Judges a data end's packet that leaves by the port `out`, and sets p->vl to
 * the port's VL for the packet's SL.  Returns whether the packet passes; the
 * caller drops a packet that does not. */
bool gate_leave(struct port *out, struct packet *p);
/* Judges a data end's packet that has come in at the port `in`.  Returns
 * whether the packet passes; the caller drops a packet that does not. */
bool gate_enter(struct port *in, const struct packet *p);
/* Does the port `out` have this data VL? */
bool gate_has_vl(const struct port *out, uint8_t vl);
/* Does the port `out` let packets with this P_Key leave?  Only a switch's port
 * with PartitionEnforcementOutbound refuses any. */
bool gate_lets_out(const struct port *out, uint16_t pkey);
/* Does the port `in` let packets with this P_Key come in?  Only a switch's port
 * with PartitionEnforcementInbound refuses any. */
bool gate_lets_in(const struct port *in, uint16_t pkey);
/* Does the port's table have a P_Key that fits pkey: the two are equal except
 * for the membership bit, and at least one is a full member? */
bool gate_fits(const struct port *port, uint16_t pkey);
/* Returns the index of the entry of the port's table that fits pkey, a full
 * member before a limited one; 0 also if no entry fits.  pkey 0 stands for the
 * default P_Key. */
uint16_t gate_index(const struct port *port, uint16_t pkey);
/* Does the port's table have exactly this P_Key? */
bool gate_has(const struct port *port, uint16_t pkey);

#endif
