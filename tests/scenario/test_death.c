/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Without packets the initiator works in the target's arena: here it dies, or
 * the target does, at each step of each operation, and what must be so
 * afterwards is looked at.
 */
#include "test.h"

#include <malloc.h>
#include <string.h>

#include "scenario/scene.h"

#define LONG (60ull * 1000000000)

static bool is_written(const struct scene *s)
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
	return !(s->o->how & SCENE_FAILS);
}

/* Nothing but what the operation may write. */
static void assert_memory(const struct scene *s)
{
	const uint8_t *b = s->target->memory.bytes;
	uint32_t bytes = is_written(s) ? scene_bytes(s->o) : 0;

	uint32_t foreign = 0;

	for (uint32_t i = 0; i < SCENE_THIRD_AT; i++) {
		bool ours = i >= SCENE_AT && i < SCENE_AT + bytes;
		bool thirds = i >= SCENE_AT && i < SCENE_AT + SCENE_THIRD_BYTES;

		foreign += b[i] && !(b[i] == 0x55 && ours) &&
			   !(b[i] == 0x66 && thirds);
	}
	assert_int_equal(foreign, 0);
}

static uint32_t completions_of(const struct scene *s, uint32_t qpn)
{
	const struct cq *cq = s->target->cq;
	const struct cqe *ring = arena_at(&s->target->hca.arena, cq->ring);
	uint32_t n = 0;

	cq_collect(&s->target->hca, s->target->cq, NULL);

	for (uint32_t i = cq->tail; i != cq->head; i++)
		n += ring[i & (cq->size - 1)].qpn == qpn;
	return n;
}

static void assert_events(const struct scene *s, bool third)
{
	const struct duo_side *t = s->target;
	uint32_t by_us = completions_of(s, t->qp->qpn);
	bool fires = by_us || (third && !(s->o->how & SCENE_SOLICITED));

	if (s->o->how & SCENE_FULL)
		assert_true(t->events[ENGINE_CQ_ERR] == !!t->cq->overrun);
	else
		assert_int_equal(t->events[ENGINE_CQ_EVENT], fires);
	if (s->o->how & SCENE_LIMITED)
		assert_int_equal(t->events[ENGINE_SRQ_LIMIT],
				 srq_next(t->srq) > 0);
	assert_int_equal(t->qp->state == HCA_QP_ERR,
			 qp_far(t->qp)->has_failed || t->cq->overrun);
}

static void fail_target(struct scene *s)
{
	struct hca_qp_attr a = {.qp_state = HCA_QP_ERR};
	const char *why;

	scene_turns(1);
	if (s->target->qp->state != HCA_QP_ERR)
		assert_int_equal(engine_qp_modify(s->target->engine,
						  s->target->side, &a,
						  HCA_QP_STATE, s->target->ip,
						  s->d->now_ns, &why),
				 0);
	duo_run(s->d, s->d->now_ns);
}

/* Each receive came back once, or waits for another. */
static void assert_receives(struct scene *s)
{
	struct duo_side *t = s->target;
	uint32_t seen[SCENE_RECEIVES] = {0};
	struct cqe c;

	while (duo_poll(s->d, 1, &c)) {
		if (c.qpn == SCENE_THIRD_QPN && !t->srq)
			continue;
		assert_uint_in_range(c.wr_id, 0x8000,
				     0x8000 + SCENE_RECEIVES - 1);
		seen[c.wr_id - 0x8000]++;
	}
	for (uint32_t i = t->srq ? srq_next(t->srq) : SCENE_RECEIVES;
	     i < SCENE_RECEIVES; i++)
		seen[i]++;
	for (uint32_t i = 0; i < SCENE_RECEIVES; i++)
		assert_int_equal(seen[i], 1);
}

static void assert_windows(struct scene *s)
{
	struct duo_side *t = s->target;

	mr_enter(&t->hca);
	mw_settle(&t->hca);
	mr_leave(&t->hca);
	assert_int_equal(t->mr->bound, mr_key(&t->hca, s->window) != 0);
	mw_free(&t->hca, s->window);
	assert_int_equal(t->mr->bound, 0);
}

/* ---- deaths ---- */

/* True: the initiator of o died at step k. */
static bool initiator_dies(const struct scene_operation *o, uint32_t k,
			   bool third_first)
{
	struct scene s;
	bool died = scene_begin_until(&s, o, k);

	s.d->side[0].is_dead = died;
	scene_turns(1);
	guest_wait(&s.target->hca, GUEST_ALL);
	if (third_first && !(o->how & SCENE_FULL))
		scene_send_third(&s);
	scene_mourn(&s);
	assert_events(&s, third_first);
	if (!third_first && !(o->how & SCENE_FULL))
		scene_send_third(&s);
	duo_run(s.d, s.d->now_ns + 2 * SCENE_PERIOD);
	assert_events(&s, true);
	assert_memory(&s);
	fail_target(&s);
	if (!(o->how & SCENE_FULL))
		assert_receives(&s);
	assert_windows(&s);
	scene_assert_unlocked(&s);
	scene_end(&s);
	return died;
}

static void who_dies_inside_leaves_nothing_half_done(void **state)
{
	for (size_t i = 0; i < SCENE_OPERATIONS; i++)
		for (int third_first = 0; third_first < 2; third_first++) {
			uint32_t k = 0;

			while (initiator_dies(&scene_operations[i], k,
					      third_first))
				assert_true(++k < SCENE_STEPS_MAX);
			assert_true(k >= 6);
		}
	if (scene_unseen())
		fail_msg("nobody died where %s", scene_unseen());
}

/*
 * The same, but the program has its queue pair fail before its adapter hears of
 * the death.  It waits for an event, by the completion or by the flush: true.
 */
static bool initiator_dies_unheard(const struct scene_operation *o, uint32_t k)
{
	struct scene s;
	bool died;

	scene_now.has_one = true;
	died = scene_begin_until(&s, o, k);
	scene_now.has_one = false;
	s.d->side[0].is_dead = died;
	scene_turns(1);
	guest_wait(&s.target->hca, GUEST_ALL);
	fail_target(&s);
	scene_mourn(&s);
	if (s.target->events[ENGINE_CQ_EVENT] != 1)
		fail_msg("operation %d, dead at step %u: %u events", (int)o->op,
			 k, s.target->events[ENGINE_CQ_EVENT]);
	scene_end(&s);
	return died;
}

static void who_fails_before_it_hears_of_a_death_is_told(void **state)
{
	for (size_t i = 0; i < SCENE_OPERATIONS; i++) {
		uint32_t k = 0;

		while (!scene_operations[i].how &&
		       initiator_dies_unheard(&scene_operations[i], k))
			assert_true(++k < SCENE_STEPS_MAX);
	}
}

static uint32_t status_of(const struct scene_operation *o)
{
	return o->how & SCENE_BAD_KEY	 ? HCA_REM_ACCESS_ERR
	       : o->how & SCENE_TOO_LONG ? HCA_REM_INV_REQ_ERR
					 : HCA_SUCCESS;
}

/* Those before its death, and as many after: one of them fails, of all that
 * follow it the same is said. */
static void assert_ends(struct scene *s)
{
	uint32_t first = scene_count(s->o);
	bool failed = false;
	struct cqe c;

	for (uint32_t i = 0; i < 2 * first; i++) {
		assert_true(duo_poll(s->d, 0, &c));
		if (failed)
			assert_int_equal(c.status, HCA_WR_FLUSH_ERR);
		else
			assert_true(c.status == HCA_RETRY_EXC_ERR ||
				    (i < first && c.status == status_of(s->o)));
		failed |= c.status != HCA_SUCCESS;
	}
	assert_true(failed);
	assert_false(duo_poll(s->d, 0, &c));
}

/* True: the target of o died at step k. */
static bool target_dies(const struct scene_operation *o, uint32_t k)
{
	struct scene s;
	bool died;

	scene_begin(&s, o);
	scene_now.victim = SCENE_TARGET;
	scene_now.left = k;
	duo_run(s.d, s.d->now_ns + 2 * SCENE_PERIOD);
	died = scene_now.victim == SCENE_NOBODY;
	scene_now.victim = SCENE_NOBODY;
	if (died) {
		engine_gone(s.d->side[0].engine, s.d);
		scene_post(&s);
		duo_run(s.d, s.d->now_ns + LONG);
		assert_true(engine_is_idle(s.d->side[0].engine));
		assert_ends(&s);
		scene_assert_unlocked(&s);
	}
	scene_end(&s);
	return died;
}

static void whose_target_dies_sees_its_work_end(void **state)
{
	for (size_t i = 0; i < SCENE_OPERATIONS; i++)
		for (uint32_t k = 0; target_dies(&scene_operations[i], k); k++)
			assert_true(k < SCENE_STEPS_MAX);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(who_dies_inside_leaves_nothing_half_done),
		cmocka_unit_test(who_fails_before_it_hears_of_a_death_is_told),
		cmocka_unit_test(whose_target_dies_sees_its_work_end),
	};

	/* arenas are large and mostly untouched: fresh ones need no zeroing */
	mallopt(M_MMAP_THRESHOLD, 1 << 19);
	duo_mode(argc, argv);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
