/* SPDX-License-Identifier: BSD-2-Clause */
#include "fabric/trap.h"

#include <stdlib.h>
#include <string.h>

#include "fabric/port_info.h"
#include "hdr/bth.h"
#include "hdr/bytes.h"
#include "util/bits.h"

enum trap_number {
	TRAP_LINK_STATE = 128,
	TRAP_CAPABILITIES = 144,
	TRAP_BAD_MKEY = 256,
	TRAP_BAD_PKEY = 257,
	TRAP_BAD_QKEY = 258,
	TRAP_SWITCH_PKEY = 259,
};

enum {
	GENERIC = 0x80,
	TYPE_URGENT = 1,
	TYPE_SECURITY = 2,
	TYPE_INFORMATIONAL = 4,
	/* How long a port waits for TrapRepress before it sends the trap again:
	 * longer than the SubnetTimeOut of a small subnet. */
	REPEAT_MS = 2000,
	SENDS_MAX = 16, /* the SM may end before it sends TrapRepress */
	AT_DATA = 64,
	NOTICE_BYTES = 64,
	RETURN_PATH = 192, /* in an SMP with a directed route */
	NOTICE_PATH = 30,  /* bytes of a path in the notice of trap 256 */
	PATH_IS_CUT = 0x40,
	IS_DIRECTED = 0x80,
	/* DataDetails of trap 259: which fields are valid. */
	VALID_LIDS = 3,
	VALID_PKEY = 1 << 2,
	VALID_SL = 1 << 3,
	VALID_QP1 = 1 << 4,
	VALID_QP2 = 1 << 5,
	VALID_GIDS = 3 << 6,
};

/* A trap that a port sends again until the SM represses the trap, but at most
 * SENDS_MAX times.  A trap that has ended stays on the port's list, by which
 * begin_trap limits how often a trap begins. */
struct trap {
	struct list of_port; /* in port.traps */
	struct list sending; /* in fabric.traps, until the trap has ended */
	struct port *port;   /* the sender */
	enum trap_number number;
	uint32_t sent;		      /* how often the trap was sent */
	uint64_t transaction_id;      /* 0: the trap has never begun */
	uint64_t begun_ms;	      /* when the trap began last */
	uint64_t next_ms;	      /* when the trap is sent next */
	uint8_t notice[NOTICE_BYTES]; /* the attribute Notice */
};

#define OF_PORT(l) CONTAINER_OF(l, struct trap, of_port)
#define SENDING(l) CONTAINER_OF(l, struct trap, sending)

static void send_trap(const struct trap *trap)
{
	struct port *port = trap->port;
	struct packet *p = packet_new(port->node->fabric, port);

	if (!p)
		return;
	p->slid = port_info_lid(port);
	p->dlid = port_info_sm_lid(port);
	p->mad[0] = p->mad[2] = 1;
	p->mad[1] = CLASS_SUBN_LID;
	p->mad[3] = METHOD_TRAP;
	bytes_put64(p->mad + 8, trap->transaction_id);
	bytes_put16(p->mad + 16, ATTR_NOTICE);
	memcpy(p->mad + 24, port->info, 8); /* M_Key */
	memcpy(p->mad + AT_DATA, trap->notice, NOTICE_BYTES);
	packet_inject(p);
}

static struct trap *find_trap(struct port *port, enum trap_number number)
{
	struct trap *trap;

	list_for_each (l, &port->traps)
		if (OF_PORT(l)->number == number)
			return OF_PORT(l);
	trap = calloc(1, sizeof(*trap));
	if (!trap)
		return NULL;
	trap->port = port;
	trap->number = number;
	list_init(&trap->sending);
	list_init(&trap->of_port);
	list_push_tail(&port->traps, &trap->of_port);
	return trap;
}

/* Begins a trap of the port.  The caller writes the DataDetails of the trap.
 * Returns NULL if no trap begins: the port has no LID or knows no SM, no memory
 * is left, or the number is that of a security trap that began less than
 * REPEAT_MS ago.  Without this limit a host that repeats a violation could
 * flood the SM with traps. */
static struct trap *begin_trap(struct port *port, enum trap_number number,
			       uint8_t type)
{
	struct fabric *f = port->node->fabric;
	struct trap *trap;

	if (!port_info_sm_lid(port) || !port_info_lid(port))
		return NULL;
	trap = find_trap(port, number);
	if (!trap || (type == TYPE_SECURITY && trap->transaction_id &&
		      f->now_ms < trap->begun_ms + REPEAT_MS))
		return NULL;
	memset(trap->notice, 0, sizeof(trap->notice));
	trap->notice[0] = GENERIC | type;
	trap->notice[3] = port->node->type;
	bytes_put16(trap->notice + 4, (uint16_t)number);
	bytes_put16(trap->notice + 6, port_info_lid(port));
	trap->transaction_id = ++f->trap_id;
	trap->sent = 0;
	trap->begun_ms = trap->next_ms = f->now_ms;
	if (!list_is_linked(&trap->sending))
		list_push_tail(&f->traps, &trap->sending);
	f->trap_due_ms = f->now_ms;
	return trap;
}

void trap_link_changed(struct node *node)
{
	struct port *port = &node->ports[0];
	struct trap *trap = begin_trap(port, TRAP_LINK_STATE, TYPE_URGENT);

	if (trap)
		bytes_put16(trap->notice + 10, port_info_lid(port));
}

void trap_capabilities(struct port *port)
{
	struct trap *trap =
		begin_trap(port, TRAP_CAPABILITIES, TYPE_INFORMATIONAL);

	if (!trap)
		return;
	bytes_put16(trap->notice + 12, port_info_lid(port));
	bytes_put32(trap->notice + 16, port_info_capabilities(port));
}

/* Writes the return path of p, an SMP with a directed route, into the notice.
 */
static void put_route(uint8_t *notice, const struct packet *p)
{
	uint8_t hops = p->mad[7] & 0x3f;

	notice[33] = (uint8_t)(IS_DIRECTED |
			       (hops > NOTICE_PATH ? PATH_IS_CUT : 0) | hops);
	memcpy(notice + 34, p->mad + RETURN_PATH, NOTICE_PATH);
}

void trap_mkey(struct port *port, const struct packet *p)
{
	struct trap *trap = begin_trap(port, TRAP_BAD_MKEY, TYPE_SECURITY);
	bool is_directed = p->mad[1] == CLASS_SUBN_DIRECTED;

	if (!trap)
		return;
	bytes_put16(trap->notice + 12, p->slid);
	if (is_directed)
		memcpy(trap->notice + 14, p->mad + 32, 2); /* DrSLID */
	trap->notice[16] = p->mad[3];
	memcpy(trap->notice + 18, p->mad + 16, 2); /* attribute */
	memcpy(trap->notice + 20, p->mad + 20, 4); /* its modifier */
	memcpy(trap->notice + 24, p->mad + 24, 8); /* M_Key */
	if (is_directed)
		put_route(trap->notice, p);
}

/* Begins the trap of a port that has received a packet with a wrong key. */
static void begin_key_trap(struct port *port, enum trap_number number,
			   const struct packet *p, uint32_t key)
{
	struct trap *trap = begin_trap(port, number, TYPE_SECURITY);

	if (!trap)
		return;
	bytes_put16(trap->notice + 12, p->slid);
	bytes_put16(trap->notice + 14, p->dlid);
	bytes_put32(trap->notice + 16, key);
	bytes_put32(trap->notice + 20, (uint32_t)p->sl << 28 | p->src_qp);
	bytes_put32(trap->notice + 24, p->dest_qp);
	if (!p->has_grh)
		return;
	memcpy(trap->notice + 28, p->sgid, 16);
	memcpy(trap->notice + 44, p->dgid, 16);
}

void trap_pkey(struct port *port, const struct packet *p)
{
	begin_key_trap(port, TRAP_BAD_PKEY, p,
		       p->pkey ? p->pkey : BTH_DEFAULT_PKEY);
}

void trap_qkey(struct port *port, const struct packet *p)
{
	begin_key_trap(port, TRAP_BAD_QKEY, p, p->qkey);
}

void trap_switch_pkey(struct port *at, const struct packet *p)
{
	struct port *port = &at->node->ports[0];
	struct trap *trap = begin_trap(port, TRAP_SWITCH_PKEY, TYPE_SECURITY);
	uint16_t valid = VALID_LIDS | VALID_PKEY | VALID_SL | VALID_QP2;

	if (!trap)
		return;
	if (p->src_qp)
		valid |= VALID_QP1;
	if (p->has_grh) {
		valid |= VALID_GIDS;
		memcpy(trap->notice + 26, p->sgid, 16);
		memcpy(trap->notice + 42, p->dgid, 16);
	}
	bytes_put16(trap->notice + 10, valid);
	bytes_put16(trap->notice + 12, p->slid);
	bytes_put16(trap->notice + 14, p->dlid);
	bytes_put16(trap->notice + 16, p->pkey);
	bytes_put32(trap->notice + 18, (uint32_t)p->sl << 28 | p->src_qp);
	bytes_put32(trap->notice + 22, p->dest_qp);
	bytes_put16(trap->notice + 58, port_info_lid(port));
	trap->notice[60] = at->number;
}

void trap_repress(struct port *port, uint64_t transaction_id)
{
	/* The upper halves may differ: a subnet manager may send TrapRepress
	 * with the tid_high of its own agent there. */
	list_for_each (l, &port->traps)
		if ((uint32_t)transaction_id ==
		    (uint32_t)OF_PORT(l)->transaction_id)
			list_remove(&OF_PORT(l)->sending);
}

/* Sends a trap if it is due, or ends the trap after SENDS_MAX times. */
static void tick_trap(struct trap *trap, uint64_t now_ms)
{
	if (trap->next_ms > now_ms)
		return;
	if (trap->sent++ == SENDS_MAX) {
		list_remove(&trap->sending);
		return;
	}
	trap->next_ms = now_ms + REPEAT_MS;
	send_trap(trap);
}

void trap_tick(struct fabric *f)
{
	if (list_is_empty(&f->traps) || f->now_ms < f->trap_due_ms)
		return;
	f->trap_due_ms = FABRIC_NEVER;
	list_for_each_safe (l, &f->traps) {
		const struct trap *trap = SENDING(l);

		tick_trap(SENDING(l), f->now_ms);
		if (list_is_linked(&trap->sending) &&
		    trap->next_ms < f->trap_due_ms)
			f->trap_due_ms = trap->next_ms;
	}
}

uint64_t trap_deadline(const struct fabric *f)
{
	return list_is_empty(&f->traps) ? FABRIC_NEVER : f->trap_due_ms;
}

void trap_free_all(struct port *port)
{
	struct list *l;

	while ((l = list_pop_head(&port->traps))) {
		list_remove(&OF_PORT(l)->sending);
		free(OF_PORT(l));
	}
}
