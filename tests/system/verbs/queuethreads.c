/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * queuethreads: tests one shared receive queue that many threads use.
 *
 *	a[0] --> b[0] \
 *	...            > one SRQ: two threads post receives
 *	a[3] --> b[3] /
 *
 * A third thread resizes the SRQ and the CQs of b.
 *
 * Each message has a number, and must arrive exactly once, whichever receive it
 * takes.  Prints a line per case, as verbcheck does.
 */
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "endpoint.h"

enum { PAIRS = 4, MESSAGES = 3000, DEPTH = 64, ALL = PAIRS * MESSAGES };
/* About how many receives may be posted whose completions no thread has polled.
 * One CQ has room for all their completions. */
enum { OUT = 200 };
enum { FEW_ENTRIES = 300, MANY_ENTRIES = 1000 }; /* sizes of the CQs */

static struct endpoint a[PAIRS], b[PAIRS];
static struct ibv_srq *srq;
/*
 * posted: receives that a thread has posted or is about to post
 * received: receives whose completions were polled
 * wrong: failures
 */
static atomic_int posted, received, wrong;
static _Atomic uint8_t seen[ALL]; /* how often each message has come */
static atomic_bool is_over;

static void expect_good(bool good, const char *what)
{
	if (!good && !atomic_fetch_add(&wrong, 1))
		printf("the first failure: %s\n", what);
}

static bool give_up(void)
{
	return atomic_load(&wrong) || atomic_load(&is_over);
}

static void *feed_receives(void *arg)
{
	struct ibv_recv_wr wr = {0}, *bad;

	while (!give_up()) {
		int err;

		if (atomic_load(&posted) - atomic_load(&received) > OUT)
			continue;
		if (atomic_fetch_add(&posted, 1) >= ALL)
			break;
		while ((err = ibv_post_srq_recv(srq, &wr, &bad)) == ENOMEM &&
		       !give_up())
			;
		expect_good(!err || give_up(), "a receive is refused");
	}
	return NULL;
}

static void *send_all(void *arg)
{
	struct endpoint *e = arg;
	uint32_t i = (uint32_t)(e - a) * MESSAGES, end = i + MESSAGES;
	struct ibv_send_wr wr = {.opcode = IBV_WR_SEND_WITH_IMM,
				 .send_flags = IBV_SEND_SIGNALED};
	struct ibv_send_wr *bad;
	struct ibv_wc wc;

	for (; i < end && !give_up(); i++) {
		wr.imm_data = i;
		expect_good(!ibv_post_send(e->qp, &wr, &bad),
			    "a send is refused");
		expect_good(endpoint_wait(e, &wc) &&
				    wc.status == IBV_WC_SUCCESS,
			    "a send fails");
	}
	return NULL;
}

/* Polls the CQ of an end.  Two threads run this for each CQ; each completion
 * goes to one of them. */
static void *drain_cq(void *arg)
{
	struct endpoint *e = arg;
	struct ibv_wc wc[4];

	while (!give_up()) {
		int n = ibv_poll_cq(e->cq, 4, wc);

		for (int i = 0; i < n; i++) {
			expect_good(wc[i].status == IBV_WC_SUCCESS &&
					    wc[i].imm_data < ALL,
				    "a receive fails");
			if (wc[i].imm_data < ALL)
				expect_good(!atomic_fetch_add(
						    &seen[wc[i].imm_data], 1),
					    "a message arrives twice");
			if (atomic_fetch_add(&received, 1) + 1 == ALL)
				atomic_store(&is_over, true);
		}
	}
	return NULL;
}

/* Returns 0 or an errno value, as ibv_resize_cq does. */
static int resize_srq(uint32_t depth)
{
	struct ibv_srq_attr attr = {.max_wr = depth};

	return ibv_modify_srq(srq, &attr, IBV_SRQ_MAX_WR);
}

/* A resize fails with EINVAL if the queue has more entries than the new size.
 * The larger sizes have room for all entries, so a resize to them succeeds. */
static void *resize_queues(void *arg)
{
	unsigned int k = 0;

	do {
		bool shrinks_srq = k % 2, shrinks_cq = k % 3;
		int err = resize_srq(shrinks_srq ? DEPTH : 2 * DEPTH);

		expect_good(!err || (shrinks_srq && err == EINVAL),
			    "the SRQ cannot be resized");
		err = ibv_resize_cq(b[k % PAIRS].cq,
				    shrinks_cq ? FEW_ENTRIES : MANY_ENTRIES);
		expect_good(!err || (shrinks_cq && err == EINVAL),
			    "a CQ cannot be resized");
		k++;
	} while (!give_up());
	return NULL;
}

/* Empty queues can always be made smaller. */
static void shrink_empty_queues(void)
{
	expect_good(!resize_srq(DEPTH), "the empty SRQ cannot be made smaller");
	for (int i = 0; i < PAIRS; i++)
		expect_good(!ibv_resize_cq(b[i].cq, FEW_ENTRIES),
			    "an empty CQ cannot be made smaller");
}

static void connect_pair(int i)
{
	struct endpoint_address at_a, at_b;
	struct ibv_qp_init_attr init = {
		.send_cq = b[i].cq,
		.recv_cq = b[i].cq,
		.srq = srq,
		.qp_type = IBV_QPT_RC,
		.cap = {.max_send_wr = 1, .max_send_sge = 1},
	};

	endpoint_replace_qp(&b[i], ibv_create_qp(b[0].pd, &init), 0);
	endpoint_address_get(&a[i], &at_a);
	endpoint_address_get(&b[i], &at_b);
	endpoint_to_rtr(&a[i], &at_b);
	endpoint_to_rtr(&b[i], &at_a);
	endpoint_to_rts(&a[i], &at_a, 7);
	endpoint_to_rts(&b[i], &at_b, 7);
}

static void run_threads(void)
{
	enum { THREADS = 3 + 3 * PAIRS };
	pthread_t t[THREADS];
	int n = 0;

	pthread_create(&t[n++], NULL, feed_receives, NULL);
	pthread_create(&t[n++], NULL, feed_receives, NULL);
	pthread_create(&t[n++], NULL, resize_queues, NULL);
	for (int i = 0; i < PAIRS; i++) {
		pthread_create(&t[n++], NULL, drain_cq, &b[i]);
		pthread_create(&t[n++], NULL, drain_cq, &b[i]);
		pthread_create(&t[n++], NULL, send_all, &a[i]);
	}
	while (n)
		pthread_join(t[--n], NULL);
}

int main(void)
{
	struct ibv_srq_init_attr init = {
		.attr = {.max_wr = DEPTH, .max_sge = 1}};
	bool good;

	for (int i = 0; i < PAIRS; i++) {
		endpoint_open(&a[i], IBV_ACCESS_LOCAL_WRITE, 0);
		endpoint_open(&b[i], IBV_ACCESS_LOCAL_WRITE, 0);
	}
	srq = ibv_create_srq(b[0].pd, &init);
	for (int i = 0; i < PAIRS && srq; i++)
		connect_pair(i);
	if (srq)
		run_threads();
	if (atomic_load(&received) == ALL)
		shrink_empty_queues();
	good = !atomic_load(&wrong) && atomic_load(&received) == ALL;
	printf("%s many threads share a receive queue%s\n",
	       good ? "ok" : "FAIL", good ? "" : ": see above");
	printf("%d passed, %d failed, 0 skipped\n", good, !good);
	return !good;
}
