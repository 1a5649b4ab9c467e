/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Three IPoIB interfaces exchange packets through a medium that loses,
 * duplicates and reorders them, with a subnet administration whose answers are
 * lost and late, too.  The test plays the kernels, the subnet and its
 * administration.  Equal seeds give equal runs.
 */
#include "test.h"

#include "hdr/bytes.h"
#include "hdr/ip.h"
#include "hdr/sa.h"
#include "ipoib/arp.h"
#include "ipoib/inside.h"
#include "ipoib/mgid.h"
#include "sa_answer.h"
#include "util/rng.h"

enum {
	HOSTS = 3,
	FLIGHTS = 512, /* packets and MADs under way */
	GROUPS = 16,   /* of the administration */
	SEEDS = 40,
	STEP_MS = 5,
	ETHERNET = 14,
	TYPE_IPV4 = 0x0800,
	TYPE_ARP = 0x0806,
	PAYLOAD = 100,
	QKEY = 0x0b1b,
	PKEY = 0x8001,
	MLID = 0xc000,
};

/* This value does not fit an int, and would make all constants of the enum
 * unsigned. */
#define GROUP_IP 0xef010203u /* hosts 0 and 1 are members */

/* A packet to a host, or a MAD to or from the administration, under way. */
struct flight {
	enum { FLIES_NOTHING, FLIES_PACKET, FLIES_QUESTION, FLIES_ANSWER } kind;
	uint64_t due_ms;
	int host; /* the receiver, or the asker */
	struct ipoib_from from;
	uint8_t p[2100];
	size_t bytes;
};

struct world;

struct host {
	struct world *w;
	int number;
	struct ipoib *m;
	struct ipoib_port port;
	struct ipoib_link link;
	uint32_t ip;
	bool knows[HOSTS]; /* the ARP cache */
	uint8_t macs[HOSTS][6];
	uint8_t attached[GROUP_MAX][16];
	uint32_t attached_count;
	uint32_t got[HOSTS];	   /* datagrams of each host */
	uint32_t got_group[HOSTS]; /* datagrams of each host to the group */
	uint32_t looks, handles;
	bool joins_group;
};

struct sa_group {
	uint8_t mgid[16];
	/* sets of hosts: full members, send-only members */
	uint32_t full, senders;
};

struct world {
	struct host hosts[HOSTS];
	struct flight flights[FLIGHTS];
	struct sa_group groups[GROUPS];
	uint32_t group_count;
	struct rng rng;
	uint64_t now_ms;
	uint32_t loss;	    /* chance in a million that a flight is lost */
	uint64_t tables_ms; /* packets to groups are lost before this time */
	bool has_sa;
};

static void send_flight(struct world *w, struct flight f)
{
	int copies = rng_chance(&w->rng, w->loss)	? 0
		     : rng_chance(&w->rng, w->loss / 4) ? 2
							: 1;

	for (int i = 0; i < FLIGHTS && copies; i++) {
		if (w->flights[i].kind != FLIES_NOTHING)
			continue;
		f.due_ms = w->now_ms + rng_below(&w->rng, w->loss ? 40 : 2);
		w->flights[i] = f;
		copies--;
	}
}

static struct sa_group *find_sa_group(struct world *w, const uint8_t *mgid)
{
	for (uint32_t i = 0; i < w->group_count; i++)
		if (!memcmp(w->groups[i].mgid, mgid, 16))
			return &w->groups[i];
	return NULL;
}

/* ---- the sink of an interface ---- */

static void take_packet(void *ctx, struct route *r, const uint8_t *p,
			size_t bytes)
{
	struct host *h = ctx;
	struct world *w = h->w;
	struct flight f = {.kind = FLIES_PACKET,
			   .from = {.qpn = h->m->self.qpn, .lid = h->port.lid},
			   .bytes = bytes};

	assert_uint_in_range(bytes, IPOIB_HEADER_BYTES + 1, 2048);
	if (!r->handle) {
		r->handle = h;
		h->handles++;
	}
	memcpy(f.p, p, bytes);
	f.from.is_global = r->is_global;
	memcpy(f.from.sgid, h->port.gid, 16);
	memcpy(f.from.dgid, r->gid, 16);
	for (int i = 0; i < HOSTS; i++) {
		struct host *to = &w->hosts[i];

		f.host = i;
		if (r->lid < MLID && to->port.is_active &&
		    to->port.lid == r->lid && to->m->self.qpn == r->qpn)
			send_flight(w, f);
		/* the medium gives groups' packets to all ports */
		if (r->lid >= MLID && w->now_ms >= w->tables_ms)
			send_flight(w, f);
	}
}

static void take_release(void *ctx, struct route *r)
{
	struct host *h = ctx;

	assert_ptr_equal(r->handle, h);
	h->handles--;
}

static void take_question(void *ctx, const uint8_t mad[MAD_BYTES])
{
	struct host *h = ctx;
	struct flight f = {
		.kind = FLIES_QUESTION, .host = h->number, .bytes = MAD_BYTES};

	memcpy(f.p, mad, MAD_BYTES);
	send_flight(h->w, f);
}

static bool take_attach(void *ctx, const uint8_t mgid[16], bool attaches)
{
	struct host *h = ctx;

	for (uint32_t i = 0; i < h->attached_count; i++) {
		if (memcmp(h->attached[i], mgid, 16))
			continue;
		assert_false(attaches);
		memcpy(h->attached[i], h->attached[--h->attached_count], 16);
		return true;
	}
	assert_true(attaches);
	memcpy(h->attached[h->attached_count++], mgid, 16);
	return true;
}

static void take_link(void *ctx, const struct ipoib_link *link)
{
	struct host *h = ctx;

	if (!link->is_up)
		assert_int_equal(h->attached_count, 0);
	h->link = *link;
}

static void take_look(void *ctx)
{
	struct host *h = ctx;

	h->looks++;
}

static uint32_t take_addresses(void *ctx, struct announce_address *all,
			       uint32_t room)
{
	struct host *h = ctx;

	assert_true(room);
	all[0] = (struct announce_address){.is_v6 = false};
	bytes_put32(all[0].ip, h->ip);
	return 1;
}

static void take_sentence(void *ctx, const char *text)
{
	assert_true(strlen(text) > 10);
}

/* ---- the kernel ---- */

/* Fills in the header of a frame whose payload is at p + ETHERNET, and sends
 * the frame. */
static void send_frame(struct host *h, const uint8_t *to, uint16_t type,
		       uint8_t *p, size_t payload)
{
	memcpy(p, to, 6);
	memcpy(p + 6, h->link.mac, 6);
	bytes_put16(p + 12, type);
	ipoib_frame(h->m, p, ETHERNET + payload, h->w->now_ms);
}

static void send_arp(struct host *h, uint16_t operation, const uint8_t *to,
		     uint32_t ip)
{
	static const uint8_t all[6] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff};
	uint8_t p[ETHERNET + ARP_MAC_BYTES];
	struct arp arp = {.operation = operation};

	memcpy(arp.sender, h->link.mac, 6);
	bytes_put32(arp.sender_ip, h->ip);
	bytes_put32(arp.target_ip, ip);
	if (to)
		memcpy(arp.target, to, 6);
	arp_write_mac(p + ETHERNET, &arp);
	send_frame(h, to ? to : all, TYPE_ARP, p, ARP_MAC_BYTES);
}

static void send_datagram(struct host *h, const uint8_t *mac, uint32_t ip)
{
	uint8_t p[ETHERNET + IP_V4_BYTES + PAYLOAD];
	struct ip_v4 head = {.total_length = IP_V4_BYTES + PAYLOAD,
			     .ttl = 64,
			     .protocol = 17,
			     .src = h->ip,
			     .dst = ip};

	memset(p, h->number + 1, sizeof(p));
	ip_v4_write(p + ETHERNET, &head);
	send_frame(h, mac, TYPE_IPV4, p, IP_V4_BYTES + PAYLOAD);
}

static void send_to(struct host *h, int to)
{
	struct host *other = &h->w->hosts[to];

	if (h->knows[to])
		send_datagram(h, h->macs[to], other->ip);
	else
		send_arp(h, 1, NULL, other->ip);
}

static void send_to_group(struct host *h)
{
	static const uint8_t mac[6] = {1, 0, 0x5e, 1, 2, 3};

	send_datagram(h, mac, GROUP_IP);
}

static void take_arp(struct host *h, const uint8_t *p)
{
	struct arp arp;
	uint32_t ip;
	int from;

	assert_true(arp_parse_mac(p + ETHERNET, ARP_MAC_BYTES, &arp));
	assert_memory_equal(p + 6, arp.sender, 6);
	ip = bytes_get32(arp.sender_ip);
	from = (int)(ip & 15);
	assert_uint_in_range(from, 0, HOSTS - 1);
	assert_int_not_equal(from, h->number);
	if (h->knows[from])
		memcpy(h->macs[from], arp.sender, 6);
	if (bytes_get32(arp.target_ip) != h->ip)
		return;
	memcpy(h->macs[from], arp.sender, 6);
	h->knows[from] = true;
	if (arp.operation == 1) {
		send_arp(h, 2, arp.sender, ip);
		return;
	}
	/* a reply goes to this host alone, and names it */
	assert_memory_equal(p, h->link.mac, 6);
	assert_memory_equal(arp.target, h->link.mac, 6);
}

static void take_frame(void *ctx, const uint8_t *p, size_t bytes)
{
	static const uint8_t group[6] = {1, 0, 0x5e, 1, 2, 3};
	struct host *h = ctx;
	struct ip_v4 ip;
	uint32_t from;

	if (bytes_get16(p + 12) == TYPE_ARP) {
		take_arp(h, p);
		return;
	}
	assert_int_equal(bytes_get16(p + 12), TYPE_IPV4);
	assert_int_equal(bytes, ETHERNET + IP_V4_BYTES + PAYLOAD);
	assert_true(ip_v4_parse(p + ETHERNET, bytes - ETHERNET, &ip));
	assert_true(ip_v4_checksum_ok(p + ETHERNET, &ip));
	from = ip.src & 15;
	for (size_t i = ETHERNET + IP_V4_BYTES; i < bytes; i++)
		assert_int_equal(p[i], from + 1);
	if (ip.dst == GROUP_IP) {
		assert_memory_equal(p, group, 6);
		h->got_group[from]++;
	} else {
		assert_int_equal(ip.dst, h->ip);
		assert_memory_equal(p, h->link.mac, 6);
		h->got[from]++;
	}
}

static const struct ipoib_sink sink = {
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

/* ---- the administration ---- */

static uint16_t join_group(struct world *w, int host, uint8_t *mad)
{
	struct sa_group *g = find_sa_group(w, mad + SA_AT_RECORD);
	bool is_full = mad[SA_AT_RECORD + 48] & SA_JOIN_FULL;
	bool makes = bytes_get64(mad + SA_AT_MASK) & 4; /* a Q_Key is given */

	if (!g && (!is_full || !makes))
		return SA_COMPONENTS;
	if (!g) {
		assert_true(w->group_count < GROUPS);
		g = &w->groups[w->group_count++];
		*g = (struct sa_group){0};
		memcpy(g->mgid, mad + SA_AT_RECORD, 16);
	}
	if (is_full)
		g->full |= 1u << host;
	else
		g->senders |= 1u << host;
	sa_answer_group(mad, (uint16_t)(MLID + 1 + (g - w->groups)), QKEY, 4);
	return 0;
}

static uint16_t leave_group(struct world *w, int host, const uint8_t *mad)
{
	struct sa_group *g = find_sa_group(w, mad + SA_AT_RECORD);

	if (!g)
		return SA_REQUEST_INVALID;
	if (mad[SA_AT_RECORD + 48] & SA_JOIN_FULL)
		g->full &= ~(1u << host);
	if (mad[SA_AT_RECORD + 48] & SA_JOIN_SEND_ONLY)
		g->senders &= ~(1u << host);
	return 0;
}

static uint16_t find_path(struct world *w, int host, uint8_t *mad)
{
	for (int i = 0; i < HOSTS; i++) {
		if (memcmp(w->hosts[i].port.gid, mad + SA_AT_RECORD + 8, 16) ||
		    !w->hosts[i].port.is_active)
			continue;
		sa_answer_path(mad, w->hosts[i].port.lid,
			       w->hosts[host].port.lid, 4);
		return 0;
	}
	return SA_NO_RECORDS;
}

static void answer_question(struct world *w, struct flight *f)
{
	uint8_t *mad = f->p;
	uint16_t status;

	if (!w->has_sa)
		return;
	if (sa_asks_path(mad))
		status = find_path(w, f->host, mad);
	else if (sa_asks_leave(mad))
		status = leave_group(w, f->host, mad);
	else
		status = join_group(w, f->host, mad);
	sa_answer(mad, status);
	f->kind = FLIES_ANSWER;
	send_flight(w, *f);
}

/* ---- the world ---- */

static bool is_attached(const struct host *h, const uint8_t *mgid)
{
	for (uint32_t i = 0; i < h->attached_count; i++)
		if (!memcmp(h->attached[i], mgid, 16))
			return true;
	return false;
}

static void deliver_one(struct world *w, struct flight *slot)
{
	struct flight f = *slot;
	struct host *h = &w->hosts[f.host];
	uint8_t room[IPOIB_HEADROOM + sizeof(f.p)];

	slot->kind = FLIES_NOTHING;
	if (f.kind == FLIES_QUESTION) {
		answer_question(w, &f);
	} else if (f.kind == FLIES_ANSWER) {
		ipoib_answer(h->m, f.p, f.bytes, w->now_ms);
	} else if (f.from.dgid[0] != 0xff || is_attached(h, f.from.dgid)) {
		memcpy(room + IPOIB_HEADROOM, f.p, f.bytes);
		ipoib_packet(h->m, &f.from, room + IPOIB_HEADROOM, f.bytes,
			     w->now_ms);
	}
}

static void look_at_groups(struct host *h)
{
	struct joined j = {0};

	j.all[j.count++].ipv4 = 0xe0000001;
	if (h->joins_group)
		j.all[j.count++].ipv4 = GROUP_IP;
	ipoib_joined(h->m, &j, h->w->now_ms);
}

static void pass_time(struct world *w, uint64_t ms)
{
	for (uint64_t end = w->now_ms + ms; w->now_ms < end;
	     w->now_ms += STEP_MS) {
		for (int i = 0; i < FLIGHTS; i++)
			if (w->flights[i].kind != FLIES_NOTHING &&
			    w->flights[i].due_ms <= w->now_ms)
				deliver_one(w, &w->flights[i]);
		for (int i = 0; i < HOSTS; i++) {
			if (w->now_ms % 100 == 0)
				look_at_groups(&w->hosts[i]);
			if (w->now_ms >= ipoib_deadline(w->hosts[i].m))
				ipoib_turn(w->hosts[i].m, w->now_ms);
		}
	}
}

static void set_port(struct host *h, bool is_active, uint16_t lid)
{
	h->port = (struct ipoib_port){
		.is_active = is_active,
		.has_pkey = true,
		.pkey = PKEY,
		.lid = lid,
		.sm_lid = 1,
		.mtu = 5,
		.gid = {0xfe, 0x80, [15] = (uint8_t)(h->number + 1)}};
	ipoib_port(h->m, &h->port, h->w->now_ms);
}

static void begin_world(struct world *w, uint64_t seed, uint32_t loss)
{
	memset(w, 0, sizeof(*w));
	rng_init(&w->rng, seed);
	w->loss = loss;
	w->has_sa = true;
	w->now_ms = 1000;
	mgid_broadcast(PKEY, w->groups[w->group_count++].mgid);
	for (int i = 0; i < HOSTS; i++) {
		struct host *h = &w->hosts[i];

		h->w = w;
		h->number = i;
		h->ip = 0x0a000000u + (uint32_t)i;
		h->joins_group = i < 2;
		h->m = ipoib_new(&sink, h, 0x100 + rng_below(&w->rng, 1000));
		assert_non_null(h->m);
		set_port(h, true, (uint16_t)(10 + i));
	}
}

static void end_world(struct world *w)
{
	for (int i = 0; i < HOSTS; i++) {
		ipoib_free(w->hosts[i].m);
		assert_int_equal(w->hosts[i].handles, 0);
	}
}

static void send_all(struct world *w)
{
	for (int i = 0; i < HOSTS; i++) {
		for (int k = 0; k < HOSTS; k++)
			if (k != i)
				send_to(&w->hosts[i], k);
		send_to_group(&w->hosts[i]);
	}
}

static void forget_results(struct world *w)
{
	for (int i = 0; i < HOSTS; i++) {
		memset(w->hosts[i].got, 0, sizeof(w->hosts[i].got));
		memset(w->hosts[i].got_group, 0, sizeof(w->hosts[i].got_group));
	}
}

/* Without faults, each host reaches each other host, and the group. */
static void expect_all_reachable(struct world *w)
{
	w->loss = 0;
	pass_time(w, 20000); /* longer than ASK_PAUSE_MOST_MS */
	for (int i = 0; i < 3; i++) {
		send_all(w);
		pass_time(w, 2000);
	}
	forget_results(w);
	send_all(w);
	pass_time(w, 1000);
	for (int i = 0; i < HOSTS; i++)
		for (int k = 0; k < HOSTS; k++) {
			const struct host *h = &w->hosts[i];

			assert_true(h->link.is_up);
			assert_int_equal(h->got[k], i != k);
			assert_int_equal(h->got_group[k], i != k && i < 2);
		}
}

static void all_hosts_reach_one_another_after_faults(void **state)
{
	for (uint64_t seed = 1; seed <= SEEDS; seed++) {
		struct world *w = calloc(1, sizeof(*w));

		assert_non_null(w);
		begin_world(w, seed, 300000);
		for (int i = 0; i < 100; i++) {
			send_all(w);
			pass_time(w, 5 * rng_below(&w->rng, 60));
		}
		expect_all_reachable(w);
		end_world(w);
		free(w);
	}
}

/* Makes one change at random, or none: a port goes down, a port comes up with
 * another LID, or the administration forgets groups, or begins or ceases to
 * answer. */
static void disturb_once(struct world *w)
{
	struct host *h = &w->hosts[rng_below(&w->rng, HOSTS)];

	switch (rng_below(&w->rng, 6)) {
	case 0:
		set_port(h, false, 0);
		break;
	case 1:
		set_port(h, true, (uint16_t)(20 + rng_below(&w->rng, 1000)));
		break;
	case 2:
		w->group_count = 1;
		w->groups[0].full = 0;
		for (int i = 0; i < HOSTS; i++)
			ipoib_reregister(w->hosts[i].m, w->now_ms);
		break;
	case 3:
		w->has_sa = !w->has_sa;
		break;
	default:
		break;
	}
}

static void interfaces_recover_from_changes_of_the_subnet(void **state)
{
	for (uint64_t seed = 1; seed <= SEEDS; seed++) {
		struct world *w = calloc(1, sizeof(*w));

		assert_non_null(w);
		begin_world(w, seed, 100000);
		for (int i = 0; i < 60; i++) {
			disturb_once(w);
			send_all(w);
			pass_time(w, 5 * rng_below(&w->rng, 400));
		}
		w->has_sa = true;
		for (int i = 0; i < HOSTS; i++)
			set_port(&w->hosts[i], true, (uint16_t)(10 + i));
		expect_all_reachable(w);
		end_world(w);
		free(w);
	}
}

static void a_moved_neighbour_is_found_again(void **state)
{
	struct world *w = calloc(1, sizeof(*w));

	assert_non_null(w);
	begin_world(w, 1, 0);
	expect_all_reachable(w);
	set_port(&w->hosts[1], true, 77);
	pass_time(w, 2000);
	/* host 0 learns the new LID from a packet */
	w->hosts[1].knows[0] = false;
	send_to(&w->hosts[1], 0);
	pass_time(w, 1000);
	forget_results(w);
	send_to(&w->hosts[0], 1);
	pass_time(w, 1000);
	assert_int_equal(w->hosts[1].got[0], 1);
	end_world(w);
	free(w);
}

static void interfaces_that_end_leave_all_groups(void **state)
{
	struct world *w = calloc(1, sizeof(*w));

	assert_non_null(w);
	begin_world(w, 1, 0);
	expect_all_reachable(w);
	assert_int_equal(w->groups[0].full, 7);
	for (int i = 0; i < HOSTS; i++)
		assert_false(ipoib_leave(w->hosts[i].m, w->now_ms));
	pass_time(w, 1000);
	for (int i = 0; i < HOSTS; i++) {
		assert_true(ipoib_leave(w->hosts[i].m, w->now_ms));
		assert_int_equal(w->hosts[i].attached_count, 0);
	}
	for (uint32_t i = 0; i < w->group_count; i++)
		assert_int_equal(w->groups[i].full | w->groups[i].senders, 0);
	end_world(w);
	free(w);
}

static void a_group_that_the_kernel_leaves_is_left(void **state)
{
	struct world *w = calloc(1, sizeof(*w));
	uint8_t mgid[16];

	assert_non_null(w);
	begin_world(w, 1, 0);
	expect_all_reachable(w);
	mgid_ipv4(w->groups[0].mgid, GROUP_IP, mgid);
	assert_int_equal(find_sa_group(w, mgid)->full, 3);
	assert_int_equal(find_sa_group(w, mgid)->senders, 4);
	w->hosts[1].joins_group = false;
	pass_time(w, 1000);
	assert_int_equal(find_sa_group(w, mgid)->full, 1);
	assert_false(is_attached(&w->hosts[1], mgid));
	/* a port that no longer sends is no member either */
	pass_time(w, GROUP_UNUSED_MS + 1000);
	assert_int_equal(find_sa_group(w, mgid)->senders, 0);
	end_world(w);
	free(w);
}

/* A sender that the kernel later makes a member has joined as a send-only
 * member and as a full member. */
static void both_states_of_a_group_are_left(void **state)
{
	for (int ends = 0; ends < 2; ends++) {
		struct world *w = calloc(1, sizeof(*w));
		uint8_t mgid[16];

		assert_non_null(w);
		begin_world(w, 1, 0);
		expect_all_reachable(w);
		mgid_ipv4(w->groups[0].mgid, GROUP_IP, mgid);
		w->hosts[2].joins_group = true;
		pass_time(w, 1000);
		assert_int_equal(find_sa_group(w, mgid)->full, 7);
		assert_int_equal(find_sa_group(w, mgid)->senders, 4);
		w->hosts[2].joins_group = false;
		if (ends)
			ipoib_leave(w->hosts[2].m, w->now_ms);
		pass_time(w, 1000);
		assert_int_equal(find_sa_group(w, mgid)->full, 3);
		assert_int_equal(find_sa_group(w, mgid)->senders, 0);
		end_world(w);
		free(w);
	}
}

/* The administration has executed a join, but the answer is lost. */
static void a_join_without_an_answer_is_left(void **state)
{
	struct world *w = calloc(1, sizeof(*w));
	uint8_t mgid[16];
	int turns = 0;

	assert_non_null(w);
	begin_world(w, 1, 0);
	pass_time(w, 1000);
	mgid_ipv4(w->groups[0].mgid, GROUP_IP, mgid);
	assert_int_equal(find_sa_group(w, mgid)->full, 3);
	w->hosts[2].joins_group = true;
	look_at_groups(&w->hosts[2]);
	ipoib_turn(w->hosts[2].m, w->now_ms);
	for (int i = 0; i < FLIGHTS; i++)
		if (w->flights[i].kind == FLIES_QUESTION)
			join_group(w, 2, w->flights[i].p);
	memset(w->flights, 0, sizeof(w->flights));
	assert_int_equal(find_sa_group(w, mgid)->full, 7);
	while (!ipoib_leave(w->hosts[2].m, w->now_ms) && turns++ < 500)
		pass_time(w, STEP_MS);
	assert_uint_in_range(turns, 1, 499);
	assert_int_equal(find_sa_group(w, mgid)->full, 3);
	end_world(w);
	free(w);
}

/* A group has another LID, as if all its members had left and others had made
 * the group again.  A sender that never pauses finds the new group. */
static void a_sender_finds_a_group_that_was_made_again(void **state)
{
	struct world *w = calloc(1, sizeof(*w));
	struct sa_group *g;
	uint8_t mgid[16];

	assert_non_null(w);
	begin_world(w, 1, 0);
	expect_all_reachable(w);
	mgid_ipv4(w->groups[0].mgid, GROUP_IP, mgid);
	g = find_sa_group(w, mgid);
	w->groups[w->group_count++] = *g; /* it has another LID now */
	memset(g, 0, sizeof(*g));
	ipoib_reregister(w->hosts[0].m, w->now_ms);
	ipoib_reregister(w->hosts[1].m, w->now_ms);
	w->groups[w->group_count - 1].senders = 0;
	for (int i = 0; i < 32; i++) {
		pass_time(w, 1000);
		send_to_group(&w->hosts[2]);
	}
	pass_time(w, 1000);
	assert_int_equal(find_sa_group(w, mgid)->senders, 4);
	/* host 2 no longer sends to the group, and so leaves the group */
	pass_time(w, GROUP_UNUSED_MS + 1000);
	assert_int_equal(find_sa_group(w, mgid)->senders, 0);
	end_world(w);
	free(w);
}

/* The interface has another QPN, and its announcements of the first 6 seconds
 * are lost: the subnet manager has not yet written the tables of the switches.
 */
static void an_interface_that_starts_again_tells_its_neighbours(void **state)
{
	struct world *w = calloc(1, sizeof(*w));
	struct host *h;

	assert_non_null(w);
	begin_world(w, 1, 0);
	expect_all_reachable(w);
	h = &w->hosts[0];
	ipoib_free(h->m);
	h->attached_count = 0;
	h->m = ipoib_new(&sink, h, 0x2000);
	assert_non_null(h->m);
	w->tables_ms = w->now_ms + 6000;
	set_port(h, true, h->port.lid);
	pass_time(w, 20000);
	forget_results(w);
	send_to(&w->hosts[1], 0);
	pass_time(w, 1000);
	assert_int_equal(h->got[1], 1);
	end_world(w);
	free(w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_hosts_reach_one_another_after_faults),
		cmocka_unit_test(interfaces_recover_from_changes_of_the_subnet),
		cmocka_unit_test(a_moved_neighbour_is_found_again),
		cmocka_unit_test(interfaces_that_end_leave_all_groups),
		cmocka_unit_test(a_group_that_the_kernel_leaves_is_left),
		cmocka_unit_test(both_states_of_a_group_are_left),
		cmocka_unit_test(a_join_without_an_answer_is_left),
		cmocka_unit_test(a_sender_finds_a_group_that_was_made_again),
		cmocka_unit_test(
			an_interface_that_starts_again_tells_its_neighbours),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
