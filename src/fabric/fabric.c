/* SPDX-License-Identifier: BSD-2-Clause */
#include "fabric/fabric.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "fabric/data_end.h"
#include "fabric/end.h"
#include "fabric/inside.h"
#include "fabric/lane.h"
#include "fabric/move.h"
#include "fabric/port_info.h"
#include "fabric/trap.h"
#include "hdr/bytes.h"
#include "util/bits.h"
#include "util/check.h"

static int make_tables(struct node *node)
{
	uint32_t rows = node_is_switch(node) ? node->port_count + 1u : 1;

	for (uint32_t i = 0; i <= node->port_count; i++) {
		struct port *port = &node->ports[i];

		port->slvl = calloc(rows, sizeof(*port->slvl));
		if (!port->slvl)
			return -ENOMEM;
		for (uint32_t row = 0; row < rows; row++)
			port_info_first_slvl(port->slvl[row]);
		if (node_is_switch(node))
			continue;
		port->guids = calloc(PORT_GUIDS, sizeof(*port->guids));
		if (!port->guids)
			return -ENOMEM;
	}
	if (!node_is_switch(node))
		return 0;
	node->mft_columns = node->port_count / MFT_MASK_PORTS + 1u;
	node->lft = malloc(LFT_CAP);
	node->mft =
		calloc((size_t)MFT_CAP * node->mft_columns, sizeof(*node->mft));
	if (!node->lft || !node->mft)
		return -ENOMEM;
	memset(node->lft, 0xff, LFT_CAP);
	return 0;
}

/* Sets SwitchInfo of a switch that no subnet manager has configured (IBTA
 * 14.2.5.4). */
static void first_switch_info(struct node *node, bool has_enhanced_port0)
{
	uint8_t *s = node->switch_info;

	bytes_put16(s, LFT_CAP);
	bytes_put16(s + 4, MFT_CAP);
	s[11] = PORT_INFO_LIFE_ENDLESS << 3; /* LifeTimeValue */
	bytes_put16(s + 14, PORT_PKEYS);     /* PartitionEnforcementCap */
	s[16] = (uint8_t)(0xf0 | (has_enhanced_port0 ? 0x08 : 0));
}

static int make_node(struct fabric *f, const struct net *net, uint32_t index)
{
	const struct net_node *from = &net->nodes[index];
	struct node *node = &f->nodes[index];

	node->fabric = f;
	memcpy(node->id, from->id, sizeof(node->id));
	memcpy(node->description, from->description, sizeof(node->description));
	node->guid = from->guid;
	node->system_guid = from->system_guid;
	node->vendor = from->vendor;
	node->device = from->device;
	node->type = from->type;
	node->port_count = from->ports;
	node->ports = &f->ports[from->first];
	if (node_is_switch(node))
		first_switch_info(node, from->has_enhanced_port0);
	for (uint32_t i = 0; i <= from->ports; i++) {
		const struct net_port *cable = &net->ports[from->first + i];
		struct port *port = &node->ports[i];

		port->node = node;
		port->number = (uint8_t)i;
		list_init(&port->ends);
		list_init(&port->data_ends);
		list_init(&port->traps);
		if (cable->peer != NET_NO_PORT)
			port->peer = &f->ports[cable->peer];
		port_info_first(port, cable);
	}
	return make_tables(node);
}

/* Sets the first GUID of each port of an adapter or router: that of the file,
 * or one that net_parse has derived from the node's GUID. */
static void first_guids(struct fabric *f, const struct net *net)
{
	for (uint32_t i = 0; i < net->port_count; i++)
		if (f->ports[i].guids)
			f->ports[i].guids[0] = net->ports[i].guid;
}

static void raise_links(struct fabric *f, const struct net *net)
{
	for (uint32_t i = 0; i < net->port_count; i++) {
		struct port *port = &f->ports[i];

		if (port->peer && port->state == STATE_DOWN) {
			port_info_negotiate(port);
			link_set_phys(port, PHYS_POLLING);
		}
		if (!port->number && node_is_switch(port->node)) {
			port->state = STATE_ACTIVE;
			port->phys_state = PHYS_LINK_UP;
		}
	}
}

struct fabric *fabric_new(const struct net *net)
{
	struct fabric *f = calloc(1, sizeof(*f));
	int err = 0;

	if (!f)
		return NULL;
	list_init(&f->ends);
	list_init(&f->ready);
	list_init(&f->moving);
	list_init(&f->traps);
	list_init(&f->data.all);
	list_init(&f->data.ready);
	list_init(&f->data.resumed);
	list_init(&f->data.waiting);
	list_init(&f->data.woken);
	list_init(&f->data.tired);
	list_init(&f->data.lent);
	f->data.buffer_blocks = LANE_BLOCKS;
	f->data.turn_blocks = LANE_TURN;
	f->node_count = net->node_count;
	f->nodes = calloc(net->node_count, sizeof(*f->nodes));
	f->ports = calloc(net->port_count, sizeof(*f->ports));
	if (!f->nodes || !f->ports) {
		f->node_count = 0;
		fabric_free(f);
		return NULL;
	}
	for (uint32_t i = 0; i < net->node_count && !err; i++)
		err = make_node(f, net, i);
	if (err) {
		fabric_free(f);
		return NULL;
	}
	first_guids(f, net);
	raise_links(f, net);
	return f;
}

static void free_node(struct node *node)
{
	for (uint32_t i = 0; node->ports && i <= node->port_count; i++) {
		trap_free_all(&node->ports[i]);
		free(node->ports[i].lanes);
		free(node->ports[i].slvl);
		free(node->ports[i].guids);
	}
	free(node->lft);
	free(node->mft);
}

_Static_assert(offsetof(struct packet, list) == 0,
	       "fabric_free and move_all cast a list of packets to a packet");

void fabric_free(struct fabric *f)
{
	struct list *l;

	end_free_all(f);
	while ((l = list_pop_head(&f->moving)))
		packet_drop((struct packet *)l);
	lane_flush_all(f);
	data_end_free_all(f);
	packet_memory_clear(&f->memory.packets);
	packet_memory_clear(&f->memory.payloads);
	for (uint32_t i = 0; i < f->node_count; i++)
		free_node(&f->nodes[i]);
	free(f->nodes);
	free(f->ports);
	free(f);
}

static void move_all(struct fabric *f)
{
	struct port *port;
	struct list *l;

	do {
		while ((l = list_pop_head(&f->moving))) {
			f->moving_count--;
			move_packet((struct packet *)l);
		}
		port = lane_woken(f);
		if (port)
			move_waiting(port);
	} while (port);
}

void fabric_watch(struct fabric *f,
		  void (*seen)(void *arg, const uint8_t *p, size_t bytes),
		  void *arg)
{
	f->seen = seen;
	f->seen_arg = arg;
}

void fabric_watch_ports(struct fabric *f,
			void (*changed)(void *arg, const struct node *node,
					uint32_t port, uint32_t changes),
			void *arg)
{
	f->changed = changed;
	f->changed_arg = arg;
}

void fabric_set_time(struct fabric *f, uint64_t now_ms)
{
	f->now_ms = now_ms;
}

/* Packets move before the timers run, so that a response that is already in the
 * fabric prevents the timeout of its request. */
void fabric_turn(struct fabric *f, uint64_t now_ms)
{
	f->now_ms = now_ms;
	lane_begin(f);
	move_all(f);
	end_tick(f);
	data_end_tick(f);
	move_all(f);
	lane_tick(f);
	trap_tick(f);
	move_all(f);
	deadlock_tick(f);
}

uint64_t fabric_deadline(const struct fabric *f)
{
	uint64_t ends = end_deadline(f), traps = trap_deadline(f);
	uint64_t data = bits_min_u64(data_end_deadline(f), lane_deadline(f));

	if (f->moving_count)
		return f->now_ms;
	data = bits_min_u64(data, deadlock_deadline(f));
	return bits_min_u64(data, bits_min_u64(ends, traps));
}

struct node *fabric_node(struct fabric *f, uint32_t index)
{
	return index < f->node_count ? &f->nodes[index] : NULL;
}

struct node *fabric_find(struct fabric *f, const char *name)
{
	for (uint32_t i = 0; i < f->node_count; i++)
		if (!strcmp(f->nodes[i].id, name))
			return &f->nodes[i];
	for (uint32_t i = 0; i < f->node_count; i++)
		if (!strcmp(f->nodes[i].description, name))
			return &f->nodes[i];
	return NULL;
}

struct node *fabric_take(struct fabric *f, const char *name)
{
	struct node *node = *name ? fabric_find(f, name) : NULL;

	for (uint32_t i = 0; !*name && i < f->node_count && !node; i++)
		if (f->nodes[i].type == NET_CA && !f->nodes[i].held)
			node = &f->nodes[i];
	if (node)
		node->held++;
	return node;
}

void fabric_release(struct node *node)
{
	CHECK(node->held > 0);
	node->held--;
}

uint32_t fabric_groups(const struct node *node)
{
	return node->held;
}

const char *fabric_id(const struct node *node)
{
	return node->id;
}

const char *fabric_description(const struct node *node)
{
	return node->description;
}

void fabric_show_ca(const struct node *node, struct fabric_ca *ca)
{
	memset(ca, 0, sizeof(*ca));
	ca->node_guid = node->guid;
	ca->system_guid = node->system_guid;
	ca->vendor = node->vendor;
	ca->device = node->device;
	ca->node_type = node->type;
	ca->first_port = node_is_switch(node) ? 0 : 1;
	ca->last_port = node_is_switch(node) ? 0 : node->port_count;
}

int fabric_show_port(const struct node *node, uint32_t number,
		     struct fabric_port *shown)
{
	const struct port *port;

	if (!node_has_port(node, number))
		return -ENODEV;
	port = &node->ports[number];
	memset(shown, 0, sizeof(*shown));
	for (uint32_t i = 0; i < FABRIC_GUIDS; i++)
		shown->guids[i] = port_guid(port, i);
	memcpy(shown->pkeys, port->pkeys, sizeof(port->pkeys));
	shown->state = port->state;
	shown->phys_state = port->phys_state;
	port_info_show(port, shown);
	return 0;
}
