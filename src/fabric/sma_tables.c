/* SPDX-License-Identifier: BSD-2-Clause */
#include "fabric/sma_tables.h"

#include <string.h>

#include "fabric/data_end.h"
#include "hdr/bytes.h"

enum {
	GUIDS_A_BLOCK = 8,
	PKEYS_A_BLOCK = 32,
};

/* IBTA 14.2.5.5: entry 0 is the port's own GUID, which Set does not change. */
uint16_t sma_tables_guids(struct sma_call *c)
{
	struct port *port = port_managed(c->in);
	uint32_t first = c->modifier * GUIDS_A_BLOCK;
	bool has_changed = false;

	if (c->modifier >= PORT_GUIDS / GUIDS_A_BLOCK ||
	    (c->modifier && !port->guids))
		return STATUS_VALUE;
	for (uint32_t i = 0; c->is_set && port->guids && i < GUIDS_A_BLOCK;
	     i++) {
		uint64_t guid = bytes_get64(c->data + 8 * i);

		if (!(first + i) || port->guids[first + i] == guid)
			continue;
		port->guids[first + i] = guid;
		has_changed = true;
	}
	if (has_changed)
		data_wake_port(port, DATA_GIDS);
	for (uint32_t i = 0; i < GUIDS_A_BLOCK; i++)
		bytes_put64(c->data + 8 * i, port_guid(port, first + i));
	return 0;
}

/* IBTA 14.2.5.7: the upper half of the modifier is the port of a switch, the
 * lower half the block. */
uint16_t sma_tables_pkeys(struct sma_call *c)
{
	uint32_t block = c->modifier & 0xffff, number = c->modifier >> 16;
	struct port *port = port_managed(c->in);
	bool has_changed = false;
	uint16_t *keys;

	if (node_is_switch(c->node)) {
		if (number > c->node->port_count)
			return STATUS_VALUE;
		port = &c->node->ports[number];
	}
	if (block >= PORT_PKEYS / PKEYS_A_BLOCK)
		return STATUS_VALUE;
	keys = port->pkeys + block * PKEYS_A_BLOCK;
	for (int i = 0; c->is_set && i < PKEYS_A_BLOCK; i++) {
		uint16_t key = bytes_get16(c->data + 2 * i);

		has_changed |= keys[i] != key;
		keys[i] = key;
	}
	if (has_changed)
		data_wake_port(port, DATA_PKEYS);
	for (int i = 0; i < PKEYS_A_BLOCK; i++)
		bytes_put16(c->data + 2 * i, keys[i]);
	return 0;
}

/* IBTA 14.2.5.8: bits 15 to 8 of the modifier are the ingress port of a
 * switch, bits 7 to 0 its egress port. */
uint16_t sma_tables_slvl(struct sma_call *c)
{
	uint32_t in = c->modifier >> 8 & 0xff, out = c->modifier & 0xff;
	uint8_t *row;

	if (c->modifier >> 16)
		return STATUS_ATTRIBUTE; /* optimized tables are not offered */
	if (!node_is_switch(c->node))
		row = c->in->slvl[0];
	else if (in <= c->node->port_count && out <= c->node->port_count)
		row = c->node->ports[out].slvl[in];
	else
		return STATUS_VALUE;
	if (c->is_set)
		memcpy(row, c->data, SLVL_BYTES);
	memset(c->data, 0, SMA_TABLES_BLOCK);
	memcpy(c->data, row, SLVL_BYTES);
	return 0;
}

/* IBTA 14.2.5.9: the upper half of the modifier is the block, the lower half
 * the port. */
uint16_t sma_tables_vlarb(struct sma_call *c)
{
	uint32_t block = c->modifier >> 16, number = c->modifier & 0xffff;
	struct port *port = c->in;

	if (node_is_switch(c->node) && number <= c->node->port_count)
		port = &c->node->ports[number];
	else if (node_is_switch(c->node))
		return STATUS_VALUE;
	if (block < 1 || block > VLARB_BLOCKS)
		return STATUS_VALUE;
	if (c->is_set)
		memcpy(port->vlarb[block - 1], c->data, VLARB_BLOCK);
	memcpy(c->data, port->vlarb[block - 1], VLARB_BLOCK);
	return 0;
}

/* IBTA 14.2.5.10: the modifier is the block of 64 LIDs. */
uint16_t sma_tables_lft(struct sma_call *c)
{
	uint8_t *block;

	if (!node_is_switch(c->node))
		return STATUS_ATTRIBUTE;
	if (c->modifier >= LFT_CAP / SMA_TABLES_BLOCK)
		return STATUS_VALUE;
	block = c->node->lft + (size_t)c->modifier * SMA_TABLES_BLOCK;
	if (c->is_set)
		memcpy(block, c->data, SMA_TABLES_BLOCK);
	memcpy(c->data, block, SMA_TABLES_BLOCK);
	return 0;
}

/* IBTA 14.2.5.12: bits 31 to 28 of the modifier are the column of 16 ports,
 * bits 8 to 0 the block of 32 MLIDs. */
uint16_t sma_tables_mft(struct sma_call *c)
{
	uint32_t column = c->modifier >> 28, block = c->modifier & 0x1ff;
	const struct node *node = c->node;

	if (!node_is_switch(node))
		return STATUS_ATTRIBUTE;
	if (column >= node->mft_columns || block >= MFT_CAP / MFT_BLOCK)
		return STATUS_VALUE;
	for (uint32_t i = 0; i < MFT_BLOCK; i++) {
		uint16_t *mask =
			node->mft + column +
			(size_t)(block * MFT_BLOCK + i) * node->mft_columns;

		if (c->is_set)
			*mask = bytes_get16(c->data + 2 * i);
		bytes_put16(c->data + 2 * i, *mask);
	}
	return 0;
}
