/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * cancelled: a program ends its threads by pthread_cancel, as many do with one
 * that sleeps for completions.  Only where a library may sleep may it end one:
 * whoever is cancelled must leave no lock behind, and nobody to wait for.  Both
 * ends of each connection are in this process.
 */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "../system/ends.h"

#define ROUNDS	   1000
#define STEP_NS	   1000 /* each round cancels so much later than the last */
#define WARM	   50
#define ASLEEP_US  20000
#define PATIENCE_S 120

static struct ends ends[2];

static void die(const char *what)
{
	printf("FAIL %s\n", what);
	exit(1);
}

static void need(bool good, const char *what)
{
	if (!good)
		die(what);
}

static void post(struct ends *e, bool is_send)
{
	struct ibv_sge sge = {(uintptr_t)e->region, 8, e->mr->lkey};
	struct ibv_send_wr send = {.sg_list = &sge,
				   .num_sge = 1,
				   .opcode = IBV_WR_SEND,
				   .send_flags = IBV_SEND_SIGNALED};
	struct ibv_recv_wr receive = {.sg_list = &sge, .num_sge = 1};
	struct ibv_send_wr *bad_send;
	struct ibv_recv_wr *bad_receive;

	if (is_send)
		need(!ibv_post_send(e->qp, &send, &bad_send), "ibv_post_send");
	else
		need(!ibv_post_recv(e->qp, &receive, &bad_receive),
		     "ibv_post_recv");
}

static void arm(struct ends *e)
{
	need(!ibv_req_notify_cq(e->cq, 0), "ibv_req_notify_cq");
}

/* It was armed before there was anything: so there is an event for it. */
static void sleep_for_one(struct ends *e)
{
	struct ibv_cq *cq;
	struct ibv_wc wc;
	void *context;
	int n;

	do {
		need(!ibv_get_cq_event(e->channel, &cq, &context),
		     "ibv_get_cq_event");
		ibv_ack_cq_events(cq, 1);
		arm(e);
	} while (!(n = ibv_poll_cq(e->cq, 1, &wc)));
	need(n == 1 && wc.status == IBV_WC_SUCCESS, "a completion");
}

static void say(struct ends *from, struct ends *to)
{
	post(to, false);
	post(from, true);
	sleep_for_one(to);
	sleep_for_one(from);
}

/* To and fro, until it is cancelled. */
static void *work(void *arg)
{
	(void)arg;
	for (int i = 0; i < 2; i++)
		arm(&ends[i]);
	for (int i = 0;; i = !i)
		say(&ends[i], &ends[!i]);
	return NULL;
}

static void wait_ns(long ns)
{
	struct timespec from, now;

	clock_gettime(CLOCK_MONOTONIC, &from);
	do
		clock_gettime(CLOCK_MONOTONIC, &now);
	while ((now.tv_sec - from.tv_sec) * 1000000000 + now.tv_nsec -
		       from.tv_nsec <
	       ns);
}

struct lone {
	struct ends *other;
	struct ibv_comp_channel *channel;
	atomic_bool sleeps;
};

/* Nothing ever comes there; before, it gets used to minding what comes. */
static void *sleep_alone(void *arg)
{
	struct lone *l = arg;
	struct ibv_cq *cq;
	void *context;

	for (int i = 0; i < WARM; i++)
		say(&l->other[0], &l->other[1]);
	atomic_store(&l->sleeps, true);
	ibv_get_cq_event(l->channel, &cq, &context);
	return NULL;
}

/* Nobody should; but who did had a thread that slept on, and no harm. */
__attribute__((unused)) static void destroy_under_sleeper(struct ends other[2])
{
	struct lone l = {.other = other};
	pthread_t thread;

	l.channel = ibv_create_comp_channel(other[0].ctx);
	need(l.channel, "ibv_create_comp_channel");
	need(!pthread_create(&thread, NULL, sleep_alone, &l), "a thread");
	while (!atomic_load(&l.sleeps))
		usleep(100);
	usleep(ASLEEP_US);
	need(!ibv_destroy_comp_channel(l.channel), "ibv_destroy_comp_channel");
	for (int i = 0; i < WARM; i++)
		say(&other[i % 2], &other[!(i % 2)]);
	pthread_cancel(thread);
	pthread_join(thread, NULL);
}

int main(void)
{
	struct ends other[2];

	alarm(PATIENCE_S);
	ends_open_pair(other);
	arm(&other[0]);
	arm(&other[1]);
	for (int i = 0; i < ROUNDS; i++) {
		pthread_t thread;
		void *how;

		ends_open_pair(ends);
		need(!pthread_create(&thread, NULL, work, NULL), "a thread");
		wait_ns(i * STEP_NS);
		pthread_cancel(thread);
		pthread_join(thread, &how);
		need(how == PTHREAD_CANCELED, "it was cancelled");
		/* another connection goes on, and wakes who sleeps for it */
		say(&other[0], &other[1]);
		ends_close_pair(ends);
	}
	printf("ok a thread is cancelled at any moment\n");
	/* a descriptor closed under its reader is a race, and told of as one */
#ifndef __SANITIZE_THREAD__
	destroy_under_sleeper(other);
#endif
	ends_close_pair(other);
	printf("ok a channel is destroyed under who sleeps for it\n"
	       "2 passed, 0 failed, 0 skipped\n");
	return 0;
}
