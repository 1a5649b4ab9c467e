/* SPDX-License-Identifier: BSD-2-Clause */
/* Connection management between callers and listeners: listeners that begin
 * late, requests that wait, and ends that die. */
#include "cmworld.h"

static void a_listener_that_comes_later_is_called_at_once(void **state)
{
	static const struct cm_where elsewhere = {
		{[10] = 0xff, 0xff, 10, 0, 0, 9}};
	static const struct cm_where any = {.any_v4 = true};
	static const enum cmmsg_kind kinds[] = {CMMSG_REQ, CMMSG_SIDR_REQ};

	for (size_t i = 0; i < TEST_COUNT(kinds); i++) {
		struct world *w = world_new(6, 0);
		struct cm_start s = request_of(w, kinds[i], 5);
		uint32_t other, listener, id;

		cm_unlisten(w->cm[1], 0, 0);
		assert_int_equal(cm_connect(w->cm[0], &s, w->now, &id), 0);
		w->end[0][w->ends[0]++].id = id;
		drain_side(w, 0);
		run_world(w, w->now + CM_HOLD_NS / 2);
		/* listeners for another service or address change nothing */
		cm_listen(w->cm[1], NULL, LISTENER, SERVICE + 1, &any, 16,
			  &other);
		cm_listen(w->cm[1], NULL, LISTENER, SERVICE, &elsewhere, 16,
			  &other);
		run_world(w, w->now + CM_HOLD_NS / 4);
		assert_int_equal(w->ends[1], 0);
		assert_int_equal(cm_count(w->cm[1]), 1);
		cm_listen(w->cm[1], NULL, LISTENER, SERVICE, &any, 16,
			  &listener);
		assert_true(cm_deadline(w->cm[1]) <= w->now);
		cm_tick(w->cm[1], w->now);
		drain_side(w, 1);
		assert_int_equal(w->ends[1], 1);
		assert_int_equal(conv_find(w->cm[1], w->end[1][0].id)->state,
				 i ? CONV_SIDR_RCVD : CONV_REQ_RCVD);
		assert_int_equal(cm_counters(w->cm[1])->held, 1);
		/* a repeated message is the same request */
		run_world(w, w->now + SECOND);
		assert_int_equal(w->ends[1], 1);
		assert_int_equal(w->end[0][0].ended, 0);
		check_idle(w, i);
		world_free(w);
	}
}

static void a_caller_waits_for_a_listener_that_has_just_gone(void **state)
{
	struct cm_where any = {.any_v4 = true};
	uint32_t listener;

	for (int again = 0; again <= 1; again++) {
		struct world *w = world_new(6, 0);

		cm_unlisten(w->cm[1], 0, w->now + SECOND);
		start_connection(w, 0);
		drain_side(w, 0);
		run_world(w, w->now + SECOND / 2);
		assert_int_equal(w->end[0][0].ended, 0);
		if (again) {
			cm_listen(w->cm[1], NULL, LISTENER, SERVICE, &any, 16,
				  &listener);
			cm_tick(w->cm[1], w->now);
			drain_side(w, 1);
			assert_int_equal(w->ends[1], 1);
		}
		run_world(w, w->now + 2 * SECOND);
		assert_int_equal(w->end[0][0].ended, !again);
		assert_int_equal(w->ends[1], again);
		world_free(w);
	}
}

/* Callers are served in the order of their requests, and none twice. */
static void a_full_backlog_holds_callers_until_there_is_room(void **state)
{
	static const struct cm_where any = {.any_v4 = true};
	struct world *w = world_new(8, 0);
	uint32_t listener;

	cm_unlisten(w->cm[1], 0, 0);
	cm_listen(w->cm[1], NULL, LISTENER, SERVICE, &any, 2, &listener);
	for (int i = 0; i < 6; i++) {
		start_connection(w, 0);
		drain_side(w, 0);
		run_world(w, w->now + SECOND / 100);
	}
	assert_int_equal(w->ends[1], 2);
	run_world(w, w->now + 20 * SECOND); /* the requests are repeated */
	assert_int_equal(w->ends[1], 2);
	for (uint32_t i = 0; i < 2; i++) {
		cm_taken(w->cm[1], w->end[1][i].id);
		cm_tick(w->cm[1], w->now);
		drain_side(w, 1);
		assert_int_equal(w->ends[1], 3 + i);
		assert_int_equal(
			conv_find(w->cm[1], w->end[1][2 + i].id)->remote_id,
			w->end[0][2 + i].id);
	}
	/* a request that is given up is forgotten */
	cm_release(w->cm[0], w->end[0][4].id, w->now);
	w->end[0][4].is_released = true;
	drain_side(w, 0);
	run_world(w, w->now + SECOND / 100);
	assert_int_equal(cm_count(w->cm[1]), 5);
	/* when a listener goes, the callers that wait for it are refused */
	cm_unlisten(w->cm[1], listener, 0);
	run_world(w, w->now + SECOND / 100);
	assert_int_equal(w->end[0][5].ended, 1);
	assert_int_equal(cm_count(w->cm[1]), 4);
	w->listens[1] = false;
	world_free(w);
}

/* A conversation is resumed after its request was repeated to the successor. */
static void a_successor_knows_a_held_request_by_its_note(void **state)
{
	const struct cmmsg reply = {.qp.qpn = 9};
	struct world *w = world_new(9, 0);
	struct end *b = &w->end[1][0];
	uint32_t id;

	start_connection(w, 0);
	drain_side(w, 0);
	run_world(w, w->now + SECOND / 10);
	cm_free(w->cm[1]);
	w->cm[1] = new_manager(w);
	cm_expect_listeners(w->cm[1], w->now + 4 * SECOND);
	run_world(w, w->now + SECOND);
	assert_int_equal(cm_counters(w->cm[1])->held, 1);
	assert_int_equal(
		cm_note_resume(w->cm[1], NULL, 0, &b->note, w->now, &id), 0);
	assert_int_equal(cm_count(w->cm[1]), 1);
	listen_at(w, 1);
	run_world(w, w->now + SECOND);
	assert_int_equal(w->ends[1], 1);
	assert_int_equal(cm_accept(w->cm[1], b->id, &reply, w->now), 0);
	drain_side(w, 1);
	run_world(w, w->now + SECOND / 10);
	assert_int_equal(conv_find(w->cm[0], w->end[0][0].id)->state,
			 CONV_REP_RCVD);
	world_free(w);
}

static void
a_restarted_peer_with_the_same_queue_pair_ends_the_old_connection(void **state)
{
	struct world *w = world_new(5, 0);
	struct cm_config config = {
		.seed = 77, .conversations = ENDPOINTS, .half_open = ENDPOINTS};
	uint32_t qpn, id;
	struct cm_start s = {.msg = {.kind = CMMSG_REQ,
				     .service_id = SERVICE,
				     .remote_timeout = 20,
				     .local_timeout = 20,
				     .max_cm_retries = 15}};

	connect_one(w);
	run_world(w, w->now + SECOND);
	assert_true(w->end[1][0].is_established);
	w->is_stale = true;
	qpn = conv_find(w->cm[1], w->end[1][0].id)->remote_qpn;
	cm_free(w->cm[0]);
	w->cm[0] = cm_new(&config, w->now);
	w->ends[0] = 0;
	s.msg.qp.qpn = qpn;
	memcpy(s.local, w->ip[0], 16);
	memcpy(s.peer, w->ip[1], 16);
	cm_connect(w->cm[0], &s, w->now, &id);
	w->end[0][w->ends[0]++] = (struct end){.id = id};
	drain_side(w, 0);
	run_world(w, w->now + SECOND);
	assert_int_equal(w->end[1][0].ended, 1);
	assert_int_equal(w->end[0][0].ended, 1); /* refused as stale */
	cm_connect(w->cm[0], &s, w->now, &id);
	w->end[0][w->ends[0]++] = (struct end){.id = id};
	drain_side(w, 0);
	run_world(w, w->now + SECOND);
	assert_int_equal(w->ends[1], 2);
	world_free(w);
}

/* The peer accepts, forgets the connection, and calls with the same queue pair
 * while the consumer has yet to answer the REP. */
static void a_rep_without_an_answer_gives_way_to_a_new_request(void **state)
{
	const struct cmmsg reply = {.qp.qpn = 9};
	struct world *w = world_new(5, 0);
	struct cm_start s = request_of(w, CMMSG_REQ, reply.qp.qpn);
	uint32_t id;

	start_connection(w, 0);
	drain_side(w, 0);
	run_world(w, w->now + SECOND / 10);
	assert_int_equal(cm_accept(w->cm[1], w->end[1][0].id, &reply, w->now),
			 0);
	drain_side(w, 1);
	run_world(w, w->now + SECOND / 10);
	assert_int_equal(conv_find(w->cm[0], w->end[0][0].id)->state,
			 CONV_REP_RCVD);
	w->is_stale = true;
	cm_free(w->cm[1]);
	w->cm[1] = new_manager(w);
	w->ends[1] = 0;
	memcpy(s.local, w->ip[1], 16);
	memcpy(s.peer, w->ip[0], 16);
	for (uint32_t tries = 1; tries <= 2; tries++) {
		cm_connect(w->cm[1], &s, w->now, &id);
		w->end[1][w->ends[1]++] = (struct end){.id = id};
		drain_side(w, 1);
		run_world(w, w->now + SECOND / 10);
		assert_int_equal(w->end[0][0].ended, 1);
		assert_true(w->end[0][0].is_unanswered); /* no REJ has come */
		assert_int_equal(w->ends[0], tries);
	}
	world_free(w);
}

/* A caller that knows the queue pair of a connection claims that queue pair in
 * the peer's name.  The manager makes one CM_STALE event, at which a broker
 * asks the peer's host; the test does not call cm_stale, as if that host still
 * had the queue pair. */
static void a_connection_is_not_stale_because_a_caller_says_so(void **state)
{
	struct world *w = world_new(5, 0);
	struct cmmsg m = {.kind = CMMSG_REQ,
			  .service_id = SERVICE,
			  .remote_timeout = 20,
			  .local_timeout = 20,
			  .max_cm_retries = 15};
	uint8_t mad[MAD_BYTES];

	connect_one(w);
	run_world(w, w->now + SECOND);
	m.qp.qpn = conv_find(w->cm[1], w->end[1][0].id)->remote_qpn;
	memcpy(m.primary.local_gid, w->ip[0], 16);
	memcpy(m.primary.remote_gid, w->ip[1], 16);
	for (uint32_t k = 1; k <= 1000; k++) {
		m.local_id = 0x1000 + k;
		cmmsg_write(mad, &m);
		cm_rx(w->cm[1], w->ip[0], w->ip[1], &(struct cm_way){0}, mad,
		      MAD_BYTES, w->now);
		drain_side(w, 1);
	}
	run_world(w, w->now + SECOND);
	assert_int_equal(cm_counters(w->cm[1])->stale, 1000);
	assert_int_equal(w->doubts, 1);
	assert_int_equal(w->end[1][0].ended, 0);
	assert_int_equal(conv_find(w->cm[1], w->end[1][0].id)->state,
			 CONV_ESTABLISHED);
	world_free(w);
}

/* A message about a connection must have both communication IDs, except a REJ
 * for a timeout.  Otherwise a third host that has seen the REQ, and so knows
 * the peer's ID, could end the connection by a forged message. */
static void a_message_without_our_id_changes_nothing(void **state)
{
	static const enum cmmsg_kind kinds[] = {CMMSG_REJ,  CMMSG_REP,
						CMMSG_MRA,  CMMSG_RTU,
						CMMSG_DREQ, CMMSG_DREP};
	struct world *w = world_new(5, 0);
	const struct conv *c;
	uint8_t mad[MAD_BYTES];
	struct cm_frame f;

	connect_one(w);
	run_world(w, w->now + SECOND);
	c = conv_find(w->cm[1], w->end[1][0].id);
	for (size_t i = 0; i < TEST_COUNT(kinds); i++) {
		struct cmmsg m = {.kind = kinds[i],
				  .local_id = c->remote_id,
				  .reason = CMMSG_REJ_CONSUMER};

		cmmsg_write(mad, &m);
		cm_rx(w->cm[1], w->ip[0], w->ip[1], &(struct cm_way){0}, mad,
		      MAD_BYTES, w->now);
		while (cm_tx(w->cm[1], &f))
			;
	}
	assert_int_equal(c->state, CONV_ESTABLISHED);
	assert_int_equal(cm_counters(w->cm[1])->unexpected, TEST_COUNT(kinds));
	world_free(w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_listener_that_comes_later_is_called_at_once),
		cmocka_unit_test(
			a_caller_waits_for_a_listener_that_has_just_gone),
		cmocka_unit_test(
			a_full_backlog_holds_callers_until_there_is_room),
		cmocka_unit_test(a_successor_knows_a_held_request_by_its_note),
		cmocka_unit_test(
			a_restarted_peer_with_the_same_queue_pair_ends_the_old_connection),
		cmocka_unit_test(
			a_rep_without_an_answer_gives_way_to_a_new_request),
		cmocka_unit_test(
			a_connection_is_not_stale_because_a_caller_says_so),
		cmocka_unit_test(a_message_without_our_id_changes_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
