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

#include "need.h"
#include "../system/lib/endpoint.h"

#define ROUNDS	   1000
#define STEP_NS	   1000 /* each round cancels so much later than the last */
#define WARM	   50
#define ASLEEP_US  20000
#define PATIENCE_S 120

static struct endpoint endpoint[2];

static void post(struct endpoint *e, bool is_send)
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

static void arm(struct endpoint *e)
{
	need(!ibv_req_notify_cq(e->cq, 0), "ibv_req_notify_cq");
}

/* It was armed before there was anything: so there is an event for it. */
static void sleep_for_one(struct endpoint *e)
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

static void say(struct endpoint *from, struct endpoint *to)
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
		arm(&endpoint[i]);
	for (int i = 0;; i = !i)
		say(&endpoint[i], &endpoint[!i]);
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
	struct endpoint *other;
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
__attribute__((unused)) static void
destroy_under_sleeper(struct endpoint other[2])
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

static const char *call; /* of the thread that will be cancelled */
static atomic_bool is_through;

#define CALL(name, ...) (call = #name, name(__VA_ARGS__))
#define DONE(name, ...) need(!CALL(name, __VA_ARGS__), #name)

/* An event of each kind waits when what it is of is destroyed. */
static void make_queues(struct endpoint *e, struct ibv_pd *pd)
{
	struct ibv_cq *cq = CALL(ibv_create_cq, e->ctx, 8, NULL, e->channel, 0);
	struct ibv_srq_init_attr shared = {.attr = {4, 1, 0}};
	struct ibv_srq *srq = CALL(ibv_create_srq, pd, &shared);
	struct ibv_srq_attr low = {.srq_limit = 2};
	struct ibv_qp_init_attr init = {.send_cq = cq,
					.recv_cq = cq,
					.cap = {4, 4, 1, 1, 0},
					.qp_type = IBV_QPT_RC};
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 1};
	struct ibv_recv_wr receive = {.wr_id = 1}, *bad;
	struct ibv_qp *qp = CALL(ibv_create_qp, pd, &init);

	need(cq && srq && qp, call);
	DONE(ibv_modify_qp, qp, &attr,
	     IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
		     IBV_QP_ACCESS_FLAGS);
	DONE(ibv_req_notify_cq, cq, 0);
	DONE(ibv_post_recv, qp, &receive, &bad);
	attr.qp_state = IBV_QPS_ERR;
	DONE(ibv_modify_qp, qp, &attr, IBV_QP_STATE);
	DONE(ibv_modify_srq, srq, &low, IBV_SRQ_LIMIT);
	DONE(ibv_destroy_qp, qp);
	DONE(ibv_destroy_srq, srq);
	DONE(ibv_destroy_cq, cq);
}

static void make_regions(struct endpoint *e, struct ibv_pd *pd)
{
	static char memory[8192];
	struct ibv_alloc_dm_attr attr = {.length = 64};
	struct ibv_dm *dm = CALL(ibv_alloc_dm, e->ctx, &attr);
	struct ibv_mr *mr = CALL(ibv_reg_mr, pd, memory, sizeof(memory),
				 IBV_ACCESS_LOCAL_WRITE);

	need(dm && mr, call);
	DONE(ibv_rereg_mr, mr, IBV_REREG_MR_CHANGE_TRANSLATION, NULL, memory,
	     4096, 0);
	DONE(ibv_dereg_mr, mr);
	DONE(ibv_free_dm, dm);
}

static void *make_all(void *arg)
{
	struct endpoint *e = arg;
	struct ibv_pd *pd;

	pthread_cancel(pthread_self());
	pd = CALL(ibv_alloc_pd, e->ctx);
	make_queues(e, pd);
	make_regions(e, pd);
	DONE(ibv_dealloc_pd, pd);
	atomic_store(&is_through, true);
	return NULL;
}

static void *open_first(void *device)
{
	struct ibv_context *c;

	pthread_cancel(pthread_self());
	c = CALL(ibv_open_device, device);
	atomic_store(&is_through, true);
	return c;
}

static void cancel_amid(void *(*calls)(void *), void *arg)
{
	pthread_t thread;

	atomic_store(&is_through, false);
	need(!pthread_create(&thread, NULL, calls, arg), "a thread");
	pthread_join(thread, NULL);
	need(atomic_load(&is_through), call);
}

/* None of these sleeps, so none ends its thread. */
static void cancel_makers(void)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct endpoint e[2];

	need(list && *list, "a device");
	cancel_amid(open_first, *list);
	ibv_free_device_list(list);
	endpoint_open_pair(e);
	cancel_amid(make_all, &e[0]);
	endpoint_close_pair(e);
	printf("ok a thread is not cancelled amid what does not sleep\n");
}

int main(void)
{
	struct endpoint other[2];

	alarm(PATIENCE_S);
	cancel_makers();
	endpoint_open_pair(other);
	arm(&other[0]);
	arm(&other[1]);
	for (int i = 0; i < ROUNDS; i++) {
		pthread_t thread;
		void *how;

		endpoint_open_pair(endpoint);
		need(!pthread_create(&thread, NULL, work, NULL), "a thread");
		wait_ns(i * STEP_NS);
		pthread_cancel(thread);
		pthread_join(thread, &how);
		need(how == PTHREAD_CANCELED, "it was cancelled");
		/* another connection continues, and wakes the threads that
		 * sleep for it */
		say(&other[0], &other[1]);
		endpoint_close_pair(endpoint);
	}
	printf("ok a thread is cancelled at any moment\n");
	/* a descriptor closed under its reader is a race, and told of as one */
#ifndef __SANITIZE_THREAD__
	destroy_under_sleeper(other);
#endif
	endpoint_close_pair(other);
	printf("ok a channel is destroyed under who sleeps for it\n"
	       "3 passed, 0 failed, 0 skipped\n");
	return 0;
}
