/* SPDX-License-Identifier: BSD-2-Clause */
#include "fabric/gid.h"

#include <string.h>

#include "fabric/inside.h"
#include "fabric/port_info.h"
#include "hdr/bytes.h"

/* Sets *index to the place of the GID in the port's table.  False: the port
 * does not have the GID. */
static bool find_index(const struct port *port, const uint8_t gid[16],
		       uint32_t *index)
{
	uint64_t guid = bytes_get64(gid + 8);
	uint8_t own[16];

	port_info_gid(port, guid, own);
	if (!port->guids || !guid || memcmp(own, gid, 16) != 0)
		return false;
	for (*index = 0; *index < PORT_GUIDS; ++*index)
		if (port->guids[*index] == guid)
			return true;
	return false;
}

uint32_t gid_index(const struct port *port, const uint8_t gid[16])
{
	uint32_t index;

	return find_index(port, gid, &index) ? index : 0;
}

/* Returns the port of the node that has the GID; NULL: there is none, or the
 * node is a switch. */
static struct port *find_port(struct node *node, const uint8_t gid[16],
			      uint32_t *index)
{
	for (int i = 1; !node_is_switch(node) && i <= node->port_count; i++)
		if (find_index(&node->ports[i], gid, index))
			return &node->ports[i];
	return NULL;
}

bool gid_find(struct fabric *f, const uint8_t gid[16], struct gid_place *place)
{
	for (uint32_t i = 0; i < f->node_count; i++) {
		struct port *port = find_port(&f->nodes[i], gid, &place->index);

		if (!port)
			continue;
		place->node = port->node;
		place->port = port->number;
		place->lid = port_info_lid(port);
		return true;
	}
	return false;
}

/* Returns the port of the node that has the LID; NULL: there is none, or the
 * node is a switch. */
static const struct port *port_of_lid(const struct node *node, uint16_t lid)
{
	for (int i = 1; !node_is_switch(node) && i <= node->port_count; i++)
		if (port_info_has_lid(&node->ports[i], lid))
			return &node->ports[i];
	return NULL;
}

/* Returns the port of an adapter or router that has the LID; NULL: there is
 * none. */
static const struct port *find_lid(const struct fabric *f, uint16_t lid)
{
	const struct port *port = NULL;

	for (uint32_t i = 0; lid && !port && i < f->node_count; i++)
		port = port_of_lid(&f->nodes[i], lid);
	return port;
}

bool gid_of_lid(struct fabric *f, uint16_t lid, uint8_t gid[16])
{
	const struct port *port = find_lid(f, lid);

	if (port)
		port_info_gid(port, port_guid(port, 0), gid);
	return port;
}

bool gid_has_lid(struct fabric *f, const uint8_t gid[16], uint16_t lid)
{
	struct gid_place place;

	return lid && gid_find(f, gid, &place) &&
	       port_info_has_lid(&place.node->ports[place.port], lid);
}

bool gid_has_both_lids(struct fabric *f, uint16_t a, uint16_t b)
{
	const struct port *port = find_lid(f, a);

	return port && port_info_has_lid(port, b);
}
