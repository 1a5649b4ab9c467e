/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * arming: one thread pushes a completion to a CQ while a second thread arms the
 * CQ, again and again.  Either the second thread sees the completion after
 * cq_arm, or the first thread is told to raise an event.  With neither, a
 * program would sleep for ever.  The first thread leaves every second
 * completion in the slot of its receive, as a peer does.
 */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hca/hca.h"

#define ARENA_BYTES (16u << 20)
#define MEETINGS    20000
#define PATIENCE    1000 /* loads; then the other thread may need the core */

static struct hca hca;
static struct cq *cq;
static struct qp *qp;
static atomic_uint arrived;
static bool notified;

/* Returns when both threads have called this function for the n-th time. */
static void meet_thread(unsigned n)
{
	atomic_fetch_add(&arrived, 1);
	for (int looks = 0; atomic_load(&arrived) < 2 * n; looks++)
		if (looks > PATIENCE)
			sched_yield();
}

static void *produce_completions(void *arg)
{
	const struct cqe c = {.wr_id = 1};
	enum cq_push answer;
	bool low;

	(void)arg;
	for (unsigned i = 0; i < MEETINGS; i++) {
		meet_thread(2 * i + 1);
		if (i % 2)
			answer = cq_push(&hca, cq, &c, false);
		else if (rq_take(&hca, qp, &low))
			answer = rq_leave_done(&hca, qp, cq, &c, false, NULL);
		else
			abort();
		notified = answer == CQ_NOTIFY;
		meet_thread(2 * i + 2);
	}
	return NULL;
}

static void post_receive(void)
{
	if (!wq_reserve(&hca, &qp->rq))
		abort();
	wq_commit_recv(&hca, &qp->rq, 0);
}

static unsigned consume_completions(void)
{
	unsigned missed = 0;

	for (unsigned i = 0; i < MEETINGS; i++) {
		struct cqe c;
		bool seen;

		if (i % 2 == 0)
			post_receive();
		meet_thread(2 * i + 1);
		cq_arm(cq, false);
		seen = cq_has(&hca, cq);
		meet_thread(2 * i + 2);
		missed += !seen && !notified;
		if (cq_poll(&hca, cq, &c, 1) != 1)
			abort();
		atomic_store(&cq_shared(cq)->arm, CQ_DISARMED);
	}
	return missed;
}

int main(void)
{
	const struct hca_qp_cap cap = {1, 4, 1, 1, 0, NULL};
	uint64_t seed[4] = {1, 2, 3, 4};
	void *memory = aligned_alloc(4096, ARENA_BYTES);
	struct arena arena;
	pthread_t thread;
	unsigned missed;

	if (!memory)
		return 1;
	memset(memory, 0, ARENA_BYTES);
	arena_init(&arena, memory, ARENA_BYTES);
	if (hca_init(&hca, arena, NULL, seed))
		return 1;
	cq = cq_new(&hca, 4, 0, false);
	qp = cq ? qp_new(&hca, 2, HCA_QPT_RC, 1, cq, cq, &cap, false) : NULL;
	if (!qp || pthread_create(&thread, NULL, produce_completions, NULL))
		return 1;
	missed = consume_completions();
	pthread_join(thread, NULL);
	free(memory);
	printf("%s a completion during arming is seen or raises an event: %u missed\n"
	       "%d passed, %d failed, 0 skipped\n",
	       missed ? "FAIL" : "ok", missed, !missed, !!missed);
	return missed ? 1 : 0;
}
