/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * cancelled: a program cancels its threads by pthread_cancel, as many programs
 * do with a thread that sleeps for completions.  Only the calls that may sleep
 * may be cancellation points.  A cancelled thread must leave no lock locked,
 * and no thread may wait for the cancelled thread.  Both QPs of each connection
 * are in this process.
 */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "../check.h"
#include "../system/lib/endpoint.h"

#define ROUNDS	  1000
#define STEP_NS	  1000 /* each round cancels later by so much */
#define WARM	  50   /* messages before a wait, and after the wait */
#define PLENTY	  200  /* messages; the most requests that a round awaits */
#define ASLEEP_US 20000

static struct endpoint endpoint[2];

static void post_request(struct endpoint *e, bool is_send)
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
		check_need(!ibv_post_send(e->qp, &send, &bad_send),
			   "ibv_post_send");
	else
		check_need(!ibv_post_recv(e->qp, &receive, &bad_receive),
			   "ibv_post_recv");
}

static void arm_cq(struct endpoint *e)
{
	check_need(!ibv_req_notify_cq(e->cq, 0), "ibv_req_notify_cq");
}

/* Sleeps until the CQ has a completion, and takes the completion.  The CQ must
 * have been armed before the completion came, and is armed afterwards. */
static void sleep_for_completion(struct endpoint *e)
{
	struct ibv_cq *cq;
	struct ibv_wc wc;
	void *context;
	int n;

	do {
		check_need(!ibv_get_cq_event(e->channel, &cq, &context),
			   "ibv_get_cq_event");
		ibv_ack_cq_events(cq, 1);
		arm_cq(e);
	} while (!(n = ibv_poll_cq(e->cq, 1, &wc)));
	check_need(n == 1 && wc.status == IBV_WC_SUCCESS, "a completion");
}

static void send_message(struct endpoint *from, struct endpoint *to)
{
	post_request(to, false);
	post_request(from, true);
	sleep_for_completion(to);
	sleep_for_completion(from);
}

/* Sends messages in both directions until the thread is cancelled. */
static void *send_for_ever(void *arg)
{
	(void)arg;
	for (int i = 0; i < 2; i++)
		arm_cq(&endpoint[i]);
	for (int i = 0;; i = !i)
		send_message(&endpoint[i], &endpoint[!i]);
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

/* A connection that must work after the threads of `endpoint` are cancelled. */
static struct endpoint other[2];

/* ThreadSanitizer reports the close of a descriptor that another thread reads.
 */
#ifndef __SANITIZE_THREAD__
/* A channel without a CQ.  tid: the thread that is about to wait for an event
 * of the channel; 0: not yet. */
struct lone {
	struct ibv_comp_channel *channel;
	atomic_int tid;
};

/* Waits for an event of a channel that gets none.  Sends messages before, so
 * that the wait of this thread makes progress for the whole process. */
static void *sleep_alone(void *arg)
{
	struct lone *l = arg;
	struct ibv_cq *cq;
	void *context;

	for (int i = 0; i < WARM; i++)
		send_message(&other[0], &other[1]);
	atomic_store(&l->tid, gettid());
	ibv_get_cq_event(l->channel, &cq, &context);
	return NULL;
}

/* Returns how often a thread of this process has begun to wait; 0: the thread
 * does not wait now. */
static unsigned long waits_of(int tid)
{
	char path[64], line[128];
	unsigned long waits = 0;
	bool sleeps = false;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/self/task/%d/status", tid);
	f = fopen(path, "re");
	check_need(f, path);
	while (fgets(line, sizeof(line), f)) {
		sleeps |= !strncmp(line, "State:\tS", 8);
		sscanf(line, "voluntary_ctxt_switches: %lu", &waits);
	}
	fclose(f);
	return sleeps ? waits : 0;
}

/* Returns when the thread has waited for ASLEEP_US without a break. */
static void await_sleep(int tid)
{
	unsigned long before;

	do {
		before = waits_of(tid);
		usleep(ASLEEP_US);
	} while (!before || waits_of(tid) != before);
}

/* Destroys a channel while a thread waits for an event of the channel.  The
 * thread waits until it is cancelled, as on hardware, also if it has made
 * progress for the process.  The connection `other` must still work. */
static void a_channel_is_destroyed_while_a_thread_sleeps_for_it(void)
{
	struct lone l = {0};
	pthread_t thread;
	void *how;

	l.channel = ibv_create_comp_channel(other[0].ctx);
	check_need(l.channel, "ibv_create_comp_channel");
	check_need(!pthread_create(&thread, NULL, sleep_alone, &l), "a thread");
	while (!atomic_load(&l.tid))
		usleep(100);
	await_sleep(atomic_load(&l.tid));
	check_need(!ibv_destroy_comp_channel(l.channel),
		   "ibv_destroy_comp_channel");
	for (int i = 0; i < WARM; i++)
		send_message(&other[i % 2], &other[!(i % 2)]);
	pthread_cancel(thread);
	pthread_join(thread, &how);
	check_need(how == PTHREAD_CANCELED, "the thread waited");
}
#endif

static const char *call; /* the latest call of the thread of cancel_in */
static atomic_bool is_through;

#define CALL(name, ...) (call = #name, name(__VA_ARGS__))
#define DONE(name, ...) check_need(!CALL(name, __VA_ARGS__), #name)

/* Creates and destroys a CQ, an SRQ and a QP.  When they are destroyed, an
 * event of the CQ and an event of the SRQ are still unread. */
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

	check_need(cq && srq && qp, call);
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

	check_need(dm && mr, call);
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

/* Sends messages with calls that do not sleep, and polls for them. */
static void *post_and_poll(void *arg)
{
	struct endpoint *e = arg;
	struct ibv_wc wc;

	pthread_cancel(pthread_self());
	for (int i = 0; i < PLENTY; i++) {
		call = "ibv_post_recv";
		post_request(&e[1], false);
		call = "ibv_post_send";
		post_request(&e[0], true);
		for (int k = 0; k < 2; k++)
			while (!CALL(ibv_poll_cq, e[k].cq, 1, &wc))
				DONE(ibv_req_notify_cq, e[k].cq, 0);
	}
	atomic_store(&is_through, true);
	return NULL;
}

/* Gets the process's first list of devices, for which the library finds the
 * interfaces and writes the files of the devices. */
static void *list_devices(void *arg)
{
	pthread_cancel(pthread_self());
	*(struct ibv_device ***)arg = CALL(ibv_get_device_list, NULL);
	atomic_store(&is_through, true);
	return NULL;
}

static void *open_device(void *device)
{
	struct ibv_context *c;

	pthread_cancel(pthread_self());
	c = CALL(ibv_open_device, device);
	atomic_store(&is_through, true);
	return c;
}

/* Runs calls(arg) in a thread that is cancelled before its first call.  The
 * thread must get through all calls.  Returns what calls(arg) returns. */
static void *cancel_in(void *(*calls)(void *), void *arg)
{
	pthread_t thread;
	void *result;

	atomic_store(&is_through, false);
	check_need(!pthread_create(&thread, NULL, calls, arg), "a thread");
	pthread_join(thread, &result);
	check_need(atomic_load(&is_through), call);
	return result;
}

/* Calls that create or destroy objects, post or poll do not sleep, so they are
 * not cancellation points. */
static void calls_that_do_not_sleep_are_not_cancelled(void)
{
	struct ibv_device **list = NULL;
	struct ibv_context *c;
	struct endpoint e[2];

	cancel_in(list_devices, &list);
	check_need(list && *list, "a device");
	c = cancel_in(open_device, *list);
	check_need(c && c != PTHREAD_CANCELED, "ibv_open_device");
	check_need(!ibv_close_device(c), "ibv_close_device");
	ibv_free_device_list(list);
	endpoint_open_pair(e);
	cancel_in(make_all, &e[0]);
	cancel_in(post_and_poll, e);
	endpoint_close_pair(e);
}

/* How many requests all threads of a case have posted, and polled. */
static atomic_int posted, polled;

static void poll_once(struct endpoint *e)
{
	struct ibv_wc wc;
	int n = ibv_poll_cq(e->cq, 1, &wc);

	check_need(n >= 0 && (!n || wc.status == IBV_WC_SUCCESS),
		   "a completion");
	atomic_fetch_add(&polled, n);
}

static void write_once(struct endpoint *e, const struct endpoint *to)
{
	struct ibv_sge sge = {(uintptr_t)e->region, 8, e->mr->lkey};
	struct ibv_send_wr *bad, wr = {.sg_list = &sge,
				       .num_sge = 1,
				       .opcode = IBV_WR_RDMA_WRITE,
				       .send_flags = IBV_SEND_SIGNALED};

	wr.wr.rdma.remote_addr = (uintptr_t)to->region;
	wr.wr.rdma.rkey = to->mr->rkey;
	check_need(!ibv_post_send(e->qp, &wr, &bad), "ibv_post_send");
	atomic_fetch_add(&posted, 1);
}

/* Posts and polls; may be cancelled between any two of these calls. */
static void *write_for_ever(void *arg)
{
	for (;;) {
		pthread_testcancel();
		if (atomic_load(&posted) - atomic_load(&polled) <
		    ENDPOINT_DEPTH / 2)
			write_once(&endpoint[0], &endpoint[1]);
		pthread_testcancel();
		poll_once(&endpoint[0]);
	}
	return arg;
}

/* Cancels threads that share the queues with this thread: one in each round,
 * after 1 to PLENTY requests or a few more.  This thread then polls the
 * requests that the cancelled thread left, and posts as before. */
static void a_cancelled_thread_leaves_its_queues_to_the_others(void)
{
	endpoint_open_pair(endpoint);
	atomic_store(&posted, 0);
	atomic_store(&polled, 0);
	for (int i = 0; i < ROUNDS / 4; i++) {
		int before = atomic_load(&posted);
		pthread_t thread;

		check_need(!pthread_create(&thread, NULL, write_for_ever, NULL),
			   "a thread");
		while (atomic_load(&posted) - before < 1 + i % PLENTY)
			poll_once(&endpoint[0]);
		pthread_cancel(thread);
		pthread_join(thread, NULL);
		write_once(&endpoint[0], &endpoint[1]);
		while (atomic_load(&polled) < atomic_load(&posted))
			poll_once(&endpoint[0]);
	}
	endpoint_close_pair(endpoint);
}

/* Cancels a thread after i * STEP_NS.  Completions of the connection `other`
 * must then still wake this thread. */
static void cancel_after(int i)
{
	pthread_t thread;
	void *how;

	endpoint_open_pair(endpoint);
	check_need(!pthread_create(&thread, NULL, send_for_ever, NULL),
		   "a thread");
	wait_ns(i * STEP_NS);
	pthread_cancel(thread);
	pthread_join(thread, &how);
	check_need(how == PTHREAD_CANCELED, "the thread was cancelled");
	send_message(&other[0], &other[1]);
	endpoint_close_pair(endpoint);
}

static void a_thread_is_cancelled_at_any_moment(void)
{
	for (int i = 0; i < ROUNDS; i++)
		cancel_after(i);
}

int main(void)
{
	check_run("calls that do not sleep are not cancelled",
		  calls_that_do_not_sleep_are_not_cancelled);
	endpoint_open_pair(other);
	arm_cq(&other[0]);
	arm_cq(&other[1]);
	check_run("a thread is cancelled at any moment",
		  a_thread_is_cancelled_at_any_moment);
	check_run("a cancelled thread leaves its queues to the others",
		  a_cancelled_thread_leaves_its_queues_to_the_others);
#ifndef __SANITIZE_THREAD__
	check_run("a channel is destroyed while a thread sleeps for it",
		  a_channel_is_destroyed_while_a_thread_sleeps_for_it);
#endif
	endpoint_close_pair(other);
	return check_end();
}
