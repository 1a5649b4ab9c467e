/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * awaiting: requests that wait for a receive of the peer, while threads poll,
 * and while another thread ends the connection.  Both QPs are in this process.
 *
 *	sender, poller      share the sender's QP and completion queue
 *	receiver            posts receives now and then
 *	the main thread     ends the connection in one of several ways
 *
 * Each request ends once, except the requests of a destroyed QP, and each
 * message of a successful request arrives.  Prints a line for each case.
 */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <string.h>

#include "../check.h"
#include "../system/lib/endpoint.h"

#define ROUNDS	    40
#define OUTSTANDING 32 /* requests that the sender has at most at a time */
#define BYTES	    16
#define BURST	    5 /* in turn N the receiver posts N % BURST receives */

static struct {
	struct endpoint from, to;
	atomic_bool is_over;   /* the receiver and the poller must end */
	atomic_bool is_broken; /* a request has failed */
	atomic_bool is_kept;   /* the sender must post nothing more */
	atomic_uint posted;    /* requests that were posted */
	atomic_uint ended;     /* requests that have completed */
	atomic_uint succeeded; /* requests that have completed with success */
	atomic_uint arrived;   /* messages that have arrived */
	atomic_uint strange;   /* completions whose status no case expects */
} now;

static void poll_requests(void)
{
	struct ibv_wc wc[4];
	int n = ibv_poll_cq(now.from.cq, 4, wc);

	NEED(n >= 0);
	for (int i = 0; i < n; i++) {
		if (wc[i].status == IBV_WC_SUCCESS)
			atomic_fetch_add(&now.succeeded, 1);
		else
			atomic_store(&now.is_broken, true);
		if (wc[i].status != IBV_WC_SUCCESS &&
		    wc[i].status != IBV_WC_WR_FLUSH_ERR &&
		    wc[i].status != IBV_WC_RETRY_EXC_ERR)
			atomic_fetch_add(&now.strange, 1);
		atomic_fetch_add(&now.ended, 1);
	}
}

static bool post_send(void)
{
	struct ibv_sge sge = {(uintptr_t)now.from.region, BYTES,
			      now.from.mr->lkey};
	struct ibv_send_wr wr = {.sg_list = &sge,
				 .num_sge = 1,
				 .opcode = IBV_WR_SEND,
				 .send_flags = IBV_SEND_SIGNALED};
	struct ibv_send_wr *bad;

	return !ibv_post_send(now.from.qp, &wr, &bad);
}

static void *run_sender(void *arg)
{
	while (!atomic_load(&now.is_broken) && !atomic_load(&now.is_kept)) {
		while (atomic_load(&now.posted) - atomic_load(&now.ended) <
			       OUTSTANDING &&
		       post_send())
			atomic_fetch_add(&now.posted, 1);
		poll_requests();
	}
	return NULL;
}

static void *run_poller(void *arg)
{
	while (!atomic_load(&now.is_over))
		poll_requests();
	return NULL;
}

static void *run_receiver(void *arg)
{
	struct ibv_sge sge = {(uintptr_t)now.to.region, BYTES, now.to.mr->lkey};
	struct ibv_recv_wr wr = {.sg_list = &sge, .num_sge = 1}, *bad;
	struct ibv_wc wc;

	for (uint32_t turn = 0; !atomic_load(&now.is_over); turn++) {
		for (uint32_t i = 0; i < turn % BURST; i++)
			ibv_post_recv(now.to.qp, &wr, &bad);
		sched_yield();
		while (ibv_poll_cq(now.to.cq, 1, &wc) == 1)
			if (wc.status == IBV_WC_SUCCESS)
				atomic_fetch_add(&now.arrived, 1);
	}
	return NULL;
}

static void connect_ends(void)
{
	struct endpoint_address from, to;
	int all = IBV_ACCESS_LOCAL_WRITE | ENDPOINT_ALL_REMOTE;

	memset(&now, 0, sizeof(now));
	endpoint_open(&now.from, all, ENDPOINT_ALL_REMOTE);
	endpoint_open(&now.to, all, ENDPOINT_ALL_REMOTE);
	endpoint_address_get(&now.from, &from);
	endpoint_address_get(&now.to, &to);
	endpoint_to_rtr(&now.from, &to);
	endpoint_to_rtr(&now.to, &from);
	endpoint_to_rts(&now.from, &from, 7);
	endpoint_to_rts(&now.to, &to, 7);
}

static void enter_error(struct endpoint *e)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_ERR};

	NEED(!ibv_modify_qp(e->qp, &attr, IBV_QP_STATE));
}

static void yield_times(uint32_t n)
{
	while (n--)
		sched_yield();
}

/* Waits until each request has ended and each message of a successful request
 * has arrived. */
static void await_ends(void)
{
	while (atomic_load(&now.ended) < atomic_load(&now.posted))
		poll_requests();
	while (atomic_load(&now.arrived) < atomic_load(&now.succeeded))
		sched_yield();
}

/* Sends until some messages have arrived, and then calls break_off.  @keeps:
 * the sender's thread ends before that call, so that only break_off posts. */
static void send_until(uint32_t round, void (*break_off)(void), bool keeps)
{
	void *(*const bodies[])(void *) = {run_sender, run_poller,
					   run_receiver};
	pthread_t threads[3];

	connect_ends();
	for (int i = 0; i < 3; i++)
		NEED(!pthread_create(&threads[i], NULL, bodies[i], NULL));
	while (atomic_load(&now.arrived) < 20 + round)
		sched_yield();
	yield_times(round % 7);
	atomic_store(&now.is_kept, keeps);
	if (keeps)
		pthread_join(threads[0], NULL);
	break_off();
	if (!keeps) {
		pthread_join(threads[0], NULL);
		await_ends();
	}
	atomic_store(&now.is_over, true);
	pthread_join(threads[1], NULL);
	pthread_join(threads[2], NULL);
	EXPECT(!atomic_load(&now.strange));
	if (!keeps) {
		EXPECT(atomic_load(&now.ended) == atomic_load(&now.posted));
		EXPECT(atomic_load(&now.arrived) <= atomic_load(&now.posted));
	}
	endpoint_close(&now.from);
	endpoint_close(&now.to);
}

static void break_sender(void)
{
	enter_error(&now.from);
}

static void break_receiver(void)
{
	enter_error(&now.to);
}

/* Destroys the sender's QP while its requests wait and threads poll. */
static void destroy_sender(void)
{
	struct ibv_qp *old = now.from.qp;

	await_ends();
	for (int i = 0; i < OUTSTANDING / 2; i++)
		NEED(post_send());
	now.from.qp = endpoint_beside(&now.from, NULL, ENDPOINT_ALL_REMOTE).qp;
	NEED(!ibv_destroy_qp(old));
}

static void a_sender_enters_error_while_its_requests_wait(void)
{
	for (uint32_t i = 0; i < ROUNDS; i++)
		send_until(i, break_sender, false);
}

static void a_receiver_enters_error_while_requests_wait_for_it(void)
{
	for (uint32_t i = 0; i < ROUNDS / 8; i++)
		send_until(i, break_receiver, false);
}

static void a_queue_pair_is_destroyed_while_its_requests_wait(void)
{
	for (uint32_t i = 0; i < ROUNDS; i++)
		send_until(i, destroy_sender, true);
}

int main(void)
{
	check_run("a sender enters ERR while its requests wait",
		  a_sender_enters_error_while_its_requests_wait);
	check_run("a receiver enters ERR while requests wait for it",
		  a_receiver_enters_error_while_requests_wait_for_it);
	check_run("a queue pair is destroyed while its requests wait",
		  a_queue_pair_is_destroyed_while_its_requests_wait);
	return check_end();
}
