/* SPDX-License-Identifier: BSD-2-Clause */
/* fabric: the ends, open requests, unread bytes and transfers that a fabric
 * holds for its programs are bounded. */
#include "two_adapters.h"

/* The limits of a fabric (ENDS) and of an end are numbers here, so that a test
 * fails if a limit of the product changes. */
enum {
	ENDS = 4096,
	WAITS = 4096,
	HELD = 16 << 20,
	TRANSFERS = 32,
	SENT = 1024,
	AT_TIMEOUT = 8, /* in struct ib_user_mad */
};

static void ends_are_bounded(void **state)
{
	struct world *w = *state;
	struct end *last = NULL, *end;
	int err, count = 2; /* a and b */

	while ((end = fabric_open(fabric_find(w->f, "A"), 1, NULL, &err))) {
		last = end;
		count++;
	}
	assert_int_equal(err, -EMFILE);
	assert_int_equal(count, ENDS);
	fabric_close(last);
	assert_non_null(fabric_open(fabric_find(w->f, "B"), 1, NULL, &err));
}

static void requests_without_a_response_are_bounded(void **state)
{
	static const uint8_t nowhere[] = {1, 3};
	struct world *w = *state;
	struct smp s;
	int count = 0;

	init_directed(&s, w->agent, nowhere, 2, GET, NODE_INFO, 0);
	while (!fabric_send(w->a, s.bytes, SMALL) && count < 2 * WAITS) {
		bytes_put64(s.mad + 8, (uint64_t)++count);
		fabric_turn(w->f, w->now_ms);
	}
	assert_int_equal(count, WAITS);
	assert_int_equal(fabric_send(w->a, s.bytes, SMALL), -ENOBUFS);
}

/* For a moment as many packets move as may.  A request that finds no room
 * counts as lost: it is sent again after its timeout. */
static void a_request_without_room_is_sent_again(void **state)
{
	static const uint8_t nowhere[] = {1, 3};
	const uint32_t none = 0, once = 1;
	struct world *w = *state;
	struct smp s;
	size_t bytes;
	int err;

	init_directed(&s, w->agent, nowhere, 2, GET, NODE_INFO, 0);
	memcpy(s.bytes + AT_TIMEOUT, &none, sizeof(none));
	do
		err = fabric_send(w->a, s.bytes, SMALL);
	while (!err);
	assert_int_equal(err, -ENOMEM);
	init_directed(&s, w->agent, NULL, 0, GET, NODE_INFO, 0);
	memcpy(s.bytes + AT_TIMEOUT + 4, &once, sizeof(once)); /* retries */
	assert_int_equal(fabric_send(w->a, s.bytes, SMALL), 0);
	fabric_turn(w->f, w->now_ms);
	assert_null(fabric_fetch(w->a, &bytes));
	w->now_ms += 1000;
	fabric_turn(w->f, w->now_ms);
	fabric_turn(w->f, w->now_ms);
	assert_non_null(fabric_fetch(w->a, &bytes));
	assert_int_equal(bytes, SMALL); /* the response; a timeout is shorter */
	fabric_fetched(w->a);
}

static void messages_that_nobody_fetches_are_bounded(void **state)
{
	struct world *w = *state;
	size_t bytes, held = 0;
	struct smp s;

	init_directed(&s, w->agent, NULL, 0, GET, NODE_INFO, 0);
	for (int i = 0; i < HELD / SMALL + 1000; i++) {
		assert_int_equal(fabric_send(w->a, s.bytes, SMALL), 0);
		fabric_turn(w->f, w->now_ms);
	}
	while (fabric_fetch(w->a, &bytes)) {
		held += bytes;
		fabric_fetched(w->a);
	}
	assert_uint_in_range(held, HELD - SMALL, HELD + SMALL);
}

static void transfers_that_nobody_acknowledges_are_bounded(void **state)
{
	struct fabric_agent asked = {
		.mgmt_class = SA, .class_version = 2, .rmpp_version = 1};
	struct world *w = *state;
	struct smp s;
	int count = 0;

	configure_subnet(w);
	init_mad(&s, fabric_register(w->a, &asked), SA, 0x92, 0x11, 0);
	s.mad[2] = 2;
	s.mad[26] = 1; /* active */
	address_to(&s, 3, 1);
	memset(s.bytes + 8, 0, 4);
	/* an adapter may send so many before the fabric takes a turn */
	while (!fabric_send(w->a, s.bytes, SMALL) && count < 2 * SENT)
		bytes_put64(s.mad + 8, (uint64_t)++count);
	assert_int_equal(count, SENT);
	assert_int_equal(fabric_send(w->a, s.bytes, SMALL), -ENOBUFS);
}

/* Sends one segment of a request by RMPP.  Returns whether the ACK of the
 * segment comes. */
static bool ack_comes(struct world *w, struct smp *s, uint32_t segment)
{
	const uint8_t *got;

	s->mad[24] = 1; /* version of RMPP */
	s->mad[25] = 1; /* DATA */
	s->mad[26] = segment == 1 ? 3 : 1;
	bytes_put32(s->mad + 28, segment);
	got = exchange_mad(w, w->b, s);
	/* a STOP tells that there is no room */
	assert_true(!got || got[25] == 2 || got[25] == 3);
	return got && got[25] == 2;
}

/* Registers an agent of A that takes GetMulti by RMPP.  Makes, in s, a request
 * to that agent, by an agent of B that writes the headers of RMPP itself. */
static void init_segments(struct world *w, struct smp *s)
{
	struct fabric_agent asked = {.mgmt_class = SA,
				     .class_version = 2,
				     .rmpp_version = 1,
				     .methods = {1 << 0x14, 0}};

	configure_subnet(w);
	assert_true(fabric_register(w->a, &asked) >= 0);
	asked.rmpp_version = 0;
	asked.methods[0] = 0;
	init_mad(s, fabric_register(w->b, &asked), SA, 0x14, 0x11, 0);
	s->mad[2] = 2;
	address_to(s, 1, 1);
}

/* B begins transfers to A and completes none.  A forgets them after 40 s. */
static void transfers_that_nobody_ends_are_bounded(void **state)
{
	struct world *w = *state;
	struct smp s;

	init_segments(w, &s);
	for (uint64_t i = 1; i <= TRANSFERS; i++) {
		bytes_put64(s.mad + 8, i);
		assert_true(ack_comes(w, &s, 1));
	}
	bytes_put64(s.mad + 8, TRANSFERS + 1);
	assert_false(ack_comes(w, &s, 1));
	w->now_ms += 40000;
	fabric_turn(w->f, w->now_ms);
	while (fabric_fetch(w->b, &(size_t){0}))
		fabric_fetched(w->b);
	assert_true(ack_comes(w, &s, 1));
}

/* B sends segments without end.  The transfer ends before the MAD has more
 * bytes than FABRIC_MAD_MAX, and the program at A gets nothing. */
static void a_mad_without_end_is_dropped(void **state)
{
	enum { SEGMENTS = FABRIC_MAD_MAX / 200 + 1 };
	struct world *w = *state;
	int acknowledged = 0;
	struct smp s;
	size_t bytes;

	init_segments(w, &s);
	for (uint32_t i = 1; i < SEGMENTS; i++)
		acknowledged += ack_comes(w, &s, i);
	assert_true(acknowledged > 1);
	for (uint32_t i = SEGMENTS; i < SEGMENTS + 128; i++)
		assert_false(ack_comes(w, &s, i));
	assert_null(fabric_fetch(w->a, &bytes));
	bytes_put64(s.mad + 8, 99);
	assert_true(ack_comes(w, &s, 1));
}

/* A segment that has come before, or comes too early, does not postpone the
 * time at which its transfer is given up. */
static void only_new_segments_extend_a_transfer(void **state)
{
	struct world *w = *state;
	struct smp s;
	uint64_t due_ms;

	init_segments(w, &s);
	assert_true(ack_comes(w, &s, 1));
	due_ms = fabric_deadline(w->f);
	w->now_ms = due_ms - 1;
	assert_true(ack_comes(w, &s, 1));
	assert_false(ack_comes(w, &s, 9));
	assert_int_equal(fabric_deadline(w->f), due_ms);
}

/* A sends a response by RMPP.  B's ACKs acknowledge nothing, but open the
 * window more and more.  A gives up all the same. */
static void acks_without_progress_keep_no_transfer(void **state)
{
	struct world *w = *state;
	struct smp s, ack;

	init_segments(w, &ack);
	init_mad(&s, 0, SA, 0x94, 0x11, 0);
	s.bytes[0] = 1; /* A's agent for SA */
	s.mad[2] = 2;
	s.mad[26] = 1; /* active */
	address_to(&s, 3, 1);
	assert_int_equal(fabric_send_as_is(w->a, s.bytes, SMALL), 0);
	memset(ack.bytes + 8, 0, 4); /* no timeout */
	ack.mad[24] = 1;
	ack.mad[25] = 2; /* ACK, of segment 0 */
	ack.mad[26] = 1;
	for (uint32_t window = 1; window <= 20; window++) {
		bytes_put32(ack.mad + 32, window);
		assert_int_equal(fabric_send_as_is(w->b, ack.bytes, SMALL), 0);
		w->now_ms += 1000;
		fabric_turn(w->f, w->now_ms);
	}
	assert_int_equal(fabric_deadline(w->f), FABRIC_NEVER);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		WORLD_TEST(ends_are_bounded),
		WORLD_TEST(requests_without_a_response_are_bounded),
		WORLD_TEST(a_request_without_room_is_sent_again),
		WORLD_TEST(messages_that_nobody_fetches_are_bounded),
		WORLD_TEST(transfers_that_nobody_acknowledges_are_bounded),
		WORLD_TEST(transfers_that_nobody_ends_are_bounded),
		WORLD_TEST(a_mad_without_end_is_dropped),
		WORLD_TEST(only_new_segments_extend_a_transfer),
		WORLD_TEST(acks_without_progress_keep_no_transfer),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
