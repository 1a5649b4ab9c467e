/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Without packets the initiator works in the target's arena.  The initiator or
 * the target dies at each step of each operation.  After that the memory, the
 * completions and the events of the other process are right, and no lock of the
 * target is held.
 */
#include "test.h"

#include <string.h>

#include "scenario/crash_point.h"
#include "scenario/outcome.h"

static bool is_written(const struct crash_point *s)
{
	switch (s->o->op) {
	case HCA_WR_RDMA_READ:
	case HCA_WR_ATOMIC_CAS:
	case HCA_WR_ATOMIC_FADD:
		return false;
	case HCA_WR_SEND:
	case HCA_WR_SEND_IMM:
	case HCA_WR_SEND_INV:
	case HCA_WR_RDMA_WRITE:
	case HCA_WR_RDMA_WRITE_IMM:
	case HCA_WR_ATOMIC_WRITE:
	case HCA_WR_LOCAL_INV:
	case HCA_WR_BIND_MW:
		break;
	}
	return !(s->o->how & CRASH_POINT_FAILS);
}

/* Only bytes that the operation or the third process may write have changed. */
static void assert_memory(const struct crash_point *s)
{
	const uint8_t *b = s->target->memory.bytes;
	uint32_t bytes = is_written(s) ? crash_point_bytes(s->o) : 0;

	uint32_t foreign = 0;

	for (uint32_t i = 0; i < CRASH_POINT_THIRD_AT; i++) {
		bool by_initiator =
			i >= CRASH_POINT_AT && i < CRASH_POINT_AT + bytes;
		bool by_third = i >= CRASH_POINT_AT &&
				i < CRASH_POINT_AT + CRASH_POINT_THIRD_BYTES;

		foreign += b[i] && !(b[i] == 0x55 && by_initiator) &&
			   !(b[i] == 0x66 && by_third);
	}
	assert_int_equal(foreign, 0);
}

static uint32_t completions_of(const struct crash_point *s, uint32_t qpn)
{
	const struct cq *cq = s->target->cq;
	const struct cqe *ring = arena_at(&s->target->hca.arena, cq->ring);
	uint32_t n = 0;

	cq_collect(&s->target->hca, s->target->cq, NULL);

	for (uint32_t i = cq->tail; i != cq->head; i++)
		n += ring[i & (cq->size - 1)].qpn == qpn;
	return n;
}

static void assert_events(const struct crash_point *s, bool third)
{
	const struct two_hcas_side *t = s->target;
	uint32_t by_us = completions_of(s, t->qp->qpn);
	bool fires = by_us || (third && !(s->o->how & CRASH_POINT_SOLICITED));

	if (s->o->how & CRASH_POINT_FULL)
		assert_true(t->events[ENGINE_CQ_ERR] == !!t->cq->overrun);
	else
		assert_int_equal(t->events[ENGINE_CQ_EVENT], fires);
	if (s->o->how & CRASH_POINT_LIMITED)
		assert_int_equal(t->events[ENGINE_SRQ_LIMIT],
				 srq_next(t->srq) > 0);
	assert_int_equal(t->qp->state == HCA_QP_ERR,
			 qp_target(t->qp)->has_failed || t->cq->overrun);
}

static void fail_target(struct crash_point *s)
{
	struct hca_qp_attr a = {.qp_state = HCA_QP_ERR};
	const char *why;

	crash_point_turns(1);
	if (s->target->qp->state != HCA_QP_ERR)
		assert_int_equal(engine_qp_modify(s->target->engine,
						  s->target->side, &a,
						  HCA_QP_STATE, s->target->ip,
						  s->d->now_ns, &why),
				 0);
	two_hcas_run(s->d, s->d->now_ns);
}

/* Each receive has completed once, or still waits in the shared queue. */
static void assert_receives(struct crash_point *s)
{
	struct two_hcas_side *t = s->target;
	uint32_t seen[CRASH_POINT_RECEIVES] = {0};
	struct cqe c;

	while (two_hcas_poll(s->d, 1, &c)) {
		if (c.qpn == CRASH_POINT_THIRD_QPN && !t->srq)
			continue;
		assert_uint_in_range(c.wr_id, 0x8000,
				     0x8000 + CRASH_POINT_RECEIVES - 1);
		seen[c.wr_id - 0x8000]++;
	}
	for (uint32_t i = t->srq ? srq_next(t->srq) : CRASH_POINT_RECEIVES;
	     i < CRASH_POINT_RECEIVES; i++)
		seen[i]++;
	for (uint32_t i = 0; i < CRASH_POINT_RECEIVES; i++)
		assert_int_equal(seen[i], 1);
}

static void assert_windows(struct crash_point *s)
{
	struct two_hcas_side *t = s->target;

	mr_enter(&t->hca);
	mw_settle(&t->hca);
	mr_leave(&t->hca);
	assert_int_equal(t->mr->bound, mr_key(&t->hca, s->window) != 0);
	mw_free(&t->hca, s->window);
	assert_int_equal(t->mr->bound, 0);
}

/* ---- deaths ---- */

/* Lets the initiator of o die at step k, and checks the target.  third_first:
 * the third process sends before the target repairs its queues, else after
 * that.  True: the initiator died. */
static bool initiator_dies(const struct crash_point_operation *o, uint32_t k,
			   bool third_first)
{
	struct crash_point s;
	bool died = crash_point_begin_until(&s, o, k);

	s.d->side[0].is_dead = died;
	crash_point_turns(1);
	access_wait(&s.target->hca, ACCESS_ALL);
	if (third_first && !(o->how & CRASH_POINT_FULL))
		crash_point_send_third(&s);
	crash_point_repair(&s);
	assert_events(&s, third_first);
	if (!third_first && !(o->how & CRASH_POINT_FULL))
		crash_point_send_third(&s);
	two_hcas_run(s.d, s.d->now_ns + 2 * CRASH_POINT_PERIOD);
	assert_events(&s, true);
	assert_memory(&s);
	fail_target(&s);
	if (!(o->how & CRASH_POINT_FULL))
		assert_receives(&s);
	assert_windows(&s);
	crash_point_assert_unlocked(&s);
	crash_point_end(&s);
	return died;
}

static void an_initiator_that_dies_inside_leaves_nothing_half_done(void **state)
{
	for (size_t i = 0; i < CRASH_POINT_OPERATIONS; i++)
		for (int third_first = 0; third_first < 2; third_first++) {
			uint32_t k = 0;

			while (initiator_dies(&crash_point_operations[i], k,
					      third_first))
				assert_true(++k < CRASH_POINT_STEPS_MAX);
			assert_true(k >= CRASH_POINT_STEPS_MIN);
		}
	if (crash_point_unseen())
		fail_msg("no process died where %s", crash_point_unseen());
}

/*
 * The initiator of o dies at step k, and the target's program moves its queue
 * pair to ERR before the target's adapter learns of the death.  The program
 * gets one event, for the completion or for the flush.  True: the initiator
 * died.
 */
static bool initiator_dies_unheard(const struct crash_point_operation *o,
				   uint32_t k)
{
	struct crash_point s;
	bool died;

	crash_point_now.has_one = true;
	died = crash_point_begin_until(&s, o, k);
	crash_point_now.has_one = false;
	s.d->side[0].is_dead = died;
	crash_point_turns(1);
	access_wait(&s.target->hca, ACCESS_ALL);
	fail_target(&s);
	crash_point_repair(&s);
	if (s.target->events[ENGINE_CQ_EVENT] != 1)
		fail_msg("operation %d, dead at step %u: %u events", (int)o->op,
			 k, s.target->events[ENGINE_CQ_EVENT]);
	crash_point_end(&s);
	return died;
}

static void
a_queue_pair_that_fails_before_the_death_is_known_raises_its_event(void **state)
{
	for (size_t i = 0; i < CRASH_POINT_OPERATIONS; i++) {
		uint32_t k = 0;

		if (crash_point_operations[i].how)
			continue;
		while (initiator_dies_unheard(&crash_point_operations[i], k))
			assert_true(++k < CRASH_POINT_STEPS_MAX);
		assert_true(k >= CRASH_POINT_STEPS_MIN);
	}
}

static uint32_t status_of(const struct crash_point_operation *o)
{
	return o->how & CRASH_POINT_BAD_KEY    ? HCA_REM_ACCESS_ERR
	       : o->how & CRASH_POINT_TOO_LONG ? HCA_REM_INV_REQ_ERR
					       : HCA_SUCCESS;
}

/* The requests posted before the target's death, and as many after it, have
 * ended: one request fails, and all requests behind it are flushed. */
static void assert_ends(struct crash_point *s)
{
	uint32_t first = crash_point_count(s->o);
	bool failed = false;
	struct cqe c;

	for (uint32_t i = 0; i < 2 * first; i++) {
		assert_true(two_hcas_poll(s->d, 0, &c));
		if (failed)
			assert_int_equal(c.status, HCA_WR_FLUSH_ERR);
		else
			assert_true(c.status == HCA_RETRY_EXC_ERR ||
				    (i < first && c.status == status_of(s->o)));
		failed |= c.status != HCA_SUCCESS;
	}
	assert_true(failed);
	assert_false(two_hcas_poll(s->d, 0, &c));
}

/* Lets the target of o die at step k, and checks the initiator's requests.
 * True: the target died. */
static bool target_dies(const struct crash_point_operation *o, uint32_t k)
{
	struct crash_point s;
	bool died;

	crash_point_begin(&s, o);
	crash_point_now.victim = CRASH_POINT_TARGET;
	crash_point_now.left = k;
	two_hcas_run(s.d, s.d->now_ns + 2 * CRASH_POINT_PERIOD);
	died = crash_point_now.victim == CRASH_POINT_NOBODY;
	crash_point_now.victim = CRASH_POINT_NOBODY;
	if (died) {
		crash_point_post(&s);
		two_hcas_run(s.d, s.d->now_ns + LONG);
		assert_true(engine_is_idle(s.d->side[0].engine));
		assert_ends(&s);
		crash_point_assert_unlocked(&s);
	}
	crash_point_end(&s);
	return died;
}

static void requests_end_when_the_target_dies(void **state)
{
	for (size_t i = 0; i < CRASH_POINT_OPERATIONS; i++) {
		uint32_t k = 0;

		while (target_dies(&crash_point_operations[i], k))
			assert_true(++k < CRASH_POINT_STEPS_MAX);
		assert_true(k >= CRASH_POINT_STEPS_MIN);
	}
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
			an_initiator_that_dies_inside_leaves_nothing_half_done),
		cmocka_unit_test(
			a_queue_pair_that_fails_before_the_death_is_known_raises_its_event),
		cmocka_unit_test(requests_end_when_the_target_dies),
	};

	two_hcas_mode(argc, argv);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
