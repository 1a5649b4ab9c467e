/* SPDX-License-Identifier: BSD-2-Clause */
#include "fabric_host.h"

#include "fabric_route.h"

#include "fabric/umad_header.h"

#include <errno.h>
#include <string.h>

enum {
	PKEY_DEFAULT = 0xffff,
	PKEY_FULL = 0x8000,
	MESSAGE = FABRIC_UMAD_BYTES + MAD_BYTES,
};

_Static_assert(sizeof(((struct fabric_port *)0)->pkeys) ==
		       FABRIC_HOST_PKEYS * sizeof(uint16_t),
	       "the table of struct fabric_port");

/* Returns the host's port at this place; NULL: the place is not an open port of
 * this host. */
static struct host_port *port_at(struct cm_host *h,
				 const struct gid_place *place)
{
	struct host_port *p;

	if (place->node != h->node || place->port > FABRIC_PROTO_PORTS)
		return NULL;
	p = &h->ports[place->port - 1];
	return p->end ? p : NULL;
}

struct host_port *fabric_host_port(struct cm_host *h, const uint8_t gid[16],
				   struct gid_place *place)
{
	return gid_find(h->cm->fabric, gid, place) ? port_at(h, place) : NULL;
}

/* Returns the index of this P_Key in a port's table; FABRIC_HOST_PKEYS: the
 * table does not have it. */
static uint16_t find_pkey(const struct fabric_port *port, uint16_t pkey)
{
	uint16_t i = 0;

	while (i < FABRIC_HOST_PKEYS && port->pkeys[i] != pkey)
		i++;
	return i;
}

uint16_t fabric_host_pkey_index(const struct fabric_port *port, uint16_t pkey)
{
	uint16_t full = (pkey ? pkey : PKEY_DEFAULT) | PKEY_FULL;
	uint16_t i = find_pkey(port, full);

	return i < FABRIC_HOST_PKEYS ? i : find_pkey(port, full & ~PKEY_FULL);
}

int fabric_host_ask(struct cm_host *h, const uint8_t gid[16],
		    const uint8_t mad[MAD_BYTES], uint32_t try_ms)
{
	struct umad to = {.qpn = FABRIC_HOST_QP1, .qkey = MAD_QP1_QKEY};
	struct gid_place place;
	struct host_port *p = fabric_host_port(h, gid, &place);
	uint8_t message[MESSAGE];
	struct fabric_port port;

	if (!p)
		return -ENETDOWN;
	fabric_show_port(h->node, p->number, &port);
	if (port.state != STATE_ACTIVE)
		return -ENETDOWN;
	if (!port.sm_lid || p->sa_agent < 0)
		return -ETIMEDOUT;
	to.agent = (uint32_t)p->sa_agent;
	to.lid = port.sm_lid;
	to.sl = port.sm_sl;
	to.pkey_index = fabric_host_pkey_index(&port, PKEY_DEFAULT);
	if (to.pkey_index == FABRIC_HOST_PKEYS)
		to.pkey_index = 0; /* as the kernel does */
	to.timeout_ms = try_ms;
	to.retries = FABRIC_ROUTE_RETRIES;
	umad_header_write(&to, MAD_BYTES, message);
	memcpy(message + FABRIC_UMAD_BYTES, mad, MAD_BYTES);
	return fabric_send(p->end, message, sizeof(message));
}
