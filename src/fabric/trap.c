/* SPDX-License-Identifier: BSD-2-Clause */
#include "fabric/trap.h"

#include <string.h>

#include "fabric/port_info.h"
#include "hdr/bytes.h"

enum {
	TRAP_LINK_STATE = 128,
	REPEAT_MS = 2000, /* exceeds the SubnetTimeOut of a small subnet */
	SENDS_MAX = 16,	  /* the SM may end before it sends TrapRepress */
	AT_DATA = 64,
	NOTICE_BYTES = 64,
};

static void send_trap(struct node *node)
{
	struct port *port = &node->ports[0];
	struct packet *p = packet_new(node->fabric, port);

	if (!p)
		return;
	p->slid = port_info_lid(port);
	p->dlid = port_info_sm_lid(port);
	p->mad[0] = p->mad[2] = 1;
	p->mad[1] = CLASS_SUBN_LID;
	p->mad[3] = METHOD_TRAP;
	bytes_put64(p->mad + 8, node->trap.transaction_id);
	bytes_put16(p->mad + 16, ATTR_NOTICE);
	memcpy(p->mad + 24, port->info, 8); /* M_Key */
	memcpy(p->mad + AT_DATA, node->trap.notice, NOTICE_BYTES);
	packet_inject(p);
}

static void end_trap(struct node *node)
{
	if (node->trap.next_ms)
		node->fabric->trap_count--;
	node->trap.next_ms = 0;
}

void trap_link_changed(struct node *node)
{
	struct port *port = &node->ports[0];
	struct fabric *f = node->fabric;
	struct trap *trap = &node->trap;

	if (!port_info_sm_lid(port) || !port_info_lid(port))
		return;
	memset(trap->notice, 0, sizeof(trap->notice));
	trap->notice[0] = 0x81; /* generic, urgent */
	trap->notice[3] = node->type;
	bytes_put16(trap->notice + 4, TRAP_LINK_STATE);
	bytes_put16(trap->notice + 6, port_info_lid(port));
	bytes_put16(trap->notice + 10, port_info_lid(port)); /* LIDADDR */
	trap->transaction_id++;
	trap->sent = 0;
	if (!trap->next_ms)
		f->trap_count++;
	trap->next_ms = f->now_ms ? f->now_ms : 1;
	f->trap_due_ms = f->now_ms;
}

void trap_repress(struct node *node, uint64_t transaction_id)
{
	/* The upper halves may differ: a subnet manager may send TrapRepress
	 * with the tid_high of its own agent there. */
	if ((uint32_t)transaction_id == (uint32_t)node->trap.transaction_id)
		end_trap(node);
}

/* Sends the trap of one node if it is due. */
static void tick_node(struct node *node, uint64_t now_ms)
{
	struct trap *trap = &node->trap;

	if (!trap->next_ms || trap->next_ms > now_ms)
		return;
	if (trap->sent++ == SENDS_MAX) {
		end_trap(node);
		return;
	}
	trap->next_ms = now_ms + REPEAT_MS;
	send_trap(node);
}

void trap_tick(struct fabric *f)
{
	if (!f->trap_count || f->now_ms < f->trap_due_ms)
		return;
	f->trap_due_ms = FABRIC_NEVER;
	for (uint32_t i = 0; i < f->node_count; i++) {
		const struct trap *trap = &f->nodes[i].trap;

		tick_node(&f->nodes[i], f->now_ms);
		if (trap->next_ms && trap->next_ms < f->trap_due_ms)
			f->trap_due_ms = trap->next_ms;
	}
}

uint64_t trap_deadline(const struct fabric *f)
{
	return f->trap_count ? f->trap_due_ms : FABRIC_NEVER;
}
