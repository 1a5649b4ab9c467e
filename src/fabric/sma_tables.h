/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Attributes of the subnet management agent that are tables, cut into blocks
 * of 64 bytes.  Each function carries out one Get or Set: it reads the block
 * from call.data if it is a Set, writes the block there, and returns a status
 * of IBTA 13.4.7 (0: done).
 */
#ifndef FABRIC_SMA_TABLES_H
#define FABRIC_SMA_TABLES_H

#include "fabric/inside.h"

struct sma_call {
	struct node *node;
	struct port *in;   /* ingress port, or the port of a local request */
	uint32_t modifier; /* AttributeModifier */
	uint8_t *data;	   /* 64 bytes */
	bool is_set;
	bool hides_mkey; /* the requester has not shown the M_Key */
};

uint16_t sma_tables_guids(struct sma_call *c);
uint16_t sma_tables_pkeys(struct sma_call *c);
uint16_t sma_tables_slvl(struct sma_call *c);
uint16_t sma_tables_vlarb(struct sma_call *c);
uint16_t sma_tables_lft(struct sma_call *c);
uint16_t sma_tables_mft(struct sma_call *c);

#endif
