/* SPDX-License-Identifier: BSD-2-Clause */
#include "sim/cables.h"

#include <stdio.h>
#include <stdlib.h>

#include "fabric/port_info.h"
#include "fabric/sma_tables.h"
#include "hdr/bth.h"
#include "hdr/bytes.h"
#include "util/bits.h"

#define NET_BYTES 4096
#define NO_PORT	  0xff	       /* in a forwarding table */
#define SWEEP_MS  30	       /* the longest delay of the subnet manager */
#define CUT_MS	  100	       /* the longest time without a cable */
#define PART_MS	  100	       /* the longest time with another P_Key */
#define FAR	  CABLES_NODES /* more than any number of hops */
/* HOQLife: 4.096 us times 2 to this power is 17 ms. */
#define SHORT_LIFE 12

/* Offsets in PortInfo, and values there (IBTA 14.2.5.6). */
enum {
	AT_LID = 16,
	AT_MTU = 36,
	AT_LIFE = 42,
	AT_LANES = 43,
	MTU_4096 = 5 << 4,
	LANES_8 = 4 << 4,
	ENFORCE_BOTH = 3 << 2, /* partitions, inbound and outbound */
};

/* ---- topology ---- */

static void add_cable(struct cables *c, uint32_t a, uint32_t b,
		      uint8_t ports[CABLES_NODES])
{
	struct cable *k = &c->list[c->count++];

	k->node[0] = a;
	k->node[1] = b;
	k->number[0] = ++ports[a];
	k->number[1] = ++ports[b];
	k->repair_ns = k->rejoin_ns = UINT64_MAX;
}

/* Draws the cables: the switches form a tree and some rings, and each port of a
 * host has a cable to a switch.  ports[i]: how many ports of node i are in use.
 */
static void draw_cables(struct world *w, struct cables *c,
			uint8_t ports[CABLES_NODES])
{
	uint32_t more;

	c->switches = 1 + rng_below(&w->rng, CABLES_SWITCHES);
	c->nodes = c->switches + w->host_count;
	for (uint32_t i = 1; i < c->switches; i++)
		add_cable(c, i, rng_below(&w->rng, i), ports);
	more = c->switches > 1 ? rng_below(&w->rng, c->switches + 1) : 0;
	while (more--) {
		uint32_t a = rng_below(&w->rng, c->switches);
		uint32_t b = 1 + rng_below(&w->rng, c->switches - 1);

		add_cable(c, a, (a + b) % c->switches, ports);
	}
	for (uint32_t i = 0; i < CABLES_PORTS * w->host_count; i++)
		add_cable(c, c->switches + i / CABLES_PORTS,
			  rng_below(&w->rng, c->switches), ports);
}

static void name_node(const struct cables *c, uint32_t i, char name[8])
{
	if (i < c->switches)
		snprintf(name, 8, "S%u", i % 10);
	else
		snprintf(name, 8, "H%u", (i - c->switches) % 10);
}

/* Writes the record of node i as in a net file (fabric/net.h), and returns its
 * length. */
static size_t write_node(const struct cables *c, uint32_t i, uint8_t ports,
			 char *text, size_t room)
{
	char name[8], peer[8];
	size_t n;

	name_node(c, i, name);
	n = (size_t)snprintf(text, room, "%s %u \"%s\"\n",
			     i < c->switches ? "Switch" : "Hca", ports, name);
	for (uint32_t k = 0; k < 2 * c->count; k++) {
		const struct cable *from = &c->list[k / 2];

		if (from->node[k % 2] != i)
			continue;
		name_node(c, from->node[1 - k % 2], peer);
		n += (size_t)snprintf(text + n, room - n, "[%u] \"%s\"[%u]\n",
				      from->number[k % 2], peer,
				      from->number[1 - k % 2]);
	}
	return n + (size_t)snprintf(text + n, room - n, "\n");
}

static struct fabric *make_fabric(const struct cables *c,
				  const uint8_t ports[CABLES_NODES])
{
	char text[NET_BYTES];
	struct net_error error;
	struct fabric *f;
	struct net net;
	size_t n = 0;

	for (uint32_t i = 0; i < c->nodes; i++)
		n += write_node(c, i, ports[i], text + n, sizeof(text) - n);
	if (net_parse(text, n, &net, &error))
		abort();
	f = fabric_new(&net);
	net_free(&net);
	if (!f)
		abort();
	return f;
}

struct port *cables_port(const struct cables *c, uint32_t host, uint32_t number)
{
	return &c->node[c->switches + host]->ports[number];
}

uint16_t cables_lid(uint32_t host, uint32_t number)
{
	return (uint16_t)(CABLES_FIRST_LID + CABLES_PORTS * host + number - 1);
}

/* Returns the port at end i, 0 or 1, of the cable. */
static struct port *end_of(const struct cables *c, const struct cable *k, int i)
{
	return &c->node[k->node[i]]->ports[k->number[i]];
}

static bool is_between_switches(const struct cables *c, const struct cable *k)
{
	return k->node[0] < c->switches && k->node[1] < c->switches;
}

/* ---- the subnet manager ---- */

/* Sets those attributes of a port that a subnet manager sets only once: the
 * MTU, the VLs and HOQLife. */
static void set_port(struct port *port, bool is_lossless)
{
	uint8_t life = is_lossless ? PORT_INFO_LIFE_ENDLESS : SHORT_LIFE;

	port->info[AT_MTU] = (uint8_t)((port->info[AT_MTU] & 15) | MTU_4096);
	port->info[AT_LANES] = (uint8_t)((port->info[AT_LANES] & 15) | LANES_8);
	port->info[AT_LIFE] = life;
}

/* Makes the ports of switches at the cables of hosts enforce partitions, in
 * some directions, as the seed decides. */
static void draw_enforcement(struct world *w, const struct cables *c)
{
	for (uint32_t i = 0; i < c->count; i++) {
		const struct cable *k = &c->list[i];

		if (!is_between_switches(c, k))
			end_of(c, k, 1)->info[AT_LANES] |=
				(uint8_t)(rng_u64(&w->rng) & ENFORCE_BOTH);
	}
}

static void set_ports(const struct cables *c, uint32_t hosts)
{
	for (uint32_t i = 0; i < c->nodes; i++)
		for (uint32_t k = 0; k <= c->node[i]->port_count; k++)
			set_port(&c->node[i]->ports[k], c->is_lossless);
	for (uint32_t i = 0; i < CABLES_PORTS * hosts; i++) {
		uint32_t host = i / CABLES_PORTS, number = 1 + i % CABLES_PORTS;

		bytes_put16(cables_port(c, host, number)->info + AT_LID,
			    cables_lid(host, number));
	}
	/* LinearFDBTop: no host has a greater LID */
	for (uint32_t i = 0; i < c->switches; i++)
		bytes_put16(c->node[i]->switch_info + 6, cables_lid(hosts, 1));
}

static bool is_active(const struct cables *c, const struct cable *k)
{
	return end_of(c, k, 0)->state == STATE_ACTIVE &&
	       end_of(c, k, 1)->state == STATE_ACTIVE;
}

/* May routes between switches use the cable? */
static bool is_usable(const struct cables *c, const struct cable *k)
{
	return is_between_switches(c, k) && is_active(c, k) &&
	       (k->is_in_tree || !c->is_lossless);
}

/* Stores in hops[] how many cables are between each switch and switch `from`.
 */
static void count_hops(const struct cables *c, uint32_t from,
		       uint32_t hops[CABLES_SWITCHES])
{
	for (uint32_t i = 0; i < c->switches; i++)
		hops[i] = i == from ? 0 : FAR;
	for (uint32_t round = 1; round < c->switches; round++)
		for (uint32_t i = 0; i < 2 * c->count; i++) {
			const struct cable *k = &c->list[i / 2];
			uint32_t at = k->node[i % 2], to = k->node[1 - i % 2];

			if (is_usable(c, k))
				hops[to] = bits_min_u32(hops[to], hops[at] + 1);
		}
}

/* Chooses the cables of a spanning tree of the switches that can reach each
 * other.  Switches with the same group[] are connected so far. */
static void choose_tree(struct cables *c)
{
	uint32_t group[CABLES_SWITCHES];

	for (uint32_t i = 0; i < c->switches; i++)
		group[i] = i;
	for (uint32_t n = 0; n < c->count; n++) {
		struct cable *k = &c->list[n];
		uint32_t a, b;

		k->is_in_tree = false;
		if (!is_between_switches(c, k) || !is_active(c, k))
			continue;
		a = group[k->node[0]];
		b = group[k->node[1]];
		k->is_in_tree = a != b;
		for (uint32_t i = 0; i < c->switches; i++)
			if (group[i] == b)
				group[i] = a;
	}
}

/* Returns the port by which switch `at` sends packets to the switch from which
 * hops[] was counted.  The seed chooses among the shortest routes. */
static uint8_t draw_egress(struct world *w, const struct cables *c, uint32_t at,
			   const uint32_t hops[CABLES_SWITCHES])
{
	uint32_t first = rng_below(&w->rng, c->count);

	for (uint32_t n = 0; n < 2 * c->count; n++) {
		const struct cable *k = &c->list[(first + n / 2) % c->count];

		if (k->node[n % 2] == at && is_usable(c, k) &&
		    hops[k->node[1 - n % 2]] + 1 == hops[at])
			return k->number[n % 2];
	}
	return NO_PORT;
}

/* Sets the entries in all forwarding tables for the port of a host at cable k,
 * whose node[1] is the switch. */
static void route_host(struct world *w, const struct cables *c,
		       const struct cable *k)
{
	uint16_t lid = cables_lid(k->node[0] - c->switches, k->number[0]);
	uint32_t hops[CABLES_SWITCHES];

	count_hops(c, k->node[1], hops);
	for (uint32_t i = 0; i < c->switches; i++)
		c->node[i]->lft[lid] = i == k->node[1]
					       ? k->number[1]
					       : draw_egress(w, c, i, hops);
}

/* The subnet manager's work: sets each port whose link is up to ACTIVE, and
 * computes all forwarding tables. */
static void sweep_subnet(struct world *w, struct cables *c)
{
	c->sweep_ns = UINT64_MAX;
	for (uint32_t i = 0; i < 2 * c->count; i++) {
		struct port *port = end_of(c, &c->list[i / 2], (int)(i % 2));

		if (port->phys_state == PHYS_LINK_UP)
			link_set_state(port, STATE_ACTIVE);
	}
	choose_tree(c);
	for (uint32_t i = 0; i < c->count; i++)
		if (!is_between_switches(c, &c->list[i]))
			route_host(w, c, &c->list[i]);
	c->fabric->changes++;
}

/* Draws the time at which the subnet manager learns of a change: some time from
 * now, at the latest when the time without faults begins. */
static void schedule_sweep(struct world *w, struct cables *c)
{
	uint64_t at = w->now_ns + rng_below(&w->rng, SWEEP_MS) * WORLD_MS;

	at = bits_min_u64(at, w->due.quiet_ns);
	c->sweep_ns = bits_min_u64(c->sweep_ns, at);
}

void cables_init(struct world *w, struct cables *c)
{
	uint8_t ports[CABLES_NODES] = {0};

	draw_cables(w, c, ports);
	c->is_lossless = rng_chance(&w->rng, 500000);
	c->fabric = make_fabric(c, ports);
	for (uint32_t i = 0; i < c->nodes; i++)
		c->node[i] = fabric_node(c->fabric, i);
	set_ports(c, w->host_count);
	draw_enforcement(w, c);
	sweep_subnet(w, c);
}

void cables_fini(struct cables *c)
{
	fabric_free(c->fabric);
}

/* ---- cuts ---- */

bool cables_cut(struct world *w, struct cables *c)
{
	struct cable *k = &c->list[rng_below(&w->rng, c->count)];
	uint64_t end = w->now_ns + rng_below(&w->rng, CUT_MS) * WORLD_MS;

	if (k->repair_ns != UINT64_MAX)
		return false;
	k->repair_ns = bits_min_u64(end, w->due.quiet_ns);
	link_set_phys(end_of(c, k, 0), PHYS_DISABLED);
	schedule_sweep(w, c);
	return true;
}

/* ---- partitions ---- */

/* Makes `pkey` the only P_Key of a port; 0: the port has none. */
static void set_pkey(struct cables *c, struct port *port, uint16_t pkey)
{
	uint8_t block[SMA_TABLES_BLOCK] = {0};
	struct sma_call call = {.node = port->node,
				.in = port,
				.modifier = (uint32_t)port->number << 16,
				.data = block,
				.is_set = true};

	bytes_put16(block, pkey);
	if (sma_tables_pkeys(&call))
		abort();
	c->fabric->changes++;
}

bool cables_part(struct world *w, struct cables *c)
{
	/* No P_Key, the P_Key of another partition, and the default partition
	 * as a limited member, which still reaches full members. */
	static const uint16_t pkeys[] = {0, 0x8001, BTH_DEFAULT_PKEY & 0x7fff};
	uint32_t hosts = CABLES_PORTS * w->host_count;
	struct cable *k = &c->list[c->count - 1 - rng_below(&w->rng, hosts)];
	uint64_t end = w->now_ns + rng_below(&w->rng, PART_MS) * WORLD_MS;

	if (k->rejoin_ns != UINT64_MAX)
		return false;
	k->rejoin_ns = bits_min_u64(end, w->due.quiet_ns);
	c->has_parted = true;
	set_pkey(c, end_of(c, k, (int)rng_below(&w->rng, 2)),
		 pkeys[rng_below(&w->rng, 3)]);
	return true;
}

static void restore_pkeys(struct cables *c, struct cable *k)
{
	k->rejoin_ns = UINT64_MAX;
	set_pkey(c, end_of(c, k, 0), BTH_DEFAULT_PKEY);
	set_pkey(c, end_of(c, k, 1), BTH_DEFAULT_PKEY);
}

/* ---- progress ---- */

uint64_t cables_next(const struct cables *c)
{
	uint64_t next = c->sweep_ns;

	for (uint32_t i = 0; i < c->count; i++) {
		next = bits_min_u64(next, c->list[i].repair_ns);
		next = bits_min_u64(next, c->list[i].rejoin_ns);
	}
	return next;
}

static void repair_cable(struct world *w, struct cables *c, struct cable *k)
{
	k->repair_ns = UINT64_MAX;
	link_set_phys(end_of(c, k, 0), PHYS_POLLING);
	schedule_sweep(w, c);
}

bool cables_turn(struct world *w, struct cables *c)
{
	bool has_changed = false;

	for (uint32_t i = 0; i < c->count; i++) {
		struct cable *k = &c->list[i];

		has_changed |=
			k->repair_ns <= w->now_ns || k->rejoin_ns <= w->now_ns;
		if (k->repair_ns <= w->now_ns)
			repair_cable(w, c, k);
		if (k->rejoin_ns <= w->now_ns)
			restore_pkeys(c, k);
	}
	if (c->sweep_ns > w->now_ns)
		return has_changed;
	sweep_subnet(w, c);
	return true;
}
