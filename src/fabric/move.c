/* SPDX-License-Identifier: BSD-2-Clause */
#include "fabric/move.h"

#include "fabric/dispatch.h"
#include "fabric/frame.h"
#include "fabric/gate.h"
#include "fabric/lane.h"
#include "fabric/port_info.h"
#include "hdr/bytes.h"
#include "hdr/grh.h"

/* Offsets in a directed-route SMP (IBTA 14.2.1.2). */
enum {
	AT_STATUS = 4,
	AT_HOP_POINTER = 6,
	AT_HOP_COUNT = 7,
	AT_DR_SLID = 32,
	AT_DR_DLID = 34,
	AT_INITIAL_PATH = 128,
	AT_RETURN_PATH = 192,
};

static bool is_smp(const struct packet *p)
{
	return p->dest_qp == 0;
}

static void move_by_lid(struct packet *p);

/* Returns the number of a packet's 32-bit words from the LRH to the ICRC, which
 * PortXmitData and PortRcvData count. */
static uint32_t words_of(const struct packet *p)
{
	if (p->payload)
		return p->payload->bytes / 4;
	return PACKET_WORDS + (p->has_grh ? GRH_BYTES / 4 : 0);
}

static void count_tx(struct port *port, const struct packet *p)
{
	struct counters *c = &port->counters;

	c->tx_packets++;
	c->tx_words += words_of(p);
	if (p->dlid >= MLID_FIRST && p->dlid != LID_PERMISSIVE)
		c->tx_multicast++;
	else
		c->tx_unicast++;
}

static void count_rx(struct port *port, const struct packet *p)
{
	struct counters *c = &port->counters;

	c->rx_packets++;
	c->rx_words += words_of(p);
	if (p->dlid >= MLID_FIRST && p->dlid != LID_PERMISSIVE)
		c->rx_multicast++;
	else
		c->rx_unicast++;
}

static void show_packet(const struct fabric *f, const struct packet *p)
{
	uint8_t bytes[FRAME_MAX];

	f->seen(f->seen_arg, bytes, frame_write(p, bytes));
}

/* Does the link of `out` carry SMPs (for_smp) or other packets?  Before the
 * link is active, only SMPs pass it. */
static bool is_link_up(const struct port *out, bool for_smp)
{
	const struct port *peer = out->peer;

	return peer && out->state >= (for_smp ? STATE_INIT : STATE_ACTIVE) &&
	       peer->state >= (for_smp ? STATE_INIT : STATE_ARMED);
}

/* Moves a packet over the link of `out`.  The first packet that is no SMP makes
 * the ARMED port that receives the packet ACTIVE (IBTA 7.2.7).  False: the far
 * end has dropped the packet. */
static bool pass_link(struct packet *p, struct port *out)
{
	struct port *peer = out->peer;

	count_tx(out, p);
	if (out->node->fabric->seen && p->hops == 1)
		show_packet(out->node->fabric, p);
	count_rx(peer, p);
	if (!is_smp(p) && peer->state == STATE_ARMED)
		link_set_state(peer, STATE_ACTIVE);
	if (p->payload) {
		packet_depart(p);
		lane_enter(peer, p);
	}
	p->at = p->in = peer;
	if (!p->payload || gate_enter(peer, p))
		return true;
	packet_drop(p);
	return false;
}

/*
 * Moves a packet of a data end over the link of `out`, or queues the packet.  A
 * unicast packet that need not wait makes its next hop before all other packets
 * move, so that it keeps no room in a switch's input buffer meanwhile.  A
 * multicast packet makes its next hop after the packets that are already in
 * fabric.moving.
 */
static void cross_data(struct packet *p, struct port *out)
{
	if (!gate_leave(out, p)) {
		packet_drop(p);
		return;
	}
	switch (lane_try(out, p)) {
	case LANE_WAITS:
		return;
	case LANE_LOST:
		out->counters.tx_discards++;
		packet_drop(p);
		return;
	case LANE_PASSES:
		break;
	}
	if (!pass_link(p, out))
		return;
	if (p->dlid < MLID_FIRST)
		packet_inject_first(p);
	else
		packet_inject(p);
}

static void cross_link(struct packet *p, struct port *out)
{
	if (!is_link_up(out, is_smp(p)) || ++p->hops > HOPS_MAX) {
		out->counters.tx_discards++;
		packet_drop(p);
	} else if (p->payload) {
		cross_data(p, out);
	} else if (pass_link(p, out)) {
		packet_inject(p);
	}
}

void move_waiting(struct port *out)
{
	struct packet *p;

	if (!is_link_up(out, false)) {
		lane_flush(out);
		return;
	}
	while ((p = lane_next(out)))
		if (pass_link(p, out))
			packet_inject(p);
}

static struct port *port_at(const struct node *node, uint8_t number)
{
	return number && number <= node->port_count ? &node->ports[number]
						    : NULL;
}

/* Sends an SMP out of the port `number`, which the SMP's path names.  An
 * adapter does not forward from one of its ports to another. */
static void leave_by(struct packet *p, uint8_t number)
{
	struct port *out = port_at(p->at->node, number);

	if (!out || (!node_is_switch(p->at->node) && out != p->at))
		packet_drop(p);
	else
		cross_link(p, out);
}

/* Delivers an SMP at the end of its directed route.  If DrDLID is a LID, the
 * SMP goes on to that LID; an adapter does not forward it. */
static void finish_outbound(struct packet *p)
{
	uint16_t dlid = bytes_get16(p->mad + AT_DR_DLID);

	if (dlid == LID_PERMISSIVE) {
		dispatch_packet(p);
	} else if (node_is_switch(p->at->node)) {
		p->slid = port_info_lid(port_managed(p->at));
		p->dlid = dlid;
		move_by_lid(p);
	} else {
		packet_drop(p);
	}
}

/* Moves an SMP on its way from the requester (IBTA 14.2.2.2). */
static void move_outbound(struct packet *p)
{
	uint8_t *mad = p->mad, count = mad[AT_HOP_COUNT];
	uint8_t hop = mad[AT_HOP_POINTER];

	if (p->in ? !hop : hop != 0) {
		packet_drop(p);
		return;
	}
	if (p->in && hop <= count)
		mad[AT_RETURN_PATH + hop] = p->in->number;
	if (hop < count) {
		if (hop && !node_is_switch(p->at->node)) {
			packet_drop(p);
			return;
		}
		mad[AT_HOP_POINTER] = ++hop;
		leave_by(p, mad[AT_INITIAL_PATH + hop]);
	} else if (hop == count) {
		mad[AT_HOP_POINTER] = (uint8_t)(hop + 1);
		finish_outbound(p);
	} else {
		packet_drop(p);
	}
}

/* Delivers an SMP at the end of its directed route back.  If DrSLID is the LID
 * of the requester, the SMP goes on to the requester by LID. */
static void finish_return(struct packet *p)
{
	uint16_t slid = bytes_get16(p->mad + AT_DR_SLID);

	if (slid == LID_PERMISSIVE) {
		dispatch_packet(p);
		return;
	}
	p->slid = port_info_lid(port_managed(p->at));
	p->dlid = slid;
	move_by_lid(p);
}

/* Moves an SMP on its way back to the requester (IBTA 14.2.2.4).  Where the
 * directed route back begins, p->in is NULL, and HopPointer is taken as
 * HopCount + 1, since a program may leave HopPointer at HopCount. */
static void move_returning(struct packet *p)
{
	uint8_t *mad = p->mad, count = mad[AT_HOP_COUNT];
	uint8_t hop = mad[AT_HOP_POINTER];

	if (!p->in)
		hop = (uint8_t)(count + 1);
	if (hop > count + (p->in ? 0 : 1)) {
		packet_drop(p);
		return;
	}
	if (hop <= 1) {
		mad[AT_HOP_POINTER] = 0;
		finish_return(p);
		return;
	}
	if (p->in && !node_is_switch(p->at->node)) {
		packet_drop(p);
		return;
	}
	mad[AT_HOP_POINTER] = --hop;
	leave_by(p, mad[AT_RETURN_PATH + hop]);
}

struct port *move_egress(const struct node *node, uint16_t dlid)
{
	uint16_t top = bytes_get16(node->switch_info + 6); /* LinearFDBTop */
	uint8_t number;

	if (dlid >= LFT_CAP || dlid > top)
		return NULL;
	number = node->lft[dlid];
	return number <= node->port_count ? &node->ports[number] : NULL;
}

static bool is_in_group(const struct node *node, uint32_t row, uint32_t port)
{
	uint16_t mask =
		node->mft[row * node->mft_columns + port / MFT_MASK_PORTS];

	return mask >> port % MFT_MASK_PORTS & 1;
}

/* Sends a copy of a packet to each port of its group except the ingress port.
 */
static void move_multicast(struct packet *p)
{
	struct node *node = p->at->node;
	uint32_t row = (uint32_t)p->dlid - MLID_FIRST;

	for (uint32_t i = 0; row < MFT_CAP && i <= node->port_count; i++) {
		struct packet *copy;

		if (!is_in_group(node, row, i) || (p->in && i == p->in->number))
			continue;
		copy = packet_copy(p);
		if (!copy) {
			node->ports[i].counters.tx_discards++;
			continue;
		}
		if (i) {
			cross_link(copy, &node->ports[i]);
		} else {
			copy->at = &node->ports[0];
			dispatch_packet(copy);
		}
	}
	packet_drop(p);
}

static void move_in_switch(struct packet *p)
{
	struct node *node = p->at->node;
	struct port *out;

	if (p->dlid == LID_PERMISSIVE ||
	    p->dlid == port_info_lid(node->ports)) {
		dispatch_packet(p);
		return;
	}
	if (p->dlid >= MLID_FIRST) {
		move_multicast(p);
		return;
	}
	out = move_egress(node, p->dlid);
	if (!out) {
		p->at->counters.rx_relay_errors++;
		packet_drop(p);
	} else if (!out->number) {
		dispatch_packet(p);
	} else {
		cross_link(p, out);
	}
}

static void move_by_lid(struct packet *p)
{
	struct port *at = p->at;
	bool is_group = p->dlid >= MLID_FIRST && p->dlid != LID_PERMISSIVE;

	if (node_is_switch(at->node))
		move_in_switch(p);
	else if (!p->in && !port_info_has_lid(at, p->dlid))
		cross_link(p, at);
	else if (!p->in || is_group || p->dlid == LID_PERMISSIVE ||
		 port_info_has_lid(at, p->dlid))
		dispatch_packet(p);
	else
		packet_drop(p);
}

/* Is the packet at the node whose LID is its destination? */
static bool is_at_dlid(const struct packet *p)
{
	const struct port *at = port_managed(p->at);

	return node_is_switch(at->node) ? p->dlid == port_info_lid(at)
					: port_info_has_lid(at, p->dlid);
}

/* Is the directed route still ahead of an SMP that is moving by LID?  False:
 * the SMP has completed its directed route.  The route of a response is ahead
 * if DrDLID is a LID and HopPointer is not 0.  HopPointer is not compared with
 * HopCount + 1, since a program may leave HopPointer at HopCount. */
static bool is_before_route(const struct packet *p, bool is_returning)
{
	uint8_t hop = p->mad[AT_HOP_POINTER];

	if (is_returning)
		return hop &&
		       bytes_get16(p->mad + AT_DR_DLID) != LID_PERMISSIVE;
	return hop <= p->mad[AT_HOP_COUNT];
}

/*
 * An SMP whose DrSLID is the requester's LID may go by LID to the node where
 * its directed route begins.  An SMP whose DrDLID is a LID goes by LID from the
 * switch where its directed route ends (IBTA 14.2.2).  The answer takes the
 * same parts in the opposite order.
 */
static void move_directed(struct packet *p)
{
	const uint8_t *mad = p->mad;
	bool is_returning = bytes_get16(mad + AT_STATUS) & STATUS_DIRECTION;

	if (mad[AT_HOP_COUNT] >= HOPS_MAX) {
		packet_drop(p);
		return;
	}
	if (p->dlid != LID_PERMISSIVE) {
		if (!is_before_route(p, is_returning) || !is_at_dlid(p)) {
			move_by_lid(p);
			return;
		}
		p->slid = p->dlid = LID_PERMISSIVE;
		p->in = NULL;
	}
	if (is_returning)
		move_returning(p);
	else
		move_outbound(p);
}

void move_packet(struct packet *p)
{
	if (is_smp(p) && p->mad[1] == CLASS_SUBN_DIRECTED)
		move_directed(p);
	else
		move_by_lid(p);
}
