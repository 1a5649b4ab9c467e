/* SPDX-License-Identifier: BSD-2-Clause */
/* Functions for scenarios that count packets or change the state of a QP. */
#ifndef TESTS_SCENARIO_DROP_PACKET_H
#define TESTS_SCENARIO_DROP_PACKET_H

#include "scenario/outcome.h"
#include "scenario/two_hcas.h"

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

#endif
