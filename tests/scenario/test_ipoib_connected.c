/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Two IPoIB interfaces in connected mode: their requests for connections are
 * refused, late and lost, connections break at one end or both, and ports go
 * down.  The test plays the kernels, the subnet, its administration and the CM.
 * Equal seeds give equal runs.
 */
#include "test.h"

#include "hdr/bytes.h"
#include "hdr/ip.h"
#include "ipoib/arp.h"
#include "ipoib/inside.h"
#include "ipoib/stream.h"
#include "sa_answer.h"
#include "util/rng.h"

enum {
	CALLS = 256,
	MADS = 8,
	SEEDS = 60,
	STEP_MS = 10,
	ETHERNET = 14,
	TYPE_IPV4 = 0x0800,
	TYPE_ARP = 0x0806,
	LARGE = 30000,
	SHORT = 100,
	QPN = 0x100,
};

/* A connection, or the request for a connection. */
struct call {
	enum { CALL_NONE, CALL_ASKS, CALL_ANSWERS, CALL_OPEN } state;
	int asker;	 /* the side that has sent the request */
	uint32_t id[2];	 /* the connection's IDs at sides 0 and 1; 0: none */
	uint64_t due_ms; /* when the message arrives */
	uint8_t data[CONN_DATA_BYTES];
};

struct world;

struct side {
	struct world *w;
	int number;
	struct ipoib *m;
	struct ipoib_link link;
	uint8_t mads[MADS][MAD_BYTES];
	uint32_t mad_count;
	uint32_t got_short, got_large;
	bool is_active;
};

struct world {
	struct side sides[2];
	struct call calls[CALLS];
	struct rng rng;
	uint64_t now_ms;
	/* The chance in a million of a fault: a message is lost, or a request
	 * for a connection fails.  An open connection breaks in a step with a
	 * fiftieth of this chance. */
	uint32_t faults;
};

static struct side *other_side(const struct side *s)
{
	return &s->w->sides[!s->number];
}

/* ---- the subnet ---- */

static void give_packet(struct side *to, struct ipoib_from from,
			const uint8_t *p, size_t bytes)
{
	uint8_t *room = calloc(1, IPOIB_HEADROOM + bytes);

	assert_non_null(room);
	memcpy(room + IPOIB_HEADROOM, p, bytes);
	ipoib_packet(to->m, &from, room + IPOIB_HEADROOM, bytes, to->w->now_ms);
	free(room);
}

static void take_packet(void *ctx, struct route *r, const uint8_t *p,
			size_t bytes)
{
	const struct side *s = ctx;
	struct side *to = other_side(s);
	const struct ipoib_from from = {.qpn = QPN + (uint32_t)s->number,
					.lid = (uint16_t)(10 + s->number)};

	assert_true(bytes <= 2048);
	if (r->qpn != QPN + (uint32_t)to->number || !to->is_active ||
	    !s->is_active || rng_chance(&s->w->rng, s->w->faults))
		return;
	give_packet(to, from, p, bytes);
}

static struct call *find_call(struct world *w, int side, uint32_t id)
{
	for (int i = 0; i < CALLS; i++) {
		struct call *c = &w->calls[i];

		if (c->state != CALL_NONE && id && c->id[side] == id)
			return c;
	}
	return NULL;
}

static bool take_connect(void *ctx, uint32_t id, const struct route *r,
			 const uint8_t data[CONN_DATA_BYTES])
{
	struct side *s = ctx;
	struct call *c = s->w->calls;

	assert_true(r->mtu && r->lid);
	if (rng_chance(&s->w->rng, s->w->faults))
		return false;
	while (c->state != CALL_NONE)
		c++;
	assert_true(c < s->w->calls + CALLS);
	*c = (struct call){.state = CALL_ASKS, .asker = s->number};
	c->id[s->number] = id;
	c->due_ms = s->w->now_ms + rng_below(&s->w->rng, 200);
	memcpy(c->data, data, CONN_DATA_BYTES);
	return true;
}

static void take_stream(void *ctx, uint32_t id, const uint8_t *p, size_t bytes)
{
	struct side *s = ctx, *to = other_side(s);
	struct call *c = find_call(s->w, s->number, id);
	struct ipoib_from from;

	/* an interface sends only by its own connections */
	assert_true(c && c->asker == s->number && c->state == CALL_OPEN);
	if (to->is_active && s->is_active &&
	    stream_from(to->m, c->id[to->number], &from, s->w->now_ms))
		give_packet(to, from, p, bytes);
}

static void take_close(void *ctx, uint32_t id)
{
	struct side *s = ctx;
	struct call *c = find_call(s->w, s->number, id);

	assert_non_null(c);
	c->id[s->number] = 0;
}

static void take_release(void *ctx, struct route *r)
{
}

static void take_question(void *ctx, const uint8_t mad[MAD_BYTES])
{
	struct side *s = ctx;

	if (s->mad_count < MADS)
		memcpy(s->mads[s->mad_count++], mad, MAD_BYTES);
}

static bool take_attach(void *ctx, const uint8_t mgid[16], bool attaches)
{
	return true;
}

static void take_link(void *ctx, const struct ipoib_link *link)
{
	((struct side *)ctx)->link = *link;
}

static void take_look(void *ctx)
{
}

static uint32_t take_addresses(void *ctx, struct announce_address *all,
			       uint32_t room)
{
	return 0;
}

static void take_sentence(void *ctx, const char *text)
{
}

static void take_frame(void *ctx, const uint8_t *p, size_t bytes)
{
	struct side *s = ctx;
	struct ip_v4 ip;

	if (bytes_get16(p + 12) != TYPE_IPV4)
		return;
	assert_true(ip_v4_parse(p + ETHERNET, bytes - ETHERNET, &ip));
	if (ip.protocol != 17)
		return; /* ICMP: a packet was too big */
	/* the sender of a packet by UD may not be known yet */
	if (bytes == ETHERNET + LARGE)
		assert_memory_equal(p + 6, other_side(s)->link.mac, 6);
	s->got_large += bytes == ETHERNET + LARGE;
	s->got_short += bytes == ETHERNET + SHORT;
}

static const struct ipoib_sink sink = {
	.connect = take_connect,
	.stream = take_stream,
	.close = take_close,
	.frame = take_frame,
	.packet = take_packet,
	.release = take_release,
	.ask = take_question,
	.attach = take_attach,
	.link = take_link,
	.look = take_look,
	.addresses = take_addresses,
	.say = take_sentence,
};

static void answer_all(struct side *s)
{
	for (uint32_t i = 0; i < s->mad_count; i++) {
		uint8_t *mad = s->mads[i];

		if (sa_asks_path(mad))
			sa_answer_path(mad,
				       (uint16_t)(10 + other_side(s)->number),
				       (uint16_t)(10 + s->number), 4);
		else
			sa_answer_group(mad, 0xc001, 0xb1b, 4);
		sa_answer(mad, 0);
		if (s->is_active && !rng_chance(&s->w->rng, s->w->faults))
			ipoib_answer(s->m, mad, MAD_BYTES, s->w->now_ms);
	}
	s->mad_count = 0;
}

/* ---- the CM ---- */

/* Tells each side that has not closed the connection that the connection has
 * ended. */
static void end_call(struct world *w, struct call *c)
{
	for (int i = 0; i < 2; i++) {
		uint32_t id = c->id[i];

		c->id[i] = 0;
		if (id)
			stream_closed(w->sides[i].m, id, w->now_ms);
	}
	c->state = CALL_NONE;
}

static void step_asked(struct world *w, struct call *c)
{
	struct side *to = &w->sides[!c->asker];
	uint8_t gid[16] = {0xfe, 0x80, [15] = (uint8_t)(c->asker + 1)};
	uint8_t answer[CONN_DATA_BYTES];
	uint32_t id = 0;

	if (to->is_active && !rng_chance(&w->rng, w->faults))
		id = stream_asked(to->m, gid, c->data, sizeof(c->data), answer,
				  w->now_ms);
	if (!id) {
		end_call(w, c);
		return;
	}
	c->id[to->number] = id;
	c->state = CALL_ANSWERS;
	c->due_ms = w->now_ms + rng_below(&w->rng, 200);
	memcpy(c->data, answer, sizeof(answer));
}

static void step_answered(struct world *w, struct call *c)
{
	struct side *asker = &w->sides[c->asker];
	uint32_t id = c->id[c->asker];

	/* stream_opened may send */
	c->state = CALL_OPEN;
	if (!asker->is_active || rng_chance(&w->rng, w->faults) ||
	    !stream_opened(asker->m, id, c->data, sizeof(c->data), w->now_ms))
		end_call(w, c);
}

/* Takes the next step of a call: the request or the answer arrives, or the
 * connection ends.  If one side has closed its end, the other side learns of
 * that at a step at which no message is lost; until then packets to the closed
 * end are lost.  An open connection also breaks at random. */
static void step_call(struct world *w, struct call *c)
{
	bool has_both = c->id[0] && c->id[1];

	if (c->state == CALL_ASKS && !c->id[c->asker])
		c->state = CALL_NONE;
	else if (c->state == CALL_ASKS && w->now_ms >= c->due_ms)
		step_asked(w, c);
	else if (c->state == CALL_ANSWERS && !has_both)
		end_call(w, c);
	else if (c->state == CALL_ANSWERS && w->now_ms >= c->due_ms)
		step_answered(w, c);
	else if (c->state == CALL_OPEN && !has_both &&
		 !rng_chance(&w->rng, w->faults))
		end_call(w, c);
	else if (c->state == CALL_OPEN && rng_chance(&w->rng, w->faults / 50))
		end_call(w, c);
}

/* ---- the world ---- */

static void pass_time(struct world *w, uint64_t ms)
{
	for (uint64_t end = w->now_ms + ms; w->now_ms < end;
	     w->now_ms += STEP_MS) {
		for (int i = 0; i < CALLS; i++)
			step_call(w, &w->calls[i]);
		for (int i = 0; i < 2; i++) {
			struct side *s = &w->sides[i];

			answer_all(s);
			if (w->now_ms >= ipoib_deadline(s->m))
				ipoib_turn(s->m, w->now_ms);
		}
	}
}

static void set_port(struct side *s, bool is_active)
{
	const struct ipoib_port port = {
		.is_active = is_active,
		.has_pkey = true,
		.pkey = 0xffff,
		.lid = (uint16_t)(10 + s->number),
		.sm_lid = 1,
		.mtu = 4,
		.gid = {0xfe, 0x80, [15] = (uint8_t)(s->number + 1)}};

	s->is_active = is_active;
	ipoib_port(s->m, &port, s->w->now_ms);
}

/* The side learns the address of the other side by ARP. */
static void learn_other(struct side *s)
{
	const struct side *from = other_side(s);
	const struct ipoib_from sender = {.qpn = QPN + (uint32_t)from->number,
					  .lid = (uint16_t)(10 + from->number)};
	uint8_t p[IPOIB_HEADER_BYTES + ARP_HWADDR_BYTES] = {0};
	struct arp arp = {.operation = 1};

	hwaddr_write(arp.sender, &from->m->self);
	bytes_put16(p, TYPE_ARP);
	arp_write_hwaddr(p + IPOIB_HEADER_BYTES, &arp);
	give_packet(s, sender, p, sizeof(p));
}

static void send_datagram(struct side *s, uint16_t bytes)
{
	struct ip_v4 ip = {.total_length = bytes,
			   .flags_fragment = IP_V4_DF,
			   .ttl = 64,
			   .protocol = 17,
			   .src = 0x0a000001u + (uint32_t)s->number,
			   .dst = 0x0a000002u - (uint32_t)s->number};
	uint8_t *p = calloc(1, ETHERNET + (size_t)bytes);

	assert_non_null(p);
	memcpy(p, other_side(s)->link.mac, 6);
	memcpy(p + 6, s->link.mac, 6);
	bytes_put16(p + 12, TYPE_IPV4);
	ip_v4_write(p + ETHERNET, &ip);
	ipoib_frame(s->m, p, ETHERNET + (size_t)bytes, s->w->now_ms);
	free(p);
}

static void send_both(struct world *w)
{
	for (int i = 0; i < 2; i++) {
		learn_other(&w->sides[i]);
		send_datagram(&w->sides[i], LARGE);
		send_datagram(&w->sides[i], SHORT);
	}
}

static struct world *begin_world(uint64_t seed, uint32_t faults)
{
	struct world *w = calloc(1, sizeof(*w));

	assert_non_null(w);
	rng_init(&w->rng, seed);
	w->faults = faults;
	w->now_ms = 1000;
	for (int i = 0; i < 2; i++) {
		struct side *s = &w->sides[i];

		s->w = w;
		s->number = i;
		s->m = ipoib_new(&sink, s, QPN + (uint32_t)i);
		assert_non_null(s->m);
		stream_enable(s->m, IPOIB_CONNECTED_MTU);
		set_port(s, true);
	}
	return w;
}

static void end_world(struct world *w)
{
	for (int i = 0; i < 2; i++)
		ipoib_free(w->sides[i].m);
	for (int i = 0; i < CALLS; i++)
		assert_int_equal(w->calls[i].id[0] | w->calls[i].id[1], 0);
	free(w);
}

/* Without faults, large and short packets pass in both directions. */
static void expect_connected(struct world *w)
{
	w->faults = 0;
	pass_time(w, CONN_PAUSE_MOST_MS + 20000);
	for (int i = 0; i < 5; i++) {
		send_both(w);
		pass_time(w, 1000);
	}
	for (int i = 0; i < 2; i++)
		w->sides[i].got_large = w->sides[i].got_short = 0;
	send_both(w);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(w->sides[i].got_large, 1);
		assert_int_equal(w->sides[i].got_short, 1);
	}
}

static void two_interfaces_connect(void **state)
{
	struct world *w = begin_world(1, 0);

	pass_time(w, 1000);
	expect_connected(w);
	end_world(w);
}

static void connections_recover_from_faults(void **state)
{
	for (uint64_t seed = 1; seed <= SEEDS; seed++) {
		struct world *w = begin_world(seed, 300000);

		for (int i = 0; i < 60; i++) {
			struct side *s = &w->sides[rng_below(&w->rng, 2)];

			if (rng_below(&w->rng, 4) == 0)
				set_port(s, !s->is_active);
			send_both(w);
			pass_time(w, STEP_MS * rng_below(&w->rng, 200));
		}
		for (int i = 0; i < 2; i++)
			set_port(&w->sides[i], true);
		expect_connected(w);
		end_world(w);
	}
}

/* After a pause the connections of both sides are closed.  Later packets begin
 * new connections. */
static void idle_connections_end_at_both_ends(void **state)
{
	struct world *w = begin_world(1, 0);

	pass_time(w, 1000);
	expect_connected(w);
	pass_time(w, 200000);
	for (int i = 0; i < CALLS; i++)
		assert_int_equal(w->calls[i].state, CALL_NONE);
	expect_connected(w);
	end_world(w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(two_interfaces_connect),
		cmocka_unit_test(connections_recover_from_faults),
		cmocka_unit_test(idle_connections_end_at_both_ends),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
