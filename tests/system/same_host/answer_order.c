/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * answer_order ROUNDS BYTES [events]: two processes send each other BYTES in
 * turn.  A process's SEND completes before the answer to that SEND comes: the
 * completion queue, which sends and receives share, shows the two in that
 * order.
 *
 *	asks					answers
 *	SEND				->	receive
 *	completion of the SEND, receive	<-	SEND
 *						completion of the SEND, receive
 *
 * With "events" each process sleeps until its completion queue has an event;
 * without, it polls.  Exits with 0, or prints what is wrong.
 */
#include "step_timeout.h"
#include "argument.h"
#include "endpoint.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>

enum { ASKS, ANSWERS };
/* ACK_TIMEOUT is 4.3 s: with ADVERB_STRICT the retries of a shorter timeout end
 * while the peer waits for a core. */
enum { RECEIVES = 16, PATIENCE_S = 300, STEP_ROUNDS = 1000, ACK_TIMEOUT = 20 };

/* Shared by both processes and their parent. */
static struct shared_steps {
	struct endpoint_address address[2]; /* one of each process */
	/* is_there: the process's address is in address[].  is_ready: the
	 * process is connected.  is_over: the process has ended its rounds. */
	int is_there[2], is_ready[2], is_over[2];
} * shared_steps;

static struct endpoint this_end;
static uint32_t bytes;
static bool has_events;

static struct ibv_sge buffer_sge(void)
{
	return (struct ibv_sge){(uintptr_t)this_end.region, bytes,
				this_end.mr->lkey};
}

static void post_receive(void)
{
	struct ibv_sge sge = buffer_sge();
	struct ibv_recv_wr *bad, wr = {.sg_list = &sge, .num_sge = 1};

	if ((errno = ibv_post_recv(this_end.qp, &wr, &bad)))
		step_timeout_die("post_recv");
}

static void post_send(void)
{
	struct ibv_sge sge = buffer_sge();
	struct ibv_send_wr *bad, wr = {.sg_list = &sge,
				       .num_sge = 1,
				       .opcode = IBV_WR_SEND,
				       .send_flags = IBV_SEND_SIGNALED};

	if ((errno = ibv_post_send(this_end.qp, &wr, &bad)))
		step_timeout_die("post_send");
}

static void await_event(void)
{
	struct ibv_cq *cq;
	void *context;

	if (ibv_get_cq_event(this_end.channel, &cq, &context))
		step_timeout_die("get_cq_event");
	ibv_ack_cq_events(cq, 1);
	if ((errno = ibv_req_notify_cq(cq, 0)))
		step_timeout_die("req_notify_cq");
}

static enum ibv_wc_opcode next_completion(void)
{
	struct ibv_wc wc;
	int n;

	while (!(n = ibv_poll_cq(this_end.cq, 1, &wc)))
		if (has_events)
			await_event();
	if (n < 0 || wc.status) {
		printf("status %d\n", n < 0 ? n : (int)wc.status);
		step_timeout_fail("a completion has this status");
	}
	return wc.opcode;
}

/* Takes the completion of the SEND of this round, and then the answer. */
static void take_answer(int round)
{
	if (next_completion() == IBV_WC_RECV) {
		printf("round %d: the answer came before the completion of the "
		       "SEND that it answers\n",
		       round);
		fflush(stdout);
		_exit(1);
	}
	if (next_completion() != IBV_WC_RECV)
		step_timeout_fail(
			"the completion after a SEND is not a receive");
	post_receive();
}

/* Each STEP_ROUNDS rounds have a time limit of PATIENCE_S seconds.  The whole
 * run has none. */
static void begin_step(int who)
{
	step_timeout_step(who ? "the process that answers"
			      : "the process that asks",
			  PATIENCE_S);
}

static void talk_rounds(int who, int rounds)
{
	if (who == ANSWERS) {
		if (next_completion() != IBV_WC_RECV)
			step_timeout_fail(
				"the first completion is not a receive");
		post_receive();
	}
	for (int round = 0; round < rounds; round++) {
		if (round % STEP_ROUNDS == 0)
			begin_step(who);
		post_send();
		/* the last answer has no answer */
		if (who == ASKS || round + 1 < rounds)
			take_answer(round);
	}
	if (who == ANSWERS && next_completion() != IBV_WC_SEND)
		step_timeout_fail("the last completion is not a SEND");
}

static void meet_peer(int who)
{
	step_timeout_say(&shared_steps->is_there[who], 1);
	step_timeout_await(&shared_steps->is_there[!who], 1);
	endpoint_to_rtr(&this_end, &shared_steps->address[!who]);
	endpoint_to_rts(&this_end, &shared_steps->address[who], 7);
	step_timeout_say(&shared_steps->is_ready[who], 1);
	step_timeout_await(&shared_steps->is_ready[!who], 1);
}

static pid_t begin_end(int who, int rounds)
{
	pid_t pid = step_timeout_fork();

	if (pid)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	step_timeout_watch("the rounds do not go on");
	begin_step(who);
	endpoint_open(&this_end, IBV_ACCESS_LOCAL_WRITE, 0);
	this_end.timeout = ACK_TIMEOUT;
	endpoint_address_get(&this_end, &shared_steps->address[who]);
	for (int i = 0; i < RECEIVES; i++)
		post_receive();
	if (has_events && (errno = ibv_req_notify_cq(this_end.cq, 0)))
		step_timeout_die("req_notify_cq");
	meet_peer(who);
	talk_rounds(who, rounds);
	/* stay, since the peer's last packets may still need an ACK */
	step_timeout_say(&shared_steps->is_over[who], 1);
	step_timeout_await(&shared_steps->is_over[!who], 1);
	_exit(0);
}

int main(int argc, char **argv)
{
	static const char *const kinds[] = {"events", NULL};
	int status, rounds, size, result = 0;
	pid_t pid[2];

	if (argc < 3 || argc > 4 || !argument_number(argv[1], 1, &rounds) ||
	    !argument_number(argv[2], 0, &size) || size > ENDPOINT_SIZE ||
	    (argc > 3 && !argument_is(argv[3], kinds))) {
		fprintf(stderr,
			"usage: answer_order ROUNDS BYTES [events]: at least "
			"one round, at most %d bytes\n",
			ENDPOINT_SIZE);
		return 2;
	}
	bytes = (uint32_t)size;
	has_events = argc > 3;
	shared_steps = step_timeout_share(sizeof(*shared_steps));
	for (int who = 0; who < 2; who++)
		pid[who] = begin_end(who, rounds);
	for (int n = 0; n < 2; n++) {
		pid_t first = waitpid(-1, &status, 0);

		/* The other process, unless it has ended, would wait for the
		 * failed process. */
		if (status && !n)
			kill(pid[first == pid[ASKS]], SIGKILL);
		result |= status != 0;
	}
	return result;
}
