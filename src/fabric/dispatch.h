/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Gives a packet that has reached its destination to the node's own agent
 * (subnet or performance management), to a program's agent at the port, or to a
 * data end.
 */
#ifndef FABRIC_DISPATCH_H
#define FABRIC_DISPATCH_H

#include "fabric/inside.h"

/* Delivers p, which is at its destination port.  If the node's agent answers
 * the request in p, or the fabric answers as a host's kernel does where no
 * agent takes the request, p becomes the packet of the answer.  Takes ownership
 * of p. */
void dispatch_packet(struct packet *p);

#endif
