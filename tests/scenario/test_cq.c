/* SPDX-License-Identifier: BSD-2-Clause */
/* Events of a completion queue, with and without moderation. */
#include "test.h"

#include "scenario/outcome.h"
#include "scenario/two_hcas.h"

#define PERIOD 2000000ull /* ns */

static void write_some(struct two_hcas *d, int n)
{
	while (n--) {
		two_hcas_send(d, 0, HCA_WR_RDMA_WRITE, 0, 8, 0);
		two_hcas_post(d, 0);
	}
}

static uint32_t cq_events(const struct two_hcas *d)
{
	return d->side[0].events[ENGINE_CQ_EVENT];
}

static void enough_completions_raise_the_event_at_once(void **state)
{
	struct two_hcas *d = two_hcas_new(1, 16);

	cq_moderate(&d->side[0].hca, d->side[0].cq, 4, PERIOD);
	cq_arm(d->side[0].cq, false);
	write_some(d, 3);
	two_hcas_run(d, d->now_ns);
	assert_int_equal(cq_events(d), 0);
	write_some(d, 1);
	two_hcas_run(d, d->now_ns);
	assert_int_equal(cq_events(d), 1);
	write_some(d, 8);
	two_hcas_run(d, d->now_ns + LONG);
	assert_int_equal(cq_events(d), 1); /* one-shot */
	two_hcas_free(d);
}

static void few_completions_raise_the_event_after_the_period(void **state)
{
	struct two_hcas *d = two_hcas_new(1, 16);

	cq_moderate(&d->side[0].hca, d->side[0].cq, 4, PERIOD);
	for (uint32_t round = 1; round < 4; round++) {
		uint64_t before = d->now_ns;

		cq_arm(d->side[0].cq, false);
		write_some(d, 1);
		two_hcas_run(d, before + PERIOD / 2);
		assert_int_equal(cq_events(d), round - 1);
		two_hcas_run(d, before + 2 * PERIOD);
		assert_int_equal(cq_events(d), round);
	}
	two_hcas_free(d);
}

static void an_error_raises_the_event_at_once(void **state)
{
	struct two_hcas *d = two_hcas_new(1, 16);

	cq_moderate(&d->side[0].hca, d->side[0].cq, 100, PERIOD);
	cq_arm(d->side[0].cq, true);
	two_hcas_send(d, 0, HCA_WR_RDMA_WRITE, 0, 8, 0)->rkey ^= 1;
	two_hcas_post(d, 0);
	two_hcas_run(d, d->now_ns);
	assert_int_equal(cq_events(d), 1);
	two_hcas_free(d);
}

static void a_removed_queue_raises_no_event(void **state)
{
	struct two_hcas *d = two_hcas_new(1, 16);

	cq_moderate(&d->side[0].hca, d->side[0].cq, 4, PERIOD);
	cq_arm(d->side[0].cq, false);
	write_some(d, 1);
	two_hcas_run(d, d->now_ns);
	engine_cq_remove(d->side[0].engine, d->side[0].cq);
	two_hcas_run(d, d->now_ns + LONG);
	assert_int_equal(cq_events(d), 0);
	two_hcas_free(d);
}

/* Destroys a queue pair that has notify bits, while another queue pair uses the
 * same completion queue. */
static void notify_removed_qp(struct two_hcas *d, uint32_t status,
			      uint32_t bits)
{
	struct hca_qp_cap cap = {1, 1, 1, 1, 0, NULL};
	const struct cqe c = {.wr_id = 1, .status = status};
	struct two_hcas_side *s = &d->side[0];
	struct qp *qp = qp_new(&s->hca, 0x2000, HCA_QPT_RC, 1, s->cq, s->cq,
			       &cap, false);
	struct ibt_qp *side = engine_qp_add(s->engine, qp);

	cq_arm(s->cq, false);
	cq_push(&s->hca, s->cq, &c, false);
	qp_withdraw(&s->hca, qp);
	notify_post(&s->hca, qp, bits);
	engine_serve_notify(s->engine);
	engine_qp_remove(s->engine, side);
	qp_free(&s->hca, qp);
	two_hcas_run(d, d->now_ns + 2 * PERIOD);
}

static void notify_bits_of_a_removed_queue_pair_are_served(void **state)
{
	struct two_hcas *d = two_hcas_new(1, 16);

	cq_moderate(&d->side[0].hca, d->side[0].cq, 4, PERIOD);
	notify_removed_qp(d, HCA_SUCCESS, QP_NOTIFY_LATER);
	assert_int_equal(cq_events(d), 1);
	notify_removed_qp(d, HCA_WR_FLUSH_ERR, QP_NOTIFY_CQ);
	assert_int_equal(cq_events(d), 2);
	two_hcas_free(d);
}

/* Many completion queues have events before the engine's events are taken. */
static void each_queue_raises_its_event(void **state)
{
	enum { MANY = 600 };
	struct two_hcas *d = two_hcas_new(1, 16);
	struct two_hcas_side *s = &d->side[0];
	const struct cqe c = {.wr_id = 1};
	static struct ibt_qp *sides[MANY];
	static uint32_t seen[MANY];
	struct engine_event e;

	for (uint32_t i = 0; i < MANY; i++) {
		struct hca_qp_cap cap = {1, 1, 1, 1, 0, NULL};
		struct cq *cq = cq_new(&s->hca, 1, i, false);
		struct qp *qp = qp_new(&s->hca, 0x2000 + 2 * i, HCA_QPT_RC, 1,
				       cq, cq, &cap, false);

		assert_non_null(qp);
		sides[i] = engine_qp_add(s->engine, qp);
		assert_non_null(sides[i]);
		cq_arm(cq, false);
		assert_int_equal(cq_push(&s->hca, cq, &c, false), CQ_NOTIFY);
		notify_post(&s->hca, qp, QP_NOTIFY_CQ);
	}
	engine_serve_notify(s->engine);
	while (engine_events(s->engine, &e, 1))
		seen[e.user] += e.type == ENGINE_CQ_EVENT;
	for (uint32_t i = 0; i < MANY; i++) {
		assert_int_equal(seen[i], 1);
		engine_qp_remove(s->engine, sides[i]);
	}
	two_hcas_free(d);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(enough_completions_raise_the_event_at_once),
		cmocka_unit_test(
			few_completions_raise_the_event_after_the_period),
		cmocka_unit_test(an_error_raises_the_event_at_once),
		cmocka_unit_test(a_removed_queue_raises_no_event),
		cmocka_unit_test(
			notify_bits_of_a_removed_queue_pair_are_served),
		cmocka_unit_test(each_queue_raises_its_event),
	};

	two_hcas_mode(argc, argv);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
