/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * idle_threads THREADS: THREADS threads, each with a queue pair, a completion
 * queue and a completion channel of its own, exchange SENDs in pairs and then
 * sleep in ibv_get_cq_event.  No thread of the process but its first one, which
 * only watches, may wake up within a second.  Then each queue pair sends one
 * SEND and receives one, and one of the two completions must wake the queue
 * pair's thread.
 */
#include "check.h"
#include "endpoint.h"
#include "sleeps.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { THREADS_MAX = 512, ROUNDS = 10, BYTES = 64 };

static struct endpoint ends[THREADS_MAX];
static pthread_t threads[THREADS_MAX];
static pthread_barrier_t barrier;
static atomic_int asleep;

static void post_receive(struct endpoint *e)
{
	struct ibv_sge sge = {(uintptr_t)e->region, BYTES, e->mr->lkey};
	struct ibv_recv_wr *bad, wr = {.sg_list = &sge, .num_sge = 1};

	errno = ibv_post_recv(e->qp, &wr, &bad);
	check_need(!errno, "ibv_post_recv");
}

static void send_one(struct endpoint *e)
{
	struct ibv_sge sge = {(uintptr_t)e->region + BYTES, BYTES, e->mr->lkey};
	struct ibv_send_wr *bad, wr = {.sg_list = &sge,
				       .num_sge = 1,
				       .opcode = IBV_WR_SEND,
				       .send_flags = IBV_SEND_SIGNALED};

	errno = ibv_post_send(e->qp, &wr, &bad);
	check_need(!errno, "ibv_post_send");
}

static void take_completion(struct endpoint *e)
{
	struct ibv_wc wc;

	check_need(endpoint_wait(e, &wc), "a completion");
	check_need(wc.status == IBV_WC_SUCCESS, ibv_wc_status_str(wc.status));
}

/* Arms the completion queue of e, and sleeps until its channel has an event. */
static void sleep_for_event(struct endpoint *e)
{
	struct ibv_cq *cq;
	void *context;

	check_need(!ibv_req_notify_cq(e->cq, 0), "ibv_req_notify_cq");
	atomic_fetch_add(&asleep, 1);
	check_need(!ibv_get_cq_event(e->channel, &cq, &context),
		   "ibv_get_cq_event");
	ibv_ack_cq_events(cq, 1);
}

static void *exchange_and_sleep(void *arg)
{
	struct endpoint *e = arg;

	for (int i = 0; i < ROUNDS; i++) {
		post_receive(e);
		pthread_barrier_wait(&barrier);
		send_one(e);
		take_completion(e);
		take_completion(e);
	}
	post_receive(e);
	pthread_barrier_wait(&barrier);
	sleep_for_event(e);
	return NULL;
}

/* Waits until `count` threads wait for an event, and until a second has passed
 * in which no thread but the caller, the process's first thread, woke up.
 * Returns the value of sleeps_count(). */
static unsigned long await_idle(int count)
{
	unsigned long before, now = 0;

	while (atomic_load(&asleep) < count)
		usleep(1000);
	do {
		before = now;
		sleep(1);
		now = sleeps_count();
	} while (now != before);
	return now;
}

int main(int argc, char **argv)
{
	int count = argc == 2 ? atoi(argv[1]) : 0;
	unsigned long before;

	if (count < 2 || count % 2 || count > THREADS_MAX) {
		fprintf(stderr, "usage: idle_threads THREADS: an even number, "
				"at most 512\n");
		return 2;
	}
	pthread_barrier_init(&barrier, NULL, (unsigned)count);
	for (int i = 0; i < count; i++)
		endpoint_open(&ends[i], IBV_ACCESS_LOCAL_WRITE, 0);
	for (int i = 0; i < count; i += 2)
		endpoint_connect(&ends[i], &ends[i + 1]);
	for (int i = 0; i < count; i++) {
		errno = pthread_create(&threads[i], NULL, exchange_and_sleep,
				       &ends[i]);
		check_need(!errno, "pthread_create");
	}
	before = await_idle(count);
	check_need(before > 0, "/proc/self/task cannot be read");
	sleep(1);
	printf("%lu wake-ups in a second\n", sleeps_count() - before);
	check_need(sleeps_count() == before, "an idle thread woke up");
	for (int i = 0; i < count; i++)
		send_one(&ends[i ^ 1]);
	/* The limit of the suite ends a program whose thread does not wake up.
	 */
	for (int i = 0; i < count; i++)
		pthread_join(threads[i], NULL);
	return 0;
}
