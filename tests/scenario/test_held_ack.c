/* SPDX-License-Identifier: BSD-2-Clause */
/* A receiver that polls holds ACKs back: they leave in time, with the next
 * request where there is one. */
#include "scenario/polling_hcas.h"

#include "ibt/ibt.h"

static void a_held_ack_goes_with_the_next_request(void **state)
{
	struct sent s;
	struct two_hcas *d = two_that_poll(&s);

	send_message(d, 0);
	assert_int_equal(s.frames[1], 0);
	send_message(d, 1);
	assert_int_equal(s.frames[1], 1);
	assert_int_equal(s.packets[1], 2);
	assert_int_equal(count_completions(d, 0), 2);
	/* The peer's ACK is no reason to send an ACK. */
	assert_int_equal(s.packets[0], 1);
	send_message(d, 0);
	assert_int_equal(s.frames[0], 2);
	assert_int_equal(s.packets[0], 3);
	assert_int_equal(count_completions(d, 1), 3);
	two_hcas_free(d);
}

/* Side 1 has received a request of side 0, and still has to send the ACK when
 * its program posts a SEND of `bytes` bytes.  local: both sides are on this
 * host. */
static struct two_hcas *two_with_an_answer(struct order *o, bool local,
					   uint32_t bytes)
{
	struct sent s;
	struct two_hcas *d = two_that_poll(&s);

	memset(o, 0, sizeof(*o));
	d->fate = note_order;
	d->context = o;
	for (int i = 0; i < 2; i++)
		d->side[i].qp->attr.ah.local = local;
	d->side[1].is_stopped = true; /* so side 1 sends no ACK yet */
	two_hcas_send(d, 0, HCA_WR_SEND, 0, 100, 0);
	two_hcas_post(d, 0);
	two_hcas_run(d, d->now_ns);
	assert_int_equal(o->count, 0);
	assert_int_equal(count_completions(d, 1), 1);
	d->side[1].is_stopped = false;
	two_hcas_send(d, 1, HCA_WR_SEND, 0, bytes, 0);
	two_hcas_post(d, 1);
	two_hcas_run(d, d->now_ns + 1);
	return d;
}

/*
 * A program gets the completion of its request before it gets the peer's
 * answer. perftest (4.5) relies on this order: it waits for both completions on
 * one channel, and has at most one request posted.
 */
static void an_ack_leaves_before_the_request_behind_it(void **state)
{
	/* shorter than the ACK, as long, longer, several packets */
	static const uint32_t bytes[] = {0, 2, 100, 10000};

	for (uint32_t i = 0; i < 8; i++) {
		struct order o;
		struct two_hcas *d =
			two_with_an_answer(&o, i % 2, bytes[i / 2]);
		struct cqe c;

		assert_uint_in_range(o.count, 2, 4);
		assert_int_equal(o.opcodes[0], OPCODE_RC_ACKNOWLEDGE);
		assert_int_not_equal(o.opcodes[1], OPCODE_RC_ACKNOWLEDGE);
		assert_true(two_hcas_poll(d, 0, &c));
		assert_int_equal(c.opcode, HCA_WC_SEND);
		assert_true(two_hcas_poll(d, 0, &c));
		assert_int_equal(c.opcode, HCA_WC_RECV);
		for (int k = 0; k < 2; k++)
			engine_hold_acks(d->side[k].engine, false);
		two_hcas_run(d, d->now_ns + ALL_RETRIES);
		two_hcas_free(d);
	}
}

static void a_held_ack_leaves_when_it_may_not_wait_any_more(void **state)
{
	struct sent s;
	struct two_hcas *d = two_that_poll(&s);

	send_message(d, 0);
	assert_int_equal(s.frames[1], 0);
	assert_true(engine_owes(d->side[1].engine));
	engine_hold_acks(d->side[1].engine, false);
	two_hcas_run(d, d->now_ns + ALL_RETRIES);
	assert_int_equal(s.packets[1], 1);
	assert_int_equal(count_completions(d, 0), 1);
	assert_int_equal(d->side[0].qp->stats.retransmits, 0);
	two_hcas_free(d);
}

/* Side 1 always has something else to receive. */
static void a_held_ack_leaves_in_time_at_a_busy_receiver(void **state)
{
	struct sent s;
	struct two_hcas *d = two_that_poll(&s);
	struct engine *e = d->side[1].engine;
	uint64_t since;

	send_message(d, 0);
	since = d->now_ns;
	while (!s.frames[1] && d->now_ns < since + 2 * IBT_OWE_NS) {
		d->now_ns += 10000;
		engine_hold_acks(e, true);
		engine_tick(e, d->now_ns);
		two_hcas_run(d, d->now_ns);
	}
	assert_uint_in_range(d->now_ns - since, IBT_OWE_NS / 2,
			     IBT_OWE_NS + 20000);
	assert_int_equal(count_completions(d, 0), 1);
	assert_int_equal(d->side[0].qp->stats.retransmits, 0);
	two_hcas_free(d);
}

/* Requests that were executed before the Error state are acknowledged, even if
 * their ACKs had not been sent by then. */
static void a_queue_pair_in_err_acknowledges_its_work(void **state)
{
	const struct hca_qp_attr err = {.qp_state = HCA_QP_ERR};
	struct sent s;
	struct two_hcas *d = two_that_poll(&s);
	struct two_hcas_side *answers = &d->side[1];
	const char *why = "";

	send_message(d, 0);
	two_hcas_run(d, d->now_ns);
	assert_int_equal(s.packets[1], 0);
	assert_int_equal(engine_qp_modify(answers->engine, answers->side, &err,
					  HCA_QP_STATE, answers->ip, d->now_ns,
					  &why),
			 0);
	engine_hold_acks(answers->engine, false);
	two_hcas_run(d, d->now_ns + ALL_RETRIES);
	assert_int_equal(s.packets[1], 1);
	assert_int_equal(count_completions(d, 0), 1);
	two_hcas_free(d);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_held_ack_goes_with_the_next_request),
		cmocka_unit_test(an_ack_leaves_before_the_request_behind_it),
		cmocka_unit_test(
			a_held_ack_leaves_when_it_may_not_wait_any_more),
		cmocka_unit_test(a_held_ack_leaves_in_time_at_a_busy_receiver),
		cmocka_unit_test(a_queue_pair_in_err_acknowledges_its_work),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
