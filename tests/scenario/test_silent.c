/* SPDX-License-Identifier: BSD-2-Clause */
/* A requester whose peer does not answer waits longer if the peer is alive, and
 * then reports why the peer may be silent. */
#include "test.h"

#include <string.h>

#include "hca/explain.h"
#include "scenario/outcome.h"
#include "scenario/two_hcas.h"

#define LATE_NS 20000000

/* A two_hcas_fate of a link with an MTU of 1500 bytes between QPs with a path
 * MTU of 4096. */
static int drop_long(void *context, int from, const struct engine_frame *f)
{
	return f->len <= 1472;
}

/* Posts a WRITE of side 0 that is lost at each try, and runs for `ns`. */
static void stay_unanswered(struct two_hcas *d, uint64_t ns)
{
	d->fate = outcome_drop_all;
	two_hcas_send(d, 0, HCA_WR_RDMA_WRITE, 0, 100, 0);
	two_hcas_post(d, 0);
	two_hcas_run(d, d->now_ns + ns);
}

static void a_request_ends_with_its_tries_if_the_peer_has_ended(void **state)
{
	struct two_hcas *d = two_hcas_new(5, 16);
	uint64_t tries_ns = two_hcas_tries_ns(d, 0);
	uint64_t began_ns = d->now_ns;
	struct cqe c;

	/* the requester asks about the peer when the tries are used up */
	d->liveness = ENGINE_PEER_GONE;
	stay_unanswered(d, tries_ns / 2);
	assert_false(two_hcas_poll(d, 0, &c));
	two_hcas_run(d, began_ns + tries_ns * 3 / 2);
	outcome_assert_done(d, 0, HCA_RETRY_EXC_ERR, 0);
	assert_int_equal(d->side[0].explained.cause, EXPLAIN_PEER_GONE);
	two_hcas_free(d);
}

static void a_peer_elsewhere_has_four_times_the_timeout(void **state)
{
	struct two_hcas *d = two_hcas_new(5, 16);
	uint64_t tries_ns = two_hcas_tries_ns(d, 0);
	uint64_t began_ns = d->now_ns;
	struct cqe c;

	d->fate = outcome_drop_all;
	d->liveness = ENGINE_PEER_UNKNOWN;
	two_hcas_send(d, 0, HCA_WR_RDMA_WRITE, 0, 100, 0);
	two_hcas_post(d, 0);
	two_hcas_run(d, began_ns + 4 * tries_ns - 1000000);
	assert_false(two_hcas_poll(d, 0, &c));
	two_hcas_run(d, began_ns + 5 * tries_ns);
	outcome_assert_done(d, 0, HCA_RETRY_EXC_ERR, 0);
	assert_int_equal(d->side[0].explained.cause, EXPLAIN_RETRY);
	two_hcas_free(d);
}

static void a_peer_that_answered_before_is_not_at_a_wrong_address(void **state)
{
	struct two_hcas *d = two_hcas_new(5, 16);

	two_hcas_send(d, 0, HCA_WR_RDMA_WRITE, 0, 100, 0);
	two_hcas_post(d, 0);
	two_hcas_run(d, d->now_ns + LONG);
	outcome_assert_done(d, 0, HCA_SUCCESS, HCA_WC_RDMA_WRITE);
	d->fate = outcome_drop_all;
	d->liveness = ENGINE_PEER_UNKNOWN;
	two_hcas_send(d, 0, HCA_WR_RDMA_WRITE, 0, 100, 0);
	two_hcas_post(d, 0);
	two_hcas_run(d, d->now_ns + LONG);
	outcome_assert_done(d, 0, HCA_RETRY_EXC_ERR, 0);
	assert_int_equal(d->side[0].explained.cause, EXPLAIN_FELL_SILENT);
	two_hcas_free(d);
}

/* The peer's request shows that its address is right, but the peer has answered
 * nothing. */
static void a_peer_that_only_sent_requests_is_not_said_to_answer(void **state)
{
	struct two_hcas *d = two_hcas_new(5, 16);
	char text[512];

	two_hcas_send(d, 1, HCA_WR_RDMA_WRITE, 0, 100, 0);
	two_hcas_post(d, 1);
	two_hcas_run(d, d->now_ns + LONG);
	outcome_assert_done(d, 1, HCA_SUCCESS, HCA_WC_RDMA_WRITE);
	d->liveness = ENGINE_PEER_UNKNOWN;
	stay_unanswered(d, LONG);
	outcome_assert_done(d, 0, HCA_RETRY_EXC_ERR, 0);
	assert_int_equal(d->side[0].explained.cause, EXPLAIN_FELL_SILENT);
	explain_text(&d->side[0].explained, text, sizeof(text));
	assert_non_null(strstr(text, "answered or sent requests before"));
	two_hcas_free(d);
}

/* The peer has answered the SEND only by RNR NAKs, which acknowledge no packet
 * of the SEND. */
static void a_peer_that_had_no_receive_is_not_at_a_wrong_address(void **state)
{
	struct two_hcas *d = two_hcas_new(5, 16);

	d->liveness = ENGINE_PEER_UNKNOWN;
	two_hcas_send(d, 0, HCA_WR_SEND, 0, 100, 0);
	two_hcas_post(d, 0);
	two_hcas_run(d, d->now_ns + LATE_NS);
	d->fate = outcome_drop_all;
	two_hcas_run(d, d->now_ns + LONG);
	outcome_assert_done(d, 0, HCA_RETRY_EXC_ERR, 0);
	assert_int_equal(d->side[0].explained.cause, EXPLAIN_FELL_SILENT);
	two_hcas_free(d);
}

static void a_peer_that_is_alive_is_waited_for(void **state)
{
	struct two_hcas *d = two_hcas_new(5, 16);
	struct cqe c;

	d->fate = outcome_drop_all;
	two_hcas_send(d, 0, HCA_WR_RDMA_WRITE, 0, 100, 0);
	two_hcas_post(d, 0);
	two_hcas_run(d, d->now_ns + 20 * (LONG / 60));
	assert_false(two_hcas_poll(d, 0, &c));
	d->fate = NULL;
	two_hcas_run(d, d->now_ns + LONG);
	outcome_assert_done(d, 0, HCA_SUCCESS, HCA_WC_RDMA_WRITE);
	two_hcas_free(d);
}

static void the_report_says_that_a_silent_peer_is_alive(void **state)
{
	struct two_hcas *d = two_hcas_new(5, 16);

	d->fate = outcome_drop_all;
	two_hcas_send(d, 0, HCA_WR_RDMA_WRITE, 0, 100, 0);
	two_hcas_post(d, 0);
	two_hcas_run(d, d->now_ns + 2 * LONG);
	outcome_assert_done(d, 0, HCA_RETRY_EXC_ERR, 0);
	assert_int_equal(d->side[0].explained.cause, EXPLAIN_PATIENCE);
	assert_int_equal(d->side[0].explained.seconds, 60);
	two_hcas_free(d);
}

static void
a_qp_that_answers_nothing_has_the_time_of_the_specification(void **s)
{
	struct two_hcas *d = two_hcas_new(5, 16);
	uint64_t tries_ns = two_hcas_tries_ns(d, 0);
	struct cqe c;

	stay_unanswered(d, 2 * tries_ns);
	d->liveness = ENGINE_PEER_CLOSED;
	assert_false(two_hcas_poll(d, 0, &c));
	two_hcas_run(d, d->now_ns + 4 * tries_ns);
	outcome_assert_done(d, 0, HCA_RETRY_EXC_ERR, 0);
	assert_int_equal(d->side[0].explained.cause, EXPLAIN_PEER_CLOSED);
	two_hcas_free(d);
}

static void post_request(struct two_hcas *d, enum hca_wr opcode, uint32_t bytes)
{
	two_hcas_send(d, 0, opcode, 0, bytes, 0);
	two_hcas_post(d, 0);
}

static void loss_of_long_packets_is_reported_as_a_small_mtu(void **state)
{
	static const enum hca_wr ways[] = {HCA_WR_RDMA_WRITE, HCA_WR_RDMA_READ};
	static const enum engine_peer words[] = {ENGINE_PEER_UNKNOWN,
						 ENGINE_PEER_ALIVE};
	static const uint32_t bytes[] = {2048, 2 * 4096 + 5};
	char text[512];

	for (size_t i = 0; i < TEST_COUNT(ways); i++)
		for (size_t k = 0; k < TEST_COUNT(words); k++) {
			struct two_hcas *d = two_hcas_new(5, 16);
			uint64_t tries_ns = two_hcas_tries_ns(d, 0);

			d->fate = drop_long;
			d->liveness = words[k];
			post_request(d, ways[i], 100);
			two_hcas_run(d, d->now_ns + LONG / 60);
			outcome_assert_done(d, 0, HCA_SUCCESS,
					    i ? HCA_WC_RDMA_READ
					      : HCA_WC_RDMA_WRITE);
			/* only the last packet of the longer message is short,
			 * and arrives */
			post_request(d, ways[i], bytes[k]);
			two_hcas_run(d, d->now_ns + 2 * tries_ns);
			assert_int_equal(d->side[0].explained.cause,
					 EXPLAIN_MTU_MAYBE);
			two_hcas_run(d, d->now_ns + 2 * LONG);
			outcome_assert_done(d, 0, HCA_RETRY_EXC_ERR, 0);
			assert_int_equal(d->side[0].explained.cause,
					 EXPLAIN_MTU);
			explain_text(&d->side[0].explained, text, sizeof(text));
			assert_non_null(strstr(text, k ? "with 4096 bytes"
						       : "with 2048 bytes"));
			assert_non_null(strstr(text, i ? "from " : "to "));
			two_hcas_free(d);
		}
}

/* The length is not the cause if a packet of the same length has arrived
 * before, or if no packet has ever arrived. */
static void silence_is_not_taken_for_a_small_mtu(void **state)
{
	for (int heard = 0; heard <= 1; heard++) {
		struct two_hcas *d = two_hcas_new(5, 16);

		d->liveness = ENGINE_PEER_UNKNOWN;
		if (heard) {
			post_request(d, HCA_WR_RDMA_WRITE, 4096);
			two_hcas_run(d, d->now_ns + LONG / 60);
			outcome_assert_done(d, 0, HCA_SUCCESS,
					    HCA_WC_RDMA_WRITE);
		}
		d->fate = outcome_drop_all;
		post_request(d, HCA_WR_RDMA_WRITE, 8192);
		two_hcas_run(d, d->now_ns + LONG);
		outcome_assert_done(d, 0, HCA_RETRY_EXC_ERR, 0);
		assert_int_equal(d->side[0].explained.cause,
				 heard ? EXPLAIN_FELL_SILENT : EXPLAIN_RETRY);
		two_hcas_free(d);
	}
}

/* rdma_cm knows of the disconnect, so the request ends with the queue pair's
 * tries, and no later. */
static void a_peer_that_has_disconnected_is_not_waited_for(void **state)
{
	struct two_hcas *d = two_hcas_new(5, 16);
	uint64_t tries_ns = two_hcas_tries_ns(d, 0);
	struct cqe c;

	d->liveness = ENGINE_PEER_LEFT;
	stay_unanswered(d, tries_ns / 2);
	assert_false(two_hcas_poll(d, 0, &c));
	two_hcas_run(d, d->now_ns + tries_ns);
	outcome_assert_done(d, 0, HCA_RETRY_EXC_ERR, 0);
	assert_int_equal(d->side[0].explained.cause, EXPLAIN_PEER_LEFT);
	two_hcas_free(d);
}

static void
a_peer_known_to_be_alive_is_waited_for_when_the_broker_is_lost(void **state)
{
	struct two_hcas *d = two_hcas_new(5, 16);
	uint64_t tries_ns = two_hcas_tries_ns(d, 0);
	struct cqe c;

	stay_unanswered(d, 2 * tries_ns);
	d->liveness = ENGINE_PEER_UNKNOWN;
	two_hcas_run(d, d->now_ns + 8 * tries_ns);
	assert_false(two_hcas_poll(d, 0, &c));
	d->liveness = ENGINE_PEER_GONE;
	two_hcas_run(d, d->now_ns + 2 * tries_ns);
	outcome_assert_done(d, 0, HCA_RETRY_EXC_ERR, 0);
	assert_int_equal(d->side[0].explained.cause, EXPLAIN_PEER_GONE);
	two_hcas_free(d);
}

/* The machine is suspended for an hour, which does not count as silence of the
 * peer. */
static void a_suspended_machine_uses_up_no_patience(void **state)
{
	struct two_hcas *d = two_hcas_new(5, 16);
	struct cqe c;

	d->fate = outcome_drop_all;
	two_hcas_send(d, 0, HCA_WR_RDMA_WRITE, 0, 100, 0);
	two_hcas_post(d, 0);
	two_hcas_run(d, d->now_ns + LONG / 60);
	d->now_ns += 60 * LONG;
	engine_was_asleep(d->side[0].engine, 60 * LONG, d->now_ns);
	two_hcas_run(d, d->now_ns + LONG / 60);
	assert_false(two_hcas_poll(d, 0, &c));
	d->fate = NULL;
	two_hcas_run(d, d->now_ns + LONG);
	outcome_assert_done(d, 0, HCA_SUCCESS, HCA_WC_RDMA_WRITE);
	two_hcas_free(d);
}

/* Whenever the requester's timer is due, the requester gets no processor for a
 * while. */
static void a_requester_that_is_always_late_has_its_retries(void **state)
{
	struct two_hcas *d = two_hcas_new(5, 16);
	struct engine *e = d->side[0].engine;

	d->fate = outcome_drop_all;
	two_hcas_send(d, 0, HCA_WR_RDMA_WRITE, 0, 100, 0);
	two_hcas_post(d, 0);
	two_hcas_run(d, d->now_ns);
	d->fate = NULL;
	for (int i = 0; i < 4; i++) {
		if (engine_deadline(e) == UINT64_MAX)
			break;
		d->now_ns = engine_deadline(e) + LATE_NS;
		engine_was_asleep(e, LATE_NS, d->now_ns);
		engine_tick(e, d->now_ns);
		two_hcas_run(d, d->now_ns);
	}
	outcome_assert_done(d, 0, HCA_SUCCESS, HCA_WC_RDMA_WRITE);
	two_hcas_free(d);
}

/* The tries of the queue pair take longer than a requester waits for a living
 * peer.  The report does not say that the peer is alive, since nothing has told
 * the requester so. */
static void a_peer_that_may_be_dead_is_not_called_alive(void **state)
{
	static const struct {
		enum engine_peer liveness;
		enum explain_cause cause;
	} table[] = {{ENGINE_PEER_UNKNOWN, EXPLAIN_RETRY},
		     {ENGINE_PEER_CLOSED, EXPLAIN_RETRY}};

	for (size_t i = 0; i < TEST_COUNT(table); i++) {
		struct two_hcas *d = two_hcas_new(5, 16);

		d->side[0].qp->attr.timeout = 20;
		d->fate = outcome_drop_all;
		d->liveness = table[i].liveness;
		two_hcas_send(d, 0, HCA_WR_RDMA_WRITE, 0, 100, 0);
		two_hcas_post(d, 0);
		two_hcas_run(d, d->now_ns + 4 * LONG);
		outcome_assert_done(d, 0, HCA_RETRY_EXC_ERR, 0);
		assert_int_equal(d->side[0].explained.cause, table[i].cause);
		two_hcas_free(d);
	}
}

/* The requester's process sleeps at each timeout, and its peer is stopped. */
static void patience_ends_for_a_requester_that_is_always_late(void **state)
{
	struct two_hcas *d = two_hcas_new(5, 16);
	struct engine *e = d->side[0].engine;
	uint64_t began = d->now_ns;

	d->fate = outcome_drop_all;
	two_hcas_send(d, 0, HCA_WR_RDMA_WRITE, 0, 100, 0);
	two_hcas_post(d, 0);
	two_hcas_run(d, d->now_ns);
	while (engine_deadline(e) != UINT64_MAX &&
	       d->now_ns < began + 9 * LONG) {
		d->now_ns = engine_deadline(e) + LATE_NS;
		engine_was_asleep(e, LATE_NS, d->now_ns);
		engine_tick(e, d->now_ns);
		two_hcas_run(d, d->now_ns);
	}
	outcome_assert_done(d, 0, HCA_RETRY_EXC_ERR, 0);
	assert_int_equal(d->side[0].explained.cause, EXPLAIN_PATIENCE);
	two_hcas_free(d);
}

/* The broker answers the first questions, and is slow when the patience of the
 * requester ends. */
static void the_last_answer_is_waited_for_before_the_report(void **state)
{
	struct two_hcas *d = two_hcas_new(5, 16);
	struct engine *e = d->side[0].engine;
	struct cqe c;

	stay_unanswered(d, LONG / 2);
	d->is_broker_mute = true;
	two_hcas_run(d, d->now_ns + 3 * LONG / 4);
	assert_false(two_hcas_poll(d, 0, &c));
	engine_peer_state(e, d->side[0].qp->qpn, d->side[0].qp->connection,
			  ENGINE_PEER_ALIVE, d->now_ns);
	two_hcas_run(d, d->now_ns + LONG / 2);
	outcome_assert_done(d, 0, HCA_RETRY_EXC_ERR, 0);
	assert_int_equal(d->side[0].explained.cause, EXPLAIN_PATIENCE);
	two_hcas_free(d);
}

/* Side 0 asks about the peers of two connections, one after the other.  The
 * answers come late, the one about the earlier peer first. */
static void an_answer_about_an_earlier_peer_is_ignored(void **state)
{
	const struct hca_qp_attr reset = {.qp_state = HCA_QP_RESET};
	struct two_hcas *d = two_hcas_new(5, 16);
	struct two_hcas_side *s = &d->side[0];
	uint32_t earlier = s->qp->connection;
	const char *why = "";
	struct cqe c;

	d->is_broker_mute = true;
	stay_unanswered(d, LONG / 2);
	assert_true(s->events[ENGINE_ASK_PEER]);
	assert_int_equal(engine_qp_modify(s->engine, s->side, &reset,
					  HCA_QP_STATE, s->ip, d->now_ns, &why),
			 0);
	two_hcas_connect(d, 0, 5);
	s->events[ENGINE_ASK_PEER] = 0;
	stay_unanswered(d, LONG / 2);
	assert_true(s->events[ENGINE_ASK_PEER]);
	engine_peer_state(s->engine, s->qp->qpn, earlier, ENGINE_PEER_GONE,
			  d->now_ns);
	assert_false(two_hcas_poll(d, 0, &c));
	engine_peer_state(s->engine, s->qp->qpn, s->qp->connection,
			  ENGINE_PEER_GONE, d->now_ns);
	two_hcas_run(d, d->now_ns + 1);
	outcome_assert_done(d, 0, HCA_RETRY_EXC_ERR, 0);
	assert_int_equal(s->explained.cause, EXPLAIN_PEER_GONE);
	two_hcas_free(d);
}

static void a_mute_broker_does_not_prolong_the_wait_for_ever(void **state)
{
	struct two_hcas *d = two_hcas_new(5, 16);

	stay_unanswered(d, LONG / 2);
	d->is_broker_mute = true;
	two_hcas_run(d, d->now_ns + 2 * LONG);
	outcome_assert_done(d, 0, HCA_RETRY_EXC_ERR, 0);
	assert_int_equal(d->side[0].explained.cause, EXPLAIN_RETRY);
	two_hcas_free(d);
}

static int drop_one(void *context, int from, const struct engine_frame *f)
{
	int *left = context;

	return (*left)-- <= 0;
}

/* The link was down for a while.  Since then the peer answers each try by an
 * RNR NAK, for longer than a silent peer is waited for. */
static void a_peer_that_has_no_receive_is_not_silent(void **state)
{
	struct two_hcas *d = two_hcas_new(5, 16);
	uint64_t tries_ns = two_hcas_tries_ns(d, 0);
	struct cqe c;
	int left = 1;

	d->side[0].qp->attr.rnr_retry = 7;
	d->fate = outcome_drop_all;
	two_hcas_send(d, 0, HCA_WR_SEND, 0, 100, 0);
	two_hcas_post(d, 0);
	two_hcas_run(d, d->now_ns + 2 * tries_ns);
	assert_false(two_hcas_poll(d, 0, &c));
	d->fate = NULL;
	two_hcas_run(d, d->now_ns + 2 * LONG);
	assert_false(two_hcas_poll(d, 0, &c));
	d->fate = drop_one;
	d->context = &left;
	two_hcas_run(d, d->now_ns + LONG / 10);
	assert_false(two_hcas_poll(d, 0, &c));
	two_hcas_recv(d, 1, 5000, 100);
	two_hcas_run(d, d->now_ns + LONG);
	outcome_assert_done(d, 0, HCA_SUCCESS, HCA_WC_SEND);
	two_hcas_free(d);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_answer_about_an_earlier_peer_is_ignored),
		cmocka_unit_test(
			a_request_ends_with_its_tries_if_the_peer_has_ended),
		cmocka_unit_test(a_peer_elsewhere_has_four_times_the_timeout),
		cmocka_unit_test(
			a_peer_that_answered_before_is_not_at_a_wrong_address),
		cmocka_unit_test(
			a_peer_that_only_sent_requests_is_not_said_to_answer),
		cmocka_unit_test(
			a_peer_that_had_no_receive_is_not_at_a_wrong_address),
		cmocka_unit_test(a_peer_that_has_no_receive_is_not_silent),
		cmocka_unit_test(a_peer_that_is_alive_is_waited_for),
		cmocka_unit_test(
			loss_of_long_packets_is_reported_as_a_small_mtu),
		cmocka_unit_test(silence_is_not_taken_for_a_small_mtu),
		cmocka_unit_test(
			a_peer_that_has_disconnected_is_not_waited_for),
		cmocka_unit_test(
			a_peer_known_to_be_alive_is_waited_for_when_the_broker_is_lost),
		cmocka_unit_test(the_report_says_that_a_silent_peer_is_alive),
		cmocka_unit_test(
			a_qp_that_answers_nothing_has_the_time_of_the_specification),
		cmocka_unit_test(a_suspended_machine_uses_up_no_patience),
		cmocka_unit_test(
			a_requester_that_is_always_late_has_its_retries),
		cmocka_unit_test(
			patience_ends_for_a_requester_that_is_always_late),
		cmocka_unit_test(a_peer_that_may_be_dead_is_not_called_alive),
		cmocka_unit_test(
			the_last_answer_is_waited_for_before_the_report),
		cmocka_unit_test(
			a_mute_broker_does_not_prolong_the_wait_for_ever),
	};

	two_hcas_mode(argc, argv);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
