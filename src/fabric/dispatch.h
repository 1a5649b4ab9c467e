/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A packet at its destination: to the node's own agent (subnet or performance
 * management), or to a program's agent at that port.
 */
#ifndef FABRIC_DISPATCH_H
#define FABRIC_DISPATCH_H

#include "fabric/inside.h"

/* Takes ownership of the packet, which is at a port of its destination. */
void dispatch_packet(struct packet *p);

#endif
