/* SPDX-License-Identifier: BSD-2-Clause */
#include "sim/subnet.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "fabric/data_end.h"
#include "fabric/port_info.h"
#include "fabric/reach_qp.h"
#include "hdr/lrh.h"
#include "sim/cables.h"
#include "sim/node.h"
#include "sim/pair.h"
#include "util/bits.h"
#include "util/shared.h"

#define SLS	16   /* how many SLs there are */
#define TURN_NS 2000 /* the time from one turn of the fabric to the next */
/* The least room of a VL's buffer, and the least that a link carries in a turn,
 * in blocks (fabric/lane.h): enough for one packet with a payload of 4096 bytes
 * and all headers. */
#define PACKET_BLOCKS 80u

/* Two hashes of a sequence of packets: of the packets that have come into the
 * subnet, in the order in which they came, and of the packets that have left
 * it, in the order in which they left. */
struct order {
	uint64_t entered, left;
};

/* The subnet of a world, and the hosts' data ends. */
struct subnet {
	struct cables cables; /* owns the fabric */
	/* The data ends, by host and by port number minus 1; NULL: the host has
	 * no process. */
	struct data_end *ends[WORLD_HOSTS][CABLES_PORTS];
	/* The packets that the hosts have sent since the last take_back().  The
	 * fabric may still read their bytes (data_lend). */
	struct flight *lent;
	shared_u32 changes; /* reach_changes, for the hosts (engine_subnet) */
	uint64_t due_ns;    /* when packets move next; UINT64_MAX: never */
	/* A cable was cut, a P_Key has changed, or a process has ended, so
	 * packets may be lost. */
	bool was_disturbed;
	/* The sequences of packets in which the subnet keeps the order: by the
	 * ports of the sender and the receiver, and by SL. */
	struct order order[CABLES_LIDS][CABLES_LIDS][SLS];
};

/* ---- hosts ---- */

/* Stores the subnet's present number of changes, by which a host finds that an
 * answer of subnet_ask is old.  All hosts run in one thread, so no other thread
 * needs the order of the store. */
static void show_changes(struct subnet *s)
{
	shared_store(&s->changes, reach_changes(s->cables.fabric));
}

void subnet_init(struct world *w)
{
	struct subnet *s = w->subnet = calloc(1, sizeof(*s));
	struct data_ends *data;

	if (!s)
		abort();
	cables_init(w, &s->cables);
	show_changes(s);
	data = &s->cables.fabric->data;
	data->buffer_blocks = PACKET_BLOCKS << rng_below(&w->rng, 7);
	data->turn_blocks = PACKET_BLOCKS << rng_below(&w->rng, 7);
}

/* Takes back the bytes that are lent to the fabric.  data_settle first copies
 * these bytes into the fabric, so the packets arrive unchanged although the
 * bytes change afterwards. */
static void take_back(struct subnet *s)
{
	struct flight *f;

	data_settle(s->cables.fabric);
	while ((f = s->lent)) {
		s->lent = f->next;
		memset(f->bytes, 0xff, f->len);
		free(f);
	}
}

void subnet_fini(struct world *w)
{
	if (!w->subnet)
		return;
	take_back(w->subnet);
	cables_fini(&w->subnet->cables);
	free(w->subnet);
	w->subnet = NULL;
}

static struct port *port_of(const struct host *h, uint32_t number)
{
	return cables_port(&h->world->subnet->cables, h->index, number);
}

/* Tells the engine of h the LID and the P_Keys of a port. */
static void tell_port(struct host *h, uint32_t number)
{
	struct fabric_port shown;
	struct hca_port port;

	if (fabric_show_port(port_of(h, number)->node, number, &shown))
		abort();
	port = (struct hca_port){.lid = shown.lid, .lmc = shown.lmc};
	memcpy(port.pkeys, shown.pkeys, sizeof(port.pkeys));
	engine_port(h->engine, 0, number, &port);
}

void subnet_tell_ports(struct host *h)
{
	for (uint32_t number = 1; number <= CABLES_PORTS; number++)
		tell_port(h, number);
}

void subnet_attach(struct host *h)
{
	struct subnet *s = h->world->subnet;
	struct data_end **ends = s->ends[h->index];
	int err;

	ends[0] = data_open(port_of(h, 1)->node, 1, h, &err);
	ends[1] = ends[0] ? data_open_beside(ends[0], 2, h, &err) : NULL;
	if (!ends[1])
		abort();
	h->qpns = data_number(ends[0]) << DATA_REST_BITS |
		  (h->qpns & ((1u << DATA_REST_BITS) - 1));
	subnet_tell_ports(h);
	if (h->world->kind.direct)
		engine_subnet(h->engine, &s->changes);
}

void subnet_detach(struct host *h)
{
	struct subnet *s = h->world->subnet;

	for (int i = 0; i < CABLES_PORTS; i++) {
		data_close(s->ends[h->index][i]);
		s->ends[h->index][i] = NULL;
	}
	s->was_disturbed = true;
	s->due_ns = h->world->now_ns;
}

void subnet_address(const struct flow *f, uint32_t number, struct hca_ah *ah)
{
	const struct port *from = port_of(f->from, number),
			  *to = port_of(f->to, number);

	ah->local = 0;
	ah->dlid = cables_lid(f->to->index, number);
	ah->port_num = (uint8_t)number;
	ah->sl = (uint8_t)(f->pair->flow[0].id / 2 % LANES);
	port_info_gid(from, port_guid(from, 0), ah->sgid);
	port_info_gid(to, port_guid(to, 0), ah->dgid);
}

void subnet_draw_path(const struct flow *f, uint32_t number, struct hca_ah *ah)
{
	subnet_address(f, number, ah);
	ah->is_global = rng_chance(&f->from->world->rng, 500000);
}

/* ---- direct connections ---- */

struct host *subnet_ask(struct host *h, const struct engine_want *want)
{
	const struct subnet *s = h->world->subnet;
	const struct reach r = reach_of_qp(want->by_lid);
	struct reach_peer peer;
	struct data_end *end;
	struct hca_way way;

	end = reach_find(s->ends[h->index][0], &r, &peer);
	if (!end)
		return NULL;
	way = reach_way(&peer, reach_changes(s->cables.fabric));
	engine_set_way(h->engine, want->qpn, &way);
	return data_owner(end);
}

/* ---- packets ---- */

bool subnet_may_send(struct host *h)
{
	struct data_end **ends = h->world->subnet->ends[h->index];
	bool by_one = data_may_send(ends[0]), by_two = data_may_send(ends[1]);

	return by_one && by_two;
}

/* Adds a packet to a hash, without its first byte, which has the VL, and
 * without its VCRC: the ports on the way set these. */
static uint64_t add_hash(uint64_t hash, const uint8_t *bytes, size_t n)
{
	for (size_t i = 1; i < n - LRH_VCRC_BYTES; i++)
		hash = (hash ^ bytes[i]) * 0x100000001b3ull;
	return hash ^ hash >> 32;
}

/* Returns the sequence to which a packet of a host belongs. */
static struct order *order_of(struct subnet *s, const uint8_t *bytes, size_t n)
{
	struct lrh lrh;

	if (!lrh_frame(bytes, n, &lrh))
		abort();
	return &s->order[lrh.slid - CABLES_FIRST_LID]
			[lrh.dlid - CABLES_FIRST_LID][lrh.sl];
}

/* Notes a packet that the subnet has taken. */
static void note_entry(struct subnet *s, const uint8_t *bytes, size_t n)
{
	struct order *o = order_of(s, bytes, n);

	o->entered = add_hash(o->entered, bytes, n);
}

/* May a port refuse a packet with this error because the port's P_Key has
 * changed after the host sent the packet? */
static bool may_be_late(const struct subnet *s, int err)
{
	return err == -EINVAL && s->cables.has_parted;
}

void subnet_enter(struct world *w, struct flight *f)
{
	struct subnet *s = w->subnet;
	struct host *h = &w->hosts[f->to_host];
	struct data_end *end = s->ends[h->index][f->port - 1];
	int err;

	/* a process that has ended sends nothing more */
	if (end && h->starts == f->starts) {
		fabric_set_time(s->cables.fabric, w->now_ns / WORLD_MS);
		err = data_lend(end, f->bytes, f->len);
		if (err && err != -ENETDOWN && !may_be_late(s, err))
			world_fail(w, "host %u: the port refuses a packet: %s",
				   h->index, strerror(-err));
		if (!err)
			note_entry(s, f->bytes, f->len);
		s->due_ns = w->now_ns;
	}
	f->next = s->lent;
	s->lent = f;
}

/* Changes a bit of a packet behind its first `skipped` bytes. */
static void flip_bit(struct world *w, struct flight *f, uint32_t skipped)
{
	uint32_t bit = rng_below(&w->rng, ((uint32_t)f->len - skipped) * 8);

	f->bytes[skipped + bit / 8] ^= (uint8_t)(1 << bit % 8);
}

/* Changes a bit of a packet in the last switch, which then computes the VCRC of
 * the changed bytes.  The receiver finds the change by the ICRC.  The LRH does
 * not change, since an ICRC behind a GRH does not cover it. */
static void damage_in_switch(struct world *w, struct flight *f)
{
	if (f->len <= LRH_HEAD_MAX)
		return;
	flip_bit(w, f, LRH_HEAD_MAX);
	lrh_seal(f->bytes, f->len - LRH_VCRC_BYTES);
}

/* Changes a bit of a packet, or cuts the packet off, as the seed decides.
 * False: a bit has changed on the last cable, and the receiver's port finds
 * that by the VCRC, and drops the packet.  The receiver finds by the lengths in
 * the headers that a packet was cut off (lrh_frame). */
static bool damage_packet(struct world *w, struct flight *f)
{
	if (world_is_quiet(w))
		return true;
	if (rng_chance(&w->rng, w->faults.corrupt / 2))
		damage_in_switch(w, f);
	if (rng_chance(&w->rng, w->faults.corrupt / 2)) {
		flip_bit(w, f, 0);
		return lrh_is_intact(f->bytes, f->len);
	}
	if (rng_chance(&w->rng, w->faults.truncate))
		f->len = rng_below(&w->rng, (uint32_t)f->len) + 1;
	return true;
}

/* Puts the oldest packet for the end, of n bytes, into the socket of the end's
 * host, perhaps damaged. */
static void deliver_packet(struct world *w, struct data_end *end, size_t n)
{
	struct host *h = data_owner(end);
	struct flight *f = calloc(1, sizeof(*f));
	struct order *o;

	if (!f || n > sizeof(f->bytes))
		abort();
	data_copy(end, f->bytes);
	o = order_of(w->subnet, f->bytes, n);
	o->left = add_hash(o->left, f->bytes, n);
	f->len = n;
	f->to_host = h->index;
	f->port = end->port->number;
	if (damage_packet(w, f))
		node_receive(h, f);
	else
		free(f);
}

/* Moves packets from the end into the socket of the end's host, until none is
 * left or the socket is full. */
static void deliver_packets(struct world *w, struct data_end *end)
{
	struct host *h = data_owner(end);
	size_t n;

	h->woken.ports |= data_changes(end);
	data_changes_fetched(end);
	while ((n = data_length(end))) {
		if (h->inbox_count == WORLD_INBOX) {
			data_pause(end);
			return;
		}
		deliver_packet(w, end, n);
		data_fetched(end);
	}
}

void subnet_resume(struct host *h)
{
	struct subnet *s = h->world->subnet;

	for (int i = 0; i < CABLES_PORTS; i++) {
		struct data_end *end = s->ends[h->index][i];

		if (!end->is_paused)
			continue;
		data_unpause(end);
		s->due_ns = h->world->now_ns;
	}
}

/* Moves packets, delivers those that have arrived, and sets due_ns. */
static void move_packets(struct world *w)
{
	struct subnet *s = w->subnet;
	uint64_t now_ms = w->now_ns / WORLD_MS, due;
	struct data_end *end;

	fabric_turn(s->cables.fabric, now_ms);
	while ((end = data_ready(s->cables.fabric)))
		deliver_packets(w, end);
	take_back(s);
	while ((end = data_resumed(s->cables.fabric)))
		((struct host *)data_owner(end))->woken.writable = true;
	due = fabric_deadline(s->cables.fabric);
	s->due_ns = due <= now_ms	  ? w->now_ns + TURN_NS
		    : due == FABRIC_NEVER ? UINT64_MAX
					  : due * WORLD_MS;
}

uint64_t subnet_next(const struct world *w)
{
	const struct subnet *s = w->subnet;

	return bits_min_u64(s->due_ns, cables_next(&s->cables));
}

void subnet_turn(struct world *w)
{
	struct subnet *s = w->subnet;

	if (cables_turn(w, &s->cables) || s->due_ns <= w->now_ns)
		move_packets(w);
	show_changes(s);
}

void subnet_disturb(struct world *w)
{
	struct subnet *s = w->subnet;

	if (!(rng_chance(&w->rng, 500000) ? cables_cut(w, &s->cables)
					  : cables_part(w, &s->cables)))
		return;
	show_changes(s);
	s->was_disturbed = true;
	s->due_ns = w->now_ns;
}

bool subnet_is_busy(const struct world *w)
{
	const struct subnet *s = w->subnet;
	const struct data_end *end;

	for (uint32_t i = 0; i < CABLES_PORTS * w->host_count; i++) {
		end = s->ends[i / CABLES_PORTS][i % CABLES_PORTS];
		if (end && !list_is_empty(&end->inbox))
			return true;
	}
	return s->cables.fabric->moving_count ||
	       !list_is_empty(&s->cables.fabric->data.waiting);
}

/* Have the packets left the subnet in the order in which they came into it? */
static bool has_kept_order(const struct subnet *s)
{
	const struct order *o = &s->order[0][0][0];

	for (size_t i = 0; i < sizeof(s->order) / sizeof(*o); i++)
		if (o[i].entered != o[i].left)
			return false;
	return true;
}

void subnet_check(struct world *w)
{
	const struct subnet *s = w->subnet;

	if (s->cables.is_lossless && !s->was_disturbed && !subnet_is_busy(w) &&
	    !has_kept_order(s))
		world_fail(w,
			   "the subnet has lost, changed or reordered packets");
}
