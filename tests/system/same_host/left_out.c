/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * left_out [WHO]: one process sends few bytes without packets, to a process
 * that does not poll.  WHO, initiator or target, does not use eager messages
 * (ADVERB_WITHOUT).
 *
 *	target: posts a receive		initiator: sends, and polls
 *	looks at the memory, polls
 *
 * Exits with 0 if the bytes came into the memory only with the poll, with 2 if
 * WHO is another word, with 3 if the bytes were there before the poll, else
 * with 1.  A process that finds a fault prints it.
 */
#include "step_timeout.h"
#include "argument.h"
#include "endpoint.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>

enum { TARGET, INITIATOR };
enum { BYTES = 40, BEFORE_POLL = 3 };

/* Shared by both processes and their parent. */
static struct shared_steps {
	struct endpoint_address address[2]; /* one of each process */
	/* is_there: the process's address is in address[].  is_ready: the
	 * process is connected.  is_sent: the initiator's SEND has completed.
	 * is_over: the target has polled. */
	int is_there[2], is_ready[2], is_sent, is_over;
} * shared_steps;

static struct endpoint this_end;

static void meet_peer(int who)
{
	step_timeout_say(&shared_steps->is_there[who], 1);
	step_timeout_await(&shared_steps->is_there[!who], 1);
	endpoint_to_rtr(&this_end, &shared_steps->address[!who]);
	endpoint_to_rts(&this_end, &shared_steps->address[who], 7);
	step_timeout_say(&shared_steps->is_ready[who], 1);
	step_timeout_await(&shared_steps->is_ready[!who], 1);
}

static struct ibv_sge few_bytes(void)
{
	return (struct ibv_sge){(uintptr_t)this_end.region, BYTES,
				this_end.mr->lkey};
}

static bool is_filled(uint8_t value)
{
	for (int i = 0; i < BYTES; i++)
		if (this_end.region[i] != value)
			return false;
	return true;
}

static int be_target(void)
{
	struct ibv_sge sge = few_bytes();
	struct ibv_recv_wr *bad, wr = {.sg_list = &sge, .num_sge = 1};
	bool before;
	struct ibv_wc wc;

	if ((errno = ibv_post_recv(this_end.qp, &wr, &bad)))
		step_timeout_die("post_recv");
	meet_peer(TARGET);
	step_timeout_await(&shared_steps->is_sent, 1);
	before = is_filled(9);
	if (!before && !is_filled(ENDPOINT_FILL))
		step_timeout_fail("a part of the bytes came before the poll");
	if (!endpoint_wait(&this_end, &wc) || wc.status || !is_filled(9))
		step_timeout_fail("the receive failed or has other bytes");
	step_timeout_say(&shared_steps->is_over, 1);
	return before ? BEFORE_POLL : 0;
}

static int be_initiator(void)
{
	struct ibv_sge sge = few_bytes();
	struct ibv_send_wr *bad, wr = {.sg_list = &sge,
				       .num_sge = 1,
				       .opcode = IBV_WR_SEND,
				       .send_flags = IBV_SEND_SIGNALED};
	struct ibv_wc wc;

	memset(this_end.region, 9, BYTES);
	meet_peer(INITIATOR);
	if ((errno = ibv_post_send(this_end.qp, &wr, &bad)))
		step_timeout_die("post_send");
	if (!endpoint_wait(&this_end, &wc) || wc.status)
		step_timeout_fail("the SEND did not succeed");
	step_timeout_say(&shared_steps->is_sent, 1);
	step_timeout_await(&shared_steps->is_over, 1);
	return 0;
}

static pid_t begin_end(int who, bool lacks)
{
	pid_t pid = step_timeout_fork();

	if (pid)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (lacks)
		setenv("ADVERB_WITHOUT", "eager", 1);
	endpoint_open(&this_end, IBV_ACCESS_LOCAL_WRITE, 0);
	endpoint_address_get(&this_end, &shared_steps->address[who]);
	_exit(who == TARGET ? be_target() : be_initiator());
}

int main(int argc, char **argv)
{
	static const char *const ends[] = {"initiator", "target", NULL};
	const char *who = argc > 1 ? argv[1] : "";
	int status, result = 0;
	pid_t pid[2];

	if (argc > 2 || (argc == 2 && !argument_is(who, ends))) {
		fprintf(stderr, "usage: left_out [initiator|target]\n");
		return 2;
	}
	shared_steps = step_timeout_share(sizeof(*shared_steps));
	pid[TARGET] = begin_end(TARGET, !strcmp(who, "target"));
	pid[INITIATOR] = begin_end(INITIATOR, !strcmp(who, "initiator"));
	for (int n = 0; n < 2; n++) {
		pid_t first = waitpid(-1, &status, 0);

		if (!status)
			continue;
		if (WIFEXITED(status) && WEXITSTATUS(status) == BEFORE_POLL) {
			result = BEFORE_POLL;
			continue;
		}
		result = 1;
		/* The other process would wait for the failed process. */
		if (!n)
			kill(pid[first == pid[TARGET]], SIGKILL);
	}
	return result;
}
