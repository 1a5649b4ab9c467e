/* SPDX-License-Identifier: BSD-2-Clause */
/* fabric/reach: tells whether packets of a queue pair would arrive at the peer,
 * and the peer's answers at the queue pair. */
#include "unit/data_world.h"

#include "fabric/port_info.h"
#include "fabric/reach.h"
#include "fabric/sma.h"

enum {
	AT_LMC = 34,
	AT_ENFORCE = 43, /* the low bits of AT_LANES */
	ENFORCE_IN = 8,
	ENFORCE_OUT = 4,
	OTHER = 0x8111,
	OTHER_LIMITED = 0x0111,
};

static struct reach ask_of(const struct data_end *to, uint16_t dlid)
{
	return (struct reach){.dest_qpn = qpn_of(to), .dlid = dlid, .mtu = 4};
}

/* Returns whether reach_find says that packets from A reach B, and that packets
 * from B reach A. */
static bool reaches_b(const struct world *w, const struct reach *r)
{
	struct reach_peer peer;
	struct data_end *found = reach_find(w->a, r, &peer);

	assert_true(!found || found == w->b);
	return found;
}

static bool asks_b(const struct world *w)
{
	const struct reach r = ask_of(w->b, LID_B);

	return reaches_b(w, &r);
}

/* Sends a packet from A to B.  Returns whether the packet arrives. */
static bool sends_b(struct world *w)
{
	send_mark(w, w->b, LID_B, 7);
	return fetch_mark(w->b) == 7;
}

static void packets_reach_the_data_end_of_their_qpn(void **state)
{
	struct world *w = *state;
	struct reach r = ask_of(w->b, LID_B);
	struct reach_peer peer;

	assert_ptr_equal(reach_find(w->a, &r, &peer), w->b);
	assert_int_equal(peer.slid, LID_A);
	assert_int_equal(peer.port, 1);
	assert_int_equal(peer.pkeys, 1);
	assert_int_equal(peer.path_mask, 0);
	assert_int_equal(peer.path_bits, 0);
	assert_true(sends_b(w));
	/* A and C are at one switch; packets also reach the port that sends
	 * them */
	r = ask_of(w->c, LID_C);
	assert_ptr_equal(reach_find(w->a, &r, &peer), w->c);
	r = ask_of(w->a, LID_A);
	assert_ptr_equal(reach_find(w->a, &r, &peer), w->a);
}

static void a_qpn_or_a_lid_that_nobody_has_is_not_reached(void **state)
{
	struct world *w = *state;
	struct reach r = ask_of(w->b, LID_B);

	r.dest_qpn += 9 << DATA_REST_BITS;
	assert_false(reaches_b(w, &r));
	r.dest_qpn = 1;
	assert_false(reaches_b(w, &r));
	for (uint32_t lid = 0; lid <= 0xffff; lid++) {
		if (lid == LID_A || lid == LID_C)
			continue;
		r = ask_of(w->b, (uint16_t)lid);
		assert_int_equal(reaches_b(w, &r), lid == LID_B);
	}
	r = ask_of(w->b, LID_B);
	r.sl = 16;
	assert_false(reaches_b(w, &r));
}

static void a_table_without_the_lid_ends_the_way(void **state)
{
	struct world *w = *state;
	struct node *s2 = fabric_find(w->f, "S2");

	s2->lft[LID_B] = 0xff;
	assert_false(asks_b(w));
	assert_false(sends_b(w));
	s2->lft[LID_B] = 0; /* the switch itself */
	assert_false(asks_b(w));
	s2->lft[LID_B] = 2;
	assert_true(asks_b(w));
	bytes_put16(s2->switch_info + 6, LID_A); /* LinearFDBTop */
	assert_false(asks_b(w));
}

static void packets_in_a_loop_of_the_tables_do_not_arrive(void **state)
{
	struct world *w = *state;

	fabric_find(w->f, "S2")->lft[LID_B] = 1; /* back to S1 */
	assert_false(asks_b(w));
	assert_false(sends_b(w));
}

/* Without the way back, the requester gets no ACK. */
static void the_way_back_counts(void **state)
{
	struct world *w = *state;

	fabric_find(w->f, "S3")->lft[LID_A] = 2;
	assert_true(sends_b(w));
	assert_false(asks_b(w));
}

static void a_link_that_is_not_active_ends_the_way(void **state)
{
	static const char *const names[] = {"A", "S2", "S3", "B"};
	struct world *w = *state;

	for (int i = 0; i < 4; i++) {
		struct port *port = port_of(w, names[i], 1);

		for (uint8_t s = STATE_DOWN; s < STATE_ACTIVE; s++) {
			link_set_state(port, s);
			assert_false(asks_b(w));
		}
		link_set_state(port, STATE_ACTIVE);
		assert_true(asks_b(w));
	}
	link_set_phys(port_of(w, "S2", 2), PHYS_DISABLED);
	assert_false(asks_b(w));
	assert_false(sends_b(w));
}

static void both_ends_have_to_be_in_the_partition(void **state)
{
	struct world *w = *state;
	uint16_t *one = port_of(w, "A", 1)->pkeys;
	uint16_t *two = port_of(w, "B", 1)->pkeys;
	struct reach r = ask_of(w->b, LID_B);
	struct reach_peer peer;

	r.pkey_index = 3;
	assert_false(reaches_b(w, &r));
	one[3] = OTHER;
	assert_false(reaches_b(w, &r));
	two[5] = OTHER_LIMITED;
	two[63] = OTHER;
	assert_ptr_equal(reach_find(w->a, &r, &peer), w->b);
	assert_int_equal(peer.pkeys, 1ull << 5 | 1ull << 63);
	/* two limited members do not talk */
	two[63] = 0;
	one[3] = OTHER_LIMITED;
	assert_false(reaches_b(w, &r));
	r.pkey_index = PORT_PKEYS;
	assert_false(reaches_b(w, &r));
	r.pkey_index = UINT16_MAX;
	assert_false(reaches_b(w, &r));
}

/* The asker need not know that two entries have changed places. */
static void the_pkey_is_the_one_at_the_index_now(void **state)
{
	struct world *w = *state;
	uint16_t *one = port_of(w, "A", 1)->pkeys;
	struct reach r = ask_of(w->b, LID_B);
	struct reach_peer peer;

	one[3] = port_of(w, "B", 1)->pkeys[5] = OTHER;
	r.pkey_index = 3;
	assert_ptr_equal(reach_find(w->a, &r, &peer), w->b);
	assert_int_equal(peer.pkeys, 1u << 5);
	one[3] = one[0];
	one[0] = OTHER;
	assert_ptr_equal(reach_find(w->a, &r, &peer), w->b);
	assert_int_equal(peer.pkeys, 1);
}

/* Packets with another SGID do not leave a port. */
static void the_gids_are_those_of_the_ports(void **state)
{
	struct world *w = *state;
	struct reach r = ask_of(w->b, LID_B);
	struct port *port[] = {port_of(w, "A", 1), port_of(w, "B", 1)};

	port_info_gid(port[0], port_guid(port[0], 0), r.sgid);
	port_info_gid(port[1], port_guid(port[1], 0), r.dgid);
	r.has_grh = 1;
	assert_true(reaches_b(w, &r));
	for (int i = 0; i < 2; i++) {
		port[i]->info[AT_GID_PREFIX]++;
		assert_false(reaches_b(w, &r));
		r.has_grh = 0;
		assert_true(reaches_b(w, &r));
		r.has_grh = 1;
		port[i]->info[AT_GID_PREFIX]--;
	}
	r.dgid[15]++;
	assert_false(reaches_b(w, &r));
}

static void switches_enforce_partitions(void **state)
{
	static const uint8_t bits[] = {ENFORCE_IN, ENFORCE_OUT};
	struct world *w = *state;
	struct port *port = port_of(w, "S2", 2);
	struct reach r = ask_of(w->b, LID_B);

	port_of(w, "A", 1)->pkeys[1] = OTHER;
	port_of(w, "B", 1)->pkeys[1] = OTHER;
	r.pkey_index = 1;
	for (int i = 0; i < 2; i++) {
		port->info[AT_ENFORCE] |= bits[i];
		assert_false(reaches_b(w, &r));
		port->pkeys[1] = OTHER;
		assert_true(reaches_b(w, &r));
		port->pkeys[1] = 0;
		port->info[AT_ENFORCE] &= (uint8_t)~bits[i];
	}
}

static void an_sl_needs_a_vl_at_each_port(void **state)
{
	struct world *w = *state;
	struct reach r = ask_of(w->b, LID_B);

	r.sl = 3;
	assert_true(reaches_b(w, &r));
	/* packets from port 1: SL 2 gets VL 2, SL 3 gets VL 15, so packets with
	 * SL 3 are dropped */
	port_of(w, "S2", 2)->slvl[1][1] = 0x2f;
	assert_false(reaches_b(w, &r));
	r.sl = 2;
	assert_true(reaches_b(w, &r));
	/* packets that come back, from port 2: SL 2 and SL 3 get VL 15 */
	port_of(w, "S2", 1)->slvl[2][1] = 0xff;
	assert_false(reaches_b(w, &r));
}

static void a_path_mtu_above_that_of_a_link_is_refused(void **state)
{
	struct world *w = *state;
	struct reach r = ask_of(w->b, LID_B);

	port_of(w, "S3", 2)->info[AT_MTU] = 1 << 4;
	assert_false(reaches_b(w, &r));
	r.mtu = 1;
	assert_true(reaches_b(w, &r));
}

static void path_bits_are_those_of_both_lids(void **state)
{
	struct world *w = *state;
	struct node *node;
	struct reach r;
	struct reach_peer peer;

	bytes_put16(port_of(w, "A", 1)->info + AT_LID, 8);
	bytes_put16(port_of(w, "B", 1)->info + AT_LID, 16);
	port_of(w, "A", 1)->info[AT_LMC] |= 2;
	port_of(w, "B", 1)->info[AT_LMC] |= 1;
	for (uint32_t i = 0; (node = fabric_node(w->f, i)); i++) {
		if (!node_is_switch(node))
			continue;
		bytes_put16(node->switch_info + 6, 32);
		node->lft[11] = 1;
		node->lft[17] = 2;
	}
	r = ask_of(w->b, 17);
	r.path_bits = 7;
	assert_ptr_equal(reach_find(w->a, &r, &peer), w->b);
	assert_int_equal(peer.slid, 11);
	assert_int_equal(peer.path_mask, 1);
	assert_int_equal(peer.path_bits, 1);
	r.path_bits = 2; /* no switch leads to LID 10 */
	assert_null(reach_find(w->a, &r, &peer));
}

/* Sets a block of the forwarding table of S2 as a subnet manager does, so that
 * the LIDs of the block lead to no port.  Fails unless a block within the
 * table, and no other block, is accepted. */
static void set_block(const struct world *w, uint32_t block)
{
	struct packet *p = packet_new(w->f, port_of(w, "S2", 0));
	uint16_t status = 0;
	bool is_there = block < LFT_CAP / 64;

	assert_non_null(p);
	p->mad[0] = p->mad[2] = 1;
	p->mad[1] = CLASS_SUBN_LID;
	p->mad[3] = METHOD_SET;
	bytes_put16(p->mad + 16, 0x19); /* LinearForwardingTable */
	bytes_put32(p->mad + 20, block);
	memset(p->mad + 64, 0xff, 64);
	assert_int_equal(sma_request(p, &status), SMA_ANSWER);
	assert_int_equal(!status, is_there);
	packet_drop(p);
}

static void changes_are_counted(void **state)
{
	struct world *w = *state;
	uint32_t changes = reach_changes(w->f);

	assert_true(asks_b(w));
	assert_true(sends_b(w));
	assert_int_equal(reach_changes(w->f), changes);
	link_set_phys(port_of(w, "S2", 2), PHYS_DISABLED);
	assert_int_not_equal(reach_changes(w->f), changes);
	changes = reach_changes(w->f);
	set_block(w, LFT_CAP / 64); /* refused */
	assert_int_equal(reach_changes(w->f), changes);
	set_block(w, 0);
	assert_int_not_equal(reach_changes(w->f), changes);
	assert_false(asks_b(w));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(packets_reach_the_data_end_of_their_qpn),
		TEST(a_qpn_or_a_lid_that_nobody_has_is_not_reached),
		TEST(a_table_without_the_lid_ends_the_way),
		TEST(packets_in_a_loop_of_the_tables_do_not_arrive),
		TEST(the_way_back_counts),
		TEST(a_link_that_is_not_active_ends_the_way),
		TEST(both_ends_have_to_be_in_the_partition),
		TEST(the_pkey_is_the_one_at_the_index_now),
		TEST(the_gids_are_those_of_the_ports),
		TEST(switches_enforce_partitions),
		TEST(an_sl_needs_a_vl_at_each_port),
		TEST(a_path_mtu_above_that_of_a_link_is_refused),
		TEST(path_bits_are_those_of_both_lids),
		TEST(changes_are_counted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
