/* SPDX-License-Identifier: BSD-2-Clause */
/* When an acknowledgement leaves, and with what. */
#include "test.h"

#include "scenario/duo.h"

#define LONG 100000000000ull

struct sent {
	uint32_t frames[2], packets[2];
};

static int count(void *context, int from, const struct engine_frame *f)
{
	struct sent *s = context;

	s->frames[from]++;
	s->packets[from] += (uint32_t)((f->len + f->segment - 1) / f->segment);
	return 1;
}

/* Two programs of one host that poll, and nobody limits what is under way. */
static struct duo *two_that_poll(struct sent *s)
{
	struct duo *d = duo_new(5, 16);

	memset(s, 0, sizeof *s);
	d->fate = count;
	d->context = s;
	for (int i = 0; i < 2; i++) {
		struct duo_side *side = &d->side[i];

		side->qp->attr.ah.local = 1;
		side->qp->attr.ah.bursts = 1;
		engine_page(side->engine, d->side[!i].qp->qpn, NULL);
		engine_hold_acks(side->engine, true);
		duo_recv(d, i, 0, 64);
		duo_recv(d, i, 0, 64);
	}
	return d;
}

static void say(struct duo *d, int i)
{
	duo_send(d, i, HCA_WR_SEND, 0, 2, 0);
	duo_post(d, i);
	duo_run(d, d->now_ns + 1000000);
}

static uint32_t completions(struct duo *d, int i)
{
	struct cqe c;
	uint32_t n = 0;

	for (; duo_poll(d, i, &c); n++)
		assert_int_equal(c.status, HCA_SUCCESS);
	return n;
}

static void a_held_ack_goes_with_the_next_request(void **state)
{
	struct sent s;
	struct duo *d = two_that_poll(&s);

	say(d, 0);
	assert_int_equal(s.frames[1], 0);
	say(d, 1);
	assert_int_equal(s.frames[1], 1);
	assert_int_equal(s.packets[1], 2);
	assert_int_equal(completions(d, 0), 2);
	/* that our own was acknowledged is no reason to acknowledge */
	assert_int_equal(s.packets[0], 1);
	say(d, 0);
	assert_int_equal(s.frames[0], 2);
	assert_int_equal(s.packets[0], 3);
	assert_int_equal(completions(d, 1), 3);
	duo_free(d);
}

static void a_held_ack_leaves_when_it_may_not_wait_any_more(void **state)
{
	struct sent s;
	struct duo *d = two_that_poll(&s);

	say(d, 0);
	assert_int_equal(s.frames[1], 0);
	assert_true(engine_owes(d->side[1].engine));
	engine_hold_acks(d->side[1].engine, false);
	duo_run(d, d->now_ns + LONG);
	assert_int_equal(s.packets[1], 1);
	assert_int_equal(completions(d, 0), 1);
	assert_int_equal(d->side[0].qp->stats.retransmits, 0);
	duo_free(d);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_held_ack_goes_with_the_next_request),
		cmocka_unit_test(
			a_held_ack_leaves_when_it_may_not_wait_any_more),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
