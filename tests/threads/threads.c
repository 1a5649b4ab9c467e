/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * threads: the guarantees of verbs to a program with threads, under
 * ThreadSanitizer.  Both QPs of each connection are in this process.  Prints a
 * line for each case.  This file takes no lock: pthread_create and pthread_join
 * order the accesses to its data, except to the atomic words.
 */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../check.h"
#include "../system/lib/endpoint.h"

#define THREADS 4
#define ROUNDS	200
#define MANY	20000

static void run_threads(int n, void *(*body)(void *), void *arg, size_t step)
{
	pthread_t thread[THREADS];

	for (int i = 0; i < n; i++)
		if (pthread_create(&thread[i], NULL, body,
				   (char *)arg + step * (size_t)i))
			abort();
	for (int i = 0; i < n; i++)
		pthread_join(thread[i], NULL);
}

static int post_request(struct endpoint *e, const struct endpoint *to,
			enum ibv_wr_opcode opcode, uint32_t bytes)
{
	struct ibv_sge sge = {(uintptr_t)e->region, bytes, e->mr->lkey};
	struct ibv_send_wr wr = {.wr_id = 1,
				 .sg_list = &sge,
				 .num_sge = 1,
				 .opcode = opcode,
				 .send_flags = IBV_SEND_SIGNALED};
	struct ibv_send_wr *bad;

	wr.wr.rdma.remote_addr = (uintptr_t)to->region;
	wr.wr.rdma.rkey = to->mr->rkey;
	if (opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
		wr.wr.atomic.remote_addr = (uintptr_t)to->region;
		wr.wr.atomic.rkey = to->mr->rkey;
		wr.wr.atomic.compare_add = 1;
	}
	return ibv_post_send(e->qp, &wr, &bad);
}

static int post_receive(struct endpoint *e)
{
	struct ibv_sge sge = {(uintptr_t)e->region, ENDPOINT_SIZE, e->mr->lkey};
	struct ibv_recv_wr wr = {.wr_id = 2, .sg_list = &sge, .num_sge = 1};
	struct ibv_recv_wr *bad;

	return ibv_post_recv(e->qp, &wr, &bad);
}

static void expect_success(struct endpoint *e)
{
	struct ibv_wc wc = {.status = IBV_WC_GENERAL_ERR};

	EXPECT(endpoint_wait(e, &wc));
	EXPECT(wc.status == IBV_WC_SUCCESS);
}

/* Executes a WRITE, a READ, an atomic and a SEND from e[0] to e[1]. */
static void round_of_work(struct endpoint e[2])
{
	EXPECT(post_request(&e[0], &e[1], IBV_WR_RDMA_WRITE, 5000) == 0);
	EXPECT(post_request(&e[0], &e[1], IBV_WR_RDMA_READ, 3000) == 0);
	EXPECT(post_request(&e[0], &e[1], IBV_WR_ATOMIC_FETCH_AND_ADD, 8) == 0);
	EXPECT(post_receive(&e[1]) == 0);
	EXPECT(post_request(&e[0], &e[1], IBV_WR_SEND, 100) == 0);
	for (int i = 0; i < 4; i++)
		expect_success(&e[0]);
	expect_success(&e[1]);
}

static void *work_apart(void *arg)
{
	struct endpoint e[2];

	(void)arg;
	endpoint_open_pair(e);
	for (int i = 0; i < ROUNDS; i++)
		round_of_work(e);
	endpoint_close_pair(e);
	return NULL;
}

static void threads_work_apart_on_one_device(void)
{
	run_threads(THREADS, work_apart, NULL, 0);
}

/* ---- one queue, several threads ---- */

static struct endpoint shared[2];
static atomic_int polled;

static void *post_many(void *arg)
{
	(void)arg;
	for (int i = 0; i < ROUNDS;) {
		int err = post_request(&shared[0], &shared[1],
				       IBV_WR_RDMA_WRITE, 64);

		EXPECT(!err || err == ENOMEM);
		i += !err;
	}
	return NULL;
}

static void *poll_many(void *arg)
{
	struct ibv_wc wc[4];

	(void)arg;
	while (atomic_load(&polled) < 2 * ROUNDS && !check_is_wrong()) {
		int n = ibv_poll_cq(shared[0].cq, 4, wc);

		EXPECT(n >= 0);
		for (int i = 0; i < n; i++)
			EXPECT(wc[i].status == IBV_WC_SUCCESS);
		atomic_fetch_add(&polled, n > 0 ? n : 0);
	}
	return NULL;
}

static void *post_or_poll(void *arg)
{
	size_t i = (size_t)((char *)arg - (char *)shared);

	return i < 2 ? post_many(NULL) : poll_many(NULL);
}

static void requests_of_two_threads_to_one_queue_pair_all_complete(void)
{
	endpoint_open_pair(shared);
	atomic_store(&polled, 0);
	run_threads(4, post_or_poll, shared, 1);
	EXPECT(polled == 2 * ROUNDS);
	endpoint_close_pair(shared);
}

/* ---- queues of a thread domain ---- */

/* A queue pair and a completion queue of a thread domain. */
struct private_queues {
	struct endpoint e[2]; /* e[0]'s queues are those of the domain */
	struct ibv_pd *pd;    /* e[0]'s protection domain */
	struct ibv_cq *cq;    /* the completion queue that e[0] had first */
	struct ibv_td *td;
	struct ibv_cq_ex *polled;
	struct ibv_qp_ex *posted;
};

static void open_domain(struct private_queues *p)
{
	struct ibv_td_init_attr plain = {0};
	struct ibv_parent_domain_init_attr domain = {0};

	p->td = ibv_alloc_td(p->e[0].ctx, &plain);
	domain.pd = p->pd = p->e[0].pd;
	domain.td = p->td;
	p->e[0].pd = ibv_alloc_parent_domain(p->e[0].ctx, &domain);
	check_need(p->td && p->e[0].pd, "a thread domain");
}

static void open_private(struct private_queues *p)
{
	struct ibv_cq_init_attr_ex cq = {
		.cqe = 2 * ENDPOINT_DEPTH,
		.wc_flags = IBV_WC_EX_WITH_BYTE_LEN,
		.comp_mask = IBV_CQ_INIT_ATTR_MASK_PD,
	};
	struct ibv_qp_init_attr_ex qp = {
		.qp_type = IBV_QPT_RC,
		.sq_sig_all = 1,
		.cap = {ENDPOINT_DEPTH, ENDPOINT_DEPTH, 1, 1, 0},
		.comp_mask =
			IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		.send_ops_flags = IBV_QP_EX_WITH_RDMA_WRITE,
	};
	struct ibv_qp *made;

	for (int i = 0; i < 2; i++)
		endpoint_open(&p->e[i],
			      IBV_ACCESS_LOCAL_WRITE | ENDPOINT_ALL_REMOTE,
			      ENDPOINT_ALL_REMOTE);
	open_domain(p);
	cq.parent_domain = p->e[0].pd;
	p->polled = ibv_create_cq_ex(p->e[0].ctx, &cq);
	check_need(p->polled, "ibv_create_cq_ex");
	p->cq = p->e[0].cq;
	p->e[0].cq = ibv_cq_ex_to_cq(p->polled);
	qp.pd = p->e[0].pd;
	qp.send_cq = qp.recv_cq = p->e[0].cq;
	made = ibv_create_qp_ex(p->e[0].ctx, &qp);
	endpoint_replace_qp(&p->e[0], made, ENDPOINT_ALL_REMOTE);
	p->posted = ibv_qp_to_qp_ex(p->e[0].qp);
	endpoint_connect(&p->e[0], &p->e[1]);
}

static void close_private(struct private_queues *p)
{
	EXPECT(ibv_destroy_qp(p->e[0].qp) == 0);
	EXPECT(ibv_destroy_cq(p->e[0].cq) == 0);
	EXPECT(ibv_dealloc_pd(p->e[0].pd) == 0);
	EXPECT(ibv_dealloc_td(p->td) == 0);
	p->e[0].pd = p->pd;
	p->e[0].cq = p->cq;
	p->e[0] = endpoint_beside(&p->e[0], NULL, 0);
	endpoint_close_pair(p->e);
}

/* Posts a WRITE, and polls for its completion, field by field. */
static void write_by_fields(struct private_queues *p)
{
	struct ibv_poll_cq_attr none = {0};
	int err;

	ibv_wr_start(p->posted);
	p->posted->wr_id = 3;
	p->posted->wr_flags = IBV_SEND_SIGNALED;
	ibv_wr_rdma_write(p->posted, p->e[1].mr->rkey,
			  (uintptr_t)p->e[1].region);
	ibv_wr_set_sge(p->posted, p->e[0].mr->lkey, (uintptr_t)p->e[0].region,
		       64);
	EXPECT(ibv_wr_complete(p->posted) == 0);
	while ((err = ibv_start_poll(p->polled, &none)) == ENOENT)
		;
	EXPECT(err == 0);
	if (err)
		return;
	EXPECT(p->polled->status == IBV_WC_SUCCESS && p->polled->wr_id == 3);
	ibv_end_poll(p->polled);
}

static void *work_privately(void *arg)
{
	struct private_queues *p = arg;

	for (int i = 0; i < ROUNDS / 4; i++) {
		write_by_fields(p);
		round_of_work(p->e);
		/* a message to the queues of the domain */
		EXPECT(post_receive(&p->e[0]) == 0);
		EXPECT(post_request(&p->e[1], &p->e[0], IBV_WR_SEND, 8) == 0);
		expect_success(&p->e[1]);
		expect_success(&p->e[0]);
	}
	return NULL;
}

/* Four threads use queues of their own.  Then four other threads use the same
 * queues, and then four others again. */
static void queues_of_thread_domains_work_and_pass_from_thread_to_thread(void)
{
	static struct private_queues p[THREADS];

	for (int i = 0; i < THREADS; i++)
		open_private(&p[i]);
	for (int i = 0; i < 3; i++)
		run_threads(THREADS, work_privately, p, sizeof(p[0]));
	for (int i = 0; i < THREADS; i++)
		close_private(&p[i]);
}

/* Uses the queues between two calls of another thread.  With ordinary queues
 * the other thread would hold a lock between these calls. */
static void *use_between(void *arg)
{
	struct private_queues *p = arg;

	EXPECT(post_request(&p->e[0], &p->e[1], IBV_WR_RDMA_WRITE, 8) == 0);
	while (ibv_start_poll(p->polled, &(struct ibv_poll_cq_attr){0}))
		;
	EXPECT(p->polled->status == IBV_WC_SUCCESS);
	ibv_end_poll(p->polled);
	return NULL;
}

static void queues_of_a_thread_domain_take_no_lock(void)
{
	struct private_queues p;

	open_private(&p);
	EXPECT(post_request(&p.e[0], &p.e[1], IBV_WR_RDMA_WRITE, 8) == 0);
	while (ibv_start_poll(p.polled, &(struct ibv_poll_cq_attr){0}))
		;
	ibv_wr_start(p.posted);
	/* this thread waits meanwhile: one thread at a time uses the queues */
	run_threads(1, use_between, &p, 0);
	ibv_wr_abort(p.posted);
	ibv_end_poll(p.polled);
	close_private(&p);
}

/* ---- objects come and go during traffic ---- */

static void churn_regions(struct endpoint *e)
{
	char memory[4096];

	for (int i = 0; i < 4 * ROUNDS; i++) {
		struct ibv_mr *mr = ibv_reg_mr(e->pd, memory, sizeof(memory),
					       IBV_ACCESS_LOCAL_WRITE);

		EXPECT(mr);
		EXPECT(!mr || ibv_dereg_mr(mr) == 0);
	}
}

static void churn_queue_pairs(struct endpoint *e)
{
	for (int i = 0; i < ROUNDS; i++) {
		struct ibv_cq *cq = ibv_create_cq(e->ctx, 8, NULL, NULL, 0);
		struct ibv_qp_init_attr init = {.send_cq = cq,
						.recv_cq = cq,
						.qp_type = IBV_QPT_RC,
						.cap = {4, 4, 1, 1, 0}};
		struct ibv_qp *qp = cq ? ibv_create_qp(e->pd, &init) : NULL;

		EXPECT(cq && qp);
		EXPECT(!qp || ibv_destroy_qp(qp) == 0);
		EXPECT(!cq || ibv_destroy_cq(cq) == 0);
	}
}

static void query_objects(struct endpoint *e)
{
	struct ibv_device_attr device;
	struct ibv_port_attr port;

	for (int i = 0; i < ROUNDS; i++) {
		EXPECT(ibv_query_device(e->ctx, &device) == 0);
		EXPECT(ibv_query_port(e->ctx, 1, &port) == 0);
		EXPECT(endpoint_state(e) == IBV_QPS_RTS);
	}
}

static void *churn_objects(void *arg)
{
	switch ((char *)arg - (char *)shared) {
	case 0:
		for (int i = 0; i < ROUNDS; i++)
			round_of_work(shared);
		break;
	case 1:
		churn_regions(&shared[1]);
		break;
	case 2:
		churn_queue_pairs(&shared[0]);
		break;
	default:
		query_objects(&shared[0]);
		break;
	}
	return NULL;
}

static void objects_are_created_and_destroyed_during_traffic(void)
{
	endpoint_open_pair(shared);
	run_threads(4, churn_objects, shared, 1);
	endpoint_close_pair(shared);
}

static void *open_and_close(void *arg)
{
	(void)arg;
	for (int i = 0; i < ROUNDS / 4; i++) {
		struct endpoint e[2];

		endpoint_open_pair(e);
		round_of_work(e);
		endpoint_close_pair(e);
	}
	return NULL;
}

/* The first open starts the library's progress thread, and the last close stops
 * that thread. */
static void two_threads_may_open_and_close_the_device(void)
{
	run_threads(2, open_and_close, NULL, 0);
}

/* ---- events ---- */

struct waiter {
	struct endpoint e[2];
	struct ibv_comp_channel *channel; /* e[1]'s */
};

static void open_waiter(struct waiter *w)
{
	endpoint_open_pair(w->e);
	w->channel = w->e[1].channel;
}

static void close_waiter(struct waiter *w)
{
	endpoint_close_pair(w->e);
}

/* Sleeps until all receives have completed. */
static void *wait_for_receives(void *arg)
{
	struct waiter *w = arg;
	struct ibv_cq *cq;
	struct ibv_wc wc;
	void *context;
	int n, got = 0;

	while (got < ROUNDS) {
		EXPECT(ibv_req_notify_cq(w->e[1].cq, 0) == 0);
		while ((n = ibv_poll_cq(w->e[1].cq, 1, &wc)) > 0) {
			EXPECT(wc.status == IBV_WC_SUCCESS);
			got++;
		}
		if (n < 0 || got >= ROUNDS)
			break;
		if (ibv_get_cq_event(w->channel, &cq, &context))
			break;
		ibv_ack_cq_events(cq, 1);
	}
	EXPECT(got == ROUNDS);
	return NULL;
}

static void *send_slowly(void *arg)
{
	struct waiter *w = arg;

	for (int i = 0; i < ROUNDS; i++) {
		int err;

		/* the queue is full until the sleeper has polled */
		while ((err = post_receive(&w->e[1])) == ENOMEM)
			sched_yield();
		EXPECT(err == 0);
		/* messages of 8 bytes are eager */
		EXPECT(post_request(&w->e[0], &w->e[1], IBV_WR_SEND,
				    i % 3 ? 8 : 1000) == 0);
		expect_success(&w->e[0]);
	}
	return NULL;
}

static void a_thread_sleeps_for_what_another_sends(void)
{
	struct waiter w;
	pthread_t sleeper, sender;

	open_waiter(&w);
	if (pthread_create(&sleeper, NULL, wait_for_receives, &w) ||
	    pthread_create(&sender, NULL, send_slowly, &w))
		abort();
	pthread_join(sender, NULL);
	pthread_join(sleeper, NULL);
	/* events of the last ibv_req_notify_cq */
	while (poll(&(struct pollfd){w.channel->fd, POLLIN, 0}, 1, 0) == 1) {
		struct ibv_cq *cq;
		void *context;

		EXPECT(ibv_get_cq_event(w.channel, &cq, &context) == 0);
		ibv_ack_cq_events(cq, 1);
	}
	close_waiter(&w);
}

/* The number of the completion for which the sleeper is about to sleep. */
static atomic_int sleeping;

static void *count_completions(void *arg)
{
	struct waiter *w = arg;
	struct ibv_cq *cq;
	struct ibv_wc wc;
	void *context;

	for (int got = 0; got < MANY;) {
		atomic_store(&sleeping, got + 1);
		if (ibv_get_cq_event(w->channel, &cq, &context))
			break;
		ibv_ack_cq_events(cq, 1);
		EXPECT(ibv_req_notify_cq(cq, 0) == 0);
		while (ibv_poll_cq(cq, 1, &wc) > 0) {
			EXPECT(wc.status == IBV_WC_SUCCESS);
			got++;
		}
	}
	return NULL;
}

/* Posts before, while and after the other thread goes to sleep. */
static void a_thread_sleeps_for_what_another_posts(void)
{
	pthread_t sleeper;
	struct waiter w;

	open_waiter(&w);
	atomic_store(&sleeping, 0);
	EXPECT(ibv_req_notify_cq(w.e[1].cq, 0) == 0);
	if (pthread_create(&sleeper, NULL, count_completions, &w))
		abort();
	for (int i = 0; i < MANY; i++) {
		while (atomic_load(&sleeping) <= i)
			if (i % 8 == 7)
				sched_yield();
		for (int spins = i % 1024; spins; spins--)
			atomic_load(&sleeping);
		EXPECT(post_request(&w.e[1], &w.e[0], IBV_WR_RDMA_WRITE, 8) ==
		       0);
	}
	pthread_join(sleeper, NULL);
	close_waiter(&w);
}

static void *wait_for_async(void *arg)
{
	struct endpoint *e = arg;
	struct ibv_async_event event;

	EXPECT(ibv_get_async_event(e->ctx, &event) == 0);
	EXPECT(event.event_type == IBV_EVENT_QP_ACCESS_ERR);
	EXPECT(event.element.qp == e->qp);
	ibv_ack_async_event(&event);
	return NULL;
}

static void a_thread_waits_for_an_asynchronous_event(void)
{
	struct endpoint e[2];
	pthread_t waiter;
	struct ibv_wc wc = {.status = IBV_WC_SUCCESS};

	endpoint_open_pair(e);
	if (pthread_create(&waiter, NULL, wait_for_async, &e[1]))
		abort();
	e[1].mr->rkey ^= 0x100;
	EXPECT(post_request(&e[0], &e[1], IBV_WR_RDMA_WRITE, 100) == 0);
	EXPECT(endpoint_wait(&e[0], &wc));
	EXPECT(wc.status == IBV_WC_REM_ACCESS_ERR);
	pthread_join(waiter, NULL);
	endpoint_close_pair(e);
}

/* A direct SEND leaves its completion in the slot of its receive.  ibv_poll_cq
 * collects more completions than the CQ has room for, and the progress thread
 * then raises the event, without other traffic. */
static void a_full_queue_raises_its_event_while_all_threads_sleep(void)
{
	struct pollfd async = {.events = POLLIN};
	struct ibv_async_event event;
	struct ibv_wc wc[4];
	struct endpoint e[2];

	endpoint_open_pair(e);
	EXPECT(ibv_resize_cq(e[1].cq, 1) == 0);
	for (int i = 0; i < 3; i++) {
		EXPECT(post_receive(&e[1]) == 0);
		EXPECT(post_request(&e[0], &e[1], IBV_WR_SEND, 8) == 0);
		/* with packets the CQ overruns at once, and the SEND fails */
		EXPECT(endpoint_wait(&e[0], wc));
		EXPECT(wc->status == IBV_WC_SUCCESS || i);
	}
	usleep(100000);
	EXPECT(ibv_poll_cq(e[1].cq, 4, wc) > 0);
	async.fd = e[1].ctx->async_fd;
	if (poll(&async, 1, ENDPOINT_EVENT_MS) == 1 &&
	    ibv_get_async_event(e[1].ctx, &event) == 0) {
		EXPECT(event.event_type == IBV_EVENT_CQ_ERR);
		ibv_ack_async_event(&event);
	} else {
		EXPECT(false);
	}
	endpoint_close_pair(e);
}

/* ---- queue pairs that fail or are reset under traffic ---- */

static void *fail_the_queue_pair(void *arg)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_ERR};
	struct endpoint *e = arg;

	while (atomic_load(&polled) < ROUNDS / 4 && !check_is_wrong())
		usleep(100);
	EXPECT(ibv_modify_qp(e->qp, &attr, IBV_QP_STATE) == 0);
	return NULL;
}

/* Each posted request completes, with success or flushed. */
static void a_queue_pair_fails_under_a_thread_that_posts(void)
{
	struct endpoint e[2];
	struct ibv_wc wc;
	pthread_t rude;

	endpoint_open_pair(e);
	atomic_store(&polled, 0);
	if (pthread_create(&rude, NULL, fail_the_queue_pair, &e[0]))
		abort();
	for (int i = 0; i < ROUNDS; i++) {
		EXPECT(post_request(&e[0], &e[1], IBV_WR_RDMA_WRITE, 5000) ==
		       0);
		EXPECT(endpoint_wait(&e[0], &wc));
		EXPECT(wc.status == IBV_WC_SUCCESS ||
		       wc.status == IBV_WC_WR_FLUSH_ERR);
		atomic_fetch_add(&polled, 1);
	}
	pthread_join(rude, NULL);
	endpoint_close_pair(e);
}

/* Flushes receives to the CQ that both queue pairs use.  The reset removes the
 * completions of these receives. */
static void *reset_again_and_again(void *arg)
{
	struct ibv_qp_attr fail = {.qp_state = IBV_QPS_ERR};
	struct ibv_qp_attr reset = {.qp_state = IBV_QPS_RESET};
	struct ibv_qp_attr init = {.qp_state = IBV_QPS_INIT, .port_num = 1};
	struct endpoint *e = arg;

	while (atomic_load(&polled) < 1000 * ROUNDS && !check_is_wrong()) {
		for (int i = 0; i < 16; i++)
			EXPECT(post_receive(e) == 0);
		EXPECT(ibv_modify_qp(e->qp, &fail, IBV_QP_STATE) == 0);
		EXPECT(ibv_modify_qp(e->qp, &reset, IBV_QP_STATE) == 0);
		EXPECT(ibv_modify_qp(e->qp, &init,
				     IBV_QP_STATE | IBV_QP_PKEY_INDEX |
					     IBV_QP_PORT |
					     IBV_QP_ACCESS_FLAGS) == 0);
	}
	return NULL;
}

/* Each completion of e[0]'s queue pair, which is not reset, is polled once. */
static void a_queue_pair_is_reset_under_a_thread_that_polls(void)
{
	int flying = 0, got = 0;
	struct endpoint e[2], other;
	struct ibv_wc wc[16];
	pthread_t rude;

	endpoint_open_pair(e);
	other = endpoint_beside(&e[0], NULL, 0);
	atomic_store(&polled, 0);
	if (pthread_create(&rude, NULL, reset_again_and_again, &other))
		abort();
	while ((got < 1000 * ROUNDS || flying) && !check_is_wrong()) {
		int n;

		while (flying < 16 && got < 1000 * ROUNDS) {
			EXPECT(post_request(&e[0], &e[1], IBV_WR_RDMA_WRITE,
					    8) == 0);
			flying++;
		}
		n = ibv_poll_cq(e[0].cq, 16, wc);
		for (int i = 0; i < n; i++) {
			bool ours = wc[i].qp_num == e[0].qp->qp_num;

			EXPECT(ours || wc[i].wr_id == 2);
			flying -= ours;
			got += ours;
		}
		EXPECT(n >= 0 && flying >= 0);
		atomic_store(&polled, got);
	}
	pthread_join(rude, NULL);
	EXPECT(ibv_destroy_qp(other.qp) == 0);
	endpoint_close_pair(e);
}

static void a_forked_child_is_refused_and_its_parent_continues(void)
{
	struct endpoint e[2];
	int status = -1;
	pid_t child;

	endpoint_open_pair(e);
	round_of_work(e);
	child = fork();
	if (!child) {
		bool refused =
			post_request(&e[0], &e[1], IBV_WR_RDMA_WRITE, 8) != 0;

		_exit(refused ? 0 : 1);
	}
	EXPECT(child > 0 && waitpid(child, &status, 0) == child);
	EXPECT(status == 0);
	round_of_work(e);
	endpoint_close_pair(e);
}

int main(void)
{
	check_run("threads work apart on one device",
		  threads_work_apart_on_one_device);
	check_run("requests of two threads to one queue pair all complete",
		  requests_of_two_threads_to_one_queue_pair_all_complete);
	check_run(
		"queues of thread domains work, and pass from thread to thread",
		queues_of_thread_domains_work_and_pass_from_thread_to_thread);
	check_run("queues of a thread domain take no lock",
		  queues_of_a_thread_domain_take_no_lock);
	check_run("objects are created and destroyed during traffic",
		  objects_are_created_and_destroyed_during_traffic);
	check_run("two threads may open and close the device",
		  two_threads_may_open_and_close_the_device);
	check_run("a thread sleeps for a message that another thread sends",
		  a_thread_sleeps_for_what_another_sends);
	check_run("a thread sleeps for a request that another thread posts",
		  a_thread_sleeps_for_what_another_posts);
	check_run("a thread waits for an asynchronous event",
		  a_thread_waits_for_an_asynchronous_event);
	check_run("a full queue raises its event while all threads sleep",
		  a_full_queue_raises_its_event_while_all_threads_sleep);
	check_run("a queue pair fails under a thread that posts",
		  a_queue_pair_fails_under_a_thread_that_posts);
	check_run("a queue pair is reset under a thread that polls",
		  a_queue_pair_is_reset_under_a_thread_that_polls);
	check_run("a forked child is refused and its parent continues",
		  a_forked_child_is_refused_and_its_parent_continues);
	return check_end();
}
