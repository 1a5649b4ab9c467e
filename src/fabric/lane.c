/* SPDX-License-Identifier: BSD-2-Clause */
#include "fabric/lane.h"

#include <stdlib.h>

#include "fabric/port_info.h"
#include "util/bits.h"

#define STALL_LIVES   8 /* VLStalled lasts for this many times HOQLife */

#define OF_WAITING(l) CONTAINER_OF(l, struct lanes, waiting)
#define OF_WOKEN(l)   CONTAINER_OF(l, struct lanes, woken)

static uint64_t now_of(const struct port *port)
{
	return port->node->fabric->now_ms;
}

static struct data_ends *data_of(const struct port *port)
{
	return &port->node->fabric->data;
}

static void init_lane(struct lane *l, struct port *port)
{
	l->port = port;
	list_init(&l->queue);
}

static struct lanes *make_lanes(struct port *port)
{
	struct lanes *l = calloc(1, sizeof(*l));

	if (!l)
		return NULL;
	l->port = port;
	list_init(&l->waiting);
	list_init(&l->woken);
	for (int vl = 0; vl < LANES; vl++)
		init_lane(&l->lane[vl], port);
	port->lanes = l;
	return l;
}

/* Returns the port's lanes, which are allocated when the first data packet is
 * to cross the port's link; NULL: no memory is left. */
static struct lanes *lanes_of(struct port *port)
{
	return port->lanes ? port->lanes : make_lanes(port);
}

/* struct packet begins with its list. */
static struct packet *first_of(const struct lane *l)
{
	return (struct packet *)l->queue.next;
}

/* Called when a packet begins to wait and no packet waited before. */
static void start_clock(struct lane_clock *c, uint64_t now_ms)
{
	c->from_ms = now_ms;
}

/* Counts the ticks after from_ms and before the current one. */
static void count_ticks(struct lane_clock *c, uint64_t now_ms)
{
	if (now_ms <= c->from_ms + 1)
		return;
	c->ticks += now_ms - c->from_ms - 1;
	c->from_ms = now_ms - 1;
}

/* Called when a packet leaves, so that the current tick is not counted. */
static void stop_clock(struct lane_clock *c, uint64_t now_ms)
{
	count_ticks(c, now_ms);
	c->from_ms = now_ms;
}

bool lane_has_room(const struct lane *l, const struct packet *p)
{
	return !l->held ||
	       l->held + p->blocks <= data_of(l->port)->buffer_blocks;
}

/* Can the link carry one more packet in this turn? */
static bool has_turn(const struct lanes *l)
{
	const struct data_ends *d = data_of(l->port);

	return l->turn != d->turn || l->blocks < d->turn_blocks;
}

static void spend_turn(struct lanes *l, const struct packet *p)
{
	const struct data_ends *d = data_of(l->port);

	if (l->turn != d->turn) {
		l->turn = d->turn;
		l->blocks = 0;
	}
	l->blocks += p->blocks;
	if (l->queued)
		stop_clock(&l->idle, now_of(l->port));
}

static bool is_stalled(struct lane *l)
{
	if (l->stalled_ms && l->stalled_ms <= now_of(l->port))
		l->stalled_ms = 0;
	return l->stalled_ms;
}

static void queue_packet(struct lanes *l, struct packet *p)
{
	struct lane *lane = &l->lane[p->vl];
	uint64_t now = now_of(l->port);

	p->came_ms = now;
	if (list_is_empty(&lane->queue)) {
		lane->head_ms = now;
		start_clock(&lane->idle, now);
	}
	list_push_tail(&lane->queue, &p->list);
	if (!l->queued) {
		start_clock(&l->idle, now);
		list_push_tail(&data_of(l->port)->waiting, &l->waiting);
	}
	l->queued |= 1u << p->vl;
}

/* Takes the first packet out of the queue of a VL. */
static struct packet *take_first(struct lanes *l, uint32_t vl)
{
	struct lane *lane = &l->lane[vl];
	struct packet *p = (struct packet *)list_pop_head(&lane->queue);

	stop_clock(&lane->idle, now_of(l->port));
	lane->head_ms = now_of(l->port);
	if (!list_is_empty(&lane->queue))
		return p;
	l->queued &= ~(1u << vl);
	if (l->queued)
		return p;
	count_ticks(&l->idle, now_of(l->port));
	list_remove(&l->waiting);
	list_remove(&l->woken);
	return p;
}

/* Marks the port to be served again when the port can send the packet: once the
 * far end has room or, if it has room already, in the next turn at the latest.
 */
static void ask_again(struct lanes *l, struct lane *far, const struct packet *p)
{
	if (!lane_has_room(far, p))
		far->is_wanted = true;
	else if (!list_is_linked(&l->woken))
		list_push_tail(&data_of(l->port)->tired, &l->woken);
}

enum lane_verdict lane_try(struct port *out, struct packet *p)
{
	struct lanes *l = lanes_of(out), *far = lanes_of(out->peer);
	bool is_first;

	if (!l || !far || is_stalled(&l->lane[p->vl]))
		return LANE_LOST;
	is_first = !(l->queued >> p->vl & 1);
	/* If packets of other VLs wait for the link, the arbiter decides about
	 * the packet p, too. */
	if (is_first && !list_is_linked(&l->woken) && has_turn(l) &&
	    lane_has_room(&far->lane[p->vl], p)) {
		l->lane[p->vl].losses = 0;
		spend_turn(l, p);
		return LANE_PASSES;
	}
	queue_packet(l, p);
	if (is_first)
		ask_again(l, &far->lane[p->vl], p);
	return LANE_WAITS;
}

/* Returns a bit for each VL whose first packet may leave, and stores the length
 * of that packet. */
static uint32_t find_ready(struct lanes *l, uint32_t blocks[LANES])
{
	struct lane *far = l->port->peer->lanes->lane;
	bool can_carry = has_turn(l);
	uint32_t ready = 0;

	for (uint32_t vl = 0; vl < LANES; vl++) {
		const struct packet *p = first_of(&l->lane[vl]);

		if (!(l->queued >> vl & 1))
			continue;
		blocks[vl] = p->blocks;
		if (can_carry && lane_has_room(&far[vl], p))
			ready |= 1u << vl;
		else
			ask_again(l, &far[vl], p);
	}
	return ready;
}

static uint32_t pick_vl(struct lanes *l, uint32_t ready,
			const uint32_t blocks[LANES])
{
	const struct port *port = l->port;
	struct arbiter_tables t = {.high = port->vlarb[2],
				   .low = port->vlarb[0],
				   .high_limit = port_info_high_limit(port)};

	if (!(ready & (ready - 1)))
		return (uint32_t)__builtin_ctz(ready);
	return arbiter_pick(&l->arbiter, &t, ready, blocks);
}

struct packet *lane_next(struct port *out)
{
	struct lanes *l = out->lanes;
	uint32_t blocks[LANES] = {0}, ready, vl;
	struct packet *p;

	ready = l && l->queued ? find_ready(l, blocks) : 0;
	if (!ready)
		return NULL;
	vl = pick_vl(l, ready, blocks);
	spend_turn(l, first_of(&l->lane[vl]));
	p = take_first(l, vl);
	l->lane[vl].losses = 0;
	return p;
}

void lane_enter(struct port *in, struct packet *p)
{
	struct lane *l = &in->lanes->lane[p->vl];

	lane_leave(p);
	p->room = l;
	l->held += p->blocks;
	l->rx_packets++;
	l->rx_words += p->payload->bytes / 4;
}

/* Discards the first packet of the queue of a VL. */
static void discard_first(struct lanes *l, uint32_t vl)
{
	l->port->counters.tx_discards++;
	packet_drop(take_first(l, vl));
}

static void flush_lane(struct lanes *l, uint32_t vl)
{
	while (l->queued >> vl & 1)
		discard_first(l, vl);
}

void lane_flush(struct port *out)
{
	for (uint32_t vl = 0; out->lanes && vl < LANES; vl++)
		flush_lane(out->lanes, vl);
}

void lane_flush_all(struct fabric *f)
{
	list_for_each_safe (l, &f->data.waiting)
		lane_flush(OF_WAITING(l)->port);
}

void lane_begin(struct fabric *f)
{
	f->data.turn++;
	list_take_all(&f->data.woken, &f->data.tired);
}

struct port *lane_woken(struct fabric *f)
{
	struct list *l = list_pop_head(&f->data.woken);

	return l ? OF_WOKEN(l)->port : NULL;
}

static uint64_t life_of_head(const struct port *port)
{
	return node_is_switch(port->node) ? port_info_queue_life(port)
					  : FABRIC_NEVER;
}

static uint64_t life_in_node(const struct port *port)
{
	return node_is_switch(port->node)
		       ? port_info_life_ms(port->node->switch_info[11] >> 3)
		       : FABRIC_NEVER;
}

static uint64_t end_of(uint64_t from, uint64_t life)
{
	return life == FABRIC_NEVER ? FABRIC_NEVER : from + life;
}

/* Only switches discard packets that have waited for too long. */
uint64_t lane_due(const struct lanes *l, uint32_t vl)
{
	const struct lane *lane = &l->lane[vl];

	if (!(l->queued >> vl & 1))
		return FABRIC_NEVER;
	return bits_min_u64(
		end_of(lane->head_ms, life_of_head(l->port)),
		end_of(first_of(lane)->came_ms, life_in_node(l->port)));
}

/* Counts a packet that was discarded after HOQLife.  After VLStallCount such
 * packets in sequence the VL is stalled, and the port discards the packets of
 * the VL. */
static void count_loss(struct lanes *l, uint32_t vl)
{
	struct lane *lane = &l->lane[vl];
	uint8_t most = port_info_stall_count(l->port);

	if (!most || ++lane->losses < most)
		return;
	lane->losses = 0;
	lane->stalled_ms =
		now_of(l->port) + STALL_LIVES * life_of_head(l->port);
	flush_lane(l, vl);
}

static void tick_lane(struct lanes *l, uint32_t vl)
{
	uint64_t now = now_of(l->port);
	bool has_lost = false;

	for (; lane_due(l, vl) <= now; has_lost = true) {
		bool was_head = end_of(l->lane[vl].head_ms,
				       life_of_head(l->port)) <= now;

		discard_first(l, vl);
		if (was_head)
			count_loss(l, vl);
	}
	/* the packet that is now the first may be shorter */
	if (has_lost)
		lane_wake(l->port);
}

void lane_tick(struct fabric *f)
{
	list_for_each_safe (l, &f->data.waiting)
		for (uint32_t vl = 0; vl < LANES; vl++)
			tick_lane(OF_WAITING(l), vl);
}

uint64_t lane_deadline(const struct fabric *f)
{
	uint64_t first = FABRIC_NEVER;

	if (!list_is_empty(&f->data.woken) || !list_is_empty(&f->data.tired))
		return f->now_ms;
	list_for_each (l, &f->data.waiting)
		for (uint32_t vl = 0; vl < LANES; vl++)
			first = bits_min_u64(first,
					     lane_due(OF_WAITING(l), vl));
	return first;
}

uint64_t lane_oldest(const struct fabric *f)
{
	uint64_t first = FABRIC_NEVER;

	list_for_each (l, &f->data.waiting)
		for (uint32_t vl = 0; vl < LANES; vl++)
			if (OF_WAITING(l)->queued >> vl & 1)
				first = bits_min_u64(
					first, OF_WAITING(l)->lane[vl].head_ms);
	return first;
}

void lane_count_ticks(struct port *port)
{
	struct lanes *l = port->lanes;

	if (l->queued)
		count_ticks(&l->idle, now_of(port));
	for (uint32_t vl = 0; vl < LANES; vl++)
		if (l->queued >> vl & 1)
			count_ticks(&l->lane[vl].idle, now_of(port));
}

uint64_t lane_waited(struct port *port)
{
	if (port->lanes)
		lane_count_ticks(port);
	return port->lanes ? port->lanes->idle.ticks : 0;
}

/* A port without lanes has never waited, and so keeps PortXmitWait 0. */
void lane_set_waited(struct port *port, uint64_t ticks)
{
	lane_waited(port);
	if (port->lanes)
		port->lanes->idle.ticks = ticks;
}
