/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * samehost stopped HOW [hidden] | map HOW | kill TIMES [SEED]
 *
 * Tests two processes of one host, by public verbs alone.
 *	stopped	the target is stopped.  With HOW direct, a WRITE, a READ and a
 *		SEND complete while the target is stopped, and an atomic
 *		completes when the target continues.  With HOW mapped (and
 *		ENDS_SHARED=1), the atomic also completes while the target is
 *		stopped.  With HOW packets, all four complete when the target
 *		continues.  With "hidden", the target lets no process of its
 *		user write into its memory.
 *	map	both processes map the peer's arena when they connect, before
 *		either of them posts.  With HOW packets, neither maps the peer's
 *		arena.
 *	kill	in each of TIMES rounds, one of two working processes is killed
 *		at a moment that SEED selects; in every second pair of rounds a
 *		request has succeeded before.  The requests of the survivor must
 *		complete, or fail after the kill with a right status, and no
 *		byte outside the survivor's region may be written.
 * Exits with 0, with 2 if the arguments are not as above, or prints a message
 * and exits with 1.
 */
#include "step_timeout.h"
#include "argument.h"
#include "endpoint.h"
#include "leak_check.h"
#include "sleeps.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { INITIATOR, TARGET };
/* Limit of a round of `kill`.  The limit is longer than ENDPOINT_EVENT_MS, so
 * that a process first reports an event that does not come, and shorter than
 * the suite's limit, so that this program reports any other hang. */
enum { PATIENCE_S = 300 };

/* Shared by both processes and their parent. */
struct shared_steps {
	struct endpoint_address address[2]; /* one of each process */
	/* is_there: the process's address is in address[].  is_ready: the
	 * process is connected.  has_mapped: the process has mapped as many
	 * arenas as expected. */
	int is_there[2], is_ready[2], has_mapped[2];
	/* stopped: the step of the case; map: how many arenas of peers a
	 * process is to map; kill: 1 after the kill */
	int order;
	int has_succeeded; /* a request or a receive has succeeded */
	int is_doomed;	   /* the parent may kill a process from now on */
};

static struct shared_steps *shared_steps;
static struct endpoint me;

static void meet_peer(int who)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	endpoint_open(&me, IBV_ACCESS_LOCAL_WRITE | ENDPOINT_ALL_REMOTE,
		      ENDPOINT_ALL_REMOTE);
	memset(me.region, 0, ENDPOINT_SIZE);
	endpoint_address_get(&me, &shared_steps->address[who]);
	step_timeout_say(&shared_steps->is_there[who], 1);
	step_timeout_await(&shared_steps->is_there[!who], 1);
	endpoint_to_rtr(&me, &shared_steps->address[!who]);
	endpoint_to_rts(&me, &shared_steps->address[who], 7);
	step_timeout_say(&shared_steps->is_ready[who], 1);
	step_timeout_await(&shared_steps->is_ready[!who], 1);
}

static void post_request(enum ibv_wr_opcode op, uint64_t id, uint64_t at,
			 uint32_t bytes)
{
	const struct endpoint_address *far = &shared_steps->address[TARGET];
	struct ibv_sge sge = {(uintptr_t)me.region + at, bytes, me.mr->lkey};
	struct ibv_send_wr *bad, wr = {.wr_id = id,
				       .sg_list = &sge,
				       .num_sge = 1,
				       .opcode = op,
				       .send_flags = IBV_SEND_SIGNALED};

	wr.wr.rdma.remote_addr = far->region + at;
	wr.wr.rdma.rkey = far->rkey;
	if ((errno = ibv_post_send(me.qp, &wr, &bad)))
		step_timeout_die("post_send");
}

static void post_atomic(enum ibv_wr_opcode op, uint64_t at, uint64_t compare,
			uint64_t swap_add)
{
	const struct endpoint_address *far = &shared_steps->address[TARGET];
	struct ibv_sge sge = {(uintptr_t)me.region + at, 8, me.mr->lkey};
	struct ibv_send_wr *bad, wr = {.sg_list = &sge,
				       .num_sge = 1,
				       .opcode = op,
				       .send_flags = IBV_SEND_SIGNALED};

	wr.wr.atomic.remote_addr = far->region + at;
	wr.wr.atomic.rkey = far->rkey;
	wr.wr.atomic.compare_add =
		op == IBV_WR_ATOMIC_CMP_AND_SWP ? compare : swap_add;
	wr.wr.atomic.swap = swap_add;
	if ((errno = ibv_post_send(me.qp, &wr, &bad)))
		step_timeout_die("post_send");
}

static void post_receive(uint32_t bytes)
{
	struct ibv_sge sge = {(uintptr_t)me.region, bytes, me.mr->lkey};
	struct ibv_recv_wr *bad, wr = {.sg_list = &sge, .num_sge = 1};

	if ((errno = ibv_post_recv(me.qp, &wr, &bad)))
		step_timeout_die("post_recv");
}

/* Expects that the next completion comes and is successful.  @what names the
 * request or the receive in a message. */
static void must_complete(const char *what)
{
	struct ibv_wc wc;
	bool has_one = endpoint_wait(&me, &wc);

	if (!has_one || wc.status != IBV_WC_SUCCESS) {
		printf("%s: %s\n", what,
		       has_one ? ibv_wc_status_str(wc.status)
			       : "no completion");
		fflush(stdout);
		_exit(1);
	}
}

static pid_t start_child(void (*what)(int), int argument)
{
	pid_t pid = step_timeout_fork();

	if (!pid) {
		what(argument);
		endpoint_close(&me);
		_exit(0);
	}
	return pid;
}

static int await_child(pid_t pid)
{
	int status = -1;

	waitpid(pid, &status, 0);
	return status;
}

/* ---- stopped ---- */

static void be_stopped(int is_hidden)
{
	if (is_hidden && prctl(PR_SET_DUMPABLE, 0))
		step_timeout_die("PR_SET_DUMPABLE");
	meet_peer(TARGET);
	post_receive(64);
	step_timeout_say(&shared_steps->order, 1);
	/* The parent stops this process here. */
	while (step_timeout_look(&shared_steps->order) != 2)
		sched_yield();
	must_complete("the target's receive");
	if (me.region[0] != 7 || me.region[256] != 7 ||
	    *(uint64_t *)(void *)(me.region + 512) != 5)
		step_timeout_fail(
			"the target's region lacks the written bytes");
}

static void wait_stopped(pid_t pid)
{
	int status;

	kill(pid, SIGSTOP);
	if (waitpid(pid, &status, WUNTRACED) != pid || !WIFSTOPPED(status))
		step_timeout_fail("the target does not stop");
}

/* Posts four requests to the stopped target.  The first `alone` of them have to
 * complete while the target is stopped, and the rest when it continues. */
static void work_on_stopped(int alone)
{
	struct ibv_wc wc;

	meet_peer(INITIATOR);
	step_timeout_await(&shared_steps->order, 3);
	memset(me.region, 7, 512);
	post_request(IBV_WR_SEND, 1, 0, 64);
	post_request(IBV_WR_RDMA_WRITE, 2, 256, 64);
	post_request(IBV_WR_RDMA_READ, 3, 1024, 64);
	for (int i = 0; i < alone && i < 3; i++)
		must_complete("a request to the stopped target");
	post_atomic(IBV_WR_ATOMIC_FETCH_AND_ADD, 512, 0, 5);
	if (alone == 4)
		must_complete("an atomic to the stopped target");
	for (int i = 0; i < 20000; i++)
		if (ibv_poll_cq(me.cq, 1, &wc))
			step_timeout_fail(
				"a request completed while the target was stopped");
	step_timeout_say(&shared_steps->order, 4);
	step_timeout_await(&shared_steps->order, 5);
	for (int i = alone; i < 4; i++)
		must_complete("a request after the target has continued");
	step_timeout_say(&shared_steps->order, 2);
}

static int run_stopped(int alone, int is_hidden)
{
	pid_t target = start_child(be_stopped, is_hidden);
	pid_t initiator = start_child(work_on_stopped, alone);
	int bad = 0;

	while (step_timeout_look(&shared_steps->order) != 1 && !bad) {
		usleep(1000);
		bad = waitpid(target, NULL, WNOHANG) ||
		      waitpid(initiator, NULL, WNOHANG);
	}
	if (bad)
		step_timeout_fail(
			"a process ended before the target was stopped");
	wait_stopped(target);
	step_timeout_say(&shared_steps->order, 3);
	while (step_timeout_look(&shared_steps->order) != 4 && !bad) {
		usleep(1000);
		bad = waitpid(initiator, NULL, WNOHANG) == initiator;
	}
	kill(target, SIGCONT);
	step_timeout_say(&shared_steps->order, 5);
	if (bad) {
		kill(target, SIGKILL);
		await_child(target);
		return 1;
	}
	bad = await_child(initiator);
	if (bad)
		kill(target, SIGKILL);
	return await_child(target) || bad;
}

/* ---- map ---- */

/* Waits until this process has mapped its own arena and those of as many peers
 * as the case expects. */
static void await_mapping(int who)
{
	struct leak_check h = {0};

	meet_peer(who);
	while (h.arenas < 1 + shared_steps->order) {
		usleep(1000);
		leak_check_get(&h);
	}
	/* When the library's threads have slept for a while, they are not about
	 * to map a further arena. */
	sleeps_await();
	leak_check_get(&h);
	step_timeout_say(&shared_steps->has_mapped[who], 1);
	step_timeout_await(&shared_steps->has_mapped[!who], 1);
	if (h.arenas != 1 + shared_steps->order)
		step_timeout_fail("more arenas are mapped than expected");
}

static int check_mapping(int peers)
{
	pid_t pid[2];

	shared_steps->order = peers;
	step_timeout_watch("an end does not map the arena of the other end");
	step_timeout_step("map", PATIENCE_S);
	for (int i = 0; i < 2; i++)
		pid[i] = start_child(await_mapping, i);
	return await_child(pid[0]) | await_child(pid[1]);
}

/* ---- kill ---- */

/* Returns whether the parent has killed the peer of this process. */
static bool is_over(void)
{
	return step_timeout_look(&shared_steps->order) != 0;
}

/* Expects that a request or receive succeeds, or fails after the kill with a
 * status that the death of a peer can cause. */
static void check_end(const struct ibv_wc *wc)
{
	if (wc->status == IBV_WC_SUCCESS)
		step_timeout_say(&shared_steps->has_succeeded, 1);
	if (wc->status != IBV_WC_SUCCESS &&
	    wc->status != IBV_WC_RETRY_EXC_ERR &&
	    wc->status != IBV_WC_RNR_RETRY_EXC_ERR &&
	    wc->status != IBV_WC_WR_FLUSH_ERR) {
		printf("a completion is %s\n", ibv_wc_status_str(wc->status));
		fflush(stdout);
		_exit(1);
	}
	if (wc->status != IBV_WC_SUCCESS &&
	    !step_timeout_look(&shared_steps->is_doomed)) {
		printf("%s before the kill\n", ibv_wc_status_str(wc->status));
		fflush(stdout);
		_exit(1);
	}
}

/* Posts requests until the target is killed or a request fails; each request
 * must end. */
static void be_initiator(int seed)
{
	static const enum ibv_wr_opcode ops[] = {IBV_WR_RDMA_WRITE, IBV_WR_SEND,
						 IBV_WR_RDMA_READ,
						 IBV_WR_RDMA_WRITE};
	unsigned next = (unsigned)seed;
	int under_way = 0;
	struct ibv_wc wc = {.status = IBV_WC_SUCCESS};

	meet_peer(INITIATOR);
	while (wc.status == IBV_WC_SUCCESS) {
		uint32_t bytes = 1u << (next++ * 7 % 13);

		if (under_way < ENDPOINT_DEPTH / 2 && !is_over()) {
			post_request(ops[next % 4], 0, next % 64, bytes);
			under_way++;
		}
		if (ibv_poll_cq(me.cq, 1, &wc)) {
			check_end(&wc);
			under_way--;
		}
		if (is_over() && !under_way)
			break; /* no request is left, and none is posted */
	}
	for (; under_way; under_way--) {
		if (!endpoint_wait(&me, &wc))
			step_timeout_fail("a work request never ends");
		check_end(&wc);
	}
	if (!endpoint_guarded(&me))
		step_timeout_fail(
			"a byte beside the initiator's region has changed");
}

/* Polls for completed receives, and subtracts them from *posted.  Returns
 * whether there was one. */
static bool take_receives(int *posted)
{
	int before = *posted;
	struct ibv_wc wc;

	while (*posted && ibv_poll_cq(me.cq, 1, &wc)) {
		check_end(&wc);
		(*posted)--;
	}
	return *posted < before;
}

static bool wait_event(int ms)
{
	struct pollfd fd = {me.channel->fd, POLLIN, 0};
	struct ibv_cq *cq;
	void *context;

	if (poll(&fd, 1, ms) != 1)
		return false;
	if (ibv_get_cq_event(me.channel, &cq, &context))
		step_timeout_die("get_cq_event");
	ibv_ack_cq_events(cq, 1);
	return true;
}

/* Expects that a thread which arms the CQ, finds no completion and sleeps gets
 * an event for the next completion, even if the sender has died. */
static void sleep_armed(int *posted)
{
	bool told = false;

	if (ibv_req_notify_cq(me.cq, 0))
		step_timeout_die("req_notify_cq");
	if (take_receives(posted))
		return;
	while (!is_over() && !told)
		told = wait_event(1);
	if (!told && take_receives(posted) && !wait_event(ENDPOINT_EVENT_MS)) {
		printf("an event never comes\n");
		fflush(stdout);
		_exit(1);
	}
}

static void be_target(int seed)
{
	struct ibv_qp_attr err = {.qp_state = IBV_QPS_ERR};
	int posted = 0;
	struct ibv_wc wc;

	meet_peer(TARGET);
	while (!is_over()) {
		for (; posted < ENDPOINT_DEPTH / 2; posted++)
			post_receive(ENDPOINT_SIZE);
		if (seed & 4)
			sleep_armed(&posted);
		else
			take_receives(&posted);
	}
	if (ibv_modify_qp(me.qp, &err, IBV_QP_STATE))
		step_timeout_die("modify to ERR");
	for (; posted; posted--) {
		if (!endpoint_wait(&me, &wc))
			step_timeout_fail("a receive is not flushed");
		check_end(&wc);
	}
	if (!endpoint_guarded(&me))
		step_timeout_fail(
			"a byte beside the target's region has changed");
}

/* Runs one round of `kill`.  Returns 0 if the survivor succeeded. */
static int kill_one(int seed)
{
	pid_t pid[2];
	int victim = seed & 1, bad;

	memset(shared_steps, 0, sizeof(*shared_steps));
	pid[INITIATOR] = start_child(be_initiator, seed);
	pid[TARGET] = start_child(be_target, seed);
	while (!step_timeout_look(&shared_steps->is_ready[0]) ||
	       !step_timeout_look(&shared_steps->is_ready[1]))
		usleep(100);
	/* Without this wait, each kill might come before the first request has
	 * ended. */
	if (seed & 2)
		step_timeout_await(&shared_steps->has_succeeded, 1);
	usleep((unsigned)seed * 7919 % 3000);
	step_timeout_say(&shared_steps->is_doomed, 1);
	kill(pid[victim], SIGKILL);
	await_child(pid[victim]);
	step_timeout_say(&shared_steps->order, 1);
	bad = await_child(pid[!victim]);
	if (bad)
		printf("the %s did not survive, seed %d\n",
		       victim == INITIATOR ? "target" : "initiator", seed);
	return bad;
}

/* Are the arguments those of the first comment?  Stores TIMES and SEED of
 * `kill`. */
static bool are_arguments(int argc, char **argv, int *times, int *seed)
{
	static const char *const stopped[] = {"direct", "mapped", "packets",
					      NULL};
	static const char *const map[] = {"direct", "packets", NULL};

	if (argc < 3 || argc > 4)
		return false;
	if (!strcmp(argv[1], "stopped"))
		return argument_is(argv[2], stopped) &&
		       (argc == 3 || !strcmp(argv[3], "hidden"));
	if (!strcmp(argv[1], "map"))
		return argc == 3 && argument_is(argv[2], map);
	return !strcmp(argv[1], "kill") && argument_number(argv[2], 1, times) &&
	       (argc == 3 || argument_number(argv[3], 0, seed));
}

int main(int argc, char **argv)
{
	int n = 0, seed = 0, bad = 0;

	if (!are_arguments(argc, argv, &n, &seed)) {
		fprintf(stderr, "usage: samehost stopped direct|mapped|packets "
				"[hidden]\n"
				"       samehost map direct|packets\n"
				"       samehost kill TIMES [SEED]\n");
		return 2;
	}
	shared_steps = step_timeout_share(sizeof(*shared_steps));
	if (!strcmp(argv[1], "stopped"))
		return run_stopped(!strcmp(argv[2], "direct")	? 3
				   : !strcmp(argv[2], "mapped") ? 4
								: 0,
				   argc > 3) != 0;
	if (!strcmp(argv[1], "map"))
		return check_mapping(!strcmp(argv[2], "direct")) != 0;
	step_timeout_watch("no request succeeds, or a process does not end");
	for (int i = 0; i < n && !bad; i++) {
		step_timeout_step("kill", PATIENCE_S);
		bad = kill_one((int)(((unsigned)i + (unsigned)seed) & INT_MAX));
	}
	return bad != 0;
}
