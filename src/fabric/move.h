/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The way of a packet: by directed route (IBTA 14.2.2) or by LID through the
 * switches' forwarding tables (IBTA 18.2.4.3), one hop for each call.
 */
#ifndef FABRIC_MOVE_H
#define FABRIC_MOVE_H

#include "fabric/inside.h"

/*
 * Moves a packet by one hop: gives it back to the fabric at the next port,
 * delivers it to the agent or the program at this port, or drops it.  Takes
 * ownership of the packet.
 */
void move_packet(struct packet *p);
/* Looks up the egress port of a unicast LID at a switch; NULL: there is no
 * entry. */
struct port *move_egress(const struct node *node, uint16_t dlid);

#endif
