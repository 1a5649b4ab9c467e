/* SPDX-License-Identifier: BSD-2-Clause */
/* fabric/data: packets of programs go through three switches in a row by the
 * tables that the test sets, as a subnet manager would. */
#include "test.h"

#include <errno.h>

#include "encap/iblink.h"
#include "fabric/data.h"
#include "fabric/inside.h"
#include "hdr/bth.h"
#include "hdr/bytes.h"
#include "hdr/lrh.h"

#define LID_A	1
#define LID_B	2
#define LID_C	3
#define MLID	0xc001
#define PAYLOAD 64
#define BYTES	(LRH_BYTES + BTH_BYTES + PAYLOAD + 4 + LRH_VCRC_BYTES)
#define WORDS	((BYTES - LRH_VCRC_BYTES) / 4)
#define GLOBAL	(BYTES + 40)

enum {
	AT_GID_PREFIX = 8,
	AT_LID = 16,
	AT_MTU = 36,
	AT_HOQ = 42,
	AT_LANES = 43,
	AT_PKEY_VIOLATIONS = 46,
	SEND_ONLY = 0x04,
	UD_SEND_ONLY = 0x64,
};

static const char text[] =
	"Switch 4 \"S1\"\n[1] \"A\"[1]\n[2] \"S2\"[1]\n[3] \"C\"[1]\n\n"
	"Switch 4 \"S2\"\n[1] \"S1\"[2]\n[2] \"S3\"[1]\n\n"
	"Switch 4 \"S3\"\n[1] \"S2\"[2]\n[2] \"B\"[1]\n\n"
	"Hca 1 \"A\"\n[1] \"S1\"[1]\n\n"
	"Hca 1 \"B\"\n[1] \"S3\"[2]\n\n"
	"Hca 1 \"C\"\n[1] \"S1\"[3]\n";

struct world {
	struct fabric *f;
	struct data_end *a, *b, *c;
	uint64_t now_ms;
};

static struct port *port_of(const struct world *w, const char *name, int number)
{
	return &fabric_find(w->f, name)->ports[number];
}

/* B is behind S2 and S3, A and C are at S1. */
static void set_switch(const struct world *w, const char *name, uint8_t to_a,
		       uint8_t to_b, uint8_t to_c)
{
	struct node *s = fabric_find(w->f, name);

	bytes_put16(s->switch_info + 6, LID_C);
	s->lft[LID_A] = to_a;
	s->lft[LID_B] = to_b;
	s->lft[LID_C] = to_c;
	s->mft[(MLID - 0xc000) * s->mft_columns] =
		(uint16_t)(1 << to_a | 1 << to_b | 1 << to_c);
}

static void set_ports(const struct world *w)
{
	for (uint32_t i = 0; fabric_node(w->f, i); i++) {
		struct node *node = fabric_node(w->f, i);

		for (int n = 1; n <= node->port_count; n++) {
			struct port *port = &node->ports[n];

			if (port->state == STATE_DOWN)
				continue;
			port->info[AT_MTU] |= 4 << 4;	/* 2048 */
			port->info[AT_LANES] |= 4 << 4; /* VL 0 to 7 */
			port->info[AT_HOQ] = 16;	/* 268 ms */
			port->state = STATE_ACTIVE;
		}
	}
	bytes_put16(port_of(w, "A", 1)->info + AT_LID, LID_A);
	bytes_put16(port_of(w, "B", 1)->info + AT_LID, LID_B);
	bytes_put16(port_of(w, "C", 1)->info + AT_LID, LID_C);
}

static int set_up(void **state)
{
	struct world *w = calloc(1, sizeof(*w));
	struct net_error error;
	struct net net;
	int err;

	assert_int_equal(net_parse(text, sizeof(text) - 1, &net, &error), 0);
	w->f = fabric_new(&net);
	net_free(&net);
	assert_non_null(w->f);
	w->a = data_open(fabric_find(w->f, "A"), 1, w, &err);
	w->b = data_open(fabric_find(w->f, "B"), 1, NULL, &err);
	w->c = data_open(fabric_find(w->f, "C"), 1, NULL, &err);
	assert_true(w->a && w->b && w->c);
	set_switch(w, "S1", 1, 2, 3);
	set_switch(w, "S2", 1, 2, 1);
	set_switch(w, "S3", 1, 2, 1);
	set_ports(w);
	w->now_ms = 1;
	*state = w;
	return 0;
}

static int tear_down(void **state)
{
	struct world *w = *state;

	fabric_free(w->f);
	free(w);
	return 0;
}

struct made {
	uint8_t bytes[GLOBAL];
	size_t n;
};

static uint32_t qpn_of(const struct data_end *end)
{
	return data_number(end) << DATA_REST_BITS | 5;
}

static void seal_packet(struct made *m)
{
	lrh_seal(m->bytes, m->n - LRH_VCRC_BYTES);
}

/* Makes a SEND from A.  The fabric does not read the ICRC. */
static void make_unicast(struct made *m, const struct data_end *to,
			 uint16_t dlid, uint8_t mark)
{
	struct lrh lrh = {.lnh = LRH_NEXT_LOCAL,
			  .dlid = dlid,
			  .slid = LID_A,
			  .words = WORDS};
	struct bth bth = {
		.opcode = SEND_ONLY, .pkey = 0xffff, .dest_qpn = qpn_of(to)};

	m->n = BYTES;
	lrh_write(m->bytes, &lrh);
	bth_write(m->bytes + LRH_BYTES, &bth);
	memset(m->bytes + LRH_BYTES + BTH_BYTES, mark, PAYLOAD + 4);
	seal_packet(m);
}

static const uint8_t group[16] = {0xff, 0x12, 0x40, 0x1b, [15] = 9};

/* Makes a datagram from A to the group.  The SGID has the GUID of A's port. */
static void make_multicast(struct made *m, const struct world *w)
{
	struct lrh lrh = {.lnh = LRH_NEXT_GLOBAL,
			  .dlid = MLID,
			  .slid = LID_A,
			  .words = (GLOBAL - LRH_VCRC_BYTES) / 4};
	struct bth bth = {
		.opcode = UD_SEND_ONLY, .pkey = 0xffff, .dest_qpn = 0xffffff};
	const struct port *port = port_of(w, "A", 1);
	uint8_t *grh = m->bytes + LRH_BYTES, *at = grh + 40;

	memset(m, 0, sizeof(*m));
	m->n = GLOBAL;
	lrh_write(m->bytes, &lrh);
	grh[0] = 0x60;
	bytes_put16(grh + 4, GLOBAL - LRH_VCRC_BYTES - LRH_BYTES - 40);
	grh[6] = 0x1b;
	memcpy(grh + 8, port->info + AT_GID_PREFIX, 8);
	bytes_put64(grh + 16, port_guid(port, 0));
	memcpy(grh + 24, group, 16);
	bth_write(at, &bth);
	bytes_put24(at + BTH_BYTES + 5, qpn_of(w->a));
	seal_packet(m);
}

static int send_made(struct world *w, const struct made *m)
{
	int err = data_send(w->a, m->bytes, m->n);

	fabric_turn(w->f, w->now_ms);
	return err;
}

/* Fetches a packet and returns its first byte of payload; -1: there is none. */
static int fetch_mark(struct data_end *end)
{
	size_t n;
	const uint8_t *p = data_fetch(end, &n);
	int mark;

	if (!p)
		return -1;
	assert_true(lrh_is_intact(p, n));
	mark = p[LRH_BYTES + BTH_BYTES];
	data_fetched(end);
	return mark;
}

/* Fetches a packet and returns its VL. */
static int fetch_vl(struct data_end *end)
{
	const uint8_t *p;
	size_t n;
	int vl;

	p = data_fetch(end, &n);
	assert_non_null(p);
	assert_true(lrh_is_intact(p, n));
	vl = p[0] >> 4;
	data_fetched(end);
	return vl;
}

static int send_mark(struct world *w, struct data_end *to, uint16_t dlid,
		     uint8_t mark)
{
	struct made m;

	make_unicast(&m, to, dlid, mark);
	return send_made(w, &m);
}

static void packets_go_by_lid_over_one_and_three_switches(void **state)
{
	struct world *w = *state;
	const uint8_t *got;
	struct made m;
	size_t n;

	make_unicast(&m, w->b, LID_B, 7);
	assert_null(data_ready(w->f));
	assert_int_equal(send_made(w, &m), 0);
	assert_ptr_equal(data_ready(w->f), w->b);
	got = data_fetch(w->b, &n);
	assert_int_equal(n, BYTES);
	assert_memory_equal(got, m.bytes, BYTES);
	data_fetched(w->b);
	assert_null(data_ready(w->f));
	assert_int_equal(send_mark(w, w->c, LID_C, 8), 0);
	assert_int_equal(fetch_mark(w->c), 8);
	assert_int_equal(fetch_mark(w->b), -1);
	assert_ptr_equal(data_owner(w->a), w);
}

static void counters_tell_words_and_packets_of_each_link(void **state)
{
	static const struct {
		const char *node;
		int number;
		bool sends;
	} at[] = {{"A", 1, true},   {"S1", 1, false}, {"S1", 2, true},
		  {"S2", 1, false}, {"S2", 2, true},  {"S3", 1, false},
		  {"S3", 2, true},  {"B", 1, false}};
	struct world *w = *state;

	assert_int_equal(send_mark(w, w->b, LID_B, 1), 0);
	for (size_t i = 0; i < sizeof(at) / sizeof(*at); i++) {
		const struct counters *c =
			&port_of(w, at[i].node, at[i].number)->counters;

		assert_int_equal(c->tx_packets, at[i].sends);
		assert_int_equal(c->tx_unicast, at[i].sends);
		assert_int_equal(c->tx_words, at[i].sends ? WORDS : 0);
		assert_int_equal(c->rx_packets, !at[i].sends);
		assert_int_equal(c->rx_words, at[i].sends ? 0 : WORDS);
		assert_int_equal(c->tx_discards, 0);
	}
}

static void an_adapter_sends_only_its_own_packets(void **state)
{
	enum { AT_BTH = LRH_BYTES, AT_PKEY = AT_BTH + 2, AT_QPN = AT_BTH + 5 };
	static const struct {
		size_t at;
		uint8_t value;
	} wrong[] = {
		{0, 0xf0},	 /* VL15 */
		{0, 0x01},	 /* link version */
		{1, 0x01},	 /* raw */
		{3, 0},		 /* DLID 0 */
		{7, LID_B},	 /* SLID */
		{5, WORDS + 1},	 /* PktLen */
		{AT_PKEY, 0x7f}, /* P_Key 0x7fff */
		{AT_BTH, 0x64},	 /* a datagram with source QP 0 */
	};
	struct world *w = *state;
	struct made m;

	for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
		make_unicast(&m, w->b, LID_B, 0);
		m.bytes[wrong[i].at] = wrong[i].value;
		seal_packet(&m);
		assert_int_equal(send_made(w, &m), -EINVAL);
	}
	for (uint32_t qpn = 0; qpn < 2; qpn++) {
		make_unicast(&m, w->b, LID_B, 0);
		bytes_put24(m.bytes + AT_QPN, qpn);
		seal_packet(&m);
		assert_int_equal(send_made(w, &m), -EINVAL);
	}
	make_unicast(&m, w->b, LID_B, 0);
	m.bytes[BYTES - 1] ^= 1; /* VCRC */
	assert_int_equal(send_made(w, &m), -EINVAL);
	make_unicast(&m, w->b, MLID, 0); /* no GRH */
	seal_packet(&m);
	assert_int_equal(send_made(w, &m), -EINVAL);
	assert_int_equal(data_send(w->a, m.bytes, 0), -EINVAL);
	assert_int_equal(fetch_mark(w->b), -1);
	assert_int_equal(port_of(w, "A", 1)->counters.tx_packets, 0);
}

static void a_datagram_names_a_qp_of_its_sender(void **state)
{
	enum { AT_SOURCE = LRH_BYTES + BTH_BYTES + 5 };
	struct world *w = *state;
	struct made m;

	make_unicast(&m, w->b, LID_B, 0);
	m.bytes[LRH_BYTES] = UD_SEND_ONLY;
	bytes_put24(m.bytes + AT_SOURCE, qpn_of(w->a));
	seal_packet(&m);
	assert_int_equal(send_made(w, &m), 0);
	for (uint32_t i = 0; i < 3; i++) {
		bytes_put24(m.bytes + AT_SOURCE,
			    i < 2 ? i
				  : (data_number(w->a) + 1) << DATA_REST_BITS);
		seal_packet(&m);
		assert_int_equal(send_made(w, &m), -EINVAL);
	}
}

/* IBTA 7.2.7 */
static void a_port_that_is_not_active_sends_nothing(void **state)
{
	struct world *w = *state;

	port_of(w, "A", 1)->state = STATE_INIT;
	assert_int_equal(send_mark(w, w->b, LID_B, 1), -ENETDOWN);
	port_of(w, "A", 1)->state = STATE_ARMED;
	assert_int_equal(send_mark(w, w->b, LID_B, 1), -ENETDOWN);
	port_of(w, "A", 1)->state = STATE_ACTIVE;
	port_of(w, "S2", 2)->state = STATE_ARMED;
	assert_int_equal(send_mark(w, w->b, LID_B, 1), 0);
	assert_int_equal(fetch_mark(w->b), -1);
	assert_int_equal(port_of(w, "S2", 2)->counters.tx_discards, 1);
}

/* IBTA 7.2.7 */
static void the_first_packet_makes_an_armed_port_active(void **state)
{
	struct world *w = *state;

	port_of(w, "S3", 1)->state = STATE_ARMED;
	data_told(w->b);
	link_set_state(port_of(w, "B", 1), STATE_ARMED);
	assert_int_equal(data_changes(w->b), DATA_STATE);
	assert_ptr_equal(data_ready(w->f), w->b);
	data_told(w->b);
	assert_null(data_ready(w->f));
	assert_int_equal(send_mark(w, w->b, LID_B, 1), 0);
	assert_int_equal(port_of(w, "S3", 1)->state, STATE_ACTIVE);
	assert_int_equal(port_of(w, "B", 1)->state, STATE_ACTIVE);
	assert_int_equal(data_changes(w->b), DATA_STATE);
	assert_int_equal(fetch_mark(w->b), 1);
}

static void a_lid_without_an_entry_is_counted_and_dropped(void **state)
{
	struct world *w = *state;

	fabric_find(w->f, "S2")->lft[LID_B] = 0xff;
	assert_int_equal(send_mark(w, w->b, LID_B, 1), 0);
	assert_int_equal(fetch_mark(w->b), -1);
	assert_int_equal(port_of(w, "S2", 1)->counters.rx_relay_errors, 1);
	/* a loop: S2 and S3 send the packet to each other */
	fabric_find(w->f, "S2")->lft[LID_B] = 2;
	fabric_find(w->f, "S3")->lft[LID_B] = 1;
	assert_int_equal(send_mark(w, w->b, LID_B, 1), 0);
	assert_int_equal(fetch_mark(w->b), -1);
}

/* IBTA 10.9.3 */
static void two_limited_members_exchange_no_packets(void **state)
{
	static const struct {
		uint16_t a, b;
		bool arrives;
	} keys[] = {{0x8005, 0x8005, true},
		    {0x8005, 0x0005, true},
		    {0x0005, 0x8005, true},
		    {0x0005, 0x0005, false},
		    {0x8005, 0x8006, false}};
	struct world *w = *state;
	uint8_t *violations = port_of(w, "B", 1)->info + AT_PKEY_VIOLATIONS;
	uint16_t expected = 0;

	for (size_t i = 0; i < sizeof(keys) / sizeof(*keys); i++) {
		struct made m;

		port_of(w, "A", 1)->pkeys[63] = keys[i].a;
		port_of(w, "B", 1)->pkeys[0] = keys[i].b;
		make_unicast(&m, w->b, LID_B, 3);
		bytes_put16(m.bytes + LRH_BYTES + 2, keys[i].a);
		seal_packet(&m);
		assert_int_equal(send_made(w, &m), 0);
		assert_int_equal(fetch_mark(w->b), keys[i].arrives ? 3 : -1);
		expected += !keys[i].arrives;
		assert_int_equal(bytes_get16(violations), expected);
	}
}

static void a_switch_enforces_partitions_if_the_manager_says_so(void **state)
{
	struct world *w = *state;
	struct port *in = port_of(w, "S1", 1), *out = port_of(w, "S3", 2);

	in->pkeys[0] = out->pkeys[0] = 0x8005;
	assert_int_equal(send_mark(w, w->b, LID_B, 1), 0);
	assert_int_equal(fetch_mark(w->b), 1);
	out->info[AT_LANES] |= 4; /* PartitionEnforcementOutbound */
	assert_int_equal(send_mark(w, w->b, LID_B, 1), 0);
	assert_int_equal(fetch_mark(w->b), -1);
	assert_int_equal(out->counters.tx_constraint, 1);
	in->info[AT_LANES] |= 8; /* PartitionEnforcementInbound */
	assert_int_equal(send_mark(w, w->b, LID_B, 1), 0);
	assert_int_equal(in->counters.rx_constraint, 1);
	assert_int_equal(out->counters.tx_constraint, 1);
	in->pkeys[9] = out->pkeys[9] = 0x7fff;
	assert_int_equal(send_mark(w, w->b, LID_B, 2), 0);
	assert_int_equal(fetch_mark(w->b), 2);
}

/* The last switch sends on VL 5 the packets of SL 2 that come in at its port 1
 * (IBTA 7.6.6). */
static void each_port_chooses_the_vl_of_an_sl(void **state)
{
	struct world *w = *state;
	struct port *out = port_of(w, "S3", 2);
	const uint8_t *got;
	struct made m;
	size_t n;

	out->slvl[1][1] = 0x5f; /* SL 2 on VL 5, SL 3 on VL 15 */
	make_unicast(&m, w->b, LID_B, 1);
	m.bytes[1] |= 2 << 4;
	seal_packet(&m);
	assert_int_equal(send_made(w, &m), 0);
	got = data_fetch(w->b, &n);
	assert_non_null(got);
	assert_int_equal(got[0], 0x50);
	assert_true(lrh_is_intact(got, n));
	data_fetched(w->b);
	m.bytes[1] |= 1 << 4;
	seal_packet(&m);
	assert_int_equal(send_made(w, &m), 0);
	assert_null(data_fetch(w->b, &n));
	assert_int_equal(out->counters.tx_discards, 1);
	/* a port with two VLs has no VL 5 */
	out->info[AT_LANES] = 2 << 4;
	m.bytes[1] &= 0x2f;
	seal_packet(&m);
	assert_int_equal(send_made(w, &m), 0);
	assert_null(data_fetch(w->b, &n));
	assert_int_equal(out->counters.tx_discards, 2);
}

static void a_packet_above_the_mtu_of_a_link_is_discarded(void **state)
{
	enum { ROOM = 124 };
	static uint8_t p[LRH_BYTES + 256 + ROOM + LRH_VCRC_BYTES];
	struct world *w = *state;
	struct port *out = port_of(w, "S2", 2);
	struct made m;

	out->info[AT_MTU] = 1 << 4; /* 256 */
	for (size_t covered = 256 + ROOM; covered <= 256 + ROOM + 4;
	     covered += 4) {
		make_unicast(&m, w->b, LID_B, 6);
		memcpy(p, m.bytes, LRH_BYTES + BTH_BYTES + 1);
		bytes_put16(p + 4, (uint16_t)(covered / 4));
		lrh_seal(p, covered);
		assert_int_equal(data_send(w->a, p, covered + LRH_VCRC_BYTES),
				 0);
		fabric_turn(w->f, w->now_ms);
		assert_int_equal(fetch_mark(w->b),
				 covered == 256 + ROOM ? 6 : -1);
	}
	assert_int_equal(out->counters.tx_discards, 1);
}

static void a_group_gets_one_copy_for_each_program_that_joined(void **state)
{
	struct world *w = *state;
	struct data_end *second;
	struct made m;
	int err;

	second = data_open(fabric_find(w->f, "B"), 1, NULL, &err);
	assert_non_null(second);
	assert_int_equal(data_number(second), data_number(w->b) + 1);
	assert_int_equal(data_join(w->a, group), 0);
	assert_int_equal(data_join(w->b, group), 0);
	assert_int_equal(data_join(second, group), 0);
	/* SL 0 leaves the last switch on VL 1, and the first switch on VL 0 */
	port_of(w, "S3", 2)->slvl[1][0] = 0x11;
	make_multicast(&m, w);
	assert_int_equal(send_made(w, &m), 0);
	assert_int_equal(fetch_vl(w->b), 1);
	assert_int_equal(fetch_vl(w->a), 0); /* the sender's port, too */
	assert_true(fetch_mark(second) >= 0);
	assert_int_equal(fetch_mark(second), -1);
	assert_int_equal(fetch_mark(w->c), -1);
	assert_int_equal(data_leave(w->b, group), 0);
	assert_int_equal(data_leave(w->b, group), -EINVAL);
	assert_int_equal(send_made(w, &m), 0);
	assert_int_equal(fetch_mark(w->b), -1);
	assert_true(fetch_mark(second) >= 0);
	assert_int_equal(port_of(w, "S3", 2)->counters.tx_multicast, 2);
	/* the SGID must be the sender's */
	m.bytes[LRH_BYTES + 16 + 7] ^= 1;
	seal_packet(&m);
	assert_int_equal(send_made(w, &m), -EINVAL);
	m.bytes[LRH_BYTES + 24] = 0xfe; /* no group */
	assert_int_equal(data_join(w->a, m.bytes + LRH_BYTES + 24), -EINVAL);
}

/* While B does not fetch, the sender waits, and no packet is lost. */
static void a_sender_waits_for_a_receiver_that_is_slow(void **state)
{
	struct world *w = *state;
	int sent = 0;

	while (data_may_send(w->a)) {
		assert_int_equal(send_mark(w, w->b, LID_B, (uint8_t)sent), 0);
		sent++;
	}
	assert_int_equal(sent, DATA_UNREAD);
	assert_null(data_resumed(w->f));
	for (int i = 0; i < sent; i++) {
		assert_int_equal(fetch_mark(w->b), i & 0xff);
		if (i + 1 < sent / 2)
			assert_null(data_resumed(w->f));
	}
	assert_ptr_equal(data_resumed(w->f), w->a);
	assert_null(data_resumed(w->f));
	assert_true(data_may_send(w->a));
	assert_int_equal(port_of(w, "S3", 2)->counters.tx_discards, 0);
}

/* The receiver fetches one packet every 200 ms, and HOQLife is 268 ms.  The
 * last packet waits for seconds, but is at the head of the queue for only 200
 * ms. */
static void a_receiver_that_reads_slowly_loses_nothing(void **state)
{
	struct world *w = *state;

	for (int i = 0; i < 20; i++)
		assert_int_equal(send_mark(w, w->b, LID_B, (uint8_t)i), 0);
	for (int i = 0; i < 20; i++) {
		w->now_ms += 200;
		fabric_turn(w->f, w->now_ms);
		assert_int_equal(fetch_mark(w->b), i);
	}
	assert_int_equal(port_of(w, "S3", 2)->counters.tx_discards, 0);
}

/* Many programs of a host join a group, and do not read. */
static void copies_for_many_receivers_are_bounded(void **state)
{
	enum { RECEIVERS = 300 };
	struct world *w = *state;
	struct made m;
	int err;

	for (int i = 0; i < RECEIVERS; i++) {
		struct data_end *end =
			data_open(fabric_find(w->f, "B"), 1, NULL, &err);

		assert_non_null(end);
		assert_int_equal(data_join(end, group), 0);
	}
	make_multicast(&m, w);
	for (int i = 0; i < 2 * DATA_UNREAD && data_may_send(w->a); i++)
		assert_int_equal(send_made(w, &m), 0);
	assert_true(w->f->data.packets > DATA_PACKETS / 2);
	assert_true(w->f->data.packets <= DATA_PACKETS + DATA_UNREAD);
	assert_true(port_of(w, "S3", 2)->counters.tx_discards > 0);
	w->now_ms += 1000;
	fabric_turn(w->f, w->now_ms);
	assert_int_equal(w->f->data.packets, 0);
	assert_true(data_may_send(w->a));
}

/* B does not read for longer than HOQLife.  The packets to B are discarded, and
 * the sender's packets to C arrive. */
static void a_receiver_that_has_stopped_does_not_stop_its_senders(void **state)
{
	struct world *w = *state;
	uint64_t due;

	data_pause(w->b);
	while (data_may_send(w->a))
		assert_int_equal(send_mark(w, w->b, LID_B, 1), 0);
	assert_null(data_ready(w->f));
	due = fabric_deadline(w->f);
	assert_int_equal(due, w->now_ms + 269);
	fabric_turn(w->f, due - 1);
	assert_null(data_resumed(w->f));
	fabric_turn(w->f, due);
	assert_ptr_equal(data_resumed(w->f), w->a);
	assert_int_equal(port_of(w, "S3", 2)->counters.tx_discards,
			 DATA_UNREAD);
	w->now_ms = due;
	assert_int_equal(send_mark(w, w->c, LID_C, 4), 0);
	assert_int_equal(fetch_mark(w->c), 4);
	assert_int_equal(send_mark(w, w->b, LID_B, 5), 0);
	data_unpause(w->b);
	assert_ptr_equal(data_ready(w->f), w->b);
	assert_int_equal(fetch_mark(w->b), 5);
}

static void ends_close_while_packets_are_on_their_way(void **state)
{
	struct world *w = *state;
	struct made m;

	make_unicast(&m, w->b, LID_B, 1);
	assert_int_equal(data_send(w->a, m.bytes, m.n), 0);
	data_close(w->a); /* the sender: its packet arrives */
	fabric_turn(w->f, w->now_ms);
	assert_int_equal(fetch_mark(w->b), 1);
	w->a = w->c;
	bytes_put16(m.bytes + 6, LID_C);
	seal_packet(&m);
	assert_int_equal(data_send(w->a, m.bytes, m.n), 0);
	data_close(w->b); /* the receiver: nobody gets the packet */
	fabric_turn(w->f, w->now_ms);
	assert_null(data_ready(w->f));
	assert_true(data_may_send(w->c));
}

static void a_host_gives_each_program_a_number_of_its_own(void **state)
{
	struct world *w = *state;
	struct node *b = fabric_find(w->f, "B");
	struct data_end *more[3];
	int err;

	for (int i = 0; i < 3; i++)
		more[i] = data_open(b, 1, NULL, &err);
	assert_int_equal(data_number(more[2]), 4);
	data_close(more[1]);
	more[1] = data_open(b, 1, NULL, &err);
	assert_int_equal(data_number(more[1]), 3);
	assert_int_equal(send_mark(w, more[1], LID_B, 9), 0);
	assert_int_equal(fetch_mark(more[1]), 9);
	assert_int_equal(fetch_mark(w->b), -1);
	assert_null(data_open(b, 2, NULL, &err));
	assert_int_equal(err, -ENODEV);
	assert_null(data_open(fabric_find(w->f, "S1"), 1, NULL, &err));
	assert_int_equal(err, -ENODEV);
	for (err = 0; !err;)
		data_open(b, 1, NULL, &err);
	assert_int_equal(err, -EMFILE);
}

static struct fabric *two_port_fabric(void)
{
	static const char net_text[] =
		"Switch 4 \"S\"\n[1] \"H\"[1]\n[2] \"H\"[2]\n\n"
		"Hca 2 \"H\"\n[1] \"S\"[1]\n[2] \"S\"[2]\n";
	struct net_error error;
	struct fabric *f;
	struct net net;

	assert_int_equal(
		net_parse(net_text, sizeof(net_text) - 1, &net, &error), 0);
	f = fabric_new(&net);
	net_free(&net);
	assert_non_null(f);
	return f;
}

static void a_program_has_one_number_at_all_ports(void **state)
{
	struct fabric *f = two_port_fabric();
	struct node *h = fabric_find(f, "H");
	struct data_end *first, *second, *other;
	int err;

	other = data_open(h, 1, NULL, &err);
	first = data_open(h, 1, NULL, &err);
	second = data_open_beside(first, 2, h, &err);
	assert_non_null(second);
	assert_int_equal(data_number(first), 2);
	assert_int_equal(data_number(second), 2);
	assert_ptr_equal(data_owner(second), h);
	assert_ptr_equal(data_node(second), h);
	assert_null(data_open_beside(first, 2, NULL, &err));
	assert_int_equal(err, -EBUSY);
	assert_null(data_open_beside(first, 3, NULL, &err));
	assert_int_equal(err, -ENODEV);
	assert_null(data_open_beside(first, 0, NULL, &err));
	assert_int_equal(err, -ENODEV);
	/* the number stays taken as long as one of the ends has it */
	data_close(first);
	data_close(other);
	assert_int_equal(data_number(data_open(h, 1, NULL, &err)), 1);
	assert_int_equal(data_number(data_open(h, 1, NULL, &err)), 3);
	fabric_free(f);
}

struct seen {
	struct iblink h;
	uint32_t count;
	uint32_t qpn;
};

static void note_seen(void *arg, const uint8_t *p, size_t n)
{
	struct iblink_inner inner;
	struct seen *s = arg;
	struct bth bth;

	assert_true(iblink_open(p, n, &s->h, &inner));
	assert_true(bth_parse(inner.bth, inner.bytes, &bth));
	s->qpn = bth.dest_qpn;
	s->count++;
}

/* The fabric keeps no headers of a management datagram.  It shows the datagram
 * with headers that it makes: for QP 0 on VL 15, or for QP 1. */
static void each_packet_is_seen_once_as_it_leaves_its_first_port(void **state)
{
	struct world *w = *state;
	struct fabric_agent asked = {.mgmt_class = 0x01, .class_version = 1};
	uint8_t umad[FABRIC_UMAD_BYTES + 256] = {0};
	uint8_t *mad = umad + FABRIC_UMAD_BYTES;
	struct seen seen = {0};
	struct end *end;
	int err;

	fabric_watch(w->f, note_seen, &seen);
	end = fabric_open(fabric_find(w->f, "A"), 1, NULL, &err);
	assert_non_null(end);
	for (uint32_t qpn = 0; qpn < 2; qpn++) {
		asked.mgmt_class = qpn ? 0x04 : 0x01;
		umad[0] = (uint8_t)fabric_register(end, &asked);
		bytes_put32(umad + 20, qpn);
		bytes_put32(umad + 24, qpn ? 0x80010000 : 0);
		bytes_put16(umad + 28, LID_B);
		umad[30] = 3;		 /* SL */
		umad[32] = (uint8_t)qpn; /* with a GRH */
		mad[0] = mad[2] = 1;
		mad[1] = asked.mgmt_class;
		mad[3] = 5; /* a Trap, which nobody answers */
		assert_int_equal(fabric_send(end, umad, sizeof(umad)), 0);
		fabric_turn(w->f, w->now_ms);
		assert_int_equal(seen.count, qpn + 1);
		assert_int_equal(seen.qpn, qpn);
		assert_int_equal(seen.h.lrh.vl, qpn ? 0 : 15);
		assert_int_equal(seen.h.lrh.sl, 3);
		assert_int_equal(seen.h.lrh.dlid, LID_B);
		assert_int_equal(seen.h.lrh.slid, LID_A);
		assert_int_equal(seen.h.lrh.lnh,
				 qpn ? LRH_NEXT_GLOBAL : LRH_NEXT_LOCAL);
	}
	fabric_watch(w->f, NULL, NULL);
	assert_int_equal(fabric_send(end, umad, sizeof(umad)), 0);
	fabric_turn(w->f, w->now_ms);
	assert_int_equal(seen.count, 2);
}

/* A data end's packet is seen with the VL of the first link. */
static void a_data_packet_is_seen_with_its_vl(void **state)
{
	struct iblink h = {.lrh = {.lnh = LRH_NEXT_LOCAL,
				   .sl = 1,
				   .dlid = LID_B,
				   .slid = LID_A}};
	uint8_t p[LRH_FRAME_MAX], inner[BTH_BYTES + 8 + IBLINK_TAIL_BYTES];
	struct bth bth = {.opcode = SEND_ONLY, .pkey = 0xffff};
	struct world *w = *state;
	struct seen seen = {0};
	size_t head, n;

	fabric_watch(w->f, note_seen, &seen);
	port_of(w, "A", 1)->slvl[0][0] = 0x06; /* SL 1 on VL 6 */
	bth.dest_qpn = qpn_of(w->b);
	bth_write(inner, &bth);
	memset(inner + BTH_BYTES, 1, 8);
	head = iblink_write(p, &h, BTH_BYTES + 8);
	n = iblink_seal(p, head, inner, BTH_BYTES + 8);
	memcpy(p + head, inner, n);
	assert_int_equal(data_send(w->a, p, head + n), 0);
	fabric_turn(w->f, w->now_ms);
	assert_int_equal(seen.count, 1);
	assert_int_equal(seen.h.lrh.vl, 6);
	assert_int_equal(seen.qpn, qpn_of(w->b));
}

/* The number of packets that closed senders have left unread is bounded. */
static void senders_that_come_and_go_do_not_fill_the_memory(void **state)
{
	struct world *w = *state;
	struct node *a = fabric_find(w->f, "A");
	int sent = 0, err = 0;

	data_pause(w->b);
	for (;;) {
		data_close(w->a);
		w->a = data_open(a, 1, NULL, &err);
		if (!w->a)
			break;
		for (int i = 0; i < DATA_UNREAD; i++, sent++)
			assert_int_equal(send_mark(w, w->b, LID_B, 1), 0);
	}
	assert_int_equal(err, -EMFILE);
	assert_int_equal(sent, 65536);
	assert_int_equal(fetch_mark(w->b), 1);
	w->a = data_open(a, 1, NULL, &err);
	assert_non_null(w->a);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(packets_go_by_lid_over_one_and_three_switches),
		TEST(counters_tell_words_and_packets_of_each_link),
		TEST(an_adapter_sends_only_its_own_packets),
		TEST(a_datagram_names_a_qp_of_its_sender),
		TEST(a_port_that_is_not_active_sends_nothing),
		TEST(the_first_packet_makes_an_armed_port_active),
		TEST(a_lid_without_an_entry_is_counted_and_dropped),
		TEST(two_limited_members_exchange_no_packets),
		TEST(a_switch_enforces_partitions_if_the_manager_says_so),
		TEST(each_port_chooses_the_vl_of_an_sl),
		TEST(a_packet_above_the_mtu_of_a_link_is_discarded),
		TEST(a_group_gets_one_copy_for_each_program_that_joined),
		TEST(a_sender_waits_for_a_receiver_that_is_slow),
		TEST(a_receiver_that_reads_slowly_loses_nothing),
		TEST(copies_for_many_receivers_are_bounded),
		TEST(a_receiver_that_has_stopped_does_not_stop_its_senders),
		TEST(ends_close_while_packets_are_on_their_way),
		TEST(each_packet_is_seen_once_as_it_leaves_its_first_port),
		TEST(a_data_packet_is_seen_with_its_vl),
		TEST(senders_that_come_and_go_do_not_fill_the_memory),
		TEST(a_host_gives_each_program_a_number_of_its_own),
		TEST(a_program_has_one_number_at_all_ports),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
