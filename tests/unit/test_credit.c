/* SPDX-License-Identifier: BSD-2-Clause */
/* Flow control within a host (engine/credit.h): how many bytes a process may
 * have in flight to another, and when it sends without room. */
#include "test.h"

#include <string.h>

#include "engine/credit.h"
#include "engine/inside.h"
#include "util/rng.h"

#define US	7      /* the sender's class */
#define BUFFER	400000 /* bytes that the receiver can hold */
#define PACKET	4124   /* bytes */
#define MS	1000000ull
#define T(test) cmocka_unit_test_setup(test, set_up)

/* The receiver's page, the receiver, and a sender of class US. */
static struct credit_page page;
static struct credit_inbox in;
static struct credit c;
static uint64_t now = 1000000000; /* the time, in ns */
static struct credit_want want = {PACKET, 100 * MS};

static int set_up(void **state)
{
	memset(&page, 0, sizeof(page));
	memset(&in, 0, sizeof(in));
	memset(&c, 0, sizeof(c));
	c.page = &page;
	credit_open(&in, &page, BUFFER, false);
	return 0;
}

/* Sends one packet if the credit allows it.  Returns whether the packet was
 * sent. */
static bool send_one(void)
{
	if (!credit_has_room(&c, US, &want, now))
		return false;
	c.sent += credit_cost(PACKET, PACKET);
	credit_made(&c);
	credit_sent(&c, now);
	return true;
}

static uint32_t send_all(void)
{
	uint32_t n = 0;

	while (send_one())
		n++;
	return n;
}

static void drain_packets(uint32_t class, uint32_t n)
{
	while (n--)
		credit_drained(&in, class, PACKET, PACKET, now);
}

/* Sends and drains packets until the sender is one of those that share the
 * buffer (CREDIT_SHARES).  At the end none of the sender's bytes are in flight.
 */
static void settle_in(void)
{
	for (int i = 0; i < 3; i++) {
		assert_true(send_one());
		drain_packets(US, 1);
	}
}

static void bytes_under_way_stay_below_the_buffer(void **state)
{
	uint32_t n;

	settle_in();
	n = send_all();
	assert_true(n * credit_cost(PACKET, PACKET) > BUFFER / 2);
	assert_true(n * credit_cost(PACKET, PACKET) < BUFFER / 4 * 3);
}

static void a_drained_buffer_takes_more_frames(void **state)
{
	send_all();
	assert_false(send_one());
	credit_drained(&in, US, PACKET, PACKET, now);
	assert_true(send_one());
	assert_false(send_one());
	/* a drained frame of another sender gives this sender no room */
	credit_drained(&in, US + 1, PACKET, PACKET, now);
	assert_false(send_one());
}

static void senders_share_the_buffer(void **state)
{
	uint32_t alone;

	settle_in();
	alone = send_all();
	drain_packets(US, alone);
	for (uint32_t i = 0; i < 9; i++)
		drain_packets(i, i != US);
	assert_uint_in_range(send_all(), 2, alone / 9 + 1);
}

/* Until the receiver counts a new sender, the other senders may have all bytes
 * of their shares in flight.  So a new sender begins with an eighth of the
 * capacity, which is in no sender's share. */
static void a_new_sender_leaves_the_buffer_to_other_senders(void **state)
{
	uint32_t few = send_all(), cost = credit_cost(PACKET, PACKET);

	assert_uint_in_range(few * cost, BUFFER / 20, BUFFER / 4 * 3 / 8);
	drain_packets(US, few - 1);
	/* The receiver counts the sender now.  The sender gets a share when the
	 * receiver has drained a frame that was sent after this. */
	assert_int_equal(send_all(), few - 1);
	drain_packets(US, 1);
	assert_int_equal(send_all(), 1);
	drain_packets(US, 1);
	assert_true(send_all() > 3 * few);
	/* a sender that was silent begins again, because the receiver may have
	 * stopped counting it */
	drain_packets(US, 1000);
	now += 300000000;
	assert_int_equal(send_all(), few);
}

/* Four senders send in random order, and the receiver takes the frames in the
 * order in which they were sent. */
static void senders_that_begin_and_pause_never_overflow_the_buffer(void **state)
{
	enum { SENDERS = 4, QUEUE = 4096, STEPS = 200000 };
	static uint8_t queue[QUEUE];
	struct credit s[SENDERS] = {{0}};
	bool is_busy[SENDERS] = {true};
	uint32_t head = 0, tail = 0, most = 0;
	struct rng g;

	rng_init(&g, 3);
	for (int i = 0; i < SENDERS; i++)
		s[i].page = &page;
	for (int k = 0; k < STEPS; k++) {
		uint32_t i = rng_below(&g, SENDERS);

		now += rng_below(&g, 2000);
		/* all but the first sender pause at times, and at times all
		 * pause */
		if (i && !rng_below(&g, 100))
			is_busy[i] = !is_busy[i];
		if (!rng_below(&g, 3000))
			now += 300000000;
		if (!rng_below(&g, 4) && head != tail) {
			drain_packets(queue[tail++ % QUEUE], 1);
		} else if (is_busy[i] &&
			   credit_has_room(&s[i], i, &want, now)) {
			s[i].sent += credit_cost(PACKET, PACKET);
			credit_made(&s[i]);
			credit_sent(&s[i], now);
			queue[head++ % QUEUE] = (uint8_t)i;
		}
		most = head - tail > most ? head - tail : most;
	}
	assert_uint_in_range(most * credit_cost(PACKET, PACKET), BUFFER / 8 * 5,
			     BUFFER);
	assert_true(head > STEPS / 10);
}

static void without_credits_nothing_is_counted_and_nobody_waits(void **state)
{
	bool ask;

	memset(&page, 0, sizeof(page));
	in.is_off = true;
	credit_open(&in, &page, BUFFER, true);
	drain_packets(US, 3);
	credit_empty(&in);
	assert_false(credit_owes_look(&in));
	assert_int_equal(shared_load(&page.capacity), 0);
	assert_int_equal(shared_load(&page.apart), 0);
	assert_int_equal(shared_load(&page.drained[US]), 0);
	assert_int_equal(shared_load(&page.empties), 0);
	/* a sender with credits does not wait for this receiver */
	for (int i = 0; i < 1000; i++)
		assert_true(send_one());
	/* a sender without credits does not wait for a receiver with a full
	 * buffer */
	in.is_off = false;
	credit_open(&in, &page, BUFFER, true);
	assert_false(send_one());
	assert_false(credit_is_joined(&c));
	c.is_off = true;
	for (int i = 0; i < 1000; i++)
		assert_true(send_one());
	assert_true(credit_is_joined(&c));
	assert_int_equal(credit_more(&c, US, PACKET), UINT32_MAX);
	c.page = NULL;
	assert_false(credit_waits(&c, &want, now, &ask));
	assert_true(ask);
}

static void an_empty_socket_settles_bytes_that_were_counted_wrong(void **state)
{
	send_all();
	in.quiet = 0;
	credit_empty(&in);
	/* one look proves nothing: the receiver may have found the socket empty
	 * before the last packet was sent, and counted that look afterwards */
	now += 30 * MS;
	assert_false(send_one());
	credit_empty(&in);
	assert_true(send_one());
}

static void a_receiver_owes_two_looks_after_each_datagram(void **state)
{
	struct credit_inbox none = {0};

	credit_empty(&in);
	credit_empty(&in);
	assert_false(credit_owes_look(&in));
	for (int i = 0; i < 2; i++) {
		if (i)
			credit_passed(&in);
		else
			credit_drained(&in, US, PACKET, PACKET, now);
		assert_true(credit_owes_look(&in));
		credit_empty(&in);
		assert_true(credit_owes_look(&in));
		credit_empty(&in);
		assert_false(credit_owes_look(&in));
	}
	assert_false(credit_owes_look(&none));
}

/* The kernel's thread that puts the bytes into the socket may wait for a
 * processor. */
static void late_bytes_are_not_settled(void **state)
{
	send_all();
	credit_empty(&in);
	credit_empty(&in);
	now += 10 * MS;
	assert_false(send_one());
	now += 20 * MS;
	assert_true(send_one());
}

/* The frames may be to a destroyed queue pair, for example.  The receiver finds
 * out the sender's class by the queue pair, so it adds the bytes of such a
 * frame to no class's count of drained bytes. */
static void frames_that_no_queue_pair_receives_are_settled(void **state)
{
	credit_empty(&in);
	credit_empty(&in);
	send_all();
	credit_passed(&in);
	credit_empty(&in);
	credit_empty(&in);
	now += 30 * MS;
	assert_true(send_all() > 1);
}

static void frames_not_sent_yet_are_not_settled(void **state)
{
	send_all();
	credit_made(&c);
	credit_made(&c);
	credit_sent(&c, now);
	/* the second frame waits, since the socket is full */
	credit_empty(&in);
	credit_empty(&in);
	now += 30 * MS;
	assert_false(credit_has_room(&c, US, &want, now));
	credit_sent(&c, now);
	credit_empty(&in);
	credit_passed(&in);
	credit_empty(&in);
	credit_empty(&in);
	now += 30 * MS;
	assert_true(credit_has_room(&c, US, &want, now));
}

static void a_receiver_that_is_stopped_gets_a_packet_now_and_then(void **state)
{
	uint32_t passed = 0;

	send_all();
	now += 200 * MS;
	assert_true(send_one());
	assert_false(send_one());
	/* the packets that are sent without room are so few that frames of
	 * other senders still have room */
	for (int i = 0; i < 600; i++, now += 100 * MS)
		passed += send_one();
	assert_uint_in_range(passed, 5, 9);
}

/* Packets for which a stopped receiver's buffer has no room are lost. */
static void a_patient_sender_sends_nothing_to_a_stopped_receiver(void **state)
{
	const struct credit_want patient = {PACKET, 60000 * MS};

	send_all();
	assert_false(credit_has_room(&c, US, &patient, now));
	assert_false(credit_has_room(&c, US, &patient, now + 59000 * MS));
	assert_true(credit_has_room(&c, US, &patient, now + 61000 * MS));
	drain_packets(US, 1);
	assert_true(credit_has_room(&c, US, &patient, now + 61000 * MS));
}

static void with_another_owner_of_the_page_credits_start_anew(void **state)
{
	send_all();
	page.generation++;
	assert_true(send_all() > 3);
}

static void a_receiver_that_states_no_capacity_is_not_limited(void **state)
{
	page.capacity = 0;
	for (int i = 0; i < 10000; i++)
		assert_true(send_one());
	c.page = NULL;
	assert_true(send_one());
}

static void before_the_page_is_known_answers_pass_and_floods_wait(void **state)
{
	const struct credit_want patient = {PACKET, 60000 * MS};
	uint32_t n = 0;
	bool ask;

	c.page = NULL;
	while (!credit_waits(&c, &want, now, &ask) && n++ < 1000)
		c.sent += credit_cost(20, 20);
	assert_uint_in_range(n, 4, 40);
	assert_true(credit_waits(&c, &want, now + 900000000, &ask));
	assert_false(credit_waits(&c, &want, now + 1100000000, &ask));
	assert_true(credit_waits(&c, &patient, now + 59000 * MS, &ask));
	assert_false(credit_waits(&c, &patient, now + 61000 * MS, &ask));
	credit_page_is(&c, &page);
	assert_false(credit_waits(&c, &want, now, &ask));
	assert_true(send_all() > 1);
}

/* Does the sender ask for the page now? */
static bool asks_at(uint64_t at)
{
	bool ask;

	assert_false(credit_waits(&c, &want, at, &ask));
	return ask;
}

/* The receiver may have ended, and its class may have another page. */
static void a_sender_asks_whether_a_page_is_out_of_date(void **state)
{
	static struct credit_page next;
	const uint64_t full = now;

	memset(&next, 0, sizeof(next));
	send_all();
	assert_false(asks_at(full + 900 * MS));
	assert_true(asks_at(full + 1100 * MS));
	assert_false(asks_at(full + 2000 * MS));
	assert_true(asks_at(full + 2200 * MS));
	/* the new page has room, although its generation is that of the old */
	credit_open(&in, &next, BUFFER, false);
	credit_page_is(&c, &next);
	assert_true(send_all() > 1);
	credit_drained(&in, US, PACKET, PACKET, now);
	assert_true(send_one());
	assert_false(asks_at(full + 9000 * MS));
	/* the broker zeroes the page of a class that was released */
	next.capacity = 0;
	assert_true(asks_at(full + 9000 * MS));
	assert_false(asks_at(full + 9900 * MS));
}

static void a_sender_that_waits_long_reads_the_page_rarely(void **state)
{
	uint64_t first;

	send_all();
	assert_false(credit_has_room(&c, US, &want, now));
	first = credit_look_ns(&c, now);
	assert_true(first <= 20000);
	assert_true(credit_look_ns(&c, now + 1000000) <= 150000);
	assert_true(credit_look_ns(&c, now + 90000000) >= 5000000);
}

static void both_sides_charge_a_datagram_alike(void **state)
{
	uint32_t one = credit_cost(4112, 4112);

	/* a frame of at most CREDIT_FEW packets costs the same whether the
	 * receiver's kernel splits it or not */
	assert_int_equal(credit_cost(CREDIT_FEW * 4112, 4112),
			 CREDIT_FEW * one);
	assert_int_equal(credit_cost(4112 + 40, 4112),
			 one + credit_cost(40, 40));
	/* a longer frame is sent only to a receiver that takes it whole */
	assert_true(credit_cost(15 * 4112, 4112) < 15 * one);
	assert_true(one > 4112);
	assert_true(credit_cost(40, 40) >= 512);
}

static void a_receiver_that_stops_splitting_frames_tells_senders(void **state)
{
	assert_true(credit_is_joined(&c));
	credit_open(&in, &page, BUFFER, true);
	assert_false(credit_is_joined(&c));
	credit_joins(&in);
	assert_true(credit_is_joined(&c));
	c.page = NULL;
	assert_false(credit_is_joined(&c));
}

/* A datagram to an address that no device has is dropped, but its bytes left
 * the buffer. */
static void a_receiver_owes_looks_after_a_stray_datagram(void **state)
{
	static const uint8_t bytes[64];
	struct engine_counters counters = {0};
	static struct engine e;
	struct engine_dgram d = {
		.bytes = bytes, .len = sizeof(bytes), .is_stray = true};

	e.ibt.counters = &counters;
	credit_open(&e.inbox, &page, BUFFER, false);
	while (engine_owes_look(&e))
		engine_rx_empty(&e);
	engine_rx(&e, &d, now); /* from another host */
	assert_false(engine_owes_look(&e));
	d.local = true;
	engine_rx(&e, &d, now);
	assert_true(engine_owes_look(&e));
	assert_int_equal(counters.refused.wrong_peer, 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(bytes_under_way_stay_below_the_buffer),
		T(a_drained_buffer_takes_more_frames),
		T(senders_share_the_buffer),
		T(a_new_sender_leaves_the_buffer_to_other_senders),
		T(senders_that_begin_and_pause_never_overflow_the_buffer),
		T(without_credits_nothing_is_counted_and_nobody_waits),
		T(an_empty_socket_settles_bytes_that_were_counted_wrong),
		T(a_receiver_owes_two_looks_after_each_datagram),
		T(a_receiver_owes_looks_after_a_stray_datagram),
		T(late_bytes_are_not_settled),
		T(frames_that_no_queue_pair_receives_are_settled),
		T(frames_not_sent_yet_are_not_settled),
		T(a_receiver_that_is_stopped_gets_a_packet_now_and_then),
		T(a_patient_sender_sends_nothing_to_a_stopped_receiver),
		T(with_another_owner_of_the_page_credits_start_anew),
		T(a_receiver_that_states_no_capacity_is_not_limited),
		T(before_the_page_is_known_answers_pass_and_floods_wait),
		T(a_sender_asks_whether_a_page_is_out_of_date),
		T(a_sender_that_waits_long_reads_the_page_rarely),
		T(both_sides_charge_a_datagram_alike),
		T(a_receiver_that_stops_splitting_frames_tells_senders),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
