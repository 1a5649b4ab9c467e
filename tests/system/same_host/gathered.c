/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * gathered ROUNDS [realtime]: if a program has repeatedly posted many small
 * WRITEs one by one and then polled, adverb may hold back a small WRITE and
 * execute it together with later ones.  Tests that such WRITEs arrive even if
 * the program then does not poll its completion queue.  With "realtime" the
 * initiator has the policy SCHED_FIFO, and its progress thread, with the same
 * priority, may run only on the initiator's core; exits with 77 if the user may
 * not set that policy.
 *
 *	initiator                              target
 *	posts and polls many times             polls only its memory
 *	posts 1 to COUNT WRITEs of round r     sees r in each place
 *	does what the round selects            reports that it has seen r
 *	polls
 *
 * In turn the initiator spins, sleeps, polls another completion queue, arms its
 * completion queue, or posts to another queue pair.  Prints in how many rounds
 * the last WRITE had not arrived when its post returned.  Exits with 0, or
 * prints what is wrong.
 */
#include "step_timeout.h"
#include "endpoint.h"

#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/uio.h>
#include <sys/wait.h>

enum {
	CYCLES = 8,  /* cycles of posts and polls before a round's posts */
	STREAM = 16, /* WRITEs of a cycle */
	COUNT = 20,  /* most WRITEs of a round */
	BYTES = 64,  /* bytes of a WRITE */
	PLACE = 128, /* bytes from one place to the next */
	PATIENCE_S = 300,
};

enum kind { SPIN, SLEEP, POLL_OTHER, ARM, POST_OTHER, KINDS };

enum { INITIATOR, TARGET };

static struct shared {
	struct endpoint_address address[2][2]; /* by side and QP */
	/* is_there: the side's addresses are in address[].  is_ready: the side
	 * is connected. */
	int is_there[2], is_ready[2];
	int round, count; /* the last round, and how many posts it has */
	int seen;	  /* the last round that the target saw */
} * shared;

static struct endpoint ends[2];
static pid_t target_pid;

static void open_side(int who)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (int i = 0; i < 2; i++) {
		endpoint_open(&ends[i],
			      IBV_ACCESS_LOCAL_WRITE | ENDPOINT_ALL_REMOTE,
			      ENDPOINT_ALL_REMOTE);
		endpoint_address_get(&ends[i], &shared->address[who][i]);
	}
	step_timeout_say(&shared->is_there[who], 1);
	step_timeout_await(&shared->is_there[!who], 1);
	for (int i = 0; i < 2; i++) {
		endpoint_to_rtr(&ends[i], &shared->address[!who][i]);
		endpoint_to_rts(&ends[i], &shared->address[who][i], 7);
	}
	step_timeout_say(&shared->is_ready[who], 1);
	step_timeout_await(&shared->is_ready[!who], 1);
}

/* ---- the target ---- */

static _Noreturn void watch_memory(void)
{
	open_side(TARGET);
	for (int round = 1;; round++) {
		while (step_timeout_look(&shared->round) < round)
			sched_yield();
		for (int i = 0; i < shared->count; i++) {
			uint8_t *last = ends[0].region + i * PLACE + BYTES - 1;

			/* An atomic load reads the byte again at each turn; no
			 * other load depends on its order. */
			while (__atomic_load_n(last, __ATOMIC_ACQUIRE) !=
			       (uint8_t)round)
				sched_yield();
		}
		step_timeout_say(&shared->seen, round);
	}
}

/* ---- the initiator ---- */

static void post_write(struct endpoint *e, int which, int place, uint8_t value)
{
	const struct endpoint_address *to = &shared->address[TARGET][which];
	uint8_t *from = e->region + place * PLACE;
	struct ibv_sge sge = {(uintptr_t)from, BYTES, e->mr->lkey};
	struct ibv_send_wr *bad, wr = {.sg_list = &sge,
				       .num_sge = 1,
				       .opcode = IBV_WR_RDMA_WRITE,
				       .send_flags = IBV_SEND_SIGNALED};

	memset(from, value, BYTES);
	wr.wr.rdma.remote_addr = to->region + (uint64_t)(place * PLACE);
	wr.wr.rdma.rkey = to->rkey;
	if (ibv_post_send(e->qp, &wr, &bad))
		step_timeout_die("ibv_post_send");
}

static void poll_all(struct endpoint *e, int count)
{
	struct ibv_wc wc;

	for (; count; count--) {
		if (!endpoint_wait(e, &wc))
			step_timeout_fail("a WRITE has not completed");
		if (wc.status)
			step_timeout_fail(ibv_wc_status_str(wc.status));
	}
}

/* Posts and polls CYCLES times, to places behind those of the rounds. */
static void post_stream(uint8_t value)
{
	for (int cycle = 0; cycle < CYCLES; cycle++) {
		for (int i = 0; i < STREAM; i++)
			post_write(&ends[0], 0, COUNT + i, value);
		poll_all(&ends[0], STREAM);
	}
}

/* Returns whether the WRITE to `place` has not yet arrived in the target's
 * memory; false if that memory cannot be read. */
static bool is_waiting(int place, uint8_t value)
{
	uint64_t at = shared->address[TARGET][0].region +
		      (uint64_t)(place * PLACE) + BYTES - 1;
	uint8_t byte = value;
	struct iovec to = {&byte, 1}, from = {(void *)(uintptr_t)at, 1};

	return process_vm_readv(target_pid, &to, 1, &from, 1, 0) == 1 &&
	       byte != value;
}

static void do_as_said(enum kind kind, int round)
{
	struct ibv_wc wc;

	switch (kind) {
	case POLL_OTHER:
		ibv_poll_cq(ends[1].cq, 1, &wc);
		break;
	case ARM:
		if (ibv_req_notify_cq(ends[0].cq, 0))
			step_timeout_die("ibv_req_notify_cq");
		break;
	case POST_OTHER:
		post_write(&ends[1], 1, 0, (uint8_t)round);
		poll_all(&ends[1], 1);
		break;
	case SLEEP:
		usleep(1000);
		break;
	case SPIN:
	case KINDS:
		break;
	}
}

/* Returns false if this user may not set the policy. */
static bool become_realtime(void)
{
	struct sched_param lowest = {
		.sched_priority = sched_get_priority_min(SCHED_FIFO)};
	cpu_set_t one;

	CPU_ZERO(&one);
	CPU_SET((size_t)sched_getcpu(), &one);
	if (sched_setaffinity(0, sizeof(one), &one))
		step_timeout_die("sched_setaffinity");
	return !sched_setscheduler(0, SCHED_FIFO, &lowest);
}

static int run_round(int round)
{
	enum kind kind = (enum kind)(round % KINDS);
	int count = round % COUNT + 1, waited;

	post_stream((uint8_t)round);
	for (int i = 0; i < count; i++)
		post_write(&ends[0], 0, i, (uint8_t)round);
	waited = is_waiting(count - 1, (uint8_t)round);
	shared->count = count;
	step_timeout_say(&shared->round, round);
	do_as_said(kind, round);
	while (step_timeout_look(&shared->seen) < round)
		if (kind != SPIN)
			sched_yield();
	poll_all(&ends[0], count);
	return waited;
}

int main(int argc, char **argv)
{
	int rounds = argc >= 2 ? atoi(argv[1]) : 0, waited = 0;
	bool is_realtime = argc == 3 && !strcmp(argv[2], "realtime");

	if (rounds <= 0 || argc != 2 + is_realtime) {
		fprintf(stderr, "usage: gathered ROUNDS [realtime]\n");
		return 2;
	}
	shared = step_timeout_share(sizeof(*shared));
	target_pid = step_timeout_fork();
	if (!target_pid)
		watch_memory();
	if (is_realtime && !become_realtime()) {
		kill(target_pid, SIGKILL);
		printf("skipped: this user may not set SCHED_FIFO\n");
		return 77;
	}
	step_timeout_watch("the target has not seen all WRITEs");
	open_side(INITIATOR);
	for (int round = 1; round <= rounds; round++) {
		step_timeout_step("a round", PATIENCE_S);
		waited += run_round(round);
	}
	kill(target_pid, SIGKILL);
	waitpid(target_pid, NULL, 0);
	printf("the last WRITE waited in %d of %d rounds\n", waited, rounds);
	return 0;
}
