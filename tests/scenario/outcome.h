/* SPDX-License-Identifier: BSD-2-Clause */
/* Definitions that the scenarios of two_hcas.h share: a time in which most
 * requests end, checks of a completion and of a drained send queue, the loss of
 * all packets, how many packets were sent, and changes of a QP's state. */
#ifndef TESTS_SCENARIO_OUTCOME_H
#define TESTS_SCENARIO_OUTCOME_H

#include "test.h"

#include "scenario/two_hcas.h"

/* Nanoseconds of simulated time.  In this time the requests of most scenarios
 * end, even those that need all their retries. */
#define LONG (60ull * 1000000000)

/* Polls one completion of side i; fails the test unless there is one, with this
 * status. */
static inline void assert_done(struct two_hcas *d, int i, uint32_t status)
{
	struct cqe c;

	assert_true(two_hcas_poll(d, i, &c));
	assert_int_equal(c.status, status);
}

/* Polls one completion of side i; fails the test unless there is one, with this
 * status, and, if the status is HCA_SUCCESS, with this opcode. */
static inline void outcome_assert_done(struct two_hcas *d, int i,
				       uint32_t status, uint32_t opcode)
{
	struct cqe c;

	assert_true(two_hcas_poll(d, i, &c));
	assert_int_equal(c.status, status);
	if (!status)
		assert_int_equal(c.opcode, opcode);
}

/* A two_hcas_fate that drops every frame. */
static inline int outcome_drop_all(void *context, int from,
				   const struct engine_frame *f)
{
	return 0;
}

/* Returns how many packets both sides have sent so far. */
static inline uint64_t packets_sent(const struct two_hcas *d)
{
	return engine_counters(d->side[0].engine, 0)->tx_packets +
	       engine_counters(d->side[1].engine, 0)->tx_packets;
}

/* Moves side i's QP to a state, as its program does. */
static inline void enter_state(struct two_hcas *d, int i, uint32_t state)
{
	struct hca_qp_attr a = {.qp_state = state};
	const char *why;

	assert_int_equal(engine_qp_modify(d->side[i].engine, d->side[i].side,
					  &a, HCA_QP_STATE, d->side[i].ip,
					  d->now_ns, &why),
			 0);
}

/* Moves side i's QP to SQD, and asks for the event SQ_DRAINED. */
static inline void drain_sends(struct two_hcas *d, int i)
{
	struct two_hcas_side *s = &d->side[i];
	struct hca_qp_attr a = {.qp_state = HCA_QP_SQD,
				.en_sqd_async_notify = 1};
	const char *why;

	assert_int_equal(engine_qp_modify(s->engine, s->side, &a,
					  HCA_QP_STATE | HCA_QP_EN_SQD_ASYNC,
					  s->ip, d->now_ns, &why),
			 0);
}

/* Fails the test unless the send queue of side 0 is draining, and SQ_DRAINED
 * has not come; or, if `drains` is false, is drained, and the event has come
 * once. */
static inline void assert_draining(struct two_hcas *d, bool drains)
{
	struct two_hcas_side *s = &d->side[0];
	struct hca_qp_attr a;

	engine_qp_query(s->engine, s->side, &a);
	assert_int_equal(a.sq_draining, drains);
	assert_int_equal(s->events[ENGINE_SQ_DRAINED], !drains);
}

#endif
