/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A subnet for the scenarios of lanes: the test writes the topology and the
 * forwarding tables.  Adapter number n, from 0, has the LID n + 1.  All links
 * are active, HOQLife is without limit, and SL n is on VL n modulo 8.  Each
 * packet has 126 bytes and takes 2 blocks, and an input buffer has room for
 * LANE_WORLD_FIT packets.
 */
#ifndef TESTS_SCENARIO_LANE_WORLD_H
#define TESTS_SCENARIO_LANE_WORLD_H

#include "test.h"

#include "fabric/data.h"
#include "fabric/lane.h"
#include "hdr/bth.h"
#include "hdr/bytes.h"
#include "hdr/lrh.h"

enum {
	LANE_WORLD_HOSTS = 8,
	LANE_WORLD_FIT = 4, /* packets in an input buffer */
	LANE_WORLD_BYTES = 2 * LANE_BLOCK,
	LANE_WORLD_HOQ = 42,	 /* the offset of HOQLife in PortInfo */
	LANE_WORLD_ENDLESS = 20, /* a HOQLife without limit */
};

struct lane_world {
	struct fabric *f;
	struct data_end *ends[LANE_WORLD_HOSTS]; /* of each adapter */
	const char *names[LANE_WORLD_HOSTS];	 /* of each adapter */
	uint32_t count;				 /* adapters */
	uint64_t now_ms;
	/* How many packets were sent; each packet contains how many were sent
	 * before it. */
	uint32_t sent;
};

/* Returns port `number` of the node `name`. */
static inline struct port *lane_world_port(const struct lane_world *w,
					   const char *name, int number)
{
	return &fabric_find(w->f, name)->ports[number];
}

static inline void lane_world_set_ports(struct node *node)
{
	for (int i = 1; i <= node->port_count; i++) {
		struct port *port = &node->ports[i];

		if (port->state == STATE_DOWN)
			continue;
		port->info[36] = 5 << 4; /* MTU 4096 */
		port->info[43] = 4 << 4; /* VL 0 to 7 */
		port->info[LANE_WORLD_HOQ] = LANE_WORLD_ENDLESS;
		port->state = STATE_ACTIVE;
	}
}

static inline void lane_world_add_host(struct lane_world *w, struct node *node)
{
	uint32_t i = w->count++;
	int err;

	assert_true(i < LANE_WORLD_HOSTS);
	bytes_put16(node->ports[1].info + 16, (uint16_t)(i + 1));
	w->names[i] = fabric_id(node);
	w->ends[i] = data_open(node, 1, NULL, &err);
	assert_non_null(w->ends[i]);
}

/* Makes the subnet whose net file has this text.  lane_world_fini frees it. */
static inline void lane_world_init(struct lane_world *w, const char *text)
{
	struct net_error error;
	struct node *node;
	struct net net;

	*w = (struct lane_world){.now_ms = 1000};
	assert_int_equal(net_parse(text, strlen(text), &net, &error), 0);
	w->f = fabric_new(&net);
	net_free(&net);
	assert_non_null(w->f);
	w->f->data.buffer_blocks = 2 * LANE_WORLD_FIT;
	fabric_set_time(w->f, w->now_ms);
	for (uint32_t i = 0; (node = fabric_node(w->f, i)); i++) {
		lane_world_set_ports(node);
		if (!node_is_switch(node))
			lane_world_add_host(w, node);
		else
			node->switch_info[7] = LANE_WORLD_HOSTS;
	}
}

static inline void lane_world_fini(struct lane_world *w)
{
	fabric_free(w->f);
}

/* Lets the switch `name` send the packets for host `to` by its port `number`.
 */
static inline void lane_world_route(const struct lane_world *w,
				    const char *name, uint32_t to,
				    uint8_t number)
{
	fabric_find(w->f, name)->lft[to + 1] = number;
}

/* Moves the time ms milliseconds forward, and runs the fabric. */
static inline void lane_world_turn(struct lane_world *w, uint64_t ms)
{
	w->now_ms += ms;
	fabric_turn(w->f, w->now_ms);
}

/* Sends a packet, whose number is w->sent, from adapter `from` to adapter `to`,
 * without a turn. */
static inline void lane_world_send(struct lane_world *w, uint32_t from,
				   uint32_t to, uint8_t sl)
{
	uint8_t p[LANE_WORLD_BYTES + LRH_VCRC_BYTES] = {0};
	const size_t n = LANE_WORLD_BYTES - 4;
	const struct lrh lrh = {.lnh = LRH_NEXT_LOCAL,
				.sl = sl,
				.dlid = (uint16_t)(to + 1),
				.slid = (uint16_t)(from + 1),
				.words = (uint16_t)(n / 4)};
	const struct bth bth = {
		.opcode = 4,
		.pkey = 0xffff,
		.dest_qpn = data_number(w->ends[to]) << DATA_REST_BITS | 5};

	lrh_write(p, &lrh);
	bth_write(p + LRH_BYTES, &bth);
	bytes_put32(p + LRH_BYTES + BTH_BYTES, w->sent++);
	lrh_seal(p, n);
	assert_int_equal(data_send(w->ends[from], p, n + LRH_VCRC_BYTES), 0);
}

/* Sends up to `most` packets, a turn after each, while the sender may send.
 * Returns how many it sent. */
static inline int lane_world_fill(struct lane_world *w, uint32_t from,
				  uint32_t to, uint8_t sl, int most)
{
	int n = 0;

	for (; n < most && data_may_send(w->ends[from]); n++) {
		lane_world_send(w, from, to, sl);
		lane_world_turn(w, 0);
	}
	return n;
}

/* Fetches a packet, and sets *lrh to its LRH.  Returns the packet's number; -1:
 * there is no packet. */
static inline int lane_world_fetch(struct lane_world *w, uint32_t host,
				   struct lrh *lrh)
{
	size_t n;
	const uint8_t *p = data_fetch(w->ends[host], &n);
	int number;

	if (!p)
		return -1;
	assert_true(lrh_is_intact(p, n));
	assert_true(lrh_frame(p, n, lrh));
	number = (int)bytes_get32(p + LRH_BYTES + BTH_BYTES);
	data_fetched(w->ends[host]);
	return number;
}

/* Fetches up to `most` packets, a turn after each.  Returns how many came. */
static inline int lane_world_drain(struct lane_world *w, uint32_t host,
				   int most)
{
	struct lrh lrh;
	int n = 0;

	for (; n < most && lane_world_fetch(w, host, &lrh) >= 0; n++)
		lane_world_turn(w, 0);
	return n;
}

#endif
