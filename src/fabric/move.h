/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Moves packets by directed route (IBTA 14.2.2), or by LID through the
 * forwarding tables of the switches (IBTA 18.2.4.3).
 */
#ifndef FABRIC_MOVE_H
#define FABRIC_MOVE_H

#include "fabric/inside.h"

/*
 * Moves a packet by one hop: injects the packet at the next port
 * (packet_inject, packet_inject_first), puts it into a queue of the egress port
 * (lane_try), delivers it at this node (dispatch_packet), or drops it.  A
 * switch does so with a copy of a multicast packet for each port of the group
 * except the ingress port.  Takes ownership of the packet.
 */
void move_packet(struct packet *p);
/* Moves packets from the queues of a port over the port's link, as many as may
 * leave (lane_next).  If the link is not active, discards the packets of the
 * queues instead. */
void move_waiting(struct port *out);
/* Returns the port by which a switch sends packets to a unicast LID, port 0 for
 * the switch itself; NULL: the forwarding table has no entry for the LID, or
 * the entry names no port of the switch. */
struct port *move_egress(const struct node *node, uint16_t dlid);

#endif
