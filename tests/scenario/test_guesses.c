/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A sender that guesses queue pairs, PSNs and keys is noticed and reported.
 * Once the sender is limited, only SUSPECT_PASS of its guesses in each
 * SUSPECT_NS are handled (engine/suspect.h).  No sender can shut a peer out by
 * guessing in the peer's name.
 */
#include "test.h"

#include "encap/rocev2.h"
#include "engine/inside.h"
#include "ibt/ibt.h"
#include "scenario/outcome.h"
#include "scenario/two_hcas.h"

#define MTU_1024 3
#define NOWHERE	 0x400000 /* PSNs ahead: no real peer is so far ahead */
#define MOVED	 (200 * 1024)

/* Returns two sides with RC queue pairs; each side has a class of its own. */
static struct two_hcas *new_duo(void)
{
	struct two_hcas *d = two_hcas_new(MTU_1024, 16);

	for (uint32_t i = 0; i < 2; i++)
		engine_inbox(d->side[i].engine, NULL, i, 0, false);
	return d;
}

static const struct engine_counters *counters_of(struct two_hcas *d, int i)
{
	return engine_counters(d->side[i].engine, 0);
}

static struct engine_suspect *suspect_rows(struct two_hcas *d)
{
	struct hca *h = &d->side[1].hca;

	return arena_at(&h->arena, h->shared->suspects);
}

/* Finds the row of an address by the address's last byte. */
static struct engine_suspect *row_of(struct two_hcas *d, uint8_t last)
{
	for (int i = 0; i < ENGINE_SUSPECTS; i++)
		if (suspect_rows(d)[i].weight &&
		    suspect_rows(d)[i].ip[15] == last)
			return &suspect_rows(d)[i];
	return NULL;
}

static uint32_t rows_used(struct two_hcas *d)
{
	uint32_t used = 0;

	for (int i = 0; i < ENGINE_SUSPECTS; i++)
		used += suspect_rows(d)[i].weight != 0;
	return used;
}

/* Forges a SEND to queue pair `qpn` of side 1 from IPv4 address `address`. */
static void guess_qpn(struct two_hcas *d, uint32_t qpn, uint32_t address)
{
	uint8_t buf[PKT_MAX_HEADER_BYTES + 8] = {0};
	struct pkt p = {.bth = {.opcode = OPCODE_RC_SEND_ONLY,
				.pkey = BTH_DEFAULT_PKEY,
				.dest_qpn = qpn}};
	struct two_hcas_side *s = &d->side[1];
	struct engine_dgram g = {.bytes = buf};
	size_t n = pkt_write_headers(buf, &p);

	memcpy(g.from.ip, d->side[0].ip, 16);
	for (int i = 0; i < 4; i++)
		g.from.ip[12 + i] = (uint8_t)(address >> (24 - 8 * i));
	memcpy(g.to.ip, s->ip, 16);
	g.to.port = ROCEV2_PORT;
	g.len = g.segment = rocev2_seal(NULL, &g.from, &g.to, buf, n, 0);
	engine_rx(s->engine, &g, d->now_ns);
}

/* Forges a SEND in the peer's name whose PSN is the expected PSN plus
 * `how_far`. */
static void guess_psn(struct two_hcas *d, uint32_t how_far)
{
	struct pkt p = {.bth.opcode = OPCODE_RC_SEND_ONLY, .payload_len = 64};

	p.bth.psn = serial24_add(d->side[1].side->resp.epsn, how_far).v;
	two_hcas_forge(d, 1, &p);
}

static void guess_psns(struct two_hcas *d, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++) {
		guess_psn(d, NOWHERE + 1000 * (i % 100));
		d->now_ns += SUSPECT_NS / SUSPECT_MANY / 4;
	}
}

/* A WRITE of side 0 arrives, without a timeout. */
static void assert_works(struct two_hcas *d)
{
	uint64_t began = d->now_ns;
	struct cqe c;

	two_hcas_fill(d, 0, 0, MOVED);
	two_hcas_send(d, 0, HCA_WR_RDMA_WRITE, 0, MOVED, 400000);
	two_hcas_post(d, 0);
	two_hcas_run(d, d->now_ns + LONG);
	assert_true(two_hcas_poll(d, 0, &c));
	assert_int_equal(c.status, HCA_SUCCESS);
	assert_memory_equal(d->side[0].memory.bytes,
			    d->side[1].memory.bytes + 400000, MOVED);
	assert_true(d->now_ns - began < aeth_ack_timeout_ns(14));
}

static void a_connection_leaves_no_trace_in_the_table(void **state)
{
	struct two_hcas *d = new_duo();

	assert_works(d);
	assert_int_equal(rows_used(d), 0);
	two_hcas_free(d);
}

/* Half of all guessed PSNs are behind the expected PSN, as the PSNs of
 * duplicates are.  Packets with such guessed PSNs count as guesses, too. */
static void guesses_are_reported_with_their_address(void **state)
{
	struct two_hcas *d = new_duo();
	struct engine_suspect who;

	assert_works(d);
	guess_psns(d, SUSPECT_MANY / 2);
	assert_false(engine_suspect(d->side[1].engine, &who));
	for (uint32_t i = 0; i < SUSPECT_MANY; i++)
		guess_psn(d, (uint32_t)-NOWHERE);
	assert_true(engine_suspect(d->side[1].engine, &who));
	assert_memory_equal(who.ip, d->side[0].ip, 16);
	assert_int_equal(who.user, ENGINE_NO_USER);
	assert_true(who.signs[ENGINE_SIGN_PSN] >= SUSPECT_MANY);
	assert_false(engine_suspect(d->side[1].engine, &who));
	two_hcas_free(d);
}

/* An address that makes one guess each 50 to 100 ms is never limited, but is
 * reported in the end. */
static void slow_guesses_are_reported_too(void **state)
{
	struct two_hcas *d = new_duo();
	struct engine_suspect who;

	for (uint32_t i = 0; i < SUSPECT_REPORTED + 10; i++) {
		guess_psn(d, NOWHERE + i);
		/* as if the expected packet had arrived */
		d->side[1].side->resp.nak_sent = false;
		two_hcas_run(d, d->now_ns + 50000000);
		d->now_ns += 50000000;
	}
	assert_true(engine_suspect(d->side[1].engine, &who));
	assert_int_equal(who.dropped, 0);
	two_hcas_free(d);
}

static void many_guesses_are_dropped_unchecked(void **state)
{
	struct two_hcas *d = new_duo();
	uint64_t seen;

	for (uint32_t i = 0; i < SUSPECT_MANY + SUSPECT_PASS; i++)
		guess_psn(d, (uint32_t)-NOWHERE);
	seen = counters_of(d, 1)->rx_duplicates;
	for (uint32_t i = 0; i < 100000; i++) {
		guess_psn(d, (uint32_t)-NOWHERE);
		d->now_ns += 100000;
	}
	/* ten seconds; in each a few packets are checked */
	assert_uint_in_range(counters_of(d, 1)->rx_duplicates - seen, 1,
			     11 * SUSPECT_PASS);
	assert_true(counters_of(d, 1)->refused.limited > 99000);
	assert_int_equal(row_of(d, d->side[0].ip[15])->dropped,
			 counters_of(d, 1)->refused.limited);
	two_hcas_free(d);
}

static void an_address_that_stops_guessing_is_served_again(void **state)
{
	struct two_hcas *d = new_duo();
	uint64_t seen;

	for (uint32_t i = 0; i < 10 * SUSPECT_MANY; i++)
		guess_psn(d, (uint32_t)-NOWHERE);
	d->now_ns += SUSPECT_NS + 1;
	seen = counters_of(d, 1)->rx_duplicates;
	for (uint32_t i = 0; i < 2 * SUSPECT_PASS; i++)
		guess_psn(d, (uint32_t)-NOWHERE);
	assert_int_equal(counters_of(d, 1)->rx_duplicates - seen,
			 2 * SUSPECT_PASS);
	two_hcas_free(d);
}

/* A two_hcas_fate that drops each 37th frame, so that the peer has to
 * retransmit. */
static int lose_some(void *context, int from, const struct engine_frame *f)
{
	uint32_t *count = context;

	(void)from;
	(void)f;
	return ++*count % 37 != 0;
}

/* A two_hcas_fate that forges 20 packets in the peer's name before each frame
 * of the peer. */
static int flood_guesses(void *context, int from, const struct engine_frame *f)
{
	struct two_hcas *d = context;

	(void)f;
	for (int i = 0; !from && i < 20; i++)
		guess_psn(d, NOWHERE + 700 * (uint32_t)i);
	return 1;
}

static void a_peer_is_not_shut_out_in_its_name(void **state)
{
	struct two_hcas *d = new_duo();
	uint32_t frames = 0;

	for (uint32_t i = 0; i < 10 * SUSPECT_MANY; i++) {
		guess_psn(d, (uint32_t)-NOWHERE);
		guess_qpn(d, 0x3001 + 2 * i, 0x0a000001);
	}
	assert_true(engine_suspects_is_any(&d->side[1].engine->suspects,
					   d->now_ns));
	assert_works(d);
	d->fate = flood_guesses;
	d->context = d;
	assert_works(d);
	for (uint32_t i = 0; i < SUSPECT_MANY; i++)
		guess_psn(d, (uint32_t)-NOWHERE);
	d->fate = lose_some;
	d->context = &frames;
	for (int i = 0; i < 20; i++) {
		struct cqe c;

		two_hcas_send(d, 0,
			      i % 2 ? HCA_WR_RDMA_READ : HCA_WR_RDMA_WRITE, 0,
			      MOVED, 400000);
		two_hcas_post(d, 0);
		two_hcas_run(d, d->now_ns + LONG);
		assert_true(two_hcas_poll(d, 0, &c));
		assert_int_equal(c.status, HCA_SUCCESS);
	}
	two_hcas_free(d);
}

static void guessed_acks_count_as_guesses(void **state)
{
	struct two_hcas *d = new_duo();
	struct pkt p = {.bth.opcode = OPCODE_RC_ACKNOWLEDGE,
			.aeth.syndrome = AETH_CREDITS_INVALID};

	assert_works(d);
	for (uint32_t i = 0; i < 2 * SUSPECT_MANY; i++) {
		p.bth.psn = serial24_add(d->side[1].side->req.una,
					 NOWHERE + (int32_t)i)
				    .v;
		two_hcas_forge(d, 1, &p);
	}
	assert_true(counters_of(d, 1)->refused.limited > 0);
	assert_works(d);
	two_hcas_free(d);
}

/* An address that floods keeps its row while packets come from ever new
 * addresses, and the peer is served. */
static void new_addresses_push_out_no_address_that_floods(void **state)
{
	struct two_hcas *d = new_duo();
	struct engine_suspect who;
	uint32_t fresh = 0x0b000000;

	for (uint32_t i = 0; i < 50000; i++) {
		guess_qpn(d, 0x3001 + 2 * (i % 100000), fresh++);
		if (i % 8 == 0)
			guess_qpn(d, 0x3001 + 2 * (i % 100000), 0x0c0000fe);
		d->now_ns += 1000000;
	}
	assert_int_equal(rows_used(d), ENGINE_SUSPECTS);
	assert_non_null(row_of(d, 0xfe));
	assert_true(row_of(d, 0xfe)->dropped > 0);
	assert_true(engine_suspect(d->side[1].engine, &who));
	assert_int_equal(who.ip[15], 0xfe);
	assert_false(engine_suspect(d->side[1].engine, &who));
	assert_works(d);
	two_hcas_free(d);
}

/* Peers of a removed queue pair repeat their requests for a while.  These
 * requests are no guesses. */
static void a_removed_queue_pair_is_no_guess(void **state)
{
	struct two_hcas *d = new_duo();
	uint32_t qpn = d->side[1].qp->qpn;

	for (uint32_t i = 0; i < 10 * SUSPECT_MANY; i++)
		guess_qpn(d, qpn, 0x0a000001);
	engine_qp_remove(d->side[1].engine, d->side[1].side);
	for (uint32_t i = 0; i < 10 * SUSPECT_MANY; i++)
		guess_qpn(d, qpn, 0x0a000001);
	assert_int_equal(rows_used(d), 0);
	d->side[1].side = engine_qp_add(d->side[1].engine, d->side[1].qp);
	two_hcas_free(d);
}

/* A peer that loses many packets has many later packets in flight when it
 * learns of the loss.  These packets are no guesses. */
static void a_sender_that_has_to_go_back_makes_no_guesses(void **state)
{
	struct two_hcas *d = new_duo();
	uint32_t nth = 0;

	guess_psn(d, 100); /* held for reordering */
	for (uint32_t ahead = 101; ahead < 5000; ahead++, nth++) {
		struct pkt p = {.bth.opcode = OPCODE_RC_SEND_ONLY,
				.bth.ackreq = nth % 64 == 0,
				.payload_len = 64};

		p.bth.psn =
			serial24_add(d->side[1].side->resp.epsn, (int32_t)ahead)
				.v;
		two_hcas_forge(d, 1, &p);
		d->now_ns += 1000;
	}
	assert_true(counters_of(d, 1)->rx_wrong_psn > 1000);
	assert_int_equal(rows_used(d), 0);
	assert_works(d);
	two_hcas_free(d);
}

/* A peer of UD is known by its Q_Key. */
static void wrong_q_keys_count_as_guesses_and_right_ones_pass(void **state)
{
	struct two_hcas *d = two_hcas_new_of(HCA_QPT_UD, MTU_1024, 16);
	struct pkt p = {.bth.opcode = OPCODE_UD_SEND_ONLY,
			.deth = {0x12345, 0x1000},
			.payload_len = 64};
	struct cqe c;

	for (uint32_t i = 0; i < 3 * SUSPECT_MANY; i++)
		two_hcas_forge(d, 1, &p);
	assert_true(counters_of(d, 1)->refused.limited >= SUSPECT_MANY);
	two_hcas_recv(d, 1, 0, 2000);
	two_hcas_send(d, 0, HCA_WR_SEND, 0, 100, 0);
	two_hcas_post(d, 0);
	two_hcas_run(d, d->now_ns + 1000000);
	assert_true(two_hcas_poll(d, 1, &c));
	assert_int_equal(c.status, HCA_SUCCESS);
	two_hcas_free(d);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_connection_leaves_no_trace_in_the_table),
		cmocka_unit_test(guesses_are_reported_with_their_address),
		cmocka_unit_test(slow_guesses_are_reported_too),
		cmocka_unit_test(many_guesses_are_dropped_unchecked),
		cmocka_unit_test(
			an_address_that_stops_guessing_is_served_again),
		cmocka_unit_test(a_peer_is_not_shut_out_in_its_name),
		cmocka_unit_test(guessed_acks_count_as_guesses),
		cmocka_unit_test(new_addresses_push_out_no_address_that_floods),
		cmocka_unit_test(a_removed_queue_pair_is_no_guess),
		cmocka_unit_test(a_sender_that_has_to_go_back_makes_no_guesses),
		cmocka_unit_test(
			wrong_q_keys_count_as_guesses_and_right_ones_pass),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
