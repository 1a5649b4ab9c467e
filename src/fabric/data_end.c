/* SPDX-License-Identifier: BSD-2-Clause */
#include "fabric/data_end.h"

#include <stdlib.h>
#include <string.h>

#include "fabric/gate.h"
#include "fabric/port_info.h"
#include "fabric/trap.h"
#include "hdr/lrh.h"
#include "util/bits.h"

#define LOOPBACK_LIFE_MS 1000

#define OF_PORT(l)	 CONTAINER_OF(l, struct data_end, of_port)
#define OF_FABRIC(l)	 CONTAINER_OF(l, struct data_end, of_fabric)

/* struct packet begins with its list. */
static struct packet *first_packet(const struct data_end *end)
{
	return list_is_empty(&end->inbox) ? NULL
					  : (struct packet *)end->inbox.next;
}

static struct data_sender *sender_at(const struct data_end *end, uint16_t lid)
{
	return end->senders ? &end->senders[lid % DATA_SENDERS] : NULL;
}

void data_end_note_sender(struct data_end *end, const struct packet *p)
{
	struct data_sender *s;

	if (!p->src_qp)
		return;
	/* if there is no memory, data_refused counts no Q_Key violation */
	if (!end->senders)
		end->senders = calloc(DATA_SENDERS, sizeof(*end->senders));
	s = sender_at(end, p->slid);
	if (!s)
		return;
	if (s->lid != p->slid)
		*s = (struct data_sender){.lid = p->slid};
	if (s->fetched < UINT16_MAX)
		s->fetched++;
}

bool data_end_count_sender(struct data_end *end, uint16_t lid)
{
	struct data_sender *s = sender_at(end, lid);

	if (!s || s->lid != lid || !s->fetched)
		return false;
	s->fetched--;
	return true;
}

void data_end_free_all(struct fabric *f)
{
	list_for_each_safe (l, &f->data.all)
		data_close(OF_FABRIC(l));
}

static void add_packet(struct data_end *end, struct packet *p)
{
	p->came_ms = end->port->node->fabric->now_ms;
	p->life_ms = p->in && p->in->peer ? port_info_queue_life(p->in->peer)
					  : LOOPBACK_LIFE_MS;
	list_push_tail(&end->inbox, &p->list);
	data_wake(end);
}

static void count_discard(const struct packet *p)
{
	if (p->in && p->in->peer)
		p->in->peer->counters.tx_discards++;
}

void data_end_count_lost(struct packet *p)
{
	/* A packet that has crossed no link is not counted.  Such a multicast
	 * packet may have its payload in common with the packet that
	 * send_packet has sent to the switches, so is_lost must stay false
	 * here. */
	if (!p->in || p->payload->is_lost)
		return;
	p->payload->is_lost = true;
	count_discard(p);
}

bool data_end_write_vl(struct packet *p)
{
	struct payload *own;

	if (!p->in || p->payload->data[0] >> 4 == p->vl)
		return true;
	if (!packet_own_payload(p))
		return false;
	own = p->payload;
	packet_settle(own);
	own->data[0] = (uint8_t)(p->vl << 4 | (own->data[0] & 15));
	lrh_seal(own->data, own->bytes - LRH_VCRC_BYTES);
	return true;
}

uint32_t data_end_group(const struct data_end *end, const uint8_t gid[16])
{
	uint32_t i = 0;

	while (i < end->group_count && memcmp(end->groups[i], gid, 16) != 0)
		i++;
	return i;
}

static bool is_joined(const struct data_end *end, const uint8_t gid[16])
{
	return data_end_group(end, gid) < end->group_count;
}

/* Prepares the bytes that the copies for the members at the port share.  Gives
 * a packet that came over a link its own bytes, since is_lost is about one port
 * alone, and writes the VL of the link there, so that no member needs its own
 * copy.  A packet that has crossed no link keeps its bytes.  False: no memory
 * is left. */
static bool prepare_copies(struct packet *p)
{
	return !p->in || (packet_own_payload(p) && data_end_write_vl(p));
}

static bool has_member(const struct port *port, const uint8_t gid[16])
{
	list_for_each (l, &port->data_ends)
		if (!OF_PORT(l)->is_deaf && is_joined(OF_PORT(l), gid))
			return true;
	return false;
}

static void take_multicast(struct packet *p)
{
	if (!has_member(p->at, p->dgid)) {
		packet_drop(p);
		return;
	}
	if (!prepare_copies(p)) {
		count_discard(p);
		packet_drop(p);
		return;
	}
	list_for_each (l, &p->at->data_ends) {
		struct packet *copy;

		if (OF_PORT(l)->is_deaf || !is_joined(OF_PORT(l), p->dgid))
			continue;
		copy = OF_PORT(l)->is_stalled ? NULL : packet_copy(p);
		if (copy)
			add_packet(OF_PORT(l), copy);
		else
			data_end_count_lost(p);
	}
	packet_drop(p);
}

struct data_end *data_end_find(const struct port *port, uint32_t number)
{
	list_for_each (l, &port->data_ends)
		if (OF_PORT(l)->number == number && !OF_PORT(l)->is_deaf)
			return OF_PORT(l);
	return NULL;
}

void data_end_take(struct packet *p)
{
	struct port *port = p->at;
	struct data_end *end;

	if (!node_is_switch(port->node) && !gate_fits(port, p->pkey)) {
		port_info_count_pkey(port);
		trap_pkey(port, p);
		packet_drop(p);
		return;
	}
	if (p->dlid >= MLID_FIRST) {
		take_multicast(p);
		return;
	}
	end = data_end_find(port, p->dest_qp >> DATA_REST_BITS);
	if (end && !end->is_stalled) {
		add_packet(end, p);
		return;
	}
	if (end)
		data_end_count_lost(p);
	packet_drop(p);
}

/* Returns the time at which p, the end's first packet, is discarded: life_ms
 * after p came or after the end last fetched a packet, whichever was later. */
static uint64_t due_of(const struct data_end *end, const struct packet *p)
{
	return p->life_ms == FABRIC_NEVER
		       ? FABRIC_NEVER
		       : bits_max_u64(p->came_ms, end->fetched_ms) + p->life_ms;
}

/* Drops the end's first packet, which has waited too long.  If the end is
 * paused, the end is stalled from now on. */
static void discard_first(struct data_end *end, struct packet *p)
{
	end->is_stalled = end->is_paused;
	data_end_count_lost(p);
	list_remove(&p->list);
	packet_drop(p);
	if (list_is_empty(&end->inbox) && !end->changes)
		list_remove(&end->ready);
}

void data_end_tick(struct fabric *f)
{
	list_for_each (l, &f->data.all) {
		struct data_end *end = OF_FABRIC(l);
		struct packet *p;

		while ((p = first_packet(end)) && due_of(end, p) <= f->now_ms)
			discard_first(end, p);
	}
}

uint64_t data_end_deadline(const struct fabric *f)
{
	uint64_t first = FABRIC_NEVER;

	list_for_each (l, &f->data.all) {
		const struct packet *p = first_packet(OF_FABRIC(l));

		if (p)
			first = bits_min_u64(first, due_of(OF_FABRIC(l), p));
	}
	return first;
}
