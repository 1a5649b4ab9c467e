/* SPDX-License-Identifier: BSD-2-Clause */
/* Two programs of one host that poll, whose receivers hold ACKs back. */
#ifndef TESTS_SCENARIO_POLLING_HCAS_H
#define TESTS_SCENARIO_POLLING_HCAS_H

#include "test.h"

#include <string.h>

#include "scenario/two_hcas.h"

/* Nanoseconds of simulated time, longer than all retries of these queue pairs.
 */
#define ALL_RETRIES 100000000000ull

/* How many frames, and packets in these frames, each side has sent. */
struct sent {
	uint32_t frames[2], packets[2];
};

static inline int count_frames(void *context, int from,
			       const struct engine_frame *f)
{
	struct sent *s = context;

	s->frames[from]++;
	s->packets[from] += (uint32_t)((f->len + f->segment - 1) / f->segment);
	return 1;
}

/* Makes two programs of one host that poll.  No credits limit the bytes in
 * flight. */
static inline struct two_hcas *two_that_poll(struct sent *s)
{
	struct two_hcas *d = two_hcas_new(5, 16);

	memset(s, 0, sizeof(*s));
	d->fate = count_frames;
	d->context = s;
	for (int i = 0; i < 2; i++) {
		struct two_hcas_side *side = &d->side[i];

		side->qp->attr.ah.local = 1;
		side->qp->attr.ah.bursts = 1;
		engine_page(side->engine, d->side[!i].qp->qpn, NULL);
		engine_hold_acks(side->engine, true);
		two_hcas_recv(d, i, 0, 32768);
		two_hcas_recv(d, i, 0, 32768);
	}
	return d;
}

static inline void send_message(struct two_hcas *d, int i)
{
	two_hcas_send(d, i, HCA_WR_SEND, 0, 2, 0);
	two_hcas_post(d, i);
	two_hcas_run(d, d->now_ns + 1000000);
}

static inline uint32_t count_completions(struct two_hcas *d, int i)
{
	struct cqe c;
	uint32_t n = 0;

	for (; two_hcas_poll(d, i, &c); n++)
		assert_int_equal(c.status, HCA_SUCCESS);
	return n;
}

/* The opcodes of side 1's packets, in the order in which they leave. */
struct order {
	uint8_t opcodes[8];
	uint32_t count;
};

static inline int note_order(void *context, int from,
			     const struct engine_frame *f)
{
	struct order *o = context;

	for (size_t at = 0; from && at < f->len; at += f->segment) {
		assert_true(o->count < 8);
		o->opcodes[o->count++] = f->bytes[at];
	}
	return 1;
}

#endif
