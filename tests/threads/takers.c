/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * takers: processes take receives from one shared receive queue, without a
 * lock, while the owner posts receives and resizes the queue.  Exactly one
 * process takes each receive, and takes it whole.
 */
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "hca/hca.h"

#define ARENA_BYTES (16u << 20)
#define TAKERS	    3
#define RECEIVES    100000
#define DEPTH	    16
#define PATIENCE    200 /* tries; then another process may need the core */

static struct hca hca;
static struct srq *srq;
static struct qp *qps[TAKERS];
static struct {
	atomic_uchar had[RECEIVES + 1]; /* by wr_id: how often it was taken */
	atomic_uint torn;		/* receives that were not whole */
	atomic_uint count;		/* receives that were taken */
	atomic_uint ready;		/* processes that run */
} * seen;

static void *shared_memory(size_t bytes)
{
	void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
		       MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	return p == MAP_FAILED ? NULL : p;
}

static void *make_queues(void)
{
	uint64_t seed[4] = {1, 2, 3, 4};
	struct hca_qp_cap cap = {1, 0, 1, 0, 0, NULL};
	void *memory = shared_memory(ARENA_BYTES);
	struct arena arena;

	seen = shared_memory(sizeof(*seen));
	if (!memory || !seen)
		return NULL;
	arena_init(&arena, memory, ARENA_BYTES);
	if (hca_init(&hca, arena, NULL, seed))
		return NULL;
	srq = srq_new(&hca, 1, DEPTH, 1, 0);
	cap.srq = srq;
	for (uint32_t i = 0; srq && i < TAKERS; i++) {
		qps[i] = qp_new(&hca, 10 + i, HCA_QPT_RC, 1, NULL, NULL, &cap,
				false);
		if (!qps[i])
			return NULL;
	}
	return srq ? memory : NULL;
}

static bool take_receive(struct qp *qp)
{
	struct wqe *w;
	bool low;

	if (!srq_take(&hca, srq, qp, &low))
		return false;
	w = rq_slot(&hca, qp);
	if (w->wr_id == 0 || w->wr_id > RECEIVES || w->va != ~w->wr_id ||
	    w->compare != w->wr_id)
		atomic_fetch_add(&seen->torn, 1);
	else
		atomic_fetch_add(&seen->had[w->wr_id], 1);
	atomic_fetch_add(&seen->count, 1);
	qp_target(qp)->held = 0; /* the receive is complete */
	return true;
}

static pid_t start_taker(struct qp *qp)
{
	pid_t parent = getpid();
	int in_vain = 0;
	pid_t pid = fork();

	if (pid < 0) {
		perror("takers: fork");
		exit(1);
	}
	if (pid)
		return pid;
	/* A taker whose parent has ended would wait for receives for ever. */
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(1);
	atomic_fetch_add(&seen->ready, 1);
	while (atomic_load(&seen->count) < RECEIVES) {
		in_vain = take_receive(qp) ? 0 : in_vain + 1;
		if (in_vain % PATIENCE == PATIENCE - 1)
			sched_yield();
	}
	_exit(0);
}

static void post_all(void)
{
	for (uint64_t i = 1; i <= RECEIVES;) {
		struct wqe *w;

		if (i % 1000 == 0)
			srq_resize(&hca, srq, DEPTH + i / 1000 % 2);
		w = srq_reserve(&hca, srq);
		if (!w) {
			sched_yield();
			continue;
		}
		memset(w, 0, sizeof(*w));
		w->wr_id = w->compare = i;
		w->va = ~i;
		wq_commit(&srq->wq);
		i++;
	}
}

/* Returns whether the process ends with status 0. */
static bool ends_well(pid_t pid)
{
	int status;

	return waitpid(pid, &status, 0) == pid && !status;
}

int main(void)
{
	unsigned wrong = 0;
	pid_t pids[TAKERS];

	if (!make_queues()) {
		puts("FAIL set-up: no memory for the queues");
		return 1;
	}
	for (int i = 0; i < TAKERS; i++)
		pids[i] = start_taker(qps[i]);
	while (atomic_load(&seen->ready) < TAKERS)
		sched_yield();
	post_all();
	for (int i = 0; i < TAKERS; i++)
		wrong += !ends_well(pids[i]);
	for (unsigned i = 1; i <= RECEIVES; i++)
		wrong += seen->had[i] != 1;
	wrong += seen->torn;
	printf("%s each shared receive is taken once: %u receives or processes "
	       "wrong\n"
	       "%d passed, %d failed, 0 skipped\n",
	       wrong ? "FAIL" : "ok", wrong, !wrong, !!wrong);
	return wrong ? 1 : 0;
}
