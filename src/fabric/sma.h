/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The subnet management agent of each node (IBTA 14.2.5): NodeDescription,
 * NodeInfo, SwitchInfo, GUIDInfo, PortInfo, P_KeyTable, SLtoVLMappingTable,
 * VLArbitrationTable, the forwarding tables, and the M_Key check.
 */
#ifndef FABRIC_SMA_H
#define FABRIC_SMA_H

#include "fabric/inside.h"

enum sma_verdict {
	SMA_NOT_MINE, /* a program's agent may take the request */
	SMA_ANSWER,   /* the packet holds the answer's data */
	SMA_SILENT,   /* the request gets no answer */
};

/* Carries out a request to the agent of the packet's node.  With SMA_ANSWER the
 * packet's MAD holds the attribute, and *status the status of the answer. */
enum sma_verdict sma_request(struct packet *p, uint16_t *status);

#endif
