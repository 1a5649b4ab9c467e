/* SPDX-License-Identifier: BSD-2-Clause */
/* fabric/data: packets of programs go through three switches in a row by the
 * tables that the test sets, as a subnet manager would. */
#include "data_world.h"

#include "fabric/port_info.h"

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
	data_changes_fetched(w->b);
	link_set_state(port_of(w, "B", 1), STATE_ARMED);
	assert_int_equal(data_changes(w->b), DATA_STATE);
	assert_ptr_equal(data_ready(w->f), w->b);
	data_changes_fetched(w->b);
	assert_null(data_ready(w->f));
	assert_int_equal(send_mark(w, w->b, LID_B, 1), 0);
	assert_int_equal(port_of(w, "S3", 1)->state, STATE_ACTIVE);
	assert_int_equal(port_of(w, "B", 1)->state, STATE_ACTIVE);
	assert_int_equal(data_changes(w->b), DATA_STATE);
	assert_int_equal(fetch_mark(w->b), 1);
}

static void a_new_mtu_is_told(void **state)
{
	struct world *w = *state;
	struct port *b = port_of(w, "B", 1);
	uint8_t info[PORT_INFO_BYTES];

	data_changes_fetched(w->b);
	memcpy(info, b->info, sizeof(info)); /* the fields of states are 0: no
					      * change */
	assert_int_equal(port_info_mtu(b), 4096);
	assert_int_equal(port_info_set(b, info), 0);
	assert_int_equal(data_changes(w->b), 0);
	info[36] = (uint8_t)(3 << 4 | (info[36] & 15));
	assert_int_equal(port_info_set(b, info), 0);
	assert_int_equal(port_info_mtu(b), 1024);
	assert_int_equal(data_changes(w->b), DATA_MTU);
}

/* The changes and the MTU that a callback of fabric_watch_ports saw last. */
struct seen_port {
	uint32_t changes;
	uint8_t mtu;
};

static void note_port(void *arg, const struct node *node, uint32_t number,
		      uint32_t changes)
{
	struct seen_port *seen = arg;
	struct fabric_port port;

	assert_int_equal(fabric_show_port(node, number, &port), 0);
	*seen = (struct seen_port){changes, port.mtu};
}

static void the_watcher_of_ports_sees_the_new_mtu(void **state)
{
	struct world *w = *state;
	struct port *b = port_of(w, "B", 1);
	uint8_t info[PORT_INFO_BYTES];
	struct seen_port seen = {0};

	fabric_watch_ports(w->f, note_port, &seen);
	memcpy(info, b->info, sizeof(info));
	info[AT_MTU] = (uint8_t)(3 << 4 | (info[AT_MTU] & 15));
	assert_int_equal(port_info_set(b, info), 0);
	assert_int_equal(seen.changes, DATA_MTU);
	assert_int_equal(seen.mtu, 3);
	fabric_watch_ports(w->f, NULL, NULL);
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

/* The port of the last switch first has the P_Key of a full member of the
 * partition, and then that of a limited member. */
static void a_switch_passes_the_packets_of_a_limited_member(void **state)
{
	struct world *w = *state;
	struct port *in = port_of(w, "S1", 1), *out = port_of(w, "S3", 2);
	struct made m;

	port_of(w, "A", 1)->pkeys[0] = in->pkeys[0] = 0x7fff;
	in->info[AT_LANES] |= 8;  /* PartitionEnforcementInbound */
	out->info[AT_LANES] |= 4; /* PartitionEnforcementOutbound */
	make_unicast(&m, w->b, LID_B, 1);
	bth_put_pkey(m.bytes + LRH_BYTES, 0x7fff);
	seal_packet(&m);
	assert_int_equal(data_send(w->a, m.bytes, m.n), 0);
	fabric_turn(w->f, w->now_ms);
	assert_int_equal(fetch_mark(w->b), 1);
	out->pkeys[0] = 0x7fff;
	assert_int_equal(data_send(w->a, m.bytes, m.n), 0);
	fabric_turn(w->f, w->now_ms);
	assert_int_equal(fetch_mark(w->b), -1);
	assert_int_equal(in->counters.rx_constraint, 0);
	assert_int_equal(out->counters.tx_constraint, 1);
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

/* Makes a SEND from A to B with `payload` bytes of payload, and returns the
 * packet's length.  Each byte of the payload and of the ICRC is `mark`. */
static size_t make_long(const struct world *w, uint8_t *bytes, size_t payload,
			uint8_t mark)
{
	struct lrh lrh = {.lnh = LRH_NEXT_LOCAL, .dlid = LID_B, .slid = LID_A};
	struct bth bth = {
		.opcode = SEND_ONLY, .pkey = 0xffff, .dest_qpn = qpn_of(w->b)};
	size_t n = LRH_BYTES + BTH_BYTES + payload + 4;

	lrh.words = (uint16_t)(n / 4);
	lrh_write(bytes, &lrh);
	bth_write(bytes + LRH_BYTES, &bth);
	memset(bytes + LRH_BYTES + BTH_BYTES, mark, payload + 4);
	lrh_seal(bytes, n);
	return n + LRH_VCRC_BYTES;
}

enum { LONG = 1024, LONG_BYTES = LRH_BYTES + BTH_BYTES + LONG + 6 };

/* data_lend: the receiver gets the headers that were checked, although the
 * sender writes others into its memory before the receiver fetches. */
static void a_sender_changes_no_header_of_lent_bytes(void **state)
{
	uint8_t bytes[LONG_BYTES], got[LONG_BYTES], want[LONG_BYTES];
	struct world *w = *state;

	make_long(w, bytes, LONG, 7);
	memcpy(want, bytes, LONG_BYTES);
	assert_int_equal(data_lend(w->a, bytes, LONG_BYTES), 0);
	fabric_turn(w->f, w->now_ms);
	memset(bytes, 0xee, LRH_BYTES + BTH_BYTES);
	assert_int_equal(data_length(w->b), LONG_BYTES);
	data_copy(w->b, got);
	data_fetched(w->b);
	assert_memory_equal(got, want, LONG_BYTES);
	assert_int_equal(data_length(w->b), 0);
}

/* After data_settle the sender may use its memory for other packets, whether
 * the packet is still on its way or not. */
static void settled_bytes_are_the_fabrics(void **state)
{
	uint8_t bytes[LONG_BYTES], got[LONG_BYTES], want[LONG_BYTES];
	struct world *w = *state;

	make_long(w, want, LONG, 8);
	for (int turns = 0; turns <= 1; turns++) {
		memcpy(bytes, want, LONG_BYTES);
		assert_int_equal(data_lend(w->a, bytes, LONG_BYTES), 0);
		if (turns)
			fabric_turn(w->f, w->now_ms);
		data_settle(w->f);
		memset(bytes, 0xee, LONG_BYTES);
		fabric_turn(w->f, w->now_ms);
		data_copy(w->b, got);
		data_fetched(w->b);
		assert_memory_equal(got, want, LONG_BYTES);
	}
	data_settle(w->f); /* nothing is lent any more */
}

/* A switch that sends the packet on another VL writes the VL and a new VCRC
 * into bytes of its own. */
static void a_new_vl_leaves_the_senders_bytes(void **state)
{
	uint8_t bytes[LONG_BYTES], got[LONG_BYTES], want[LONG_BYTES];
	struct world *w = *state;

	make_long(w, bytes, LONG, 9);
	memcpy(want, bytes, LONG_BYTES);
	port_of(w, "S3", 2)->slvl[1][0] = 0x30; /* SL 0 on VL 3 */
	assert_int_equal(data_lend(w->a, bytes, LONG_BYTES), 0);
	fabric_turn(w->f, w->now_ms);
	assert_int_equal(data_length(w->b), LONG_BYTES);
	data_copy(w->b, got);
	data_fetched(w->b);
	assert_memory_equal(bytes, want, LONG_BYTES);
	assert_int_equal(got[0] >> 4, 3);
	assert_true(lrh_is_intact(got, LONG_BYTES));
}

/* data_lend copies only the first PAYLOAD_HEAD bytes of a long packet.  The
 * receiver gets the other bytes as the sender has written them last. */
static void a_sender_may_change_only_lent_payload(void **state)
{
	uint8_t bytes[LONG_BYTES], got[LONG_BYTES], want[LONG_BYTES];
	struct world *w = *state;

	make_long(w, bytes, LONG, 7);
	memcpy(want, bytes, LONG_BYTES);
	memset(want + PAYLOAD_HEAD, 8, LONG_BYTES - PAYLOAD_HEAD);
	assert_int_equal(data_lend(w->a, bytes, LONG_BYTES), 0);
	memset(bytes, 8, LONG_BYTES);
	fabric_turn(w->f, w->now_ms);
	data_copy(w->b, got);
	data_fetched(w->b);
	assert_memory_equal(got, want, LONG_BYTES);
}

/* A short packet is copied as a whole, and its VCRC is checked. */
static void a_short_packet_is_not_lent(void **state)
{
	struct world *w = *state;
	struct made m;

	make_unicast(&m, w->b, LID_B, 1);
	assert_int_equal(data_lend(w->a, m.bytes, m.n), 0);
	m.bytes[BYTES - 1] ^= 1; /* VCRC */
	assert_int_equal(data_lend(w->a, m.bytes, m.n), -EINVAL);
	fabric_turn(w->f, w->now_ms);
	assert_int_equal(fetch_mark(w->b), 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(packets_go_by_lid_over_one_and_three_switches),
		TEST(counters_tell_words_and_packets_of_each_link),
		TEST(an_adapter_sends_only_its_own_packets),
		TEST(a_datagram_names_a_qp_of_its_sender),
		TEST(a_port_that_is_not_active_sends_nothing),
		TEST(the_first_packet_makes_an_armed_port_active),
		TEST(a_new_mtu_is_told),
		TEST(the_watcher_of_ports_sees_the_new_mtu),
		TEST(a_lid_without_an_entry_is_counted_and_dropped),
		TEST(two_limited_members_exchange_no_packets),
		TEST(a_switch_enforces_partitions_if_the_manager_says_so),
		TEST(a_switch_passes_the_packets_of_a_limited_member),
		TEST(each_port_chooses_the_vl_of_an_sl),
		TEST(a_packet_above_the_mtu_of_a_link_is_discarded),
		TEST(a_group_gets_one_copy_for_each_program_that_joined),
		TEST(a_sender_changes_no_header_of_lent_bytes),
		TEST(settled_bytes_are_the_fabrics),
		TEST(a_new_vl_leaves_the_senders_bytes),
		TEST(a_sender_may_change_only_lent_payload),
		TEST(a_short_packet_is_not_lent),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
