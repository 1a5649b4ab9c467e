/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Without packets the initiator works in the target's arena.  At each step of
 * most operations the initiator is stopped, or the target deregisters the
 * memory: the stopped initiator stops no other process, and the deregistered
 * memory is not written.  In another test two threads of the target collect
 * completions.
 */
#include "test.h"

#include <string.h>

#include "scenario/crash_point.h"

/* ---- stops ---- */

/* Expects that the target gets the completion of a third process's message, and
 * a completion of its own. */
static void assert_target_works(struct crash_point *s)
{
	struct two_hcas_side *t = s->target;
	const struct cqe own = {.qpn = t->qp->qpn, .wr_id = 0x9000};
	struct cqe c;
	int others = 0;

	crash_point_send_third(s);
	cq_push(&t->hca, t->cq, &own, false);
	while (two_hcas_poll(s->d, 1, &c))
		others +=
			c.qpn == CRASH_POINT_THIRD_QPN || c.wr_id == own.wr_id;
	assert_int_equal(others, 2);
}

/* Stops the initiator of o at step k, and checks the target.  True: the
 * initiator was stopped; false: o ended before step k. */
static bool initiator_stops(const struct crash_point_operation *o, uint32_t k)
{
	struct crash_point s;
	bool stopped = crash_point_begin_until(&s, o, k);

	crash_point_now.is_stopped = true;
	crash_point_turns(1);
	/* a wait for these keys, or for the third process's QP, ends despite
	 * the stopped initiator */
	access_wait(&s.target->hca, access_key(s.target->mr->lkey) |
					    access_key(s.target->mr->rkey));
	access_wait(&s.target->hca, access_qp(CRASH_POINT_THIRD_QPN));
	assert_target_works(&s);
	crash_point_now.is_stopped = false;
	s.d->side[0].is_dead = stopped;
	access_wait(&s.target->hca, ACCESS_ALL);
	crash_point_repair(&s);
	mw_free(&s.target->hca, s.window);
	crash_point_end(&s);
	return stopped;
}

/* Returns whether the operation uses a lock that all peers of the target take.
 */
static bool takes_common_lock(const struct crash_point_operation *o)
{
	return o->how & CRASH_POINT_FULL;
}

static void a_stopped_initiator_stops_no_other_process(void **state)
{
	for (size_t i = 0; i < CRASH_POINT_OPERATIONS; i++) {
		uint32_t k = 0;

		if (takes_common_lock(&crash_point_operations[i]))
			continue;
		while (initiator_stops(&crash_point_operations[i], k))
			assert_true(++k < CRASH_POINT_STEPS_MAX);
		assert_true(k >= CRASH_POINT_STEPS_MIN);
	}
}

/* ---- deregistered memory ---- */

/* Lets the target deregister its region at step k of o, and checks that the
 * initiator then accesses the region no more.  True: o had such a step. */
static bool region_is_freed(const struct crash_point_operation *o, uint32_t k)
{
	struct crash_point s;
	uint32_t foreign = 0;
	struct cqe c;
	bool freed;

	crash_point_begin(&s, o);
	mw_free(&s.target->hca, s.window);
	crash_point_now.victim = CRASH_POINT_REGION;
	crash_point_now.left = k;
	two_hcas_run(s.d, s.d->now_ns);
	freed = crash_point_now.victim == CRASH_POINT_NOBODY;
	crash_point_now.victim = CRASH_POINT_NOBODY;
	/* a poll places the eager messages */
	crash_point_turns(1);
	while (two_hcas_poll(s.d, 1, &c))
		;
	for (uint32_t i = CRASH_POINT_AT;
	     freed && i < CRASH_POINT_AT + CRASH_POINT_BYTES; i++)
		foreign += s.target->memory.bytes[i] != 0x77;
	/* a late READ or atomic would bring bytes that the target has written
	 * after it deregistered the region */
	for (uint32_t i = 0; freed && i < CRASH_POINT_BYTES; i++)
		foreign += s.d->side[0].memory.bytes[i] == 0x77;
	assert_int_equal(foreign, 0);
	/* other tests check how the initiator continues */
	s.d->side[0].is_dead = s.d->side[1].is_dead = true;
	crash_point_end(&s);
	return freed;
}

/* The target waits only for an initiator that copies (access_copy).  An
 * initiator that is at another step when the key is withdrawn must touch no
 * memory later, even if it has found the key before. */
static void an_initiator_without_key_touches_nothing(void **state)
{
	for (size_t i = 0; i < CRASH_POINT_OPERATIONS; i++) {
		uint32_t k = 0;

		if (crash_point_operations[i].op == HCA_WR_SEND_INV)
			continue;
		while (region_is_freed(&crash_point_operations[i], k))
			assert_true(++k < CRASH_POINT_STEPS_MAX);
		assert_true(k >= CRASH_POINT_STEPS_MIN);
	}
}

/* ---- two threads of the owner ---- */

static void a_poll_misses_nothing_that_is_collected_meanwhile(void **state)
{
	static const struct crash_point_operation o = {HCA_WR_SEND,
						       CRASH_POINT_FEW};
	struct crash_point s;

	crash_point_begin(&s, &o);
	for (uint32_t look = 1; look <= 4; look++) {
		struct cqe c;

		crash_point_now.victim = CRASH_POINT_NOBODY;
		if (look > 1)
			crash_point_post(&s);
		two_hcas_run(s.d, s.d->now_ns);
		crash_point_turns(1);
		crash_point_now.collects = s.target;
		crash_point_now.look = look;
		assert_true(cq_has(&s.target->hca, s.target->cq));
		assert_int_equal(crash_point_now.look, 0);
		assert_true(cq_has(&s.target->hca, s.target->cq));
		assert_true(two_hcas_poll(s.d, 1, &c));
		assert_false(cq_has(&s.target->hca, s.target->cq));
	}
	mw_free(&s.target->hca, s.window);
	s.d->side[0].is_dead = s.d->side[1].is_dead = true;
	crash_point_end(&s);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
			a_poll_misses_nothing_that_is_collected_meanwhile),
		cmocka_unit_test(a_stopped_initiator_stops_no_other_process),
		cmocka_unit_test(an_initiator_without_key_touches_nothing),
	};

	two_hcas_mode(argc, argv);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
