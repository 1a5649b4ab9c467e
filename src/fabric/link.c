/* SPDX-License-Identifier: BSD-2-Clause */
/* The states of a port and of its link; see fabric/inside.h. */
#include "fabric/data_end.h"
#include "fabric/inside.h"
#include "fabric/lane.h"
#include "fabric/trap.h"

void link_set_state(struct port *port, uint8_t state)
{
	struct node *node = port->node;

	if (port->state == state)
		return;
	node->fabric->changes++;
	if (state == STATE_DOWN)
		port->counters.link_downed++;
	if (node_is_switch(node) &&
	    (state == STATE_DOWN || port->state == STATE_DOWN)) {
		node->switch_info[11] |= 0x04; /* PortStateChange */
		port->state = state;
		trap_link_changed(node);
	}
	port->state = state;
	lane_wake(port);
	if (port->peer)
		lane_wake(port->peer);
	data_wake_port(port, DATA_STATE);
}

static void change_link(struct port *port, uint8_t phys_state, uint8_t state)
{
	port->phys_state = phys_state;
	link_set_state(port, state);
}

void link_set_phys(struct port *port, uint8_t phys_state)
{
	struct port *peer = port->peer;

	if (peer && peer->phys_state == PHYS_LINK_UP)
		change_link(peer, PHYS_POLLING, STATE_DOWN);
	change_link(port, phys_state, STATE_DOWN);
	if (!peer || phys_state != PHYS_POLLING ||
	    peer->phys_state != PHYS_POLLING)
		return;
	change_link(port, PHYS_LINK_UP, STATE_INIT);
	change_link(peer, PHYS_LINK_UP, STATE_INIT);
}
