/* SPDX-License-Identifier: BSD-2-Clause */
/* cm/live and hdr/livemsg: a broker asks another broker whether a peer lives,
 * over a network that loses packets. */
#include "test.h"

#include <string.h>

#include "cm/live.h"
#include "util/rng.h"

#define MS 1000000ull

static const uint8_t here[16] = {[10] = 0xff, 0xff, 10, 0, 0, 1};
static const uint8_t there[16] = {[10] = 0xff, 0xff, 10, 0, 0, 2};
static const uint8_t stranger[16] = {[10] = 0xff, 0xff, 10, 0, 0, 3};

static struct live_peer peer_of(uint32_t qpn)
{
	struct live_peer p = {.qpn = qpn};

	memcpy(p.local, here, 16);
	memcpy(p.peer, there, 16);
	return p;
}

/* Delivers the messages of `from` at the time `now` (ns) to `to`, which answers
 * each question by `state`.  If `to` is NULL, the messages are lost.  Returns
 * the number of messages. */
static uint32_t deliver_messages(struct live *from, struct live *to,
				 enum livemsg_state state, uint64_t now)
{
	struct live_question q;
	struct cm_frame f;
	uint32_t n = 0;

	while (live_tx(from, &f)) {
		n++;
		if (to &&
		    live_rx(to, f.from, f.to, 0, f.mad, MAD_BYTES, now, &q))
			live_reply(to, &q, state);
	}
	return n;
}

static void a_question_brings_the_peers_brokers_answer(void **state)
{
	static const enum livemsg_state words[] = {LIVEMSG_ALIVE, LIVEMSG_GONE,
						   LIVEMSG_UNKNOWN};

	for (size_t i = 0; i < 3; i++) {
		struct live *a = live_new(1, 0), *b = live_new(2, 0);
		struct live_peer p = peer_of(0x123456);
		struct live_answer answer;

		assert_true(live_ask(a, 7, &p, 0));
		assert_int_equal(deliver_messages(a, b, words[i], 1), 1);
		assert_int_equal(deliver_messages(b, a, 0, 2), 1);
		assert_true(live_answer(a, &answer));
		assert_int_equal(answer.state, words[i]);
		assert_int_equal(answer.asker, 7);
		assert_int_equal(answer.about.qpn, 0x123456);
		assert_false(live_answer(a, &answer));
		assert_true(live_deadline(a) == UINT64_MAX);
		live_free(a);
		live_free(b);
	}
}

static void a_silent_broker_is_asked_five_times_in_half_a_second(void **state)
{
	struct live *a = live_new(1, 0);
	struct live_peer p = peer_of(5);
	struct live_answer answer;
	uint32_t sent = 0;
	uint64_t now = 0;

	assert_true(live_ask(a, 7, &p, 0));
	while (live_deadline(a) != UINT64_MAX) {
		assert_false(live_answer(a, &answer));
		sent += deliver_messages(a, NULL, 0, now);
		live_tick(a, now = live_deadline(a));
	}
	assert_int_equal(sent, 5);
	assert_int_equal(now, 500 * MS);
	assert_true(live_answer(a, &answer));
	assert_int_equal(answer.state, LIVEMSG_UNKNOWN);
	live_free(a);
}

static void
answers_are_believed_only_from_the_broker_that_was_asked(void **state)
{
	struct live *a = live_new(1, 0), *b = live_new(2, 0);
	struct live_peer p = peer_of(5);
	struct live_answer answer;
	struct live_question q;
	struct cm_frame f;

	assert_true(live_ask(a, 7, &p, 0));
	assert_true(live_tx(a, &f));
	assert_true(live_rx(b, f.from, f.to, 0, f.mad, MAD_BYTES, 0, &q));
	live_reply(b, &q, LIVEMSG_GONE);
	assert_true(live_tx(b, &f));
	live_rx(a, stranger, here, 0, f.mad, MAD_BYTES, 0, &q);
	live_rx(a, there, stranger, 0, f.mad, MAD_BYTES, 0, &q);
	f.mad[15] ^= 1; /* the nonce */
	live_rx(a, there, here, 0, f.mad, MAD_BYTES, 0, &q);
	f.mad[15] ^= 1;
	f.mad[51] ^= 1; /* the QPN */
	live_rx(a, there, here, 0, f.mad, MAD_BYTES, 0, &q);
	f.mad[51] ^= 1;
	assert_int_equal(live_counters(a)->strays, 4);
	f.mad[45] ^= 1; /* not a message of cm/live */
	live_rx(a, there, here, 0, f.mad, MAD_BYTES, 0, &q);
	f.mad[45] ^= 1;
	live_rx(a, there, here, 0, f.mad, MAD_BYTES - 1, 0, &q);
	assert_int_equal(live_counters(a)->malformed, 2);
	assert_false(live_answer(a, &answer));
	live_rx(a, there, here, 0, f.mad, MAD_BYTES, 0, &q);
	assert_true(live_answer(a, &answer));
	/* a second answer is refused */
	live_rx(a, there, here, 0, f.mad, MAD_BYTES, 0, &q);
	assert_int_equal(live_counters(a)->strays, 5);
	live_free(a);
	live_free(b);
}

/* If no agent is registered for the class of a Get, Linux returns the Get to
 * its sender with the status 0xc: this method and attribute are not supported
 * together. */
static void a_refusal_ends_the_question_at_once(void **state)
{
	struct live *a = live_new(1, 0);
	struct live_peer p = peer_of(5);
	struct live_answer answer;
	struct live_question q;
	struct cm_frame f;

	assert_true(live_ask(a, 7, &p, 0));
	assert_true(live_tx(a, &f));
	f.mad[3] |= MAD_METHOD_RESPONSE;
	f.mad[5] = 0xc;
	live_rx(a, there, here, 0, f.mad, MAD_BYTES, 0, &q);
	assert_true(live_answer(a, &answer));
	assert_int_equal(answer.state, LIVEMSG_UNKNOWN);
	live_free(a);
}

static void a_flood_uses_up_no_budget_of_another_peer(void **state)
{
	struct live *a = live_new(1, 0);
	const uint32_t gained = 1000 * MS / LIVE_REFILL_NS; /* in a second */
	struct live_question q;
	uint8_t mad[MAD_BYTES];
	uint32_t answered = 0;

	for (uint32_t i = 0; i < 10000; i++) {
		livemsg_write(mad, &(struct livemsg){.nonce = i, .qpn = 5});
		answered += live_rx(a, there, here, 0, mad, sizeof(mad),
				    i * (MS / 10), &q);
	}
	assert_uint_in_range(answered, LIVE_BUDGET + gained - 1,
			     LIVE_BUDGET + gained + 1);
	assert_true(live_rx(a, stranger, here, 0, mad, sizeof(mad), 0, &q));
	live_free(a);
}

/* All processes of a host have stopped.  16 processes of another host have 16
 * connections each to them, and ask about each connection every 67 ms. */
static void each_of_many_connections_learns_that_its_peer_lives(void **state)
{
	enum { PAIRS = 256, AGAIN_MS = 67 };
	struct live *a = live_new(1, 0), *b = live_new(2, 0);
	uint32_t due_ms[PAIRS] = {0}, learned = 0;
	bool lives[PAIRS] = {false};
	struct live_answer answer;

	for (uint32_t ms = 0; ms < 2000; ms++) {
		for (uint32_t i = 0; i < PAIRS; i++) {
			struct live_peer p = peer_of(i);

			if (ms >= due_ms[i] && live_ask(a, i / 16, &p, ms * MS))
				due_ms[i] = UINT32_MAX; /* waits */
		}
		live_tick(a, ms * MS);
		deliver_messages(a, b, LIVEMSG_ALIVE, ms * MS);
		deliver_messages(b, a, 0, ms * MS);
		while (live_answer(a, &answer)) {
			lives[answer.about.qpn] |=
				answer.state == LIVEMSG_ALIVE;
			due_ms[answer.about.qpn] = ms + AGAIN_MS;
		}
	}
	for (uint32_t i = 0; i < PAIRS; i++)
		learned += lives[i];
	assert_int_equal(learned, PAIRS);
	live_free(a);
	live_free(b);
}

static void each_user_asks_at_most_its_share(void **state)
{
	struct live *a = live_new(1, 0);
	struct live_answer answer;
	struct cm_frame f;
	uint32_t n = 0;

	for (uint64_t asker = 1; asker <= 8; asker++)
		for (uint32_t i = 0; i < 200; i++) {
			struct live_peer p = peer_of(i);

			n += live_ask(a, asker, &p, 0);
			while (live_tx(a, &f))
				;
		}
	assert_int_equal(n, LIVE_QUESTIONS);
	live_forget(a, 1);
	live_tick(a, LIVE_PATIENCE_NS);
	for (n = 0; live_answer(a, &answer); n++)
		assert_int_not_equal(answer.asker, 1);
	assert_int_equal(n, LIVE_QUESTIONS - LIVE_OF_ONE);
	live_free(a);
}

/* A fifth of all packets is lost.  At most 20 of 1000 questions stay without an
 * answer. */
static void lost_packets_are_sent_again(void **state)
{
	struct live *a = live_new(1, 0), *b = live_new(2, 0);
	struct live_answer answer;
	uint32_t answered = 0;
	uint64_t now = 0;
	struct rng rng;

	rng_init(&rng, 3);
	for (uint32_t i = 0; i < 1000; i++) {
		struct live_peer p = peer_of(i);

		assert_true(live_ask(a, 7, &p, now));
		while (!live_answer(a, &answer)) {
			deliver_messages(a, rng_chance(&rng, 200000) ? NULL : b,
					 LIVEMSG_ALIVE, now);
			deliver_messages(b, rng_chance(&rng, 200000) ? NULL : a,
					 0, now);
			if (live_deadline(a) != UINT64_MAX)
				live_tick(a, now = live_deadline(a));
		}
		answered += answer.state == LIVEMSG_ALIVE;
	}
	assert_uint_in_range(answered, 980, 1000);
	live_free(a);
	live_free(b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_question_brings_the_peers_brokers_answer),
		cmocka_unit_test(
			a_silent_broker_is_asked_five_times_in_half_a_second),
		cmocka_unit_test(
			answers_are_believed_only_from_the_broker_that_was_asked),
		cmocka_unit_test(a_refusal_ends_the_question_at_once),
		cmocka_unit_test(a_flood_uses_up_no_budget_of_another_peer),
		cmocka_unit_test(
			each_of_many_connections_learns_that_its_peer_lives),
		cmocka_unit_test(each_user_asks_at_most_its_share),
		cmocka_unit_test(lost_packets_are_sent_again),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
