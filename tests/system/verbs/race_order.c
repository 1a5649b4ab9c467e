/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * race_order: a program of several threads, built with ThreadSanitizer.
 * Accesses that posting and polling order are no race, and must not be
 * reported.  Unordered accesses are a race, and must be reported.  Both ends of
 * each connection are in this process.
 *
 *	race_order                ordered accesses; prints a line per case
 *	race_order race-posting   a race during posting by ibv_wr_*
 *	race_order race-polling   a race during polling by ibv_start_poll
 *
 * The threads count their progress with relaxed atomics, so that only the verbs
 * order their accesses.
 */
#include <pthread.h>
#include <rdma/rdma_cma.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "endpoint.h"

enum {
	ROUNDS = 2000,
	AHEAD = ENDPOINT_DEPTH / 4, /* requests outstanding at most */
	INLINE = 64,
	FACT = 3,
};

/* The object to which a request's wr_id points: the posting thread creates it,
 * and the polling thread frees it. */
struct job {
	int number;
	char text[INLINE];
};

static struct endpoint e[2]; /* requests go from the first to the second */
static int facts[ROUNDS];
static struct job *receives[ROUNDS + ENDPOINT_DEPTH];
static atomic_int done;
static bool begun;

static int load_count(atomic_int *what)
{
	return atomic_load_explicit(what, memory_order_relaxed);
}

static void add_one(atomic_int *what)
{
	atomic_fetch_add_explicit(what, 1, memory_order_relaxed);
}

static void wait_for_room(int posted)
{
	while (posted - load_count(&done) >= AHEAD)
		sched_yield();
}

static struct ibv_wc next_completion(struct endpoint *end)
{
	struct ibv_wc wc;

	NEED(endpoint_wait(end, &wc) && wc.status == IBV_WC_SUCCESS);
	return wc;
}

static struct job *job_new(int number)
{
	struct job *job = malloc(sizeof(*job));

	job->number = number;
	snprintf(job->text, sizeof(job->text), "job %d", number);
	return job;
}

static void job_end(struct job *job, int number)
{
	char text[INLINE];

	snprintf(text, sizeof(text), "job %d", number);
	NEED(job->number == number && !strcmp(job->text, text));
	free(job);
}

static void run_beside(void *(*other)(void *), void (*own)(void))
{
	pthread_t thread;

	endpoint_open_pair(e);
	atomic_store(&done, 0);
	pthread_create(&thread, NULL, other, NULL);
	own();
	pthread_join(thread, NULL);
	endpoint_close_pair(e);
}

/* ---- the object that wr_id points to ---- */

static void *end_jobs(void *arg)
{
	for (int i = 0; i < ROUNDS; i++) {
		job_end((void *)(uintptr_t)next_completion(&e[0]).wr_id, i);
		add_one(&done);
	}
	return arg;
}

static void write_jobs(void)
{
	struct ibv_sge sge = {(uintptr_t)e[0].region, 4096, e[0].mr->lkey};
	struct ibv_send_wr wr = {
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = IBV_WR_RDMA_WRITE,
		.send_flags = IBV_SEND_SIGNALED,
		.wr.rdma = {(uintptr_t)e[1].region, e[1].mr->rkey}};
	struct ibv_send_wr *bad;

	for (int i = 0; i < ROUNDS; i++) {
		wait_for_room(i);
		wr.wr_id = (uintptr_t)job_new(i);
		NEED(!ibv_post_send(e[0].qp, &wr, &bad));
	}
}

static void a_poll_comes_after_the_post_of_its_request(void)
{
	run_beside(end_jobs, write_jobs);
}

/* ---- stores before a message is sent, and the memory of its receive ---- */

static void post_receive(int i)
{
	struct job *job = job_new(i);
	struct ibv_recv_wr wr = {.wr_id = (uintptr_t)job}, *bad;

	receives[i] = job;
	NEED(!ibv_post_recv(e[1].qp, &wr, &bad));
}

static void message_is(const struct ibv_wc *wc, int i)
{
	NEED((int)wc->imm_data == i && facts[i] == i * FACT);
	NEED(receives[i] == (void *)(uintptr_t)wc->wr_id);
	job_end(receives[i], i);
	post_receive(i + ENDPOINT_DEPTH);
	add_one(&done);
}

static void *take_messages(void *arg)
{
	for (int i = 0; i < ROUNDS; i++) {
		struct ibv_wc wc = next_completion(&e[1]);

		message_is(&wc, i);
	}
	return arg;
}

static void send_messages(void)
{
	struct ibv_send_wr wr = {.opcode = IBV_WR_SEND_WITH_IMM,
				 .send_flags =
					 IBV_SEND_SIGNALED | IBV_SEND_INLINE};
	struct ibv_send_wr *bad;

	begun = true;
	for (int i = 0; i < ROUNDS; i++) {
		wait_for_room(i);
		facts[i] = i * FACT;
		wr.imm_data = (uint32_t)i;
		NEED(!ibv_post_send(e[0].qp, &wr, &bad));
		next_completion(&e[0]);
	}
}

static void receives_are_there(void *(*take)(void *))
{
	pthread_t thread;

	endpoint_open_pair(e);
	atomic_store(&done, 0);
	memset(facts, 0, sizeof(facts));
	pthread_create(&thread, NULL, take, NULL);
	for (int i = 0; i < ENDPOINT_DEPTH; i++)
		post_receive(i);
	send_messages();
	pthread_join(thread, NULL);
	endpoint_close_pair(e);
	for (int i = ROUNDS; i < ROUNDS + ENDPOINT_DEPTH; i++)
		job_end(receives[i], i);
}

static void a_poll_comes_after_the_stores_before_a_message(void)
{
	receives_are_there(take_messages);
}

/* Sleeps until the event of a message.  The stores that precede the message
 * must be visible after the event, even before a poll. */
static void sleep_on_channel(void)
{
	struct ibv_cq *cq;
	void *context;

	NEED(!ibv_get_cq_event(e[1].channel, &cq, &context) && begun);
	ibv_ack_cq_events(cq, 1);
}

static void *sleep_for_messages(void *arg)
{
	struct ibv_wc wc;
	int i = 0;

	for (;;) {
		NEED(!ibv_req_notify_cq(e[1].cq, 0));
		while (ibv_poll_cq(e[1].cq, 1, &wc) > 0)
			message_is(&wc, i++);
		if (i == ROUNDS)
			return arg;
		sleep_on_channel();
	}
}

static void an_event_comes_after_the_stores_before_a_message(void)
{
	receives_are_there(sleep_for_messages);
}

/* ---- ibv_wr_* and ibv_start_poll, with two threads that post ---- */

static struct ibv_cq_ex *cq_ex;
static atomic_int posted;

static void ex_open(void)
{
	struct ibv_cq_init_attr_ex init = {.cqe = 4 * ENDPOINT_DEPTH};
	struct ibv_qp_init_attr_ex attr = {
		.qp_type = IBV_QPT_RC,
		.comp_mask =
			IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		.send_ops_flags = IBV_QP_EX_WITH_RDMA_WRITE,
		.cap = {.max_send_wr = ENDPOINT_DEPTH,
			.max_recv_wr = 1,
			.max_send_sge = 1,
			.max_recv_sge = 1,
			.max_inline_data = INLINE},
	};

	for (int i = 0; i < 2; i++)
		endpoint_open(&e[i],
			      IBV_ACCESS_LOCAL_WRITE | ENDPOINT_ALL_REMOTE,
			      ENDPOINT_ALL_REMOTE);
	cq_ex = ibv_create_cq_ex(e[0].ctx, &init);
	attr.pd = e[0].pd;
	attr.send_cq = attr.recv_cq = ibv_cq_ex_to_cq(cq_ex);
	endpoint_replace_qp(&e[0], ibv_create_qp_ex(e[0].ctx, &attr),
			    ENDPOINT_ALL_REMOTE);
	endpoint_connect(&e[0], &e[1]);
	atomic_store(&done, 0);
	atomic_store(&posted, 0);
}

static void ex_close(void)
{
	struct ibv_qp_init_attr plain = {
		.send_cq = e[0].cq,
		.recv_cq = e[0].cq,
		.qp_type = IBV_QPT_RC,
		.cap = {.max_send_wr = 1},
	};

	endpoint_replace_qp(&e[0], ibv_create_qp(e[0].pd, &plain), 0);
	NEED(!ibv_destroy_cq(ibv_cq_ex_to_cq(cq_ex)));
	endpoint_close_pair(e);
}

static void wr_begin(struct ibv_qp_ex *qp, const struct job *job)
{
	ibv_wr_start(qp);
	qp->wr_id = (uintptr_t)job;
	qp->wr_flags = IBV_SEND_SIGNALED;
	ibv_wr_rdma_write(qp, e[1].mr->rkey, (uintptr_t)e[1].region);
	ibv_wr_set_inline_data(qp, (void *)(uintptr_t)job->text,
			       (size_t)(16 + job->number % 32));
}

static void *write_ex(void *arg)
{
	struct ibv_qp_ex *qp = ibv_qp_to_qp_ex(e[0].qp);

	for (int i = 0; i < ROUNDS; i++) {
		wait_for_room(load_count(&posted));
		wr_begin(qp, job_new(i));
		NEED(!ibv_wr_complete(qp));
		add_one(&posted);
	}
	return arg;
}

static void *end_jobs_ex(void *arg)
{
	struct ibv_poll_cq_attr none = {0};

	for (int i = 0; i < 2 * ROUNDS;) {
		if (ibv_start_poll(cq_ex, &none))
			continue;
		do {
			struct job *job = (void *)(uintptr_t)cq_ex->wr_id;

			job_end(job, job->number);
			add_one(&done);
			i++;
		} while (!ibv_next_poll(cq_ex));
		ibv_end_poll(cq_ex);
	}
	return arg;
}

static void ibv_wr_and_start_poll_order_accesses(void)
{
	pthread_t thread[3];

	ex_open();
	pthread_create(&thread[0], NULL, end_jobs_ex, NULL);
	pthread_create(&thread[1], NULL, write_ex, NULL);
	pthread_create(&thread[2], NULL, write_ex, NULL);
	for (int i = 0; i < 3; i++)
		pthread_join(thread[i], NULL);
	ex_close();
}

/* ---- rdma_cm: a thread takes the events of another thread's calls ---- */

static struct rdma_cm_event *event_of(struct rdma_event_channel *c,
				      enum rdma_cm_event_type type)
{
	struct rdma_cm_event *event = NULL;

	NEED(!rdma_get_cm_event(c, &event) && event->event == type);
	return event;
}

static void *take_events(void *channel)
{
	static const enum rdma_cm_event_type types[] = {
		RDMA_CM_EVENT_ADDR_RESOLVED, RDMA_CM_EVENT_ROUTE_RESOLVED};

	for (size_t i = 0; i < 2; i++) {
		struct rdma_cm_event *event = event_of(channel, types[i]);
		struct job *job = event->id->context;

		NEED(job->number == (int)i);
		job->number++;
		rdma_ack_cm_event(event);
		add_one(&done);
	}
	return NULL;
}

static void an_event_comes_after_the_call_that_caused_it(void)
{
	struct rdma_event_channel *channel = rdma_create_event_channel();
	struct sockaddr_in to = {.sin_family = AF_INET,
				 .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
				 .sin_port = htons(9)};
	struct rdma_cm_id *id;
	struct job *job;
	pthread_t thread;

	atomic_store(&done, 0);
	pthread_create(&thread, NULL, take_events, channel);
	job = job_new(0);
	NEED(!rdma_create_id(channel, &id, job, RDMA_PS_TCP));
	NEED(!rdma_resolve_addr(id, NULL, (struct sockaddr *)&to, 60000));
	while (!load_count(&done))
		sched_yield();
	NEED(!rdma_resolve_route(id, 60000));
	pthread_join(thread, NULL);
	NEED(job->number == 2);
	NEED(!rdma_destroy_id(id));
	rdma_destroy_event_channel(channel);
	free(job);
}

/* ---- the program's own races ---- */

static int shared;

static void *touch_shared(void *arg)
{
	shared++;
	return arg;
}

static void touch_while_posting(void)
{
	struct ibv_qp_ex *qp = ibv_qp_to_qp_ex(e[0].qp);

	wr_begin(qp, job_new(0));
	shared++;
	ibv_wr_abort(qp);
}

static void touch_while_polling(void)
{
	struct ibv_qp_ex *qp = ibv_qp_to_qp_ex(e[0].qp);
	struct ibv_poll_cq_attr none = {0};

	wr_begin(qp, job_new(0));
	NEED(!ibv_wr_complete(qp));
	while (ibv_start_poll(cq_ex, &none))
		;
	shared++;
	ibv_end_poll(cq_ex);
}

static int run_race(void (*how)(void))
{
	pthread_t thread;

	ex_open();
	pthread_create(&thread, NULL, touch_shared, NULL);
	how();
	pthread_join(thread, NULL);
	return 0;
}

int main(int argc, char **argv)
{
	if (argc > 1 && !strcmp(argv[1], "race-posting"))
		return run_race(touch_while_posting);
	if (argc > 1 && !strcmp(argv[1], "race-polling"))
		return run_race(touch_while_polling);
	check_run("the post of a request happens before its poll",
		  a_poll_comes_after_the_post_of_its_request);
	check_run("stores before a message happen before its poll",
		  a_poll_comes_after_the_stores_before_a_message);
	check_run("stores before a message happen before its wake-up",
		  an_event_comes_after_the_stores_before_a_message);
	check_run("ibv_wr_* and ibv_start_poll order accesses",
		  ibv_wr_and_start_poll_order_accesses);
	check_run("a call of rdma_cm happens before the event that it causes",
		  an_event_comes_after_the_call_that_caused_it);
	return check_end();
}
