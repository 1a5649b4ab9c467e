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
 * (packet_inject), puts it into a queue of its port (lane_try), delivers it at
 * this node (dispatch_packet), or drops it.  Takes ownership of the packet.
 */
void move_packet(struct packet *p);
/* Moves the packets that wait to leave by a port over its link, as many as may
 * leave (lane_next).  If the link is not active, discards them. */
void move_waiting(struct port *out);
/* Returns the port by which a switch sends packets to a unicast LID, port 0 for
 * the switch itself; NULL: the forwarding table has no entry for the LID. */
struct port *move_egress(const struct node *node, uint16_t dlid);

#endif
