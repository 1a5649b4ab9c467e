/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The subnet management agent of each node: the M_Key check (IBTA 14.2.4), and
 * the attributes (IBTA 14.2.5) NodeDescription, NodeInfo, SwitchInfo, GUIDInfo,
 * PortInfo, P_KeyTable, SLtoVLMappingTable, VLArbitrationTable, and the two
 * forwarding tables.
 */
#ifndef FABRIC_SMA_H
#define FABRIC_SMA_H

#include "fabric/inside.h"

enum sma_verdict {
	SMA_NOT_MINE, /* the request is for a program's agent, if there is one
		       */
	SMA_ANSWER,   /* the packet's MAD has the answer's attribute */
	SMA_SILENT,   /* the request gets no answer */
};

/* Executes a request to the agent of the packet's node.  After SMA_ANSWER, the
 * packet's MAD has the answer's attribute, and *status is the answer's status
 * (IBTA 13.4.7). */
enum sma_verdict sma_request(struct packet *p, uint16_t *status);

#endif
