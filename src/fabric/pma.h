/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The performance management agent of each node (IBTA 16.1): ClassPortInfo,
 * PortCounters, PortCountersExtended, PortVLOpPackets, PortVLOpData and
 * PortVLXmitWaitCounters.  The data and packet counters of PortCounters and
 * PortCountersExtended count management datagrams and the packets of data ends.
 * PortVLOpPackets and PortVLOpData count only the packets of data ends.
 * PortXmitWait and PortVLXmitWaitCounters count the ticks (1 ms) in which such
 * packets waited and none left.
 */
#ifndef FABRIC_PMA_H
#define FABRIC_PMA_H

#include "fabric/sma.h"

/* Executes a request to the agent of the packet's node.  Returns SMA_ANSWER:
 * the packet's MAD has the answer's attribute, and *status the answer's status
 * (IBTA 13.4.7); or SMA_NOT_MINE: the request is neither Get nor Set. */
enum sma_verdict pma_request(struct packet *p, uint16_t *status);

#endif
