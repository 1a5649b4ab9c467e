/* SPDX-License-Identifier: BSD-2-Clause */
/* Makes, copies and frees packets; see fabric/inside.h. */
#include <stdlib.h>

#include <string.h>

#include "fabric/data_end.h"
#include "fabric/inside.h"
#include "fabric/lane.h"
#include "hdr/lrh.h"

#define MOVING_MAX   65536 /* most packets in fabric.moving */
#define PACKET_BYTES (sizeof(struct packet) + MAD_BYTES)
/* A payload of fewer bytes is allocated by malloc, which is quick for this
 * size.  The memory of a longer payload has room for LRH_FRAME_MAX bytes, which
 * a short payload would waste. */
#define LARGE 512

_Static_assert(PAYLOAD_HEAD < LARGE, "a lent payload has a head and a rest");

/* Allocates a packet at the port `at`, and clears its first `bytes` bytes.
 * NULL: no memory is left, or too many packets move. */
static struct packet *make_packet(struct fabric *f, struct port *at,
				  size_t bytes)
{
	struct packet *p;

	if (f->moving_count >= MOVING_MAX)
		return NULL;
	p = packet_memory_take(&f->memory.packets, PACKET_BYTES);
	if (!p)
		return NULL;
	memset(p, 0, bytes);
	list_init(&p->list);
	list_init(&p->origin.list);
	p->at = at;
	return p;
}

struct packet *packet_new(struct fabric *f, struct port *at)
{
	return make_packet(f, at, PACKET_BYTES);
}

struct packet *packet_new_data(struct fabric *f, struct port *at)
{
	return make_packet(f, at, sizeof(struct packet));
}

void packet_inject(struct packet *p)
{
	struct fabric *f = p->at->node->fabric;

	f->moving_count++;
	list_push_tail(&f->moving, &p->list);
}

void packet_inject_first(struct packet *p)
{
	struct fabric *f = p->at->node->fabric;

	f->moving_count++;
	list_push_head(&f->moving, &p->list);
}

void packet_belong(struct packet *p, struct data_end *end, uint8_t vl)
{
	struct unsent *u = &end->unsent_on[vl];

	p->origin.end = end;
	p->origin.vl = vl;
	list_push_tail(&end->unsent, &p->origin.list);
	u->count++;
	u->bytes += p->payload->bytes;
	if (u->count >= DATA_UNSENT || u->bytes >= DATA_UNSENT_BYTES)
		end->full |= 1u << vl;
}

/* Is the end at most half full on each VL that was at its limit?  Then the end
 * may send again after a refusal. */
static bool has_space(const struct data_end *end)
{
	uint32_t limits = end->waits_on | end->full;

	for (int vl = 0; vl < LANES; vl++)
		if ((limits >> vl & 1) &&
		    (end->unsent_on[vl].count > DATA_UNSENT / 2 ||
		     end->unsent_on[vl].bytes > DATA_UNSENT_BYTES / 2))
			return false;
	return true;
}

static void give_space(struct data_end *end, const struct packet *p)
{
	struct unsent *u = &end->unsent_on[p->origin.vl];

	u->count--;
	u->bytes -= p->payload->bytes;
	if (u->count < DATA_UNSENT && u->bytes < DATA_UNSENT_BYTES)
		end->full &= ~(1u << p->origin.vl);
	if (!end->waits_on || !has_space(end))
		return;
	end->waits_on = 0;
	if (!list_is_linked(&end->resumed))
		list_push_tail(&end->port->node->fabric->data.resumed,
			       &end->resumed);
}

void packet_depart(struct packet *p)
{
	if (p->origin.end) {
		list_remove(&p->origin.list);
		give_space(p->origin.end, p);
		p->origin.end = NULL;
	} else if (p->origin.is_orphan) {
		p->at->node->fabric->data.orphans--;
		p->origin.is_orphan = false;
	}
}

static struct payload *make_payload(struct fabric *f, size_t n)
{
	struct payload *payload =
		n < LARGE
			? malloc(sizeof(*payload) + n)
			: packet_memory_take(&f->memory.payloads,
					     sizeof(*payload) + LRH_FRAME_MAX);

	if (!payload)
		return NULL;
	*payload = (struct payload){
		.refs = 1, .bytes = (uint32_t)n, .is_large = n >= LARGE};
	list_init(&payload->lent);
	return payload;
}

struct payload *packet_payload(struct fabric *f, const uint8_t *bytes, size_t n)
{
	struct payload *payload = make_payload(f, n);

	if (payload)
		memcpy(payload->data, bytes, n);
	return payload;
}

struct payload *packet_payload_lent(struct fabric *f, const uint8_t *bytes,
				    size_t n)
{
	struct payload *payload;

	if (n < LARGE)
		return packet_payload(f, bytes, n);
	payload = make_payload(f, n);
	if (!payload)
		return NULL;
	memcpy(payload->data, bytes, PAYLOAD_HEAD);
	payload->lender = bytes;
	list_push_tail(&f->data.lent, &payload->lent);
	return payload;
}

/* Copies the lent bytes of a packet to their place in the packet at `to`. */
static void copy_rest(const struct payload *payload, uint8_t *to)
{
	memcpy(to + PAYLOAD_HEAD, payload->lender + PAYLOAD_HEAD,
	       payload->bytes - PAYLOAD_HEAD);
}

void packet_settle(struct payload *payload)
{
	if (!payload->lender)
		return;
	copy_rest(payload, payload->data);
	payload->lender = NULL;
	list_remove(&payload->lent);
}

void packet_copy_bytes(const struct payload *payload, uint8_t *to)
{
	memcpy(to, payload->data,
	       payload->lender ? PAYLOAD_HEAD : payload->bytes);
	if (payload->lender)
		copy_rest(payload, to);
}

void packet_release(struct fabric *f, struct payload *payload)
{
	if (--payload->refs)
		return;
	list_remove(&payload->lent);
	if (payload->is_large)
		packet_memory_give(&f->memory.payloads, payload);
	else
		free(payload);
}

bool packet_own_payload(struct packet *p)
{
	struct fabric *f = p->at->node->fabric;
	struct payload *shared = p->payload, *own;

	if (shared->refs == 1)
		return true;
	packet_settle(shared);
	own = packet_payload(f, shared->data, shared->bytes);
	if (!own)
		return false;
	own->is_lost = shared->is_lost;
	packet_release(f, shared);
	p->payload = own;
	return true;
}

void packet_drop(struct packet *p)
{
	struct fabric *f = p->at->node->fabric;

	if (p->payload) {
		lane_leave(p);
		packet_depart(p);
		if (p->dlid >= MLID_FIRST)
			f->data.multicasts--;
		packet_release(f, p->payload);
	}
	packet_memory_give(&f->memory.packets, p);
}

/* Adds a copy to all counts that include the packet from which it was made. */
static void share_counts(struct fabric *f, struct packet *copy)
{
	copy->payload->refs++;
	if (copy->dlid >= MLID_FIRST)
		f->data.multicasts++;
	if (copy->room)
		copy->room->held += copy->blocks;
	if (copy->origin.end)
		packet_belong(copy, copy->origin.end, copy->origin.vl);
	if (copy->origin.is_orphan)
		f->data.orphans++;
}

struct packet *packet_copy(const struct packet *p)
{
	struct fabric *f = p->at->node->fabric;
	struct packet *copy;

	if (p->payload && f->data.multicasts >= DATA_MULTICASTS)
		return NULL;
	copy = p->payload ? packet_new_data(f, p->at) : packet_new(f, p->at);
	if (!copy)
		return NULL;
	*copy = *p;
	list_init(&copy->list);
	list_init(&copy->origin.list);
	if (copy->payload)
		share_counts(f, copy);
	else
		memcpy(copy->mad, p->mad, MAD_BYTES);
	return copy;
}
