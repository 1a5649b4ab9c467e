/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * smallstack: measures how much of its stack a thread needs to post requests
 * and to poll for their completions.  A thread of a program may have little: 16
 * KiB are the least that pthread_attr_setstacksize allows, and the default of
 * some libraries of user-level threads.
 *
 * The thread's stack is filled with a byte first.  Bytes that have changed were
 * used.  Prints a line per kind of request, as verbcheck does.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "endpoint.h"

enum {
	STACK = 256 << 10,
	MOST = 11 << 10, /* bytes that posts and polls may need */
	UNUSED = 0x5c,
	LIST = 64, /* requests in a list */
};

static struct endpoint end[2];
static uint8_t *stack;

/* Posts a list of `count` requests, and polls for their completions.  Runs in
 * the thread whose stack is measured. */
static void run_list(enum ibv_wr_opcode opcode, int count, uint32_t bytes)
{
	static struct ibv_send_wr wr[LIST];
	static struct ibv_sge sge;
	static struct ibv_wc wc;
	struct ibv_send_wr *bad;
	struct ibv_recv_wr receive = {0}, *bad_receive;

	sge = (struct ibv_sge){(uintptr_t)end[0].region, bytes,
			       end[0].mr->lkey};
	for (int i = 0; i < count; i++) {
		wr[i] = (struct ibv_send_wr){.next = i + 1 < count ? &wr[i + 1]
								   : NULL,
					     .sg_list = &sge,
					     .num_sge = 1,
					     .opcode = opcode,
					     .send_flags = IBV_SEND_SIGNALED};
		wr[i].wr.rdma.remote_addr = (uintptr_t)end[1].region;
		wr[i].wr.rdma.rkey = end[1].mr->rkey;
		if (opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
			wr[i].wr.atomic.remote_addr = (uintptr_t)end[1].region;
			wr[i].wr.atomic.rkey = end[1].mr->rkey;
		}
		if (opcode == IBV_WR_SEND) {
			struct ibv_sge to = {(uintptr_t)end[1].region, 4096,
					     end[1].mr->lkey};

			receive.sg_list = &to;
			receive.num_sge = 1;
			EXPECT(!ibv_post_recv(end[1].qp, &receive,
					      &bad_receive));
		}
	}
	EXPECT(!ibv_post_send(end[0].qp, wr, &bad));
	for (int i = 0; i < count; i++)
		EXPECT(endpoint_wait(&end[0], &wc) &&
		       wc.status == IBV_WC_SUCCESS);
	for (int i = 0; opcode == IBV_WR_SEND && i < count; i++)
		EXPECT(endpoint_wait(&end[1], &wc) &&
		       wc.status == IBV_WC_SUCCESS);
}

static void *run_nothing(void *arg)
{
	return NULL;
}

static void *run_writes(void *arg)
{
	run_list(IBV_WR_RDMA_WRITE, LIST, 8);
	run_list(IBV_WR_RDMA_WRITE, 1, 4096);
	return NULL;
}

static void *run_reads(void *arg)
{
	run_list(IBV_WR_RDMA_READ, LIST, 8);
	run_list(IBV_WR_RDMA_READ, 1, 4096);
	return NULL;
}

static void *run_sends(void *arg)
{
	run_list(IBV_WR_SEND, LIST, 8);
	run_list(IBV_WR_SEND, 1, 4096);
	return NULL;
}

static void *run_atomics(void *arg)
{
	run_list(IBV_WR_ATOMIC_FETCH_AND_ADD, LIST, 8);
	return NULL;
}

/* Returns how many bytes of its stack a thread needs that runs `what`. */
static size_t used_by(void *(*what)(void *))
{
	pthread_attr_t attr;
	pthread_t thread;
	size_t unused = 0;

	memset(stack, UNUSED, STACK);
	pthread_attr_init(&attr);
	EXPECT(!pthread_attr_setstack(&attr, stack, STACK));
	EXPECT(!pthread_create(&thread, &attr, what, NULL));
	pthread_join(thread, NULL);
	pthread_attr_destroy(&attr);
	while (unused < STACK && stack[unused] == UNUSED)
		unused++;
	return STACK - unused;
}

static void expect_little(const char *name, void *(*what)(void *))
{
	size_t least = used_by(run_nothing), used;

	/* the first call of a function also finds the function's address */
	what(NULL);
	used = used_by(what) - least;
	if (used > MOST)
		printf("%s: %zu bytes of the stack\n", name, used);
	EXPECT(used <= MOST);
}

static void writes_need_little_of_the_stack(void)
{
	expect_little("WRITE", run_writes);
}

static void reads_need_little_of_the_stack(void)
{
	expect_little("READ", run_reads);
}

static void sends_need_little_of_the_stack(void)
{
	expect_little("SEND", run_sends);
}

static void atomics_need_little_of_the_stack(void)
{
	expect_little("atomics", run_atomics);
}

int main(void)
{
	stack = aligned_alloc(4096, STACK);
	if (!stack)
		return 1;
	if (!check_lists())
		endpoint_open_pair(end);
	check_run("WRITEs need little of the stack",
		  writes_need_little_of_the_stack);
	check_run("READs need little of the stack",
		  reads_need_little_of_the_stack);
	check_run("SENDs need little of the stack",
		  sends_need_little_of_the_stack);
	check_run("atomics need little of the stack",
		  atomics_need_little_of_the_stack);
	if (!check_lists())
		endpoint_close_pair(end);
	free(stack);
	return check_end();
}
