/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The attributes of the subnet management agent that are tables in blocks of 64
 * bytes (SLtoVLMappingTable: 8 bytes).  Each function executes one Get or Set
 * of a block.  A Set takes the block's new value from sma_call.data.  After a
 * Get or a Set that succeeds, sma_call.data has the block's value.  Each
 * function returns the status of the answer (IBTA 13.4.7); 0: success.
 */
#ifndef FABRIC_SMA_TABLES_H
#define FABRIC_SMA_TABLES_H

#include "fabric/inside.h"

#define SMA_TABLES_BLOCK 64 /* bytes of a block */

/* A Get or a Set. */
struct sma_call {
	struct node *node; /* the node that executes the request */
	struct port *in;   /* ingress port, or the port of a local request */
	uint32_t modifier; /* AttributeModifier */
	uint8_t *data;	   /* the attribute: 64 bytes of the MAD */
	bool is_set;	   /* Set; false: Get */
	bool hides_mkey;   /* PortInfo in the answer has M_Key 0 */
};

/* Executes a Get or a Set of GUIDInfo. */
uint16_t sma_tables_guids(struct sma_call *c);
/* Executes a Get or a Set of P_KeyTable. */
uint16_t sma_tables_pkeys(struct sma_call *c);
/* Executes a Get or a Set of SLtoVLMappingTable. */
uint16_t sma_tables_slvl(struct sma_call *c);
/* Executes a Get or a Set of VLArbitrationTable. */
uint16_t sma_tables_vlarb(struct sma_call *c);
/* Executes a Get or a Set of LinearForwardingTable, which only a switch has. */
uint16_t sma_tables_lft(struct sma_call *c);
/* Executes a Get or a Set of MulticastForwardingTable, which only a switch has.
 */
uint16_t sma_tables_mft(struct sma_call *c);

#endif
