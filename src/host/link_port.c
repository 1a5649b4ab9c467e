/* SPDX-License-Identifier: BSD-2-Clause */
#include "host/link_port.h"

#include <errno.h>
#include <string.h>

#define PORT_DOWN   1 /* PortState (IBTA 14.2.5.6) */
#define PHYS_POLLS  2 /* PortPhysicalState: Polling */
#define ALL_CHANGES (DATA_DEATH - 1)

int link_port_hear(struct link_port *port, uint32_t changes)
{
	if (changes & ~(uint32_t)ALL_CHANGES)
		return -EPROTO;
	port->heard |= changes;
	return 0;
}

bool link_port_ask(struct link_port *port)
{
	if (!port->heard)
		return false;
	port->asked = port->heard;
	port->heard = 0;
	return true;
}

void link_port_show(struct link_port *port, struct engine *engine,
		    const struct fabric_port *now)
{
	struct hca_port values = {.lid = now->lid, .lmc = now->lmc};

	_Static_assert(sizeof(values.pkeys) == sizeof(now->pkeys),
		       "both have the whole table");
	memcpy(values.pkeys, now->pkeys, sizeof(values.pkeys));
	port->now = *now;
	port->shown |= port->asked;
	port->asked = 0;
	engine_port(engine, port->device, port->number, &values);
}

void link_port_take_down(struct link_port *port)
{
	port->now.state = PORT_DOWN;
	port->now.phys_state = PHYS_POLLS;
	port->shown |= DATA_STATE;
}

uint32_t link_port_take_changes(struct link_port *port)
{
	uint32_t shown = port->shown;

	port->shown = 0;
	return shown;
}
