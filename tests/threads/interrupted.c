/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * interrupted: a signal arrives while a program sleeps for a completion.  As in
 * a read(2) of a completion channel, the flags of the signal's handler decide
 * whether the sleep continues (SA_RESTART) or ends with EINTR.  Both endpoints
 * are in this process.
 */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "../check.h"
#include "../system/lib/endpoint.h"
#include "../system/lib/step_timeout.h"

#define WARM	   50 /* sleeps after which the sleeper makes progress itself */
#define WARM_AGAIN 4
#define SIGNALS	   40
#define MIDST	   100 /* signals while the sleeper makes progress */
#define PATIENCE_S 400 /* a test or a round that takes longer has hung */

static struct endpoint endpoint[2];
static atomic_uint handled;
static atomic_bool has_ended;

static void handle_signal(int sig)
{
	(void)sig;
	atomic_fetch_add(&handled, 1);
}

/* Sets the handler of a signal; flags < 0: the default action. */
static void set_handler(int sig, int flags)
{
	struct sigaction a = {.sa_handler = flags < 0 ? SIG_DFL : handle_signal,
			      .sa_flags = flags < 0 ? 0 : flags};

	check_need(!sigaction(sig, &a, NULL), "sigaction");
}

static void post_receive(void)
{
	struct ibv_sge sge = {(uintptr_t)endpoint[1].region, 8,
			      endpoint[1].mr->lkey};
	struct ibv_recv_wr wr = {.sg_list = &sge, .num_sge = 1}, *bad;

	check_need(!ibv_post_recv(endpoint[1].qp, &wr, &bad), "ibv_post_recv");
}

static void post_one(enum ibv_wr_opcode opcode)
{
	struct ibv_sge sge = {(uintptr_t)endpoint[0].region, 8,
			      endpoint[0].mr->lkey};
	struct ibv_send_wr wr = {.sg_list = &sge,
				 .num_sge = 1,
				 .opcode = opcode,
				 .send_flags = IBV_SEND_SIGNALED},
			   *bad;

	wr.wr.rdma.remote_addr = (uintptr_t)endpoint[1].region;
	wr.wr.rdma.rkey = endpoint[1].mr->rkey;
	check_need(!ibv_post_send(endpoint[0].qp, &wr, &bad), "ibv_post_send");
}

static void send_one(void)
{
	struct ibv_wc wc;

	post_one(IBV_WR_SEND);
	check_need(endpoint_wait(&endpoint[0], &wc) && !wc.status, "the SEND");
}

/* Sleeps until the channel has an event.  Returns 0 or errno. */
static int sleep_for_event(void)
{
	struct ibv_cq *cq;
	void *context;

	if (ibv_get_cq_event(endpoint[1].channel, &cq, &context))
		return errno;
	ibv_ack_cq_events(cq, 1);
	return 0;
}

static void take_completion(void)
{
	struct ibv_wc wc;

	check_need(endpoint_wait(&endpoint[1], &wc) && !wc.status,
		   "the receive");
	post_receive();
	check_need(!ibv_req_notify_cq(endpoint[1].cq, 0), "ibv_req_notify_cq");
}

static void *send_after_a_moment(void *arg)
{
	(void)arg;
	usleep(100);
	send_one();
	return NULL;
}

static void warm_up(int sleeps)
{
	for (int i = 0; i < sleeps; i++) {
		pthread_t other;

		check_need(!pthread_create(&other, NULL, send_after_a_moment,
					   NULL),
			   "a thread");
		check_need(!sleep_for_event(), "the sleep");
		pthread_join(other, NULL);
		take_completion();
	}
}

struct plan {
	pthread_t sleeper;
	int first; /* a signal that does not end the sleep; 0: none */
	int then;  /* a signal that ends the sleep; 0: a SEND ends it */
};

/* Sends many signals, since a signal that comes before the sleep interrupts
 * nothing. */
static void *disturb_sleeper(void *arg)
{
	const struct plan *p = arg;
	unsigned from = atomic_load(&handled);

	for (int i = 0; p->first && i < SIGNALS; i++) {
		pthread_kill(p->sleeper, p->first);
		usleep(1000);
	}
	while (p->first && atomic_load(&handled) == from)
		usleep(1000);
	if (!p->then)
		send_one();
	while (p->then && !atomic_load(&has_ended)) {
		pthread_kill(p->sleeper, p->then);
		usleep(1000);
	}
	return NULL;
}

static int sleep_disturbed(int first, int then)
{
	struct plan p = {pthread_self(), first, then};
	pthread_t other;
	int err;

	atomic_store(&has_ended, false);
	check_need(!pthread_create(&other, NULL, disturb_sleeper, &p),
		   "a thread");
	err = sleep_for_event();
	atomic_store(&has_ended, true);
	pthread_join(other, NULL);
	if (!err)
		take_completion();
	return err;
}

static void check_handlers(void)
{
	set_handler(SIGUSR1, SA_RESTART);
	set_handler(SIGUSR2, -1);
	check_need(sleep_disturbed(SIGUSR1, 0) == 0,
		   "SA_RESTART: the sleep continues");
	set_handler(SIGUSR1, 0);
	check_need(sleep_disturbed(0, SIGUSR1) == EINTR,
		   "no SA_RESTART: EINTR");
	check_need(sleep_disturbed(0, 0) == 0, "the next sleep ends by a SEND");
	set_handler(SIGUSR1, SA_RESTART);
	set_handler(SIGUSR2, 0);
	/* the library reads the handlers again if 100 ms have passed */
	usleep(200000);
	check_need(sleep_disturbed(SIGUSR1, SIGUSR2) == EINTR,
		   "SIGUSR1 does not end the sleep, SIGUSR2 does");
}

static char state_of(pid_t thread)
{
	char path[64], text[512] = "", *state;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/self/task/%d/stat", (int)thread);
	f = fopen(path, "r");
	check_need(f && fgets(text, sizeof(text), f), "the thread's state");
	fclose(f);
	state = strrchr(text, ')');
	return state ? state[2] : 0;
}

static void spin_ns(long ns)
{
	struct timespec a, b;

	clock_gettime(CLOCK_MONOTONIC, &a);
	do
		clock_gettime(CLOCK_MONOTONIC, &b);
	while ((b.tv_sec - a.tv_sec) * 1000000000 + b.tv_nsec - a.tv_nsec < ns);
}

static atomic_int rounds;

/* Posts a WRITE, which completes nothing for the sleeper, and sends a signal.
 * If the WRITE goes by packets, its packet also wakes the sleeper. */
static void *interrupt_during_progress(void *arg)
{
	const pthread_t sleeper = *(pthread_t *)arg;
	struct ibv_wc wc;

	for (int i = 0; i < MIDST; i++) {
		while (atomic_load(&rounds) <= i || state_of(getpid()) != 'S')
			usleep(100);
		post_one(IBV_WR_RDMA_WRITE);
		spin_ns(i % 64 * 1000);
		step_timeout_step("a signal during progress", PATIENCE_S);
		pthread_kill(sleeper, SIGUSR1);
		while (atomic_load(&rounds) == i + 1)
			usleep(1000);
		check_need(endpoint_wait(&endpoint[0], &wc) && !wc.status,
			   "the WRITE");
	}
	return NULL;
}

static void check_during_progress(void)
{
	pthread_t self = pthread_self(), other;

	set_handler(SIGUSR1, 0);
	set_handler(SIGUSR2, -1);
	usleep(200000);
	atomic_store(&rounds, 0);
	check_need(
		!pthread_create(&other, NULL, interrupt_during_progress, &self),
		"a thread");
	for (int i = 0; i < MIDST; i++) {
		warm_up(WARM_AGAIN);
		atomic_store(&rounds, i + 1);
		check_need(sleep_for_event() == EINTR, "each signal: EINTR");
	}
	atomic_store(&rounds, MIDST + 1);
	pthread_join(other, NULL);
}

static void check_handlers_of_progress_thread(void)
{
	step_timeout_step("a sleep that makes progress", PATIENCE_S);
	warm_up(WARM);
	check_handlers();
}

int main(void)
{
	step_timeout_watch("the sleep does not end");
	step_timeout_step("a sleep without progress", PATIENCE_S);
	endpoint_open_pair(endpoint);
	post_receive();
	check_need(!ibv_req_notify_cq(endpoint[1].cq, 0), "ibv_req_notify_cq");
	check_run("a sleep is interrupted as the signal's handler says",
		  check_handlers);
	check_run("a sleep that makes progress is interrupted in the same way",
		  check_handlers_of_progress_thread);
	check_run("a sleep that a packet has just ended is interrupted",
		  check_during_progress);
	endpoint_close_pair(endpoint);
	return check_end();
}
