/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * connects [-t THREADS] COUNT: one process opens COUNT connections of rdma_cm,
 * each with a queue pair, to another process.  THREADS threads (8 without -t)
 * do this at the same time, each for its part of the connections, and each with
 * an event channel, a protection domain and a completion queue of its own.
 * Each connection then carries one SEND with the connection's number; the
 * process that accepts must see each number once.  The program prints, as a
 * line of JSON, the time from the first rdma_connect to the last
 * RDMA_CM_EVENT_ESTABLISHED, divided by COUNT, and the time of the whole run.
 *
 *	process that connects: a thread         process that accepts
 *	resolves addresses, creates QPs         accepts what comes
 *	waits for the other threads             |
 *	rdma_connect for all, ESTABLISHED       |
 *	a SEND on each                          counts the numbers
 *	rdma_disconnect for all, DISCONNECTED   destroys what has ended
 *
 * The program is linked with the system's librdmacm; `adverb run` loads
 * adverb's.
 */
#include <arpa/inet.h>
#include <pthread.h>
#include <rdma/rdma_cma.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "queue.h"
#include "raw.h"
#include "util/shared.h"

enum { THREADS_MAX = 64, COUNT_MAX = 4000, BACKLOG = 4096 };
#define RESOLVE_MS 30000

/* Memory of both processes.  The process that accepts writes it, the process
 * that connects reads it. */
static struct shared {
	shared_u32 port;	    /* the listener's, in network byte order */
	shared_u32 numbers;	    /* how many numbers have come */
	shared_u32 ended;	    /* how many connections have ended */
	shared_u32 seen[COUNT_MAX]; /* how often each number has come */
} * shared;

static int count, threads = 8;
static pthread_barrier_t barrier;

/* ---- the process that accepts ---- */

static struct ibv_pd *pd;
static struct ibv_cq *cq;
static struct ibv_comp_channel *completions;
static struct ibv_mr *mr;
static uint64_t numbers[COUNT_MAX]; /* by connection: memory of its receive */
static shared_flag has_come[COUNT_MAX]; /* by connection: its number came */
static int accepted;

/* Adds 1 to a word that only one thread changes. */
static void count_up(shared_u32 *word)
{
	shared_store(word, shared_own(word) + 1);
}

static void count_number(const struct ibv_wc *wc)
{
	queue_require(wc->status == IBV_WC_SUCCESS,
		      "connects: a receive failed");
	queue_require(numbers[wc->wr_id] < COUNT_MAX,
		      "connects: a number came that was not sent");
	count_up(&shared->seen[numbers[wc->wr_id]]);
	count_up(&shared->numbers);
	shared_store(&has_come[wc->wr_id], true);
}

static void *take_numbers(void *unused)
{
	struct ibv_cq *which;
	struct ibv_wc wc;
	void *context;
	int n;

	(void)unused;
	for (;;) {
		queue_check(!ibv_get_cq_event(completions, &which, &context),
			    "ibv_get_cq_event");
		ibv_ack_cq_events(which, 1);
		queue_check_result(ibv_req_notify_cq(which, 0),
				   "ibv_req_notify_cq");
		while ((n = ibv_poll_cq(which, 1, &wc)) > 0)
			if (wc.opcode == IBV_WC_RECV &&
			    wc.status != IBV_WC_WR_FLUSH_ERR)
				count_number(&wc);
		queue_require(n == 0, "connects: ibv_poll_cq failed");
	}
	return NULL;
}

static void open_acceptor(struct ibv_context *context)
{
	pthread_t thread;

	pd = ibv_alloc_pd(context);
	completions = ibv_create_comp_channel(context);
	queue_check(pd && completions, "ibv_create_comp_channel");
	cq = ibv_create_cq(context, 2 * COUNT_MAX, NULL, completions, 0);
	mr = ibv_reg_mr(pd, numbers, sizeof(numbers), IBV_ACCESS_LOCAL_WRITE);
	queue_check(cq && mr, "ibv_create_cq");
	queue_check_result(ibv_req_notify_cq(cq, 0), "ibv_req_notify_cq");
	queue_check_result(pthread_create(&thread, NULL, take_numbers, NULL),
			   "pthread_create");
}

static void create_qp(struct rdma_cm_id *id, struct ibv_pd *its_pd,
		      struct ibv_cq *its_cq)
{
	struct ibv_qp_init_attr attr = {
		.send_cq = its_cq,
		.recv_cq = its_cq,
		.cap = {.max_send_wr = 1,
			.max_recv_wr = 1,
			.max_send_sge = 1,
			.max_recv_sge = 1,
			.max_inline_data = sizeof(uint64_t)},
		.qp_type = IBV_QPT_RC};

	queue_check(!rdma_create_qp(id, its_pd, &attr), "rdma_create_qp");
}

static void accept_one(struct rdma_cm_id *id)
{
	struct rdma_conn_param param = {.rnr_retry_count = 7};
	struct ibv_sge sge;
	struct ibv_recv_wr *bad, wr = {.sg_list = &sge, .num_sge = 1};

	if (!pd)
		open_acceptor(id->verbs);
	queue_require(accepted < COUNT_MAX,
		      "connects: more than COUNT_MAX requests came");
	id->context = &has_come[accepted];
	wr.wr_id = (uint64_t)accepted++;
	sge = (struct ibv_sge){(uintptr_t)&numbers[wr.wr_id],
			       sizeof(numbers[0]), mr->lkey};
	create_qp(id, pd, cq);
	queue_check_result(ibv_post_recv(id->qp, &wr, &bad), "ibv_post_recv");
	queue_check(!rdma_accept(id, &param), "rdma_accept");
}

/* Ends a connection, but only after its number has come: if the QP were
 * destroyed before, the completion with the number would be discarded. */
static void end_one(struct rdma_cm_id *id)
{
	while (!shared_load((shared_flag *)id->context))
		usleep(100);
	rdma_disconnect(id);
	rdma_destroy_qp(id);
	queue_check(!rdma_destroy_id(id), "rdma_destroy_id");
	count_up(&shared->ended);
}

static struct rdma_event_channel *listen_anywhere(void)
{
	struct rdma_event_channel *channel = rdma_create_event_channel();
	struct sockaddr_in at = {.sin_family = AF_INET,
				 .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	struct rdma_cm_id *id;

	queue_check(channel, "rdma_create_event_channel");
	queue_check(!rdma_create_id(channel, &id, NULL, RDMA_PS_TCP) &&
			    !rdma_bind_addr(id, (struct sockaddr *)&at) &&
			    !rdma_listen(id, BACKLOG),
		    "rdma_listen");
	shared_store(&shared->port, rdma_get_src_port(id));
	return channel;
}

static _Noreturn void accept_all(void)
{
	struct rdma_event_channel *channel;
	enum rdma_cm_event_type what;
	struct rdma_cm_event *event;
	struct rdma_cm_id *id;

	channel = listen_anywhere();
	for (;;) {
		queue_check(!rdma_get_cm_event(channel, &event),
			    "rdma_get_cm_event");
		what = event->event;
		id = event->id;
		rdma_ack_cm_event(event);
		if (what == RDMA_CM_EVENT_CONNECT_REQUEST)
			accept_one(id);
		else if (what == RDMA_CM_EVENT_DISCONNECTED)
			end_one(id);
	}
}

/* ---- the process that connects ---- */

/* The connections of one thread. */
struct opener {
	int first, count; /* the numbers [first, first + count) */
	struct rdma_event_channel *channel;
	struct rdma_cm_id **ids;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	int64_t began_ns, ended_ns; /* at rdma_connect; at ESTABLISHED */
};

/* Takes and acknowledges the next event.  Returns its type, and in *id its id.
 */
static enum rdma_cm_event_type take_event(struct opener *o,
					  struct rdma_cm_id **id)
{
	enum rdma_cm_event_type what;
	struct rdma_cm_event *event;

	queue_check(!rdma_get_cm_event(o->channel, &event),
		    "rdma_get_cm_event");
	*id = event->id;
	what = event->event;
	if (event->status)
		fprintf(stderr, "connects: %s: status %d\n",
			rdma_event_str(what), event->status);
	rdma_ack_cm_event(event);
	return what;
}

static void refuse_event(enum rdma_cm_event_type what,
			 enum rdma_cm_event_type want)
{
	fprintf(stderr, "connects: the event %s came in place of %s\n",
		rdma_event_str(what), rdma_event_str(want));
	exit(1);
}

/* Waits for the next event, which must be ESTABLISHED. */
static void await_established(struct opener *o)
{
	struct rdma_cm_id *id;
	enum rdma_cm_event_type what = take_event(o, &id);

	if (what != RDMA_CM_EVENT_ESTABLISHED)
		refuse_event(what, RDMA_CM_EVENT_ESTABLISHED);
}

/* Waits for DISCONNECTED of each id.  The TIMEWAIT of an id may end, with
 * TIMEWAIT_EXIT, before another id gets DISCONNECTED. */
static void await_ends(struct opener *o)
{
	enum rdma_cm_event_type what;
	struct rdma_cm_id *id;
	int ended = 0;

	while (ended < o->count) {
		what = take_event(o, &id);
		if (what == RDMA_CM_EVENT_DISCONNECTED && !id->context) {
			id->context = o;
			ended++;
		} else if (what != RDMA_CM_EVENT_TIMEWAIT_EXIT ||
			   !id->context) {
			refuse_event(what, RDMA_CM_EVENT_DISCONNECTED);
		}
	}
}

static void resolve_routes(struct opener *o)
{
	struct rdma_cm_id *id;

	for (int resolved = 0; resolved < o->count;) {
		switch ((int)take_event(o, &id)) {
		case RDMA_CM_EVENT_ADDR_RESOLVED:
			queue_check(!rdma_resolve_route(id, RESOLVE_MS),
				    "rdma_resolve_route");
			break;
		case RDMA_CM_EVENT_ROUTE_RESOLVED:
			resolved++;
			break;
		default:
			queue_require(false,
				      "connects: an address is not resolved");
		}
	}
}

static void resolve_all(struct opener *o)
{
	struct sockaddr_in to = {.sin_family = AF_INET,
				 .sin_port =
					 (in_port_t)shared_load(&shared->port),
				 .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};

	o->channel = rdma_create_event_channel();
	o->ids = calloc((size_t)o->count, sizeof(struct rdma_cm_id *));
	queue_check(o->channel && o->ids, "rdma_create_event_channel");
	for (int i = 0; i < o->count; i++)
		queue_check(!rdma_create_id(o->channel, &o->ids[i], NULL,
					    RDMA_PS_TCP) &&
				    !rdma_resolve_addr(o->ids[i], NULL,
						       (struct sockaddr *)&to,
						       RESOLVE_MS),
			    "rdma_resolve_addr");
	resolve_routes(o);
}

static void create_all(struct opener *o)
{
	struct ibv_context *context;

	if (!o->ids[0])
		queue_die("connects: a thread without connections");
	context = o->ids[0]->verbs;
	o->pd = ibv_alloc_pd(context);
	o->cq = ibv_create_cq(context, 2 * o->count, NULL, NULL, 0);
	queue_check(o->pd && o->cq, "ibv_create_cq");
	for (int i = 0; i < o->count; i++)
		create_qp(o->ids[i], o->pd, o->cq);
}

static void connect_all(struct opener *o)
{
	struct rdma_conn_param param = {.retry_count = 7, .rnr_retry_count = 7};

	o->began_ns = raw_now_ns();
	for (int i = 0; i < o->count; i++)
		queue_check(!rdma_connect(o->ids[i], &param), "rdma_connect");
	for (int i = 0; i < o->count; i++)
		await_established(o);
	o->ended_ns = raw_now_ns();
}

static void send_all(struct opener *o)
{
	struct ibv_wc wc;
	int n;

	for (int i = 0; i < o->count; i++) {
		uint64_t number = (uint64_t)o->first + (uint64_t)i;
		struct ibv_sge sge = {(uintptr_t)&number, sizeof(number), 0};
		struct ibv_send_wr *bad, wr = {.sg_list = &sge,
					       .num_sge = 1,
					       .opcode = IBV_WR_SEND,
					       .send_flags = IBV_SEND_SIGNALED |
							     IBV_SEND_INLINE};

		queue_check_result(ibv_post_send(o->ids[i]->qp, &wr, &bad),
				   "ibv_post_send");
	}
	for (int i = 0; i < o->count; i++) {
		while ((n = ibv_poll_cq(o->cq, 1, &wc)) == 0)
			sched_yield();
		queue_require(n == 1 && wc.status == IBV_WC_SUCCESS,
			      "connects: a SEND failed");
	}
}

static void disconnect_all(struct opener *o)
{
	for (int i = 0; i < o->count; i++)
		queue_check(!rdma_disconnect(o->ids[i]), "rdma_disconnect");
	await_ends(o);
	for (int i = 0; i < o->count; i++) {
		rdma_destroy_qp(o->ids[i]);
		queue_check(!rdma_destroy_id(o->ids[i]), "rdma_destroy_id");
	}
	queue_check_result(ibv_destroy_cq(o->cq), "ibv_destroy_cq");
	queue_check_result(ibv_dealloc_pd(o->pd), "ibv_dealloc_pd");
	rdma_destroy_event_channel(o->channel);
	free(o->ids);
}

static void *open_some(void *arg)
{
	struct opener *o = arg;

	resolve_all(o);
	create_all(o);
	pthread_barrier_wait(&barrier);
	connect_all(o);
	pthread_barrier_wait(&barrier);
	send_all(o);
	disconnect_all(o);
	return NULL;
}

/* Has the process that accepts seen all numbers, each once, and the end of each
 * connection?  count_number() adds to seen[] and then, with release, to
 * `numbers`; this function loads `numbers`, with acquire, and then seen[].
 * Without this order it could find all numbers counted and a seen[] that is
 * still 0. */
static bool is_complete(void)
{
	if (shared_load(&shared->ended) < (uint32_t)count ||
	    shared_load(&shared->numbers) < (uint32_t)count)
		return false;
	for (int i = 0; i < count; i++)
		if (shared_load(&shared->seen[i]) != 1) {
			fprintf(stderr, "connects: number %d came %u times\n",
				i, shared_load(&shared->seen[i]));
			exit(1);
		}
	return true;
}

static void run_threads(pid_t acceptor)
{
	int64_t began = raw_now_ns(), first = INT64_MAX, last = 0;
	struct opener openers[THREADS_MAX] = {{0}};
	pthread_t thread[THREADS_MAX];

	pthread_barrier_init(&barrier, NULL, (unsigned)threads);
	for (int i = 0; i < threads; i++) {
		openers[i].first = count * i / threads;
		openers[i].count = count * (i + 1) / threads - openers[i].first;
		queue_check_result(pthread_create(&thread[i], NULL, open_some,
						  &openers[i]),
				   "pthread_create");
	}
	for (int i = 0; i < threads; i++) {
		pthread_join(thread[i], NULL);
		if (openers[i].began_ns < first)
			first = openers[i].began_ns;
		if (openers[i].ended_ns > last)
			last = openers[i].ended_ns;
	}
	while (!is_complete()) {
		if (waitpid(acceptor, NULL, WNOHANG))
			exit(1); /* that process has said why */
		usleep(1000);
	}
	printf("{\"connections\": %d, \"threads\": %d, \"us\": %.3f, "
	       "\"seconds\": %.3f}\n",
	       count, threads, (double)(last - first) / 1000 / count,
	       (double)(raw_now_ns() - began) * 1e-9);
}

static bool take_options(int argc, char **argv)
{
	int c;

	while ((c = getopt(argc, argv, "t:")) != -1)
		if (c == 't')
			threads = atoi(optarg);
		else
			return false;
	count = optind == argc - 1 ? atoi(argv[optind]) : 0;
	return threads >= 1 && threads <= THREADS_MAX && count >= threads &&
	       count <= COUNT_MAX;
}

int main(int argc, char **argv)
{
	pid_t child;

	if (!take_options(argc, argv)) {
		fprintf(stderr, "usage: connects [-t THREADS] COUNT\n");
		return 2;
	}
	shared = raw_shared(sizeof(*shared));
	child = raw_fork("connects: fork");
	if (child == 0)
		accept_all();
	while (!shared_load(&shared->port)) {
		if (waitpid(child, NULL, WNOHANG))
			return 1; /* the child has said why */
		usleep(1000);
	}
	run_threads(child);
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	return 0;
}
