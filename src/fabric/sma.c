/* SPDX-License-Identifier: BSD-2-Clause */
#include "fabric/sma.h"

#include <string.h>

#include "fabric/mkey.h"
#include "fabric/port_info.h"
#include "fabric/sma_tables.h"
#include "fabric/trap.h"
#include "hdr/bytes.h"

enum {
	ATTR_NODE_DESCRIPTION = 0x10,
	ATTR_NODE_INFO = 0x11,
	ATTR_SWITCH_INFO = 0x12,
	ATTR_GUID_INFO = 0x14,
	ATTR_PORT_INFO = 0x15,
	ATTR_PKEY_TABLE = 0x16,
	ATTR_SLVL = 0x17,
	ATTR_VLARB = 0x18,
	ATTR_LFT = 0x19,
	ATTR_MFT = 0x1b,
	AT_DATA = 64,
	DATA_BYTES = 64,
};

static uint16_t node_description(struct sma_call *c)
{
	if (c->is_set)
		return STATUS_METHOD;
	memset(c->data, 0, DATA_BYTES);
	memcpy(c->data, c->node->description, strlen(c->node->description));
	return 0;
}

/* IBTA 14.2.5.3. */
static uint16_t node_info(struct sma_call *c)
{
	const struct node *node = c->node;
	uint8_t *d = c->data;

	if (c->is_set)
		return STATUS_METHOD;
	memset(d, 0, DATA_BYTES);
	d[0] = d[1] = 1; /* BaseVersion, ClassVersion */
	d[2] = node->type;
	d[3] = node->port_count;
	bytes_put64(d + 4, node->system_guid);
	bytes_put64(d + 12, node->guid);
	bytes_put64(d + 20, port_guid(port_managed(c->in), 0));
	bytes_put16(d + 28, PORT_PKEYS);
	bytes_put16(d + 30, node->device);
	bytes_put32(d + 32, 0xa1); /* Revision */
	d[36] = c->in->number;
	bytes_put24(d + 37, node->vendor);
	return 0;
}

static uint16_t set_switch_info(struct sma_call *c)
{
	uint8_t *s = c->node->switch_info;

	if (bytes_get16(c->data + 6) >= LFT_CAP)
		return STATUS_VALUE;
	memcpy(s + 6, c->data + 6, 2); /* LinearFDBTop */
	memcpy(s + 8, c->data + 8, 3); /* default ports */
	/* LifeTimeValue; a Set with 1 in PortStateChange clears that bit */
	s[11] = (uint8_t)((c->data[11] & 0xf8) |
			  (c->data[11] & 0x04 ? 0 : s[11] & 0x04) |
			  (s[11] & 0x03));
	memcpy(s + 18, c->data + 18, 2); /* MulticastFDBTop */
	return 0;
}

static uint16_t switch_info(struct sma_call *c)
{
	uint16_t status = 0;

	if (!node_is_switch(c->node))
		return STATUS_ATTRIBUTE;
	if (c->is_set)
		status = set_switch_info(c);
	memset(c->data, 0, DATA_BYTES);
	memcpy(c->data, c->node->switch_info, SWITCH_INFO_BYTES);
	return status;
}

static uint16_t port_info(struct sma_call *c)
{
	uint32_t number = c->modifier & 0xff;
	uint16_t status = 0;
	struct port *port;

	if (number > c->node->port_count)
		return STATUS_VALUE;
	/* port 0 of an adapter or router stands for the ingress port */
	port = number || node_is_switch(c->node) ? &c->node->ports[number]
						 : c->in;
	if (c->is_set)
		status = port_info_set(port, c->data);
	port_info_write(port, c->in->number, c->data);
	if (c->hides_mkey)
		memset(c->data, 0, 8);
	return status;
}

static uint16_t run_attribute(struct sma_call *c, uint16_t attribute)
{
	switch (attribute) {
	case ATTR_NODE_DESCRIPTION:
		return node_description(c);
	case ATTR_NODE_INFO:
		return node_info(c);
	case ATTR_SWITCH_INFO:
		return switch_info(c);
	case ATTR_GUID_INFO:
		return sma_tables_guids(c);
	case ATTR_PORT_INFO:
		return port_info(c);
	case ATTR_PKEY_TABLE:
		return sma_tables_pkeys(c);
	case ATTR_SLVL:
		return sma_tables_slvl(c);
	case ATTR_VLARB:
		return sma_tables_vlarb(c);
	case ATTR_LFT:
		return sma_tables_lft(c);
	case ATTR_MFT:
		return sma_tables_mft(c);
	default:
		return STATUS_ATTRIBUTE;
	}
}

/* Returns the port whose PortInfo a request reads or sets, if it is a port of
 * an adapter or router, and not the port by which the request has come; else
 * NULL. */
static struct port *named_port(const struct sma_call *c, uint16_t attribute)
{
	uint32_t number = c->modifier & 0xff;

	if (attribute != ATTR_PORT_INFO || node_is_switch(c->node) || !number ||
	    number > c->node->port_count || number == c->in->number)
		return NULL;
	return &c->node->ports[number];
}

/* Compares the request's M_Key with that of the port by which the request has
 * come, and with that of named_port: each port of an adapter or router has an
 * M_Key, and the ports may be in different subnets.  All ports of a switch have
 * the M_Key of port 0.  The port that refuses the request begins a trap
 * (trap_mkey). */
static enum mkey_verdict check_mkey(const struct sma_call *c,
				    const struct packet *p, uint16_t attribute)
{
	struct port *ports[] = {port_managed(c->in), named_port(c, attribute)};
	enum mkey_verdict verdict = MKEY_FITS;

	for (size_t i = 0; i < 2 && ports[i] && verdict != MKEY_REFUSED; i++) {
		verdict = mkey_check(ports[i], bytes_get64(p->mad + 24),
				     p->mad[3] == METHOD_GET);
		if (verdict == MKEY_REFUSED)
			trap_mkey(ports[i], p);
	}
	return verdict;
}

enum sma_verdict sma_request(struct packet *p, uint16_t *status)
{
	uint8_t method = p->mad[3];
	uint16_t attribute = bytes_get16(p->mad + 16);
	struct sma_call c = {
		.node = p->at->node,
		.in = p->in ? p->in : p->at,
		.modifier = bytes_get32(p->mad + 20),
		.data = p->mad + AT_DATA,
		.is_set = method == METHOD_SET,
	};
	enum mkey_verdict key;

	if (method == METHOD_TRAP || attribute == ATTR_SM_INFO ||
	    (method != METHOD_GET && method != METHOD_SET &&
	     method != METHOD_TRAP_REPRESS))
		return SMA_NOT_MINE;
	if (p->mad[2] != 1) { /* ClassVersion */
		*status = STATUS_BAD_VERSION;
		/* TrapRepress gets no answer */
		return method == METHOD_TRAP_REPRESS ? SMA_SILENT : SMA_ANSWER;
	}
	key = check_mkey(&c, p, attribute);
	if (key == MKEY_REFUSED)
		return SMA_SILENT;
	if (method == METHOD_TRAP_REPRESS) {
		trap_repress(port_managed(c.in), bytes_get64(p->mad + 8));
		return SMA_SILENT;
	}
	c.hides_mkey = key == MKEY_HIDDEN;
	*status = run_attribute(&c, attribute);
	/* A Set that is refused changes nothing.  Every other Set is counted,
	 * whether or not it has changed anything. */
	c.node->fabric->changes += c.is_set && !*status;
	return SMA_ANSWER;
}
