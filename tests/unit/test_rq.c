/* SPDX-License-Identifier: BSD-2-Clause */
/* A peer that dies while it completes a receive: it completes once. */
#include "test.h"

#include "hca/hca.h"

#include <string.h>

#define ARENA_BYTES (64u << 20)
#define DEAD	    99
#define LIVING	    1

/* Where it dies. */
enum step { BEFORE, GIVEN_UP, NOT_PUSHED, PUSHED, POLLED, AFTER, STEPS };

static struct hca h;
static struct space nothing;
static struct cq *cq;
static struct qp *qp;

static bool is_dead(alock_owner owner)
{
	return owner == DEAD;
}

static void is_slow(alock_owner owner)
{
}

static const struct alock_judge judge = {is_dead, is_slow};

static int set_up(void **state)
{
	static const struct hca_qp_cap cap = {1, 4, 1, 1, 0};
	uint64_t seed[4] = {1, 2, 3, 4};
	struct arena a;

	arena_init(&a, calloc(1, ARENA_BYTES), ARENA_BYTES);
	assert_int_equal(hca_init(&h, a, &nothing, seed), 0);
	cq = cq_new(&h, 8, 0);
	qp = qp_new(&h, 17, HCA_QPT_RC, 1, cq, cq, &cap, false);
	assert_non_null(qp);
	return 0;
}

static int tear_down(void **state)
{
	free(h.arena.base);
	return 0;
}

/* What rq_complete does, up to a step. */
static void die_at(enum step step) NO_LOCK_ANALYSIS
{
	struct cqe c = {.qpn = qp->qpn};
	bool low;

	alock_open(DEAD, &judge);
	rq_enter(&h, qp);
	assert_non_null(rq_take(&h, qp, &low));
	qp->far.completing = (uint64_t)ring_own(&qp->rq.done) + 1;
	if (step == GIVEN_UP)
		qp->rq_held = 0;
	if (step < NOT_PUSHED)
		return;
	rq_done(&h, qp, &c);
	if (step >= PUSHED)
		cq_push(&h, cq, &c, false);
	if (step == POLLED)
		assert_int_equal(cq_poll(&h, cq, &c, 1), 1);
	if (step == AFTER)
		qp->far.completing = 0;
}

/* Completions of the one receive, by the queue or by a flush. */
static uint32_t completions(void)
{
	struct cqe c;

	return cq_poll(&h, cq, &c, 1) + qp->rq_held +
	       (ring_own(&qp->rq.head) - ring_own(&qp->rq.done) - qp->rq_held);
}

static void a_receive_of_the_dead_completes_once(void **state)
{
	for (enum step step = BEFORE; step < STEPS; step++) {
		for (uint32_t start = 0; start < 2; start++) {
			struct wqe *w;

			set_up(state);
			qp->rq.head = qp->rq.done = qp->rq.tail =
				start ? 0xffffffffu : 5;
			w = wq_reserve(&h, &qp->rq);
			memset(w, 0, sizeof *w);
			wq_commit(&qp->rq);
			die_at(step);
			alock_open(LIVING, &judge);
			rq_enter(&h, qp);
			rq_leave(qp);
			assert_int_equal(completions(), step != POLLED);
			assert_int_equal(qp->far.completing, 0);
			tear_down(state);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_receive_of_the_dead_completes_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
