/* SPDX-License-Identifier: BSD-2-Clause */
#include "fabric/reach.h"

#include "fabric/data_end.h"
#include "fabric/gate.h"
#include "fabric/inside.h"
#include "fabric/move.h"
#include "fabric/port_info.h"
#include "hdr/bth.h"

enum { FIRST_DATA_QPN = 2, MTU_LEAST = 128, SLS = 16 };

/* The fields of a packet by which the ports on its way judge the packet. */
struct probe {
	uint16_t dlid;
	uint16_t pkey;
	uint8_t sl;
	uint32_t mtu; /* bytes */
};

/* Would the port `out` send the packet, which came in at `in` (NULL: begins at
 * `out`), over its link?  False also if the port at the other end is ARMED.  A
 * real packet would pass the link and make that port ACTIVE; this function
 * leaves the port ARMED. */
static bool passes_link(const struct port *out, const struct port *in,
			const struct probe *p)
{
	return out->peer && out->state == STATE_ACTIVE &&
	       out->peer->state == STATE_ACTIVE &&
	       gate_has_vl(out, gate_vl(out, in, p->sl)) &&
	       p->mtu <= port_info_mtu(out) && gate_lets_out(out, p->pkey);
}

/* Returns the port by which a switch would forward the packet; NULL: none. */
static const struct port *next_port(const struct port *in,
				    const struct probe *p)
{
	const struct node *node = in->node;
	const struct port *out;

	if (!gate_lets_in(in, p->pkey) || p->dlid == port_info_lid(node->ports))
		return NULL;
	out = move_egress(node, p->dlid);
	return out && out->number ? out : NULL;
}

static bool takes_packet(const struct port *port, const struct probe *p)
{
	return port_info_has_lid(port, p->dlid) && gate_fits(port, p->pkey);
}

/* Returns the adapter's port at which the packet arrives; NULL: it is dropped
 * on its way. */
static const struct port *follow_packet(const struct port *from,
					const struct probe *p)
{
	const struct port *in = NULL, *out = from;

	if (from->state != STATE_ACTIVE || !gate_has(from, p->pkey))
		return NULL;
	if (port_info_has_lid(from, p->dlid))
		return takes_packet(from, p) ? from : NULL;
	for (int hops = 0; out && hops < HOPS_MAX; hops++) {
		if (!passes_link(out, in, p))
			return NULL;
		in = out->peer;
		if (!node_is_switch(in->node))
			return takes_packet(in, p) ? in : NULL;
		out = next_port(in, p);
	}
	return NULL;
}

/* Returns a bit for each index of the P_Key table of `peer` by which packets go
 * back to `from`. */
static uint64_t pkeys_back(const struct port *from, const struct port *peer,
			   const struct probe *there, uint16_t slid)
{
	struct probe back = *there;
	uint64_t pkeys = 0;

	back.dlid = slid;
	for (int i = 0; i < PORT_PKEYS; i++) {
		back.pkey = peer->pkeys[i];
		if (bth_is_same_partition(back.pkey, there->pkey) &&
		    follow_packet(peer, &back) == from)
			pkeys |= UINT64_C(1) << i;
	}
	return pkeys;
}

static uint8_t path_mask(const struct port *port)
{
	return (uint8_t)((1u << port_info_lmc(port)) - 1);
}

/* Returns the P_Key at an index; 0: there is none. */
static uint16_t pkey_at(const struct port *port, uint16_t index)
{
	return index < PORT_PKEYS ? port->pkeys[index] : 0;
}

/* Has each of the two ports the GID that its packets name as their SGID?  A
 * subnet manager may have changed the prefix of the GIDs. */
static bool has_gids(const struct port *own, const struct port *port,
		     const struct reach *r)
{
	return !r->has_grh || (port_info_has_gid(own, r->sgid) &&
			       port_info_has_gid(port, r->dgid));
}

struct data_end *reach_find(const struct data_end *from, const struct reach *r,
			    struct reach_peer *peer)
{
	const struct port *own = from->port, *port;
	const struct probe there = {.dlid = r->dlid,
				    .pkey = pkey_at(own, r->pkey_index),
				    .sl = r->sl,
				    .mtu = (uint32_t)MTU_LEAST << r->mtu % 8};

	if (r->dest_qpn < FIRST_DATA_QPN || r->sl >= SLS || !r->dlid ||
	    r->dlid >= MLID_FIRST || !port_info_lid(own))
		return NULL;
	port = follow_packet(own, &there);
	if (!port || !has_gids(own, port, r))
		return NULL;
	peer->slid = (uint16_t)(port_info_lid(own) |
				(r->path_bits & path_mask(own)));
	peer->port = port->number;
	peer->path_mask = path_mask(port);
	peer->path_bits = (uint8_t)(r->dlid & peer->path_mask);
	peer->pkeys = pkeys_back(own, port, &there, peer->slid);
	return peer->pkeys ? data_end_find(port, r->dest_qpn >> DATA_REST_BITS)
			   : NULL;
}

uint32_t reach_changes(const struct fabric *f)
{
	return f->changes;
}
