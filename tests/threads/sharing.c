/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * sharing: threads that share one queue pair, completion queue, shared receive
 * queue or completion channel.  The passive process is forked before either
 * process opens a device.  Both processes run the same cases, one after
 * another:
 *
 * active process                     passive process
 * threads post, threads poll         has memory, or threads that post
 *                                    receives, poll or sleep
 *
 * Each request and each message has a number, and must end once.  Prints a line
 * for each case.
 */
#include <errno.h>
#include <pthread.h>
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

#include "../check.h"
#include "../system/lib/endpoint.h"

#define LINKS_MAX   4
#define MANY	    200 /* threads of the last case */
#define MANY_ROUNDS 20
#define MESSAGES    4000 /* of a case; one case has SLEEPERS more messages */
#define SLEEPERS    3
#define BATCH	    4
#define UNPOLLED    200 /* receives whose completions the CQ has room for */
#define NUMBERS	    (MESSAGES + SLEEPERS + LINKS_MAX)
#define CASES	    7
#define WORD	    8

/* The progress of the two processes in a case.  No word ever decreases. */
struct meeting {
	struct endpoint_address active[LINKS_MAX], passive[LINKS_MAX];
	atomic_bool is_active;	  /* `active` is written */
	atomic_bool is_passive;	  /* `passive` is written */
	atomic_bool is_connected; /* the passive process can receive */
	atomic_bool is_over;	  /* the active process has ended the case */
	atomic_bool is_left;	  /* the passive process has ended the case */
	atomic_uint ended;	  /* requests that the active process polled */
	atomic_uint received;	  /* messages that the passive process polled */
	atomic_uint fed; /* the number of the next receive to be posted */
	/* By number: how often each request ended, how often each message
	 * arrived, and how often each receive ended. */
	_Atomic uint8_t requests[NUMBERS], messages[NUMBERS], receives[NUMBERS];
};

/* A case: how many queue pairs and threads the active process has, and what the
 * threads share. */
struct plan {
	const char *name;
	uint32_t links, posters, pollers;
	bool sends;	      /* SENDs; else WRITEs */
	bool shares_receives; /* the passive process has one receive queue */
	bool has_queues;      /* each link has a completion queue of its own */
};

static struct meeting *meetings;
static struct meeting *m; /* the meeting of the present case */
static const struct plan *plan;
static struct endpoint ends[LINKS_MAX]; /* the ends of this process */
static struct ibv_srq *srq;
static pid_t peer; /* the other process */
static bool is_passive;

/* Returns whether the other process has ended.  If that process is the child,
 * main can still get its status by waitpid. */
static bool has_peer_ended(void)
{
	siginfo_t info = {0};

	if (is_passive)
		return getppid() != peer;
	return waitid(P_PID, (id_t)peer, &info, WEXITED | WNOHANG | WNOWAIT) ||
	       info.si_pid;
}

/* Ends the program if the other process has ended. */
static void need_peer(void)
{
	if (has_peer_ended())
		check_need(false, "the other process");
}

/* Waits until the other process has set the word.  Ends the program if that
 * process has ended and has not set the word.  The word is loaded again after
 * the end is known, because the process may have set the word and then ended
 * between the first load and the look at the process. */
static void wait_for(atomic_bool *word)
{
	while (!atomic_load(word)) {
		if (has_peer_ended() && !atomic_load(word))
			check_need(false, "the other process");
		usleep(100);
	}
}

/* ---- connections ---- */

/* Opens an end for each link; all but the first share objects of the first. */
static void open_ends(struct endpoint_address *self, bool shares_receives,
		      bool has_queues)
{
	struct ibv_srq_init_attr init = {.attr = {ENDPOINT_DEPTH, 1, 0}};
	struct endpoint first;

	endpoint_open(&ends[0], IBV_ACCESS_LOCAL_WRITE | ENDPOINT_ALL_REMOTE,
		      ENDPOINT_ALL_REMOTE);
	first = ends[0];
	srq = shares_receives ? ibv_create_srq(first.pd, &init) : NULL;
	check_need(srq || !shares_receives, "ibv_create_srq");
	for (uint32_t i = 0; i < plan->links; i++) {
		if (has_queues && i)
			first.cq = ibv_create_cq(first.ctx, 4 * ENDPOINT_DEPTH,
						 NULL, first.channel, 0);
		check_need(first.cq, "ibv_create_cq");
		if (srq && !i)
			check_need(!ibv_destroy_qp(ends[0].qp),
				   "ibv_destroy_qp");
		if (srq || i)
			ends[i] = endpoint_beside(&first, srq,
						  ENDPOINT_ALL_REMOTE);
		endpoint_address_get(&ends[i], &self[i]);
	}
}

static void close_ends(void)
{
	for (uint32_t i = plan->links - 1; i; i--) {
		check_need(!ibv_destroy_qp(ends[i].qp), "ibv_destroy_qp");
		if (ends[i].cq != ends[0].cq)
			check_need(!ibv_destroy_cq(ends[i].cq),
				   "ibv_destroy_cq");
	}
	if (srq) {
		check_need(!ibv_destroy_qp(ends[0].qp), "ibv_destroy_qp");
		check_need(!ibv_destroy_srq(srq), "ibv_destroy_srq");
		ends[0] = endpoint_beside(&ends[0], NULL, 0);
	}
	endpoint_close(&ends[0]);
}

static void connect_ends(const struct endpoint_address *self,
			 const struct endpoint_address *other)
{
	for (uint32_t i = 0; i < plan->links; i++) {
		endpoint_to_rtr(&ends[i], &other[i]);
		endpoint_to_rts(&ends[i], &self[i], 7);
	}
}

/* ---- threads ---- */

static void start_threads(pthread_t *threads, uint32_t count,
			  void *(*body)(void *))
{
	for (uintptr_t i = 0; i < count; i++)
		check_need(!pthread_create(&threads[i], NULL, body, (void *)i),
			   "pthread_create");
}

static void join_threads(const pthread_t *threads, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
		pthread_join(threads[i], NULL);
}

/* Notes that number i has ended, and fails if the number had ended before. */
static void end_once(_Atomic uint8_t *ended, uint64_t i)
{
	check_need(i < NUMBERS, "a known number");
	check_need(!atomic_fetch_add(&ended[i], 1), "a number that ends once");
}

/* Posts request i: a SEND with the number as its immediate, or a WRITE to word
 * i modulo ENDPOINT_SIZE / WORD of the peer's region.  The number is in the
 * wr_id of each request, but not in the bytes of a WRITE. */
static int post_number(struct endpoint *e, uint32_t i)
{
	uint32_t at = i % (ENDPOINT_SIZE / WORD) * WORD;
	uint64_t address = m->passive[e - ends].region + at;
	struct ibv_sge sge = {(uintptr_t)e->region + at, WORD, e->mr->lkey};
	struct ibv_send_wr *bad, wr = {.wr_id = i,
				       .sg_list = &sge,
				       .num_sge = 1,
				       .imm_data = i,
				       .send_flags = IBV_SEND_SIGNALED};

	wr.opcode = plan->sends ? IBV_WR_SEND_WITH_IMM : IBV_WR_RDMA_WRITE;
	wr.wr.rdma.remote_addr = address;
	wr.wr.rdma.rkey = m->passive[e - ends].rkey;
	return ibv_post_send(e->qp, &wr, &bad);
}

/* Waits until the queue has room, and posts request i. */
static void post_soon(struct endpoint *e, uint32_t i)
{
	int err;

	while ((err = post_number(e, i)) == ENOMEM)
		sched_yield();
	errno = err;
	check_need(!err, "ibv_post_send");
}

/* Polls requests of any thread.  Returns how many have ended. */
static uint32_t poll_requests(struct endpoint *e)
{
	struct ibv_wc wc[BATCH];
	int n = ibv_poll_cq(e->cq, BATCH, wc);

	check_need(n >= 0, "ibv_poll_cq");
	for (int k = 0; k < n; k++) {
		check_need(wc[k].status == IBV_WC_SUCCESS,
			   ibv_wc_status_str(wc[k].status));
		end_once(m->requests, wc[k].wr_id);
	}
	atomic_fetch_add(&m->ended, (uint32_t)n);
	return (uint32_t)n;
}

static void *post_requests(void *arg)
{
	uint32_t me = (uint32_t)(uintptr_t)arg;

	for (uint32_t i = me; i < MESSAGES; i += plan->posters)
		post_soon(&ends[me % plan->links], i);
	return NULL;
}

static void *poll_all_requests(void *arg)
{
	while (atomic_load(&m->ended) < MESSAGES) {
		need_peer();
		if (!poll_requests(&ends[0]))
			sched_yield();
	}
	return arg;
}

/* Posts a request and polls until it has ended, again and again. */
static void *post_and_poll(void *arg)
{
	uint32_t me = (uint32_t)(uintptr_t)arg;
	struct endpoint *e = &ends[me % plan->links];

	for (uint32_t i = me; i < MANY * MANY_ROUNDS; i += MANY) {
		while (post_number(e, i))
			poll_requests(e);
		while (!atomic_load(&m->requests[i]))
			poll_requests(e);
	}
	return NULL;
}

/* ---- the passive process's threads ---- */

static int post_receive(struct endpoint *e, uint32_t i)
{
	struct ibv_sge sge = {(uintptr_t)e->region, ENDPOINT_SIZE, e->mr->lkey};
	struct ibv_recv_wr wr = {.wr_id = i, .sg_list = &sge, .num_sge = 1};
	struct ibv_recv_wr *bad;

	return srq ? ibv_post_srq_recv(srq, &wr, &bad)
		   : ibv_post_recv(e->qp, &wr, &bad);
}

/* A shared receive queue has room again as soon as a message has taken a
 * receive.  The completion of that receive needs room in the completion queue
 * until it is polled, so this thread also waits for polls. */
static void *post_receives(void *arg)
{
	uint32_t i;
	int err;

	while ((i = atomic_fetch_add(&m->fed, 1)) < MESSAGES) {
		while (i >= atomic_load(&m->received) + UNPOLLED)
			sched_yield();
		while ((err = post_receive(&ends[0], i)) == ENOMEM)
			sched_yield();
		check_need(!err, "a posted receive");
	}
	return arg;
}

/* Polls messages.  Returns how many came, and sets *last to the number of the
 * last one. */
static uint32_t poll_messages(struct endpoint *e, uint32_t *last)
{
	struct ibv_wc wc[BATCH];
	int n = ibv_poll_cq(e->cq, BATCH, wc);

	check_need(n >= 0, "ibv_poll_cq");
	for (int k = 0; k < n; k++) {
		check_need(wc[k].status == IBV_WC_SUCCESS,
			   ibv_wc_status_str(wc[k].status));
		end_once(m->messages, wc[k].imm_data);
		end_once(m->receives, wc[k].wr_id);
		*last = wc[k].imm_data;
	}
	return (uint32_t)n;
}

static void *poll_all_messages(void *arg)
{
	uint32_t n, last;

	while (atomic_load(&m->received) < MESSAGES) {
		need_peer();
		n = poll_messages(&ends[0], &last);
		if (n)
			atomic_fetch_add(&m->received, n);
		else
			sched_yield();
	}
	return arg;
}

static void arm_queue(struct ibv_cq *cq)
{
	check_need(!ibv_req_notify_cq(cq, 0), "ibv_req_notify_cq");
}

static struct endpoint *end_of(const struct ibv_cq *cq)
{
	uint32_t i = 0;

	while (ends[i].cq != cq)
		i++;
	return &ends[i];
}

/* Sleeps for events of the channel that all sleepers share, until this thread
 * takes a message with a number of MESSAGES or more. */
static void *sleep_for_messages(void *arg)
{
	uint32_t last = 0;

	while (last < MESSAGES) {
		uint32_t n, all = 0;
		struct endpoint *e;
		struct ibv_cq *cq;
		void *context;

		check_need(!ibv_get_cq_event(ends[0].channel, &cq, &context),
			   "ibv_get_cq_event");
		ibv_ack_cq_events(cq, 1);
		arm_queue(cq);
		e = end_of(cq);
		while ((n = poll_messages(e, &last)))
			all += n;
		for (n = 0; n < all && last < MESSAGES; n++)
			check_need(
				!post_receive(e, atomic_fetch_add(&m->fed, 1)),
				"a posted receive");
		/* the active process then sends the next message */
		atomic_fetch_add(&m->received, all);
	}
	return arg;
}

/* ---- the two halves of a case ---- */

/* The active process: some threads post, other threads poll. */
static void post_beside_polls(void)
{
	pthread_t posters[LINKS_MAX], pollers[LINKS_MAX];

	start_threads(posters, plan->posters, post_requests);
	start_threads(pollers, plan->pollers, poll_all_requests);
	join_threads(posters, plan->posters);
	join_threads(pollers, plan->pollers);
}

static void feed_beside_polls(void)
{
	pthread_t feeders[2], pollers[2];

	start_threads(feeders, 2, post_receives);
	start_threads(pollers, 2, poll_all_messages);
	join_threads(feeders, 2);
	join_threads(pollers, 2);
}

/* Sends each message after the previous message has woken a thread. */
static void send_one_by_one(void)
{
	for (uint32_t i = 0; i < MESSAGES + SLEEPERS; i++) {
		struct endpoint *e = &ends[i % plan->links];

		post_soon(e, i);
		while (!poll_requests(e))
			need_peer();
		while (atomic_load(&m->received) <= i) {
			need_peer();
			sched_yield();
		}
	}
}

static void sleep_together(void)
{
	pthread_t sleepers[SLEEPERS];

	start_threads(sleepers, SLEEPERS, sleep_for_messages);
	join_threads(sleepers, SLEEPERS);
}

/* Lets this thread and the threads that it creates run on two cores only.
 * Stores in *before the cores on which this thread could run. */
static void keep_to_two_cores(cpu_set_t *before)
{
	int kept = 0;
	cpu_set_t two;

	check_need(!sched_getaffinity(0, sizeof(*before), before), "affinity");
	CPU_ZERO(&two);
	for (int i = 0; i < CPU_SETSIZE && kept < 2; i++)
		if (CPU_ISSET(i, before)) {
			CPU_SET(i, &two);
			kept++;
		}
	check_need(!sched_setaffinity(0, sizeof(two), &two), "affinity");
}

static void crowd_two_cores(void)
{
	static pthread_t threads[MANY];
	cpu_set_t before;

	keep_to_two_cores(&before);
	start_threads(threads, MANY, post_and_poll);
	join_threads(threads, MANY);
	check_need(!sched_setaffinity(0, sizeof(before), &before), "affinity");
}

static void do_nothing(void)
{
}

static const struct {
	struct plan plan;
	void (*active)(void);
	void (*passive)(void);
} cases[CASES] = {
	{{"requests of threads that share a queue pair end once each", 1, 3, 2,
	  false, false, false},
	 post_beside_polls,
	 do_nothing},
	{{"requests of queue pairs that share a completion queue end once each",
	  4, 4, 3, false, false, false},
	 post_beside_polls,
	 do_nothing},
	{{"receives that threads post to one queue pair take a message each", 1,
	  2, 1, true, false, false},
	 post_beside_polls,
	 feed_beside_polls},
	{{"messages of threads that share a queue pair arrive once each", 1, 4,
	  2, true, false, false},
	 post_beside_polls,
	 feed_beside_polls},
	{{"receives that threads post to a shared queue take a message each", 4,
	  4, 2, true, true, false},
	 post_beside_polls,
	 feed_beside_polls},
	{{"each event of a channel wakes one of the threads that share it", 4,
	  1, 1, true, false, true},
	 send_one_by_one,
	 sleep_together},
	{{"200 threads on two cores end their requests", 4, MANY, 0, false,
	  false, true},
	 crowd_two_cores,
	 do_nothing},
};

static void be_passive(size_t number)
{
	open_ends(m->passive, plan->shares_receives, plan->has_queues);
	atomic_store(&m->is_passive, true);
	wait_for(&m->is_active);
	connect_ends(m->passive, m->active);
	for (uint32_t i = 0; plan->has_queues && i < plan->links; i++) {
		check_need(
			!post_receive(&ends[i], atomic_fetch_add(&m->fed, 1)),
			"a posted receive");
		arm_queue(ends[i].cq);
	}
	atomic_store(&m->is_connected, true);
	cases[number].passive();
	wait_for(&m->is_over);
	atomic_store(&m->is_left, true);
	close_ends();
}

static void be_active(size_t number)
{
	open_ends(m->active, false, plan->has_queues);
	atomic_store(&m->is_active, true);
	wait_for(&m->is_passive);
	connect_ends(m->active, m->passive);
	wait_for(&m->is_connected);
	cases[number].active();
	atomic_store(&m->is_over, true);
	wait_for(&m->is_left);
	close_ends();
}

static void run_half(size_t number)
{
	m = &meetings[number];
	plan = &cases[number].plan;
	if (is_passive)
		be_passive(number);
	else
		be_active(number);
}

static void fork_passive(void)
{
	pid_t parent = getpid();

	peer = fork();
	check_need(peer >= 0, "fork");
	if (peer)
		return;
	peer = parent;
	is_passive = true;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (size_t i = 0; i < CASES; i++)
		run_half(i);
	exit(0);
}

int main(void)
{
	int status = -1;

	meetings = mmap(NULL, CASES * sizeof(*meetings), PROT_READ | PROT_WRITE,
			MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	check_need(meetings != MAP_FAILED, "mmap");
	fork_passive();
	for (size_t i = 0; i < CASES; i++) {
		check_begin(cases[i].plan.name);
		run_half(i);
		for (size_t k = 0; k < MESSAGES; k++)
			EXPECT(m->requests[k] == 1 &&
			       m->messages[k] == plan->sends);
		check_done();
	}
	check_need(waitpid(peer, &status, 0) == peer && !status,
		   "the passive process ends in order");
	return check_end();
}
