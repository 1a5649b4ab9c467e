/* SPDX-License-Identifier: BSD-2-Clause */
/* fabric/lane: the buffers of the VLs of an emulated subnet fill and empty, and
 * packets wait, pass or are discarded. */
#include "scenario/lane_world.h"

#include "fabric/data_end.h"

enum { A, B, C, D, ALL = 1 << 20 };

/* A and C are at S1, B and D at S2. */
static const char line[] =
	"Switch 3 \"S1\"\n[1] \"A\"[1]\n[2] \"C\"[1]\n[3] \"S2\"[3]\n\n"
	"Switch 3 \"S2\"\n[1] \"B\"[1]\n[2] \"D\"[1]\n[3] \"S1\"[3]\n\n"
	"Hca 1 \"A\"\n[1] \"S1\"[1]\n\n"
	"Hca 1 \"B\"\n[1] \"S2\"[1]\n\n"
	"Hca 1 \"C\"\n[1] \"S1\"[2]\n\n"
	"Hca 1 \"D\"\n[1] \"S2\"[2]\n";

static int set_up(void **state)
{
	static struct lane_world w;

	lane_world_init(&w, line);
	lane_world_route(&w, "S1", A, 1);
	lane_world_route(&w, "S1", C, 2);
	lane_world_route(&w, "S1", B, 3);
	lane_world_route(&w, "S1", D, 3);
	lane_world_route(&w, "S2", A, 3);
	lane_world_route(&w, "S2", C, 3);
	lane_world_route(&w, "S2", B, 1);
	lane_world_route(&w, "S2", D, 2);
	*state = &w;
	return 0;
}

static int tear_down(void **state)
{
	lane_world_fini(*state);
	return 0;
}

static uint32_t held_at(const struct lane_world *w, const char *name,
			int number, uint32_t vl)
{
	return lane_world_port(w, name, number)->lanes->lane[vl].held;
}

static uint64_t lost_at(const struct lane_world *w, const char *name,
			int number)
{
	return lane_world_port(w, name, number)->counters.tx_discards;
}

static void a_packet_crosses_a_link_only_into_a_buffer_with_room(void **state)
{
	enum { FULL = 2 * LANE_WORLD_FIT };
	struct lane_world *w = *state;
	int sent = lane_world_fill(w, A, B, 0, ALL);

	assert_int_equal(sent, 3 * LANE_WORLD_FIT + DATA_UNSENT);
	assert_int_equal(held_at(w, "B", 1, 0), FULL);
	assert_int_equal(held_at(w, "S2", 3, 0), FULL);
	assert_int_equal(held_at(w, "S1", 1, 0), FULL);
	assert_int_equal(lane_world_drain(w, B, 1), 1);
	assert_int_equal(held_at(w, "S1", 1, 0), FULL);
	assert_int_equal(lane_world_port(w, "A", 1)->counters.tx_packets,
			 3 * LANE_WORLD_FIT + 1);
	assert_int_equal(lane_world_drain(w, B, ALL), sent - 1);
	assert_int_equal(held_at(w, "B", 1, 0), 0);
	assert_int_equal(held_at(w, "S1", 1, 0), 0);
	assert_int_equal(w->f->data.multicasts, 0);
	assert_true(list_is_empty(&w->f->data.waiting));
}

/* VL 0 of the link from S1 to S2 is full of packets to B.  Packets of A and C
 * on VL 1 go on, also to B; packets of C on VL 0 wait, also to D. */
static void a_stopped_receiver_stops_only_its_vl(void **state)
{
	struct lane_world *w = *state;
	int sent = lane_world_fill(w, A, B, 0, 3 * LANE_WORLD_FIT + 5);
	struct lrh lrh;

	for (uint32_t from = A; from <= C; from += C - A)
		for (int i = 0; i < 50; i++) {
			lane_world_send(w, from, D, 1);
			lane_world_turn(w, 0);
			assert_int_equal(lane_world_fetch(w, D, &lrh),
					 w->sent - 1);
			assert_int_equal(lrh.vl, 1);
		}
	assert_int_equal(lane_world_fill(w, C, D, 0, 3), 3);
	assert_int_equal(lane_world_fetch(w, D, &lrh), -1);
	assert_int_equal(lane_world_fill(w, C, B, 1, 3), 3);
	assert_int_equal(held_at(w, "B", 1, 1), 2 * 3);
	lane_world_turn(w, 3600 * 1000);
	assert_int_equal(lane_world_drain(w, B, ALL), sent + 3);
	assert_int_equal(lane_world_drain(w, D, ALL), 3);
	assert_int_equal(lost_at(w, "S1", 3) + lost_at(w, "S2", 1), 0);
}

/* On VL 0, more than half of the packets that a VL of A may hold (DATA_UNSENT)
 * wait for B until the test ends.  A reaches that limit on VL 1, and may send
 * again when at most half of its packets on VL 1 are left. */
static void a_sender_waits_only_for_the_vl_at_its_limit(void **state)
{
	enum { WAITING = DATA_UNSENT / 2 + 12 };
	struct lane_world *w = *state;
	struct data_end *a = w->ends[A];

	lane_world_fill(w, A, B, 0, 3 * LANE_WORLD_FIT + WAITING);
	assert_true(data_may_send(a));
	for (int i = 0; i < DATA_UNSENT; i++)
		lane_world_send(w, A, D, 1);
	assert_false(data_may_send(a));
	lane_world_turn(w, 0);
	assert_null(data_resumed(w->f));
	assert_int_equal(lane_world_drain(w, D, ALL), DATA_UNSENT);
	assert_ptr_equal(data_resumed(w->f), a);
	assert_null(data_resumed(w->f));
	assert_true(data_may_send(a));
	assert_int_equal(a->unsent_on[0].count, WAITING);
}

/* HOQLife of S1's port to S2 is 268 ms, and that of the port to B without
 * limit. */
static void a_packet_is_first_in_a_queue_for_hoqlife_at_most(void **state)
{
	struct lane_world *w = *state;

	lane_world_port(w, "S1", 3)->info[LANE_WORLD_HOQ] = 16;
	lane_world_fill(w, A, B, 0, ALL);
	for (uint64_t i = 0; i < 3; i++) {
		uint64_t due = fabric_deadline(w->f);

		assert_int_equal(due, w->now_ms + 269);
		lane_world_turn(w, 268);
		assert_int_equal(lost_at(w, "S1", 3), i);
		lane_world_turn(w, 1);
		assert_int_equal(lost_at(w, "S1", 3), i + 1);
	}
	lane_world_turn(w, 268);
	assert_int_equal(lane_world_drain(w, B, 1), 1);
	/* the next packet has become the first */
	lane_world_turn(w, 268);
	assert_int_equal(lost_at(w, "S1", 3), 3);
	lane_world_turn(w, 1);
	assert_int_equal(lost_at(w, "S1", 3), 4);
	assert_int_equal(lost_at(w, "S2", 1) + lost_at(w, "A", 1), 0);
}

static void hoqlife_20_and_more_discards_nothing(void **state)
{
	struct lane_world *w = *state;
	int sent;

	lane_world_port(w, "S1", 3)->info[LANE_WORLD_HOQ] = 31;
	sent = lane_world_fill(w, A, B, 0, ALL);
	lane_world_turn(w, 24 * 3600 * 1000);
	assert_int_equal(lane_world_drain(w, B, ALL), sent);
	/* 19 is 2.1 s */
	lane_world_port(w, "S1", 3)->info[LANE_WORLD_HOQ] = 19;
	lane_world_fill(w, A, B, 0, ALL);
	lane_world_turn(w, 2147);
	assert_int_equal(lost_at(w, "S1", 3), 0);
	lane_world_turn(w, 1);
	assert_int_equal(lost_at(w, "S1", 3), 1);
}

/* When VLStallCount packets of a VL were discarded after HOQLife, the port
 * discards all packets of this VL, and no others, for 8 times HOQLife. */
static void a_vl_that_lost_many_packets_is_stalled(void **state)
{
	enum { LIFE = 269, COUNT = 3, SENT = 60 };
	struct lane_world *w = *state;
	struct lrh lrh;

	lane_world_port(w, "S1", 3)->info[LANE_WORLD_HOQ] = COUNT << 5 | 16;
	lane_world_fill(w, A, B, 0, SENT);
	lane_world_turn(w, LIFE);
	lane_world_turn(w, LIFE);
	assert_int_equal(lost_at(w, "S1", 3), 2);
	lane_world_turn(w, LIFE);
	assert_int_equal(lost_at(w, "S1", 3), SENT - 2 * LANE_WORLD_FIT);
	lane_world_send(w, C, D, 1);
	lane_world_turn(w, 0);
	assert_int_equal(lane_world_fetch(w, D, &lrh), w->sent - 1);
	assert_int_equal(lane_world_drain(w, B, ALL), 2 * LANE_WORLD_FIT);
	lane_world_send(w, A, B, 0);
	lane_world_turn(w, 8 * LIFE - 1);
	assert_int_equal(lane_world_fetch(w, B, &lrh), -1);
	lane_world_turn(w, 1);
	lane_world_send(w, A, B, 0);
	lane_world_turn(w, 0);
	assert_int_equal(lane_world_fetch(w, B, &lrh), w->sent - 1);
}

static void a_packet_is_in_a_switch_for_its_lifetime_at_most(void **state)
{
	struct lane_world *w = *state;
	int sent = 3 * LANE_WORLD_FIT + DATA_UNSENT;

	fabric_find(w->f, "S1")->switch_info[11] = 16 << 3;
	assert_int_equal(lane_world_fill(w, A, B, 0, ALL), sent);
	lane_world_turn(w, 268);
	assert_int_equal(lost_at(w, "S1", 3), 0);
	lane_world_turn(w, 1);
	/* other packets follow the discarded packets into S1 */
	assert_int_equal(lost_at(w, "S1", 3), LANE_WORLD_FIT);
	assert_int_equal(held_at(w, "S1", 1, 0), 2 * LANE_WORLD_FIT);
	assert_int_equal(lost_at(w, "S2", 1), 0);
	assert_int_equal(lane_world_drain(w, B, ALL), sent - LANE_WORLD_FIT);
}

/* Packets that wait for a link that goes down are lost, and no others. */
static void a_link_that_goes_down_discards_what_waits_for_it(void **state)
{
	struct lane_world *w = *state;
	struct lrh lrh;

	lane_world_fill(w, A, B, 0, ALL);
	link_set_phys(lane_world_port(w, "S2", 1), PHYS_DISABLED);
	lane_world_turn(w, 0);
	assert_int_equal(lost_at(w, "S2", 1), 2 * LANE_WORLD_FIT + DATA_UNSENT);
	assert_true(data_may_send(w->ends[A]));
	lane_world_send(w, A, D, 0);
	lane_world_turn(w, 0);
	assert_int_equal(lane_world_fetch(w, D, &lrh), w->sent - 1);
}

/* A receiver that closes gives back the room of the packets that it has not
 * fetched. */
static void a_receiver_that_closes_lets_the_others_go_on(void **state)
{
	struct lane_world *w = *state;

	lane_world_fill(w, A, B, 0, ALL);
	assert_int_equal(lane_world_fill(w, C, D, 0, 1), 1);
	assert_int_equal(lane_world_drain(w, D, ALL), 0);
	data_close(w->ends[B]);
	lane_world_turn(w, 0);
	assert_int_equal(lane_world_drain(w, D, ALL), 1);
	assert_int_equal(w->f->data.multicasts, 0);
}

/* PortXmitWait counts the ticks in which packets waited and no packet left. */
static void port_xmit_wait_counts_the_time_without_credits(void **state)
{
	struct lane_world *w = *state;
	struct port *port = lane_world_port(w, "S2", 1);

	assert_int_equal(lane_waited(port), 0);
	lane_world_fill(w, A, B, 2, LANE_WORLD_FIT);
	lane_world_turn(w, 100);
	assert_int_equal(lane_waited(port), 0);
	lane_world_fill(w, A, B, 2, 2);
	lane_world_turn(w, 11);
	assert_int_equal(lane_waited(port), 10);
	lane_world_turn(w, 10);
	assert_int_equal(lane_waited(port), 20);
	assert_int_equal(lane_world_drain(w, B, 1), 1);
	lane_world_turn(w, 6);
	assert_int_equal(lane_waited(port), 25);
	assert_int_equal(port->lanes->lane[2].idle.ticks, 25);
	assert_int_equal(port->lanes->lane[1].idle.ticks, 0);
	assert_int_equal(lane_world_drain(w, B, ALL), LANE_WORLD_FIT + 1);
	lane_world_turn(w, 100);
	assert_int_equal(lane_waited(port), 25);
	lane_set_waited(port, 7);
	assert_int_equal(lane_waited(port), 7);
}

/* In each of 1000 turns, sends `low` packets from A on VL 1, and 4 packets from
 * C on VL 2, or fewer if data_may_send returns false.  In a turn the link from
 * S1 to S2 carries 4 packets.  counts: the packets of A and of C that arrive.
 */
static void share_link(struct lane_world *w, int low, int counts[2])
{
	struct lrh lrh;

	w->f->data.turn_blocks = 8;
	counts[0] = counts[1] = 0;
	for (int i = 0; i < 1000; i++) {
		for (int n = 0; n < low && data_may_send(w->ends[A]); n++)
			lane_world_send(w, A, B, 1);
		for (int n = 0; n < 4 && data_may_send(w->ends[C]); n++)
			lane_world_send(w, C, D, 2);
		lane_world_turn(w, 1);
		while (lane_world_fetch(w, B, &lrh) >= 0)
			counts[0]++;
		while (lane_world_fetch(w, D, &lrh) >= 0)
			counts[1]++;
	}
}

static void expect_between(int value, int least, int most)
{
	assert_true(value >= least);
	assert_true(value <= most);
}

static void vls_share_a_link_by_their_weights(void **state)
{
	struct lane_world *w = *state;
	struct port *port = lane_world_port(w, "S1", 3);
	int counts[2];

	memset(port->vlarb, 0, sizeof(port->vlarb));
	port->vlarb[0][0] = 1; /* low: VL 1, 6 blocks; VL 2, 2 blocks */
	port->vlarb[0][1] = 6;
	port->vlarb[0][2] = 2;
	port->vlarb[0][3] = 2;
	share_link(w, 4, counts);
	expect_between(counts[0], 2990, 3010);
	expect_between(counts[1], 990, 1010);
	assert_int_equal(lost_at(w, "S1", 3), 0);
}

/* Gives VL 2 high priority over VL 1 at the link from S1 to S2, up to a limit
 * (VLHighLimit). */
static void prefer_vl2(struct lane_world *w, uint8_t limit)
{
	struct port *port = lane_world_port(w, "S1", 3);

	memset(port->vlarb, 0, sizeof(port->vlarb));
	port->vlarb[0][0] = 1;
	port->vlarb[0][1] = 1;
	port->vlarb[2][0] = 2;
	port->vlarb[2][1] = 255;
	port->info[38] = limit;
}

/* VL 2 has high priority.  With VLHighLimit 1, one packet of VL 1 follows each
 * 4096 bytes of VL 2; with 255, none does; with 0, one follows each packet. */
static void high_priority_goes_first_up_to_its_limit(void **state)
{
	struct lane_world *w = *state;
	int counts[2];

	prefer_vl2(w, 1);
	share_link(w, 4, counts);
	expect_between(counts[0], 4000 / 33 - 10, 4000 / 33 + 10);
	expect_between(counts[1], 4000 - 4000 / 33 - 10, 4000);
	prefer_vl2(w, 255);
	share_link(w, 4, counts);
	expect_between(counts[0], 0, 10);
	prefer_vl2(w, 0);
	share_link(w, 4, counts);
	expect_between(counts[0], 1990, 2010);
}

/* In each turn A sends at most 3 packets on VL 1, fewer than the 4 that the
 * link carries.  If these packets did not wait behind the queue of VL 2, all of
 * them would cross the link in that turn. */
static void new_packets_of_low_priority_wait_for_the_queues(void **state)
{
	struct lane_world *w = *state;
	int counts[2];

	prefer_vl2(w, 255);
	share_link(w, 3, counts);
	expect_between(counts[0], 0, 10);
	expect_between(counts[1], 3990, 4000);
}

/* Returns pseudo-random numbers, equal for equal seeds. */
static uint32_t draw_below(uint32_t *seed, uint32_t below)
{
	*seed = *seed * 1664525u + 1013904223u;
	return (*seed >> 8) % below;
}

/* Fetches a packet of a host, and checks that the packets of one sender and SL
 * come in order.  False: there is no packet. */
static bool fetch_in_order(struct lane_world *w, uint32_t host,
			   int last[LANE_WORLD_HOSTS][LANE_WORLD_HOSTS][16])
{
	struct lrh lrh;
	int number = lane_world_fetch(w, host, &lrh);

	if (number < 0)
		return false;
	assert_true(number > last[lrh.slid][host][lrh.sl]);
	last[lrh.slid][host][lrh.sl] = number;
	return true;
}

static void whatever_waits_all_packets_arrive_in_order(void **state)
{
	struct lane_world *w = *state;

	for (uint32_t seed = 1; seed <= 20; seed++) {
		int last[LANE_WORLD_HOSTS][LANE_WORLD_HOSTS][16];
		uint32_t random = seed, fetched = 0, first = w->sent;

		memset(last, -1, sizeof(last));
		w->f->data.turn_blocks = 2 + draw_below(&random, 20);
		for (int i = 0; i < 4000; i++) {
			uint32_t from = draw_below(&random, 4);
			uint32_t to = draw_below(&random, 4);

			if (data_may_send(w->ends[from]))
				lane_world_send(
					w, from, to,
					(uint8_t)draw_below(&random, 16));
			if (draw_below(&random, 3) == 0)
				fetched += fetch_in_order(
					w, draw_below(&random, 4), last);
			if (draw_below(&random, 4) == 0)
				lane_world_turn(w, 1);
		}
		for (int idle = 0; idle < 2; idle++) {
			for (uint32_t host = 0; host < 4; host++)
				while (fetch_in_order(w, host, last)) {
					fetched++;
					idle = 0;
				}
			lane_world_turn(w, 1);
		}
		assert_int_equal(fetched, w->sent - first);
		assert_int_equal(w->f->data.multicasts, 0);
	}
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_packet_crosses_a_link_only_into_a_buffer_with_room),
		TEST(a_stopped_receiver_stops_only_its_vl),
		TEST(a_sender_waits_only_for_the_vl_at_its_limit),
		TEST(a_packet_is_first_in_a_queue_for_hoqlife_at_most),
		TEST(hoqlife_20_and_more_discards_nothing),
		TEST(a_vl_that_lost_many_packets_is_stalled),
		TEST(a_packet_is_in_a_switch_for_its_lifetime_at_most),
		TEST(a_link_that_goes_down_discards_what_waits_for_it),
		TEST(a_receiver_that_closes_lets_the_others_go_on),
		TEST(port_xmit_wait_counts_the_time_without_credits),
		TEST(vls_share_a_link_by_their_weights),
		TEST(high_priority_goes_first_up_to_its_limit),
		TEST(new_packets_of_low_priority_wait_for_the_queues),
		TEST(whatever_waits_all_packets_arrive_in_order),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
