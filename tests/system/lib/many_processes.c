/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * many_processes: many processes at once, and processes that are killed.
 *
 *	pairs PROCESSES QPS	the queue pairs of process i exchange SENDs with
 *				those of process i ^ 1, all at once
 *	idle PROCESSES		pairs of processes exchange SENDs; when they
 *				have nothing more to send, no thread of adverb
 *				may wake up
 *	hub PROCESSES		each process exchanges SENDs with the first
 *				process, all at once
 *	stop-broker PROCESSES	the first process sends to each other process
 *				while the broker is stopped, and sleeps until
 *				all its requests end
 *	kill-either ROUNDS SEED	one of two processes is killed at a random
 *				moment; if the other process makes requests, one
 *				of them must fail, but not before the kill
 *	kill-peers ROUNDS SEED	the peers of one process are killed one after
 *				the other; the process must keep no object of
 *				these peers
 *
 * The processes exchange their addresses in shared memory.  Exit status 0: no
 * check has failed; 2: the arguments are not as above; another status: a check
 * has failed, which the program prints, or a signal has ended a process that
 * the program did not mean to kill.
 */
#include "endpoint.h"
#include "leak_check.h"
#include "sleeps.h"

#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
	BYTES = 256,	   /* length of a message */
	LATEST_US = 25000, /* the kill comes at most so long after the fork */
	LEFT_MS = 300000,  /* limit for the end of dead peers' objects */
	/* SIGALRM ends a process that runs so long.  In kill-peers the survivor
	 * has so long for each round. */
	ALARM_S = 800,
	/* SIGALRM ends the first process of stop-broker if its requests take so
	 * long.  The process would need a second for each peer if it waited for
	 * one peer after the other. */
	IN_TURN_S = 240,
	SLEEP_FROM = 100, /* with so many processes, each rests between polls */
	REST_US = 20000,  /* such a rest */
	HUB_REST_US = 1000, /* such a rest of the first process of a hub */
	SETTLED_S = 10,	    /* limit for the threads to become idle */
};

/* Unless @good, prints @what, the error of errno and the process ID, and ends
 * the process by _exit, since it may be a forked one. */
static void need_good(bool good, const char *what)
{
	if (good)
		return;
	printf("process %d: %s: %s\n", (int)getpid(), what, strerror(errno));
	fflush(stdout);
	_exit(1);
}

/* Forks, and returns what fork(2) returns.  If fork fails, ends this process
 * and the processes that it has forked, since they would wait for the missing
 * process.  No caller sees the PID -1, which kill(2) takes for every process of
 * the user. */
static pid_t fork_member(void)
{
	pid_t pid = fork();

	if (pid < 0) {
		int err = errno;

		signal(SIGTERM, SIG_IGN);
		kill(0, SIGTERM);
		errno = err;
		need_good(false, "fork");
	}
	return pid;
}

static double now_s(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* Is @process, a folder of /proc, a broker of our network namespace? */
static bool is_broker(const char *process)
{
	char path[300], name[16] = "", ours[64] = "", its[64] = "";
	FILE *f;

	snprintf(path, sizeof(path), "%s/comm", process);
	f = fopen(path, "re");
	if (f && !fgets(name, sizeof(name), f))
		*name = 0;
	if (f)
		fclose(f);
	snprintf(path, sizeof(path), "%s/ns/net", process);
	return !strcmp(name, "adverbd\n") &&
	       readlink(path, its, sizeof(its) - 1) > 0 &&
	       readlink("/proc/self/ns/net", ours, sizeof(ours) - 1) > 0 &&
	       !strcmp(its, ours);
}

/* Sends a signal to all brokers of our network namespace. */
static void brokers_signal(int number)
{
	glob_t found;

	if (glob("/proc/[0-9]*", 0, NULL, &found))
		return;
	for (size_t i = 0; i < found.gl_pathc; i++)
		if (is_broker(found.gl_pathv[i]))
			kill(atoi(found.gl_pathv[i] + strlen("/proc/")),
			     number);
	globfree(&found);
}

/* Starts a guard: a process that sends SIGCONT to the brokers once the caller's
 * process has closed *end, or has ended, also by SIGKILL.  Stores the write end
 * of the guard's pipe in *end.  The guard is in a session of its own, so that
 * no signal to the caller's group ends the guard. */
static pid_t guard_brokers(int *end)
{
	int ends[2];
	pid_t guard;
	char byte;

	need_good(!pipe2(ends, O_CLOEXEC), "pipe2");
	guard = fork_member();
	if (guard) {
		close(ends[0]);
		*end = ends[1];
		return guard;
	}
	setsid();
	close(ends[1]);
	while (read(ends[0], &byte, 1) < 0 && errno == EINTR)
		;
	brokers_signal(SIGCONT);
	_exit(0);
}

static void *map_shared(size_t bytes)
{
	void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
		       MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	need_good(p != MAP_FAILED, "mmap");
	return p;
}

/* Moves qp from INIT to RTS.  The ACK timeout is 4.2 ms, and there are two
 * retries, so adverb asks the broker about a silent peer after about 13 ms. */
static void connect_qp(struct ibv_qp *qp, const struct endpoint_address *self,
		       const struct endpoint_address *peer)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTR,
		.path_mtu = IBV_MTU_1024,
		.dest_qp_num = peer->qpn,
		.rq_psn = peer->psn,
		.min_rnr_timer = 12,
		.timeout = 10,
		.retry_cnt = 2,
		.rnr_retry = 7,
		.sq_psn = self->psn,
		.ah_attr = {.is_global = 1,
			    .port_num = 1,
			    .grh = {.dgid = peer->gid,
				    .sgid_index = ENDPOINT_GID_INDEX,
				    .hop_limit = 64}},
	};

	errno = ibv_modify_qp(qp, &attr,
			      IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU |
				      IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
				      IBV_QP_MAX_DEST_RD_ATOMIC |
				      IBV_QP_MIN_RNR_TIMER);
	need_good(errno == 0, "ibv_modify_qp to RTR");
	attr.qp_state = IBV_QPS_RTS;
	errno = ibv_modify_qp(qp, &attr,
			      IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
				      IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
				      IBV_QP_MAX_QP_RD_ATOMIC);
	need_good(errno == 0, "ibv_modify_qp to RTS");
}

/* ---- pairs, idle, hub, stop-broker ---- */

struct shared_run {
	pthread_barrier_t all;
	/* processes: the number of processes.  qps: the number of queue pairs
	 * of the process that has the most. */
	int processes, qps;
	bool is_hub, stops_broker, idles;
	/* began_s: when the program began.  opened_s: when all processes had
	 * opened the device.  took_s: how long process 0 waited for the last of
	 * its requests.  ending_s: how long process 0 took to destroy its
	 * objects. */
	double began_s, opened_s, took_s, ending_s;
	atomic_ulong wakeups; /* of all idle processes, in one second */
	struct endpoint_address
		at[]; /* [i * qps + k]: of process i, queue pair k */
};

/* A queue pair of a process. */
struct place {
	int process, qp;
};

static int qps_of(const struct shared_run *c, int process)
{
	return c->is_hub && process ? 1 : c->qps;
}

static struct place peer_of(const struct shared_run *c, int process, int qp)
{
	if (!c->is_hub)
		return (struct place){process ^ 1, qp};
	return process ? (struct place){0, process - 1}
		       : (struct place){qp + 1, 0};
}

static struct endpoint_address *address_at(struct shared_run *c, struct place p)
{
	return &c->at[(size_t)p.process * (size_t)c->qps + (size_t)p.qp];
}

struct member {
	int me, qps;
	struct endpoint e; /* its queue pair and its CQ are not used */
	struct ibv_cq *cq;
	struct ibv_mr *mr;
	struct ibv_qp **qp;
	bool is_armed; /* ibv_req_notify_cq was called, and no event came yet */
	/* rows of BYTES bytes: for each queue pair one row to send, and then
	 * for each queue pair one row to receive */
	uint8_t *bytes;
	double sent_s; /* when the last of its send requests ended */
};

static uint8_t pattern_byte(int process, int qp, int i)
{
	return (uint8_t)(process * 31 + qp * 7 + i);
}

static void open_member(struct member *m, struct shared_run *c)
{
	size_t size = 2 * (size_t)m->qps * BYTES;
	struct ibv_qp_init_attr init = {
		.qp_type = IBV_QPT_RC,
		.sq_sig_all = 1,
		.cap = {.max_send_wr = 4,
			.max_recv_wr = 4,
			.max_send_sge = 1,
			.max_recv_sge = 1},
	};
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 1};

	endpoint_open(&m->e, IBV_ACCESS_LOCAL_WRITE, 0);
	m->cq = ibv_create_cq(m->e.ctx, 2 * m->qps, NULL, m->e.channel, 0);
	m->bytes = calloc(1, size);
	m->qp = calloc((size_t)m->qps, sizeof(*m->qp));
	need_good(m->cq && m->bytes && m->qp, "ibv_create_cq or calloc");
	m->mr = ibv_reg_mr(m->e.pd, m->bytes, size, IBV_ACCESS_LOCAL_WRITE);
	need_good(m->mr, "ibv_reg_mr");
	init.send_cq = init.recv_cq = m->cq;
	for (int k = 0; k < m->qps; k++) {
		struct endpoint_address *mine =
			address_at(c, (struct place){m->me, k});

		m->qp[k] = ibv_create_qp(m->e.pd, &init);
		need_good(m->qp[k], "ibv_create_qp");
		errno = ibv_modify_qp(m->qp[k], &attr,
				      IBV_QP_STATE | IBV_QP_PKEY_INDEX |
					      IBV_QP_PORT |
					      IBV_QP_ACCESS_FLAGS);
		need_good(errno == 0, "ibv_modify_qp to INIT");
		endpoint_address_get(&m->e, mine);
		mine->qpn = m->qp[k]->qp_num;
	}
}

static void close_member(struct member *m)
{
	for (int k = 0; k < m->qps; k++)
		need_good(ibv_destroy_qp(m->qp[k]) == 0, "ibv_destroy_qp");
	need_good(ibv_dereg_mr(m->mr) == 0, "ibv_dereg_mr");
	need_good(ibv_destroy_cq(m->cq) == 0, "ibv_destroy_cq");
	endpoint_close(&m->e);
	free(m->qp);
	free(m->bytes);
}

static struct ibv_sge row_of(const struct member *m, int i)
{
	return (struct ibv_sge){(uintptr_t)(m->bytes + (size_t)i * BYTES),
				BYTES, m->mr->lkey};
}

static void post_sends(struct member *m)
{
	for (int k = 0; k < m->qps; k++) {
		struct ibv_sge out = row_of(m, k);
		struct ibv_send_wr wr = {.sg_list = &out,
					 .num_sge = 1,
					 .opcode = IBV_WR_SEND},
				   *bad;

		for (int i = 0; i < BYTES; i++)
			m->bytes[k * BYTES + i] = pattern_byte(m->me, k, i);
		errno = ibv_post_send(m->qp[k], &wr, &bad);
		need_good(errno == 0, "ibv_post_send");
	}
}

static void prepare_receives(struct member *m, struct shared_run *c)
{
	for (int k = 0; k < m->qps; k++) {
		struct ibv_sge in = row_of(m, m->qps + k);
		struct ibv_recv_wr wr = {.sg_list = &in, .num_sge = 1}, *bad;

		connect_qp(m->qp[k], address_at(c, (struct place){m->me, k}),
			   address_at(c, peer_of(c, m->me, k)));
		errno = ibv_post_recv(m->qp[k], &wr, &bad);
		need_good(errno == 0, "ibv_post_recv");
	}
}

/* If the CQ is armed, sleeps until its event; otherwise arms the CQ, which the
 * caller must poll before the next call. */
static void await_event(struct member *m)
{
	struct ibv_cq *cq;
	void *context;

	if (m->is_armed) {
		need_good(!ibv_get_cq_event(m->e.channel, &cq, &context),
			  "ibv_get_cq_event");
		ibv_ack_cq_events(cq, 1);
	} else {
		need_good(!ibv_req_notify_cq(m->cq, 0), "ibv_req_notify_cq");
	}
	m->is_armed = !m->is_armed;
}

static void rest_between_polls(struct member *m, const struct shared_run *c)
{
	if (c->stops_broker && !m->me)
		await_event(m);
	else if (c->processes >= SLEEP_FROM)
		usleep(c->is_hub && !m->me ? HUB_REST_US : REST_US);
}

static bool process_sends(const struct shared_run *c, int process)
{
	return !c->stops_broker || !process;
}

static bool process_receives(const struct shared_run *c, int process)
{
	return !c->stops_broker || process;
}

static void collect_completions(struct member *m, const struct shared_run *c)
{
	int left =
		(process_sends(c, m->me) + process_receives(c, m->me)) * m->qps;

	while (left) {
		struct ibv_wc wc;
		int n = ibv_poll_cq(m->cq, 1, &wc);

		need_good(n >= 0, "ibv_poll_cq");
		if (n)
			need_good(wc.status == IBV_WC_SUCCESS,
				  ibv_wc_status_str(wc.status));
		else
			rest_between_polls(m, c);
		if (n && wc.opcode == IBV_WC_SEND)
			m->sent_s = now_s();
		left -= n;
	}
	for (int k = 0; process_receives(c, m->me) && k < m->qps; k++) {
		struct place from = peer_of(c, m->me, k);

		for (int i = 0; i < BYTES; i++)
			need_good(
				m->bytes[(m->qps + k) * BYTES + i] ==
					pattern_byte(from.process, from.qp, i),
				"received bytes differ from those sent");
	}
}

/* Waits until no other thread of this process has woken up for a second, but
 * not longer than SETTLED_S seconds: on a busy machine, work that is under way
 * may go on for some seconds.  Adds the wakeups of the last second to
 * c->wakeups. */
static void await_idle(struct shared_run *c)
{
	unsigned long before, now = sleeps_count();

	pthread_barrier_wait(&c->all);
	for (int i = 0; i < SETTLED_S; i++) {
		before = now;
		sleep(1);
		now = sleeps_count();
		if (i && now == before)
			break;
	}
	atomic_fetch_add(&c->wakeups, now - before);
}

static int run_process(struct shared_run *c, int me)
{
	struct member m = {.me = me, .qps = qps_of(c, me)};
	double posted_s;

	alarm(ALARM_S);
	open_member(&m, c);
	pthread_barrier_wait(&c->all);
	if (!me)
		c->opened_s = now_s();
	prepare_receives(&m, c);
	if (c->stops_broker && !me)
		brokers_signal(SIGSTOP);
	pthread_barrier_wait(&c->all);
	posted_s = now_s();
	if (c->stops_broker && !me)
		alarm(IN_TURN_S);
	if (process_sends(c, me))
		post_sends(&m);
	collect_completions(&m, c);
	alarm(ALARM_S);
	if (!me)
		c->took_s = m.sent_s - posted_s;
	if (c->idles)
		await_idle(c);
	pthread_barrier_wait(&c->all);
	if (!me)
		c->ending_s = now_s();
	close_member(&m);
	if (!me)
		c->ending_s = now_s() - c->ending_s;
	return 0;
}

/* Runs the test that @what names: pairs, idle, hub or stop-broker.  Returns 1
 * if a process has failed or an idle process has woken up, otherwise 0. */
static int run_at_once(const char *what, int processes, int qps)
{
	size_t count = (size_t)processes * (size_t)qps;
	struct shared_run *c =
		map_shared(sizeof(*c) + count * sizeof(c->at[0]));
	pthread_barrierattr_t attr;
	int failed = 0, status, end = -1;
	pid_t guard = 0;

	c->processes = processes;
	c->qps = qps;
	c->stops_broker = !strcmp(what, "stop-broker");
	c->is_hub = c->stops_broker || !strcmp(what, "hub");
	c->idles = !strcmp(what, "idle");
	c->began_s = now_s();
	pthread_barrierattr_init(&attr);
	pthread_barrierattr_setpshared(&attr, PTHREAD_PROCESS_SHARED);
	pthread_barrier_init(&c->all, &attr, (unsigned)processes);
	if (c->stops_broker)
		guard = guard_brokers(&end);
	for (int i = 0; i < processes; i++)
		if (!fork_member()) {
			close(end);
			_exit(run_process(c, i));
		}
	/* When one process fails, the others would wait at the barrier for
	 * ever, so the whole group is ended, except this process, which has to
	 * report the failure. */
	signal(SIGTERM, SIG_IGN);
	for (int left = processes; left; left--) {
		need_good(wait(&status) > 0, "wait");
		if (status && !failed++)
			kill(0, SIGTERM);
	}
	close(end);
	if (guard)
		waitpid(guard, NULL, 0);
	if (!failed)
		printf("%d processes: all are open after %.2f s; the first "
		       "process's requests on %d queue pairs took %.3f s, and "
		       "the end of its objects took %.3f s\n",
		       processes, c->opened_s - c->began_s, qps, c->took_s,
		       c->ending_s);
	if (!failed && c->idles)
		printf("the idle processes woke up %lu times in a second\n",
		       atomic_load(&c->wakeups));
	return failed > 0 || atomic_load(&c->wakeups) > 0;
}

/* ---- kill-either ---- */

struct pair {
	struct endpoint_address at[2];
	atomic_int ready[2];  /* 1: at[] is set */
	atomic_int is_doomed; /* 1: a process is being killed */
	/* round: in kill-peers, the round that the survivor has to do.  done:
	 * the last round that the survivor has done. */
	atomic_int round, done;
};

/* Writes to the peer until a WRITE fails, which may happen only after is_doomed
 * is set, and only with IBV_WC_RETRY_EXC_ERR.  Returns without a WRITE if
 * is_doomed is set before the peer is ready. */
static void write_until_failure(struct endpoint *e, struct pair *p, int me)
{
	struct ibv_wc wc;

	endpoint_address_get(e, &p->at[me]);
	/* This store follows the stores to at[me], and the peer's load of
	 * ready[me] precedes the peer's loads of at[me]; otherwise the peer
	 * could connect to an address that is not yet there. */
	atomic_store(&p->ready[me], 1);
	while (!atomic_load(&p->ready[!me]))
		if (atomic_load(&p->is_doomed))
			return;
	connect_qp(e->qp, &p->at[me], &p->at[!me]);
	for (;;) {
		struct ibv_sge sge = {(uintptr_t)e->region, ENDPOINT_SIZE,
				      e->mr->lkey};
		struct ibv_send_wr wr = {.sg_list = &sge,
					 .num_sge = 1,
					 .opcode = IBV_WR_RDMA_WRITE},
				   *bad;

		wr.wr.rdma.remote_addr = p->at[!me].region;
		wr.wr.rdma.rkey = p->at[!me].rkey;
		errno = ibv_post_send(e->qp, &wr, &bad);
		need_good(errno == 0, "ibv_post_send");
		need_good(endpoint_wait(e, &wc), "no completion in time");
		if (wc.status != IBV_WC_SUCCESS)
			break;
	}
	need_good(atomic_load(&p->is_doomed),
		  "a request failed before the kill");
	need_good(wc.status == IBV_WC_RETRY_EXC_ERR,
		  ibv_wc_status_str(wc.status));
}

static void open_writer(struct endpoint *e)
{
	alarm(ALARM_S);
	endpoint_open(e, ENDPOINT_ALL_REMOTE | IBV_ACCESS_LOCAL_WRITE,
		      IBV_ACCESS_REMOTE_WRITE);
}

static int be_writer(struct pair *p, int me)
{
	struct endpoint e;

	open_writer(&e);
	write_until_failure(&e, p, me);
	endpoint_close(&e);
	return 0;
}

static int kill_either(int rounds, unsigned seed)
{
	struct pair *p = map_shared(sizeof(*p));

	for (int i = 0; i < rounds; i++) {
		int victim = rand_r(&seed) % 2, status;
		pid_t pid[2];

		memset(p, 0, sizeof(*p));
		for (int k = 0; k < 2; k++) {
			pid[k] = fork_member();
			if (!pid[k])
				_exit(be_writer(p, k));
		}
		usleep((unsigned)rand_r(&seed) % LATEST_US);
		atomic_store(&p->is_doomed, 1);
		kill(pid[victim], SIGKILL);
		waitpid(pid[victim], NULL, 0);
		waitpid(pid[!victim], &status, 0);
		if (status) {
			printf("round %d: the survivor ended with status %d\n",
			       i, status);
			return 1;
		}
	}
	return 0;
}

/* ---- kill-peers ---- */

static void renew_qp(struct endpoint *e)
{
	struct ibv_qp_init_attr init = {
		.send_cq = e->cq,
		.recv_cq = e->cq,
		.qp_type = IBV_QPT_RC,
		.sq_sig_all = 1,
		.cap = {.max_send_wr = 4,
			.max_recv_wr = 4,
			.max_send_sge = 1,
			.max_recv_sge = 1},
	};

	endpoint_replace_qp(e, ibv_create_qp(e->pd, &init),
			    IBV_ACCESS_REMOTE_WRITE);
}

static int write_to_each(struct pair *p, int rounds)
{
	struct leak_check before, now;
	struct endpoint e;

	open_writer(&e);
	leak_check_get(&before);
	for (int i = 1; i <= rounds; i++) {
		alarm(ALARM_S);
		while (atomic_load(&p->round) != i)
			usleep(100);
		write_until_failure(&e, p, 0);
		renew_qp(&e);
		atomic_store(&p->done, i);
	}
	/* The broker's message about the last death may still be under way. */
	for (int ms = 0; ms < LEFT_MS; ms++) {
		leak_check_get(&now);
		if (!leak_check_more(&now, &before))
			break;
		usleep(1000);
		ibv_poll_cq(e.cq, 1, &(struct ibv_wc){0});
	}
	printf("threads %d, was %d; files %d, %d; arenas %d, %d\n", now.threads,
	       before.threads, now.files, before.files, now.arenas,
	       before.arenas);
	endpoint_close(&e);
	return leak_check_more(&now, &before);
}

static int kill_peers(int rounds, unsigned seed)
{
	struct pair *p = map_shared(sizeof(*p));
	int status = 0, ended = 0;
	pid_t pid = fork_member();

	if (!pid)
		exit(write_to_each(p, rounds));
	for (int i = 1; i <= rounds && !ended; i++) {
		pid_t victim;

		memset(p->ready, 0, sizeof(p->ready));
		atomic_store(&p->is_doomed, 0);
		victim = fork_member();
		if (!victim)
			_exit(be_writer(p, 1));
		/* This store follows the stores to is_doomed and ready above;
		 * the survivor's load of `round` precedes its loads of both, so
		 * the survivor does not read their values of the last round. */
		atomic_store(&p->round, i);
		usleep((unsigned)rand_r(&seed) % LATEST_US);
		atomic_store(&p->is_doomed, 1);
		kill(victim, SIGKILL);
		waitpid(victim, NULL, 0);
		while (atomic_load(&p->done) != i && !ended) {
			ended = waitpid(pid, &status, WNOHANG);
			usleep(100);
		}
	}
	if (!ended)
		waitpid(pid, &status, 0);
	return status != 0;
}

int main(int argc, char **argv)
{
	setvbuf(stdout, NULL, _IOLBF, 0);
	/* The group of kill(0) has only the processes of this program. */
	need_good(!setpgid(0, 0) || getpgrp() == getpid(), "setpgid");
	if (argc == 4 && !strcmp(argv[1], "pairs"))
		return run_at_once(argv[1], atoi(argv[2]), atoi(argv[3]));
	if (argc == 3 &&
	    (!strcmp(argv[1], "hub") || !strcmp(argv[1], "stop-broker")))
		return run_at_once(argv[1], atoi(argv[2]), atoi(argv[2]) - 1);
	if (argc == 3 && !strcmp(argv[1], "idle"))
		return run_at_once(argv[1], atoi(argv[2]), 1);
	if (argc == 4 && !strcmp(argv[1], "kill-either"))
		return kill_either(atoi(argv[2]), (unsigned)atoi(argv[3]));
	if (argc == 4 && !strcmp(argv[1], "kill-peers"))
		return kill_peers(atoi(argv[2]), (unsigned)atoi(argv[3]));
	fprintf(stderr, "usage: many_processes pairs PROCESSES QPS\n"
			"       many_processes idle PROCESSES\n"
			"       many_processes hub PROCESSES\n"
			"       many_processes stop-broker PROCESSES\n"
			"       many_processes kill-either ROUNDS SEED\n"
			"       many_processes kill-peers ROUNDS SEED\n");
	return 2;
}
