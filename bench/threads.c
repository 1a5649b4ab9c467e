/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * threads [OPTION...] COUNT: COUNT workers, which are threads or processes,
 * send requests to one passive process.  Each worker has a protection domain, a
 * completion queue and a connected queue pair of its own, and up to 64 requests
 * outstanding.  Prints the sum of the rates as one line of JSON.  The program
 * is linked with libibverbs, and uses adverb's under `adverb run`.
 *
 *	-P        workers are processes instead of threads
 *	-o NAME   the operation: write, read, send or atomic
 *	-s BYTES  the bytes of a request; an atomic has 8
 *	-l COUNT  post lists of COUNT requests instead of one by one
 *	-m        use memory of a memfd, which the peer's process may map
 *	-d        a thread domain for each worker
 *	-t S      measure for S seconds
 */
#include <pthread.h>
#include <sched.h>
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

#define DEPTH	   64
#define COUNT_MAX  64
#define LINE	   128 /* bytes; no two workers write the same LINE */
#define POLL_BATCH 16

enum operation { OP_WRITE, OP_READ, OP_SEND, OP_ATOMIC, OPS };

static const char *const op_names[OPS] = {"write", "read", "send", "atomic"};

static const enum ibv_wr_opcode opcodes[OPS] = {IBV_WR_RDMA_WRITE,
						IBV_WR_RDMA_READ, IBV_WR_SEND,
						IBV_WR_ATOMIC_FETCH_AND_ADD};

static struct {
	uint32_t count, list;
	size_t bytes;
	double seconds;
	enum operation op;
	bool processes, mapped, domains;
} options = {.list = 1, .bytes = 64, .seconds = 0.3};

/* One connection, in memory that all processes share.  A side writes its QPN,
 * and the passive side also rkey and address, and then stores its step with
 * release.  The peer loads the step with acquire and then reads these members.
 * Without that order a peer could connect to a QPN that is not set.  The parent
 * reads done and ns when the worker has ended. */
struct pair {
	_Alignas(LINE) uint32_t active_qpn;
	uint32_t passive_qpn, rkey;
	uint64_t address;
	shared_u32 active;  /* the active side's step (enum step) */
	shared_u32 passive; /* the passive side's step (enum step) */
	uint64_t done;	    /* requests that were measured */
	int64_t ns;	    /* their time, and that of up to DEPTH later ones */
};

enum step { STEP_CREATED = 1, STEP_CONNECTED, STEP_WARM };

static struct pair *pairs;
static pid_t passive; /* the passive process; in that process itself 0 */

/* One end of a connection. */
struct end {
	const struct queue_device *device;
	struct pair *pair;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_mr *mr;
	struct ibv_qp *qp;
	char *memory;
	int index;
};

static _Noreturn void refuse_early_end(pid_t pid)
{
	fprintf(stderr,
		"threads: the %s process ended before the measurement did, so "
		"there is no result; its own message, if there is one, says "
		"why\n",
		pid == passive ? "passive" : "worker");
	exit(1);
}

/* Ends the program if the passive process has ended.  In a worker process, of
 * which the passive process is no child, does nothing: the parent notices the
 * end (run_processes), and the worker ends with the parent. */
static void check_passive(void)
{
	if (passive > 0 && waitpid(passive, NULL, WNOHANG) == passive)
		refuse_early_end(passive);
}

/* Waits until each pair's active or passive side has come to `step`. */
static void wait_for(bool is_active, enum step step)
{
	for (uint32_t i = 0; i < options.count; i++)
		while (shared_load(is_active ? &pairs[i].active
					     : &pairs[i].passive) < step) {
			check_passive();
			sched_yield();
		}
}

static char *allocate_memory(size_t bytes)
{
	int fd = options.mapped ? memfd_create("bench", MFD_CLOEXEC) : -1;
	int flags = MAP_POPULATE |
		    (options.mapped ? MAP_SHARED : MAP_PRIVATE | MAP_ANONYMOUS);
	void *p;

	queue_check(!options.mapped ||
			    (fd >= 0 && !ftruncate(fd, (off_t)bytes)),
		    "memfd_create");
	p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, flags, fd, 0);
	queue_check(p != MAP_FAILED, "mmap");
	return p;
}

/* Creates a protection domain, or with -d a parent domain that has a thread
 * domain. */
static struct ibv_pd *create_domain(const struct queue_device *d)
{
	struct ibv_parent_domain_init_attr attr = {0};
	struct ibv_td_init_attr plain = {0};
	struct ibv_pd *pd = ibv_alloc_pd(d->context);

	queue_check(pd, "ibv_alloc_pd");
	if (!options.domains)
		return pd;
	attr.pd = pd;
	attr.td = ibv_alloc_td(d->context, &plain);
	queue_check(attr.td, "ibv_alloc_td");
	pd = ibv_alloc_parent_domain(d->context, &attr);
	queue_check(pd, "ibv_alloc_parent_domain");
	return pd;
}

static struct ibv_cq *create_cq(const struct queue_device *d, struct ibv_pd *pd)
{
	struct ibv_cq_init_attr_ex attr = {
		.cqe = 2 * DEPTH,
		.comp_mask = IBV_CQ_INIT_ATTR_MASK_PD,
		.parent_domain = pd,
	};
	struct ibv_cq_ex *cq;

	if (!options.domains)
		return ibv_create_cq(d->context, 2 * DEPTH, NULL, NULL, 0);
	cq = ibv_create_cq_ex(d->context, &attr);
	return cq ? ibv_cq_ex_to_cq(cq) : NULL;
}

static void create_end(struct end *e, const struct queue_device *d, int index)
{
	size_t bytes = options.bytes < 4096 ? 4096 : options.bytes;

	*e = (struct end){.device = d, .pair = &pairs[index], .index = index};
	e->memory = allocate_memory(bytes);
	e->pd = create_domain(d);
	e->cq = create_cq(d, e->pd);
	queue_check(e->cq, "ibv_create_cq");
	e->mr = ibv_reg_mr(e->pd, e->memory, bytes, QUEUE_RIGHTS);
	queue_check(e->mr, "ibv_reg_mr");
	e->qp = queue_create(e->pd, e->cq, DEPTH);
}

static uint32_t poll_end(struct end *e)
{
	struct ibv_wc wc[POLL_BATCH];
	int n = ibv_poll_cq(e->cq, POLL_BATCH, wc);

	queue_require(n >= 0, "threads: ibv_poll_cq failed");
	for (int i = 0; i < n; i++)
		if (wc[i].status != IBV_WC_SUCCESS) {
			fprintf(stderr, "threads: a request ended with %s\n",
				ibv_wc_status_str(wc[i].status));
			exit(1);
		}
	return (uint32_t)n;
}

/* ---- the passive process ---- */

static void post_receives(struct end *e, uint32_t count)
{
	struct ibv_sge sge = {(uintptr_t)e->memory, (uint32_t)options.bytes,
			      e->mr->lkey};
	struct ibv_recv_wr wr = {.sg_list = &sge, .num_sge = 1}, *bad;

	while (count--)
		queue_check_result(ibv_post_recv(e->qp, &wr, &bad),
				   "ibv_post_recv");
}

static void *receive_forever(void *arg)
{
	struct end *e = arg;

	raw_pin(e->index + (int)options.count);
	for (;;)
		post_receives(e, poll_end(e));
	return NULL;
}

/* Connects the passive ends, and serves until the process is killed. */
static _Noreturn void be_passive(void)
{
	static struct end ends[COUNT_MAX];
	struct queue_device d = queue_open();
	pthread_t thread;

	for (uint32_t i = 0; i < options.count; i++) {
		create_end(&ends[i], &d, (int)i);
		ends[i].pair->passive_qpn = ends[i].qp->qp_num;
		ends[i].pair->rkey = ends[i].mr->rkey;
		ends[i].pair->address = (uintptr_t)ends[i].memory;
		shared_store(&ends[i].pair->passive, STEP_CREATED);
	}
	wait_for(true, STEP_CREATED);
	for (uint32_t i = 0; i < options.count; i++) {
		queue_connect(&d, ends[i].qp, ends[i].pair->active_qpn);
		if (options.op == OP_SEND) {
			post_receives(&ends[i], DEPTH);
			queue_check_result(pthread_create(&thread, NULL,
							  receive_forever,
							  &ends[i]),
					   "pthread_create");
		}
		shared_store(&ends[i].pair->passive, STEP_CONNECTED);
	}
	for (;;)
		pause();
}

/* ---- the workers ---- */

struct requests {
	struct ibv_sge sge;
	struct ibv_send_wr wr[DEPTH];
};

static void describe_requests(const struct end *e, struct requests *r)
{
	uint64_t address = e->pair->address;

	r->sge = (struct ibv_sge){(uintptr_t)e->memory, (uint32_t)options.bytes,
				  e->mr->lkey};
	memset(r->wr, 0, sizeof(r->wr));
	for (uint32_t i = 0; i < options.list; i++) {
		struct ibv_send_wr *w = &r->wr[i];

		w->next = i + 1 < options.list ? w + 1 : NULL;
		w->sg_list = &r->sge;
		w->num_sge = 1;
		w->opcode = opcodes[options.op];
		w->send_flags = IBV_SEND_SIGNALED;
		if (options.op == OP_ATOMIC) {
			w->wr.atomic.remote_addr = address;
			w->wr.atomic.rkey = e->pair->rkey;
			w->wr.atomic.compare_add = 1;
		} else {
			w->wr.rdma.remote_addr = address;
			w->wr.rdma.rkey = e->pair->rkey;
		}
	}
}

/* Keeps up to DEPTH requests outstanding for @ns; returns the number of
 * requests that completed in this time. */
static uint64_t send_requests(struct end *e, struct requests *r, int64_t ns)
{
	int64_t end = raw_now_ns() + ns;
	struct ibv_send_wr *bad;
	uint32_t outstanding = 0;
	uint64_t done = 0;

	for (uint32_t turn = 0;; turn++) {
		uint32_t n;

		while (outstanding + options.list <= DEPTH) {
			queue_check_result(ibv_post_send(e->qp, r->wr, &bad),
					   "ibv_post_send");
			outstanding += options.list;
		}
		n = poll_end(e);
		outstanding -= n;
		done += n;
		if (turn % POLL_BATCH == 0 && raw_now_ns() >= end)
			break;
	}
	while (outstanding)
		outstanding -= poll_end(e);
	return done;
}

static void *run_worker(void *arg)
{
	struct end *e = arg;
	struct requests r;
	int64_t began, ns = (int64_t)(options.seconds * 1e9);

	wait_for(false, STEP_CREATED);
	queue_connect(e->device, e->qp, e->pair->passive_qpn);
	shared_store(&e->pair->active, STEP_CONNECTED);
	wait_for(false, STEP_CONNECTED);
	raw_pin(e->index);
	describe_requests(e, &r);
	send_requests(e, &r, ns / 10); /* the first requests are slower */
	shared_store(&e->pair->active, STEP_WARM);
	wait_for(true, STEP_WARM);
	began = raw_now_ns();
	e->pair->done = send_requests(e, &r, ns);
	e->pair->ns = raw_now_ns() - began;
	return NULL;
}

static void create_worker(struct end *e, const struct queue_device *d, int i)
{
	create_end(e, d, i);
	e->pair->active_qpn = e->qp->qp_num;
	shared_store(&e->pair->active, STEP_CREATED);
}

static void run_threads(void)
{
	static struct end ends[COUNT_MAX];
	struct queue_device d = queue_open();
	pthread_t threads[COUNT_MAX];

	for (uint32_t i = 0; i < options.count; i++)
		create_worker(&ends[i], &d, (int)i);
	for (uint32_t i = 0; i < options.count; i++)
		queue_check_result(
			pthread_create(&threads[i], NULL, run_worker, &ends[i]),
			"pthread_create");
	for (uint32_t i = 0; i < options.count; i++)
		pthread_join(threads[i], NULL);
}

static void run_process(int index)
{
	struct queue_device d = queue_open();
	struct end e;

	create_worker(&e, &d, index);
	run_worker(&e);
}

static void run_processes(void)
{
	int status;

	for (uint32_t i = 0; i < options.count; i++)
		if (!raw_fork("threads: fork")) {
			run_process((int)i);
			exit(0);
		}
	/* wait() returns for any child: the workers wait for each other and for
	 * the passive process, so if one process ends early, all must end. */
	for (uint32_t i = 0; i < options.count; i++) {
		pid_t pid = wait(&status);

		if (pid < 0 || pid == passive || status)
			refuse_early_end(pid);
	}
}

/* ---- the command line ---- */

static enum operation find_operation(const char *name)
{
	enum operation op = OP_WRITE;

	while (op < OPS && strcmp(op_names[op], name) != 0)
		op++;
	return op;
}

static bool take_option(int c)
{
	switch (c) {
	case 'P':
		options.processes = true;
		return true;
	case 'm':
		options.mapped = true;
		return true;
	case 'd':
		options.domains = true;
		return true;
	case 'o':
		options.op = find_operation(optarg);
		return options.op < OPS;
	case 's':
		options.bytes = strtoul(optarg, NULL, 0);
		return options.bytes > 0 && options.bytes <= 1u << 30;
	case 'l':
		options.list = (uint32_t)strtoul(optarg, NULL, 0);
		return options.list > 0 && options.list <= DEPTH;
	case 't':
		options.seconds = strtod(optarg, NULL);
		return options.seconds > 0 && options.seconds < 1000;
	default:
		return false;
	}
}

static void take_options(int argc, char **argv)
{
	bool good = true;
	int c;

	while (good && (c = getopt(argc, argv, "Pmdo:s:l:t:")) != -1)
		good = take_option(c);
	if (good && optind + 1 == argc)
		options.count = (uint32_t)strtoul(argv[optind], NULL, 0);
	if (!options.count || options.count > COUNT_MAX) {
		fprintf(stderr,
			"usage: threads [-P] [-m] [-d] [-o write|read|send|atomic] "
			"[-s BYTES] [-l COUNT] [-t SECONDS] COUNT\n");
		exit(2);
	}
	if (options.op == OP_ATOMIC)
		options.bytes = 8;
}

static void print_result(void)
{
	double rate = 0;

	for (uint32_t i = 0; i < options.count; i++)
		rate += (double)pairs[i].done * 1e9 / (double)pairs[i].ns;
	printf("{\"name\": \"%s\", \"count\": %u, \"bytes\": %zu, "
	       "\"Mps\": %.6f, \"GBps\": %.6f}\n",
	       options.processes ? "processes" : "threads", options.count,
	       options.bytes, rate / 1e6, rate * (double)options.bytes / 1e9);
}

int main(int argc, char **argv)
{
	take_options(argc, argv);
	pairs = raw_shared(options.count * sizeof(*pairs));
	/* The fork precedes the opening of a device: a later fork would need
	 * ibv_fork_init. */
	passive = raw_fork("threads: fork");
	if (!passive)
		be_passive();
	if (options.processes)
		run_processes();
	else
		run_threads();
	kill(passive, SIGKILL);
	waitpid(passive, NULL, 0);
	print_result();
	return 0;
}
