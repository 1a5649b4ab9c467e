/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * many_threads ROUNDS apart|shared: several threads post to another process of
 * this host while one more thread creates and destroys objects.
 *
 *	apart	each thread has objects of its own: it writes, reads back and
 *		compares, and adds 1 to a word
 *	shared	all threads post to one queue pair and poll one completion
 *		queue; at the end the target has the bytes of each thread
 *
 * Exits with 0 if no request fails, and the bytes and sums are right; with 2 if
 * the arguments are not as above; otherwise prints what is wrong, and exits
 * with 1.
 */
#include "argument.h"
#include "endpoint.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

enum {
	THREADS = 6,
	BYTES = 2048, /* the most that one request moves */
	SHARE = 512,  /* bytes of a region that one thread of `shared` writes */
	BACK = 4096,  /* offset of the bytes read back, in a thread's region */
	WORD = 8184,  /* offset of the thread's word, in the target's region */
	IN_FLIGHT = ENDPOINT_DEPTH / THREADS,
};

/* Shared by both processes. */
static struct exchange {
	/* active: the addresses of the initiator's queue pairs.  passive: those
	 * of the target's queue pairs. */
	struct endpoint_address active[THREADS], passive[THREADS];
	/* is_passive: the addresses in passive[] are known.  is_active: those
	 * in active[] are known.  is_connected: the target is connected. */
	uint32_t is_passive, is_active, is_connected;
} * exchange;

static struct endpoint ends[THREADS];
/* is_over: 1, churn_objects() has to end.  completed: requests of all threads
 * that have completed. */
static uint32_t rounds, is_over, completed;
static int count = THREADS; /* the number of queue pairs */

static void end_failed(const char *what, int i)
{
	printf("thread %d: %s: %s\n", i, what, strerror(errno));
	fflush(stdout);
	_exit(1);
}

/* Sets a word that another process or thread reads.  Release: the caller's
 * earlier writes, such as addresses, precede the store of the word; otherwise
 * the peer could connect to an address that is not yet there. */
static void announce_word(uint32_t *word)
{
	__atomic_store_n(word, 1, __ATOMIC_RELEASE);
}

/* Waits until a word is set.  Acquire: the caller then sees all that the writer
 * wrote before announce_word(). */
static void wait_for(const uint32_t *word)
{
	while (!__atomic_load_n(word, __ATOMIC_ACQUIRE))
		usleep(100);
}

static void open_ends(struct endpoint_address *address)
{
	for (int i = 0; i < count; i++) {
		endpoint_open(&ends[i],
			      IBV_ACCESS_LOCAL_WRITE | ENDPOINT_ALL_REMOTE,
			      ENDPOINT_ALL_REMOTE);
		endpoint_address_get(&ends[i], &address[i]);
	}
}

static void connect_ends(const struct endpoint_address *self,
			 const struct endpoint_address *peer)
{
	for (int i = 0; i < count; i++) {
		endpoint_to_rtr(&ends[i], &peer[i]);
		endpoint_to_rts(&ends[i], &self[i], 7);
	}
}

/* Runs the target, which posts nothing and polls nothing. */
static _Noreturn void be_passive(void)
{
	open_ends(exchange->passive);
	for (int i = 0; i < count; i++)
		memset(ends[i].region, 0, ENDPOINT_SIZE);
	announce_word(&exchange->is_passive);
	wait_for(&exchange->is_active);
	connect_ends(exchange->passive, exchange->active);
	announce_word(&exchange->is_connected);
	for (;;)
		pause();
}

static int post_request(int i, enum ibv_wr_opcode opcode, uint32_t at,
			uint32_t bytes, uint32_t remote)
{
	struct endpoint *e = &ends[i];
	struct ibv_sge sge = {(uintptr_t)e->region + at, bytes, e->mr->lkey};
	struct ibv_send_wr *bad, wr = {.sg_list = &sge,
				       .num_sge = 1,
				       .opcode = opcode,
				       .send_flags = IBV_SEND_SIGNALED};

	if (opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
		wr.wr.atomic.remote_addr = exchange->passive[i].region + remote;
		wr.wr.atomic.rkey = exchange->passive[i].rkey;
		wr.wr.atomic.compare_add = 1;
	} else {
		wr.wr.rdma.remote_addr = exchange->passive[i].region + remote;
		wr.wr.rdma.rkey = exchange->passive[i].rkey;
	}
	return ibv_post_send(e->qp, &wr, &bad);
}

static void finish_requests(int i, int requests)
{
	struct ibv_wc wc;

	while (requests--) {
		if (!endpoint_wait(&ends[i], &wc))
			end_failed("a request has not completed in time", i);
		if (wc.status)
			end_failed(ibv_wc_status_str(wc.status), i);
	}
}

static void work_once(int i, uint32_t round)
{
	struct endpoint *e = &ends[i];
	uint32_t bytes = 1 + (round * 37 + (uint32_t)i) % BYTES;

	memset(e->region, (int)(round * 7 + (uint32_t)i), bytes);
	memset(e->region + BACK, 0, bytes);
	if (post_request(i, IBV_WR_RDMA_WRITE, 0, bytes, 0) ||
	    post_request(i, IBV_WR_RDMA_READ, BACK, bytes, 0) ||
	    post_request(i, IBV_WR_ATOMIC_FETCH_AND_ADD, WORD, 8, WORD))
		end_failed("ibv_post_send", i);
	finish_requests(i, 3);
	if (memcmp(e->region, e->region + BACK, bytes) != 0)
		end_failed("a READ gives other bytes than the WRITE wrote", i);
}

static void *work_apart(void *arg)
{
	int i = (int)(intptr_t)arg;
	uint64_t sum;

	for (uint32_t round = 0; round < rounds; round++)
		work_once(i, round);
	if (post_request(i, IBV_WR_RDMA_READ, BACK, 8, WORD))
		end_failed("ibv_post_send", i);
	finish_requests(i, 1);
	memcpy(&sum, ends[i].region + BACK, sizeof(sum));
	if (sum != rounds)
		end_failed("FETCH_ADDs are lost, or were executed twice", i);
	return NULL;
}

/* Takes completions of any thread's requests. */
static void take_completions(int i)
{
	struct ibv_wc wc[IN_FLIGHT];
	int n = ibv_poll_cq(ends[0].cq, IN_FLIGHT, wc);

	if (n < 0)
		end_failed("ibv_poll_cq", i);
	for (int k = 0; k < n; k++)
		if (wc[k].status)
			end_failed(ibv_wc_status_str(wc[k].status), i);
	/* Relaxed: a thread only compares the sum, and reads nothing else that
	 * depends on it. */
	__atomic_fetch_add(&completed, (uint32_t)n, __ATOMIC_RELAXED);
	if (!n)
		sched_yield();
}

static void *work_shared(void *arg)
{
	int i = (int)(intptr_t)arg, err;
	uint32_t at = (uint32_t)i * SHARE;

	memset(ends[0].region + at, i + 1, SHARE);
	for (uint32_t round = 0; round < rounds; round++) {
		while ((err = post_request(0, IBV_WR_RDMA_WRITE, at, SHARE,
					   at)) == ENOMEM)
			take_completions(i); /* the queue is full */
		errno = err;
		if (err)
			end_failed("ibv_post_send", i);
	}
	while (__atomic_load_n(&completed, __ATOMIC_RELAXED) < THREADS * rounds)
		take_completions(i);
	return NULL;
}

/* Reads back what the threads have written by one queue pair, and compares. */
static void check_shares(void)
{
	uint8_t *region = ends[0].region;

	memset(region + BACK, 0, THREADS * SHARE);
	if (post_request(0, IBV_WR_RDMA_READ, BACK, THREADS * SHARE, 0))
		end_failed("ibv_post_send", 0);
	finish_requests(0, 1);
	for (int i = 0; i < THREADS * SHARE; i++)
		if (region[BACK + i] != i / SHARE + 1)
			end_failed("a WRITE is missing in the target",
				   i / SHARE);
}

/* Creates and destroys objects that the other threads do not use, until is_over
 * is set.  No other access depends on the order of that load. */
static void *churn_objects(void *arg)
{
	struct endpoint e[2];

	while (!__atomic_load_n(&is_over, __ATOMIC_ACQUIRE)) {
		endpoint_open_pair(e);
		endpoint_close_pair(e);
	}
	return arg;
}

static void run_threads(void *(*body)(void *))
{
	pthread_t thread[THREADS + 1];

	if (pthread_create(&thread[THREADS], NULL, churn_objects, NULL))
		end_failed("pthread_create", THREADS);
	for (intptr_t i = 0; i < THREADS; i++)
		if (pthread_create(&thread[i], NULL, body, (void *)i))
			end_failed("pthread_create", (int)i);
	for (int i = 0; i < THREADS; i++)
		pthread_join(thread[i], NULL);
	announce_word(&is_over);
	pthread_join(thread[THREADS], NULL);
}

int main(int argc, char **argv)
{
	static const char *const kinds[] = {"apart", "shared", NULL};
	pid_t passive, self = getpid();
	bool is_shared;
	int n;

	if (argc != 3 || !argument_number(argv[1], 1, &n) ||
	    !argument_is(argv[2], kinds)) {
		fprintf(stderr, "usage: many_threads ROUNDS apart|shared\n");
		return 2;
	}
	is_shared = !strcmp(argv[2], "shared");
	rounds = (uint32_t)n;
	count = is_shared ? 1 : THREADS;
	exchange = mmap(NULL, sizeof(*exchange), PROT_READ | PROT_WRITE,
			MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (exchange == MAP_FAILED)
		end_failed("mmap", 0);
	passive = fork();
	if (passive < 0)
		end_failed("fork", 0);
	if (!passive) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (getppid() != self)
			_exit(1);
		be_passive();
	}
	wait_for(&exchange->is_passive);
	open_ends(exchange->active);
	connect_ends(exchange->active, exchange->passive);
	announce_word(&exchange->is_active);
	wait_for(&exchange->is_connected);
	run_threads(is_shared ? work_shared : work_apart);
	if (is_shared)
		check_shares();
	kill(passive, SIGKILL);
	return 0;
}
