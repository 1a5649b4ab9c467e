/* SPDX-License-Identifier: BSD-2-Clause */
#include "fabric/data.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "fabric/data_end.h"
#include "fabric/gate.h"
#include "fabric/gid.h"
#include "fabric/lane.h"
#include "fabric/port_info.h"
#include "fabric/trap.h"
#include "hdr/bth.h"
#include "hdr/bytes.h"
#include "hdr/grh.h"
#include "hdr/lrh.h"
#include "util/bits.h"

enum {
	QPN_MULTICAST = 0xffffff,
	FIRST_DATA_QPN = 2,
	SERVICE_UD = 3,	     /* upper 3 bits of a UD opcode */
	AT_QKEY = BTH_BYTES, /* in the DETH */
	AT_SRC_QP = BTH_BYTES + 5,
	DETH_END = BTH_BYTES + 8,
	GID_MULTICAST = 0xff, /* first byte of a multicast GID */
	/* While data_ends.orphans is at least this number, no end is opened. */
	ORPHANS_MAX = 65536,
};

#define OF_READY(l)   CONTAINER_OF(l, struct data_end, ready)
#define OF_RESUMED(l) CONTAINER_OF(l, struct data_end, resumed)
#define OF_PORT(l)    CONTAINER_OF(l, struct data_end, of_port)
#define OF_LENT(l)    CONTAINER_OF(l, struct payload, lent)
#define OF_ORIGIN(l)  CONTAINER_OF(l, struct origin, list)

static bool has_number(const struct port *port, uint32_t number)
{
	list_for_each (l, &port->data_ends)
		if (OF_PORT(l)->number == number)
			return true;
	return false;
}

static bool is_number_taken(const struct node *node, uint32_t number)
{
	for (uint32_t i = 1; i <= node->port_count; i++)
		if (has_number(&node->ports[i], number))
			return true;
	return false;
}

static uint32_t free_number(const struct node *node)
{
	for (uint32_t n = 1; n <= DATA_NUMBER_MAX; n++)
		if (!is_number_taken(node, n))
			return n;
	return 0;
}

static struct data_end *make_end(struct port *port, uint32_t number,
				 void *owner)
{
	struct data_end *end = calloc(1, sizeof(*end));

	if (!end)
		return NULL;
	end->groups = calloc(DATA_GROUPS, sizeof(*end->groups));
	if (!end->groups) {
		free(end);
		return NULL;
	}
	end->port = port;
	end->owner = owner;
	end->number = number;
	list_init(&end->of_fabric);
	list_init(&end->of_port);
	list_init(&end->ready);
	list_init(&end->resumed);
	list_init(&end->inbox);
	list_init(&end->unsent);
	return end;
}

/* Adds an end to the fabric's and the port's lists.  number 0: all numbers of
 * the host are taken, and *err is -EMFILE. */
static struct data_end *add_end(struct port *port, uint32_t number, void *owner,
				int *err)
{
	struct fabric *f = port->node->fabric;
	struct data_end *end;

	*err = -EMFILE;
	if (!number || f->data.count == DATA_ENDS ||
	    f->data.orphans >= ORPHANS_MAX)
		return NULL;
	*err = -ENOMEM;
	end = make_end(port, number, owner);
	if (!end)
		return NULL;
	*err = 0;
	list_push_tail(&f->data.all, &end->of_fabric);
	list_push_tail(&end->port->data_ends, &end->of_port);
	f->data.count++;
	return end;
}

/* Is `port` the number of a port of an adapter or router?  Data ends attach
 * only at those. */
static bool is_host_port(const struct node *node, uint32_t port)
{
	return !node_is_switch(node) && port && port <= node->port_count;
}

struct data_end *data_open(struct node *node, uint32_t port, void *owner,
			   int *err)
{
	*err = -ENODEV;
	if (!is_host_port(node, port))
		return NULL;
	return add_end(&node->ports[port], free_number(node), owner, err);
}

struct data_end *data_open_beside(const struct data_end *end, uint32_t port,
				  void *owner, int *err)
{
	struct node *node = end->port->node;

	*err = -ENODEV;
	if (!is_host_port(node, port))
		return NULL;
	*err = -EBUSY;
	if (has_number(&node->ports[port], end->number))
		return NULL;
	return add_end(&node->ports[port], end->number, owner, err);
}

void data_close(struct data_end *end)
{
	struct fabric *f = end->port->node->fabric;
	struct list *l;

	while ((l = list_pop_head(&end->unsent))) {
		OF_ORIGIN(l)->end = NULL;
		OF_ORIGIN(l)->is_orphan = true;
		f->data.orphans++;
	}
	data_deafen(end);
	list_remove(&end->of_fabric);
	list_remove(&end->of_port);
	list_remove(&end->resumed);
	f->data.count--;
	free(end->groups);
	free(end->senders);
	free(end);
}

void data_deafen(struct data_end *end)
{
	struct list *l;

	while ((l = list_pop_head(&end->inbox)))
		packet_drop((struct packet *)l);
	end->is_deaf = true;
	list_remove(&end->ready);
}

void *data_owner(const struct data_end *end)
{
	return end->owner;
}

struct node *data_node(const struct data_end *end)
{
	return end->port->node;
}

uint32_t data_number(const struct data_end *end)
{
	return end->number;
}

int data_join(struct data_end *end, const uint8_t gid[16])
{
	if (gid[0] != GID_MULTICAST)
		return -EINVAL;
	if (data_end_group(end, gid) < end->group_count)
		return 0;
	if (end->group_count == DATA_GROUPS)
		return -ENOSPC;
	memcpy(end->groups[end->group_count++], gid, 16);
	return 0;
}

int data_leave(struct data_end *end, const uint8_t gid[16])
{
	uint32_t i = data_end_group(end, gid);

	if (i == end->group_count)
		return -EINVAL;
	memmove(end->groups[i], end->groups[--end->group_count], 16);
	return 0;
}

bool data_may_send(struct data_end *end)
{
	if (!end->full)
		return true;
	end->waits_on |= end->full;
	return false;
}

/* Is the VCRC of a packet right?  The VCRC of a lent packet is not computed:
 * such a packet has never left the memory in which the sender has made it. */
static bool is_intact(const struct payload *payload)
{
	return payload->lender || lrh_is_intact(payload->data, payload->bytes);
}

/* Reads the header fields by which the switches and the receiver judge a
 * packet.  False: an adapter sends no such packet. */
static bool read_headers(struct packet *p, const uint8_t *bytes, size_t n)
{
	struct lrh lrh;
	struct grh grh;
	struct bth bth;
	size_t head = lrh_frame(bytes, n, &lrh);

	if (!head || !bth_parse(bytes + head, n - head, &bth))
		return false;
	p->slid = lrh.slid;
	p->dlid = lrh.dlid;
	p->sl = lrh.sl;
	p->vl = lrh.vl;
	p->pkey = bth.pkey;
	p->dest_qp = bth.dest_qpn;
	p->has_grh = head > LRH_BYTES;
	if (p->has_grh) {
		grh_parse(bytes + LRH_BYTES, n - LRH_BYTES, &grh);
		memcpy(p->sgid, grh.sgid, 16);
		memcpy(p->dgid, grh.dgid, 16);
	}
	if (bth.opcode >> 5 != SERVICE_UD)
		return true;
	if (n < head + DETH_END + ICRC_BYTES + LRH_VCRC_BYTES)
		return false;
	p->qkey = bytes_get32(bytes + head + AT_QKEY);
	p->src_qp = bytes_get24(bytes + head + AT_SRC_QP);
	return p->src_qp >= FIRST_DATA_QPN;
}

/* Is the packet's destination valid?  A multicast packet has to be a datagram
 * (UD), whose src_qp is not 0, and has to have a GRH, whose DGID the receivers
 * compare with their groups. */
static bool is_destination(const struct packet *p)
{
	if (p->dlid < MLID_FIRST)
		return p->dlid && p->dest_qp >= FIRST_DATA_QPN;
	return p->dlid != LID_PERMISSIVE && p->dest_qp == QPN_MULTICAST &&
	       p->src_qp && p->has_grh && p->dgid[0] == GID_MULTICAST;
}

/* Are the packet's VL, SLID, SGID, P_Key and source QP allowed for the end?
 * Only datagrams (UD) have a source QP; src_qp is 0 for other packets. */
static bool is_own(const struct data_end *end, const struct packet *p)
{
	const struct port *port = end->port;

	return p->vl != LRH_VL_MGMT && port_info_has_lid(port, p->slid) &&
	       (!p->src_qp || p->src_qp >> DATA_REST_BITS == end->number) &&
	       (!p->has_grh || port_info_has_gid(port, p->sgid)) &&
	       gate_has(port, p->pkey);
}

/* Returns 0, or the -errno of data_send. */
static int judge_packet(const struct data_end *end, struct packet *p,
			const struct payload *payload)
{
	if (!read_headers(p, payload->data, payload->bytes) ||
	    !is_intact(payload) || !is_destination(p) || !is_own(end, p))
		return -EINVAL;
	return end->port->state == STATE_ACTIVE ? 0 : -ENETDOWN;
}

static void add_payload(struct data_end *end, struct packet *p,
			struct payload *payload)
{
	p->payload = payload;
	p->blocks = (uint32_t)bits_div_up(payload->bytes, LANE_BLOCK);
	packet_belong(p, end, gate_vl(end->port, NULL, p->sl) % LANES);
	if (p->dlid >= MLID_FIRST)
		end->port->node->fabric->data.multicasts++;
}

/* Sends the packet to the switches.  Since a switch does not send a multicast
 * packet back to the packet's ingress port, the data ends at the sender's port
 * get a copy here, unless that port is only a limited member of the partition:
 * limited members receive no packets of each other.  Such a port counts no
 * violation of the P_Key either, since it has not received the packet. */
static void send_packet(struct packet *p)
{
	bool comes_back = p->dlid >= MLID_FIRST && gate_fits(p->at, p->pkey);
	struct packet *copy = comes_back ? packet_copy(p) : NULL;

	packet_inject(p);
	if (copy)
		data_end_take(copy);
}

/* Does what data_lend (is_lent) or data_send does. */
static int send_bytes(struct data_end *end, const uint8_t *bytes, size_t n,
		      bool is_lent)
{
	struct fabric *f = end->port->node->fabric;
	struct payload *payload;
	struct packet *p;
	int err;

	if (n > LRH_FRAME_MAX)
		return -EINVAL;
	p = packet_new_data(f, end->port);
	if (!p)
		return -ENOMEM;
	payload = is_lent ? packet_payload_lent(f, bytes, n)
			  : packet_payload(f, bytes, n);
	err = payload ? judge_packet(end, p, payload) : -ENOMEM;
	if (err) {
		if (payload)
			packet_release(f, payload);
		packet_drop(p);
		return err;
	}
	add_payload(end, p, payload);
	send_packet(p);
	return 0;
}

int data_send(struct data_end *end, const uint8_t *bytes, size_t n)
{
	return send_bytes(end, bytes, n, false);
}

int data_lend(struct data_end *end, const uint8_t *bytes, size_t n)
{
	return send_bytes(end, bytes, n, true);
}

void data_settle(struct fabric *f)
{
	list_for_each_safe (l, &f->data.lent)
		packet_settle(OF_LENT(l));
}

/* Is the packet a datagram that the end may have received? */
static bool is_received(const struct data_end *end, const struct packet *p)
{
	if (p->dlid >= MLID_FIRST)
		return p->src_qp && p->dest_qp == QPN_MULTICAST;
	return p->src_qp && port_info_has_lid(end->port, p->dlid) &&
	       p->dest_qp >> DATA_REST_BITS == end->number;
}

/* Is the packet from a port from which the end has fetched datagrams, and is
 * the packet's SGID a GID of that port?  If so, one of these datagrams counts
 * as refused (data_end_count_sender).  The program of the end has written the
 * packet, and could name a port that sent nothing. */
static bool has_sent(struct data_end *end, const struct packet *p)
{
	struct fabric *f = end->port->node->fabric;

	return (!p->has_grh || gid_has_lid(f, p->sgid, p->slid)) &&
	       data_end_count_sender(end, p->slid);
}

void data_refused(struct data_end *end, const uint8_t *bytes, size_t n)
{
	struct port *port = end->port;
	struct packet *p = packet_new_data(port->node->fabric, port);

	if (!p)
		return;
	if (read_headers(p, bytes, n) && is_received(end, p) &&
	    has_sent(end, p)) {
		port_info_count_qkey(port);
		trap_qkey(port, p);
	}
	packet_drop(p);
}

struct data_end *data_resumed(struct fabric *f)
{
	struct list *l = list_pop_head(&f->data.resumed);

	return l ? OF_RESUMED(l) : NULL;
}

struct data_end *data_ready(struct fabric *f)
{
	return list_is_empty(&f->data.ready) ? NULL
					     : OF_READY(f->data.ready.next);
}

static void rest_if_empty(struct data_end *end)
{
	if (!end->changes && list_is_empty(&end->inbox))
		list_remove(&end->ready);
}

uint32_t data_changes(const struct data_end *end)
{
	return end->changes;
}

void data_changes_fetched(struct data_end *end)
{
	end->changes = 0;
	rest_if_empty(end);
}

/* Returns the bytes of the oldest packet for an end; NULL: there is none. Drops
 * the packets whose VL cannot be changed. */
static struct payload *first_payload(struct data_end *end)
{
	struct packet *p;

	while (!list_is_empty(&end->inbox)) {
		p = (struct packet *)end->inbox.next;
		if (data_end_write_vl(p))
			return p->payload;
		data_lost(end);
	}
	return NULL;
}

const uint8_t *data_fetch(struct data_end *end, size_t *bytes)
{
	struct payload *payload = first_payload(end);

	if (!payload)
		return NULL;
	packet_settle(payload);
	*bytes = payload->bytes;
	return payload->data;
}

size_t data_length(struct data_end *end)
{
	const struct payload *payload = first_payload(end);

	return payload ? payload->bytes : 0;
}

void data_copy(const struct data_end *end, uint8_t *to)
{
	const struct packet *p = (const struct packet *)end->inbox.next;

	packet_copy_bytes(p->payload, to);
}

/* Returns the bytes of the packet at a place of an inbox.  NULL: they are more
 * than `room`, or no memory is left to change the VL. */
static const struct payload *next_payload(const struct list *at, size_t room)
{
	struct packet *p = (struct packet *)at;

	if (p->payload->bytes > room || !data_end_write_vl(p))
		return NULL;
	packet_settle(p->payload);
	return p->payload;
}

size_t data_gather(struct data_end *end, struct data_part *parts, size_t most,
		   size_t bytes)
{
	size_t count = 0, room = SIZE_MAX;

	/* data_fetch drops the first packets if their VL cannot be changed;
	 * a later packet of that kind ends the loop below */
	if (!data_fetch(end, &parts[0].n))
		return 0;
	list_for_each (l, &end->inbox) {
		const struct payload *payload;

		if (count == most)
			break;
		payload = next_payload(l, room);
		if (!payload)
			break;
		parts[count++] =
			(struct data_part){payload->data, payload->bytes};
		bytes -= bits_min_u64(bytes, payload->bytes);
		room = bytes;
	}
	return count;
}

void data_fetched(struct data_end *end)
{
	struct packet *p = (struct packet *)list_pop_head(&end->inbox);

	if (p) {
		data_end_note_sender(end, p);
		packet_drop(p);
	}
	end->fetched_ms = end->port->node->fabric->now_ms;
	rest_if_empty(end);
}

void data_lost(struct data_end *end)
{
	struct packet *p = (struct packet *)list_pop_head(&end->inbox);

	if (p) {
		data_end_count_lost(p);
		packet_drop(p);
	}
	rest_if_empty(end);
}

void data_tell_death(struct fabric *f)
{
	list_for_each (l, &f->data.all) {
		struct data_end *end =
			CONTAINER_OF(l, struct data_end, of_fabric);

		end->changes |= DATA_DEATH;
		data_wake(end);
	}
}

void data_pause(struct data_end *end)
{
	end->is_paused = true;
	list_remove(&end->ready);
}

void data_unpause(struct data_end *end)
{
	end->is_paused = end->is_stalled = false;
	data_wake(end);
}
