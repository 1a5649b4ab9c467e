/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * torture: a program opens both ends of a connection, sends, and closes both
 * ends.  The program is repeated, and each time the next allocation fails.
 * Each call succeeds, or fails with errno and a sentence, and leaves no object
 * behind.  If the arena is full, the sentence names the limit of memory.  If a
 * thread does not start, a sentence says so, whether or not the call fails.
 */
#include <dirent.h>
#include <errno.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include <infiniband/verbs.h>

#include "fail.h"
#include "log/log.h"

#define BYTES  4096
#define WAIT_S 120
#define MOST   2000

struct end {
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	struct ibv_comp_channel *channel;
	struct ibv_cq *cq;
	struct ibv_mr *mr;
	struct ibv_srq *srq;
	struct ibv_qp *qp;
	union ibv_gid gid;
	char memory[BYTES];
};

static const char *broken; /* the rule that was broken, or NULL */

static atomic_uint said;  /* sentences in a run */
static atomic_uint named; /* those that name ulimit -v */

void __wrap_log_say(enum log_cause cause, uint64_t detail, const char *format,
		    ...);

/* Counts a sentence, which log_say would print only once. */
void __wrap_log_say(enum log_cause cause, uint64_t detail, const char *format,
		    ...)
{
	char text[640];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	named += strstr(text, "ulimit -v") != NULL;
	said++;
}

static bool open_end(struct end *e, bool shared)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_srq_init_attr srq = {.attr = {16, 1, 0}};
	struct ibv_qp_init_attr init = {.qp_type = IBV_QPT_RC,
					.sq_sig_all = 1,
					.cap = {16, 16, 1, 1, 32}};

	if (!list)
		return false;
	e->ctx = list[0] ? ibv_open_device(list[0]) : NULL;
	ibv_free_device_list(list);
	if (!e->ctx || !(e->pd = ibv_alloc_pd(e->ctx)) ||
	    !(e->channel = ibv_create_comp_channel(e->ctx)) ||
	    !(e->cq = ibv_create_cq(e->ctx, 32, NULL, e->channel, 0)) ||
	    !(e->mr = ibv_reg_mr(e->pd, e->memory, BYTES,
				 IBV_ACCESS_LOCAL_WRITE |
					 IBV_ACCESS_REMOTE_WRITE)))
		return false;
	if (shared && !(e->srq = ibv_create_srq(e->pd, &srq)))
		return false;
	init.srq = e->srq;
	init.send_cq = init.recv_cq = e->cq;
	e->qp = ibv_create_qp(e->pd, &init);
	return e->qp && !ibv_query_gid(e->ctx, 1, 1, &e->gid);
}

/* Destroys the objects that were made. */
static void close_end(struct end *e)
{
	if ((e->qp && ibv_destroy_qp(e->qp)) ||
	    (e->srq && ibv_destroy_srq(e->srq)) ||
	    (e->mr && ibv_dereg_mr(e->mr)) ||
	    (e->cq && ibv_destroy_cq(e->cq)) ||
	    (e->channel && ibv_destroy_comp_channel(e->channel)) ||
	    (e->pd && ibv_dealloc_pd(e->pd)) ||
	    (e->ctx && ibv_close_device(e->ctx)))
		broken = "an object cannot be destroyed";
}

static bool connect_end(struct end *e, const struct end *to)
{
	struct ibv_qp_attr a = {.qp_state = IBV_QPS_INIT,
				.port_num = 1,
				.qp_access_flags = IBV_ACCESS_REMOTE_WRITE};

	errno = ibv_modify_qp(e->qp, &a,
			      IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
				      IBV_QP_ACCESS_FLAGS);
	if (errno)
		return false;
	a = (struct ibv_qp_attr){.qp_state = IBV_QPS_RTR,
				 .path_mtu = IBV_MTU_1024,
				 .dest_qp_num = to->qp->qp_num,
				 .max_dest_rd_atomic = 1,
				 .min_rnr_timer = 12,
				 .ah_attr = {.is_global = 1,
					     .port_num = 1,
					     .grh = {.dgid = to->gid,
						     .sgid_index = 1,
						     .hop_limit = 64}}};
	errno = ibv_modify_qp(e->qp, &a,
			      IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU |
				      IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
				      IBV_QP_MAX_DEST_RD_ATOMIC |
				      IBV_QP_MIN_RNR_TIMER);
	if (errno)
		return false;
	a = (struct ibv_qp_attr){.qp_state = IBV_QPS_RTS,
				 .timeout = 14,
				 .retry_cnt = 7,
				 .rnr_retry = 7,
				 .max_rd_atomic = 1};
	errno = ibv_modify_qp(e->qp, &a,
			      IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
				      IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
				      IBV_QP_MAX_QP_RD_ATOMIC);
	return !errno;
}

static bool await_completion(struct end *e)
{
	time_t end = time(NULL) + WAIT_S;
	struct ibv_wc wc;
	int n;

	while (!(n = ibv_poll_cq(e->cq, 1, &wc)))
		if (time(NULL) > end) {
			broken = "a completion never comes";
			return false;
		}
	return n == 1 && !wc.status;
}

/* Executes a WRITE and a SEND, and resizes a CQ. */
static bool run_requests(struct end e[2])
{
	struct ibv_sge s0 = {(uintptr_t)e[0].memory, BYTES, e[0].mr->lkey};
	struct ibv_sge s1 = {(uintptr_t)e[1].memory, BYTES, e[1].mr->lkey};
	struct ibv_recv_wr recv = {.sg_list = &s1, .num_sge = 1}, *bad_recv;
	struct ibv_send_wr send = {.sg_list = &s0,
				   .num_sge = 1,
				   .opcode = IBV_WR_SEND},
			   write = {.next = &send,
				    .sg_list = &s0,
				    .num_sge = 1,
				    .opcode = IBV_WR_RDMA_WRITE},
			   *bad;

	write.wr.rdma.remote_addr = (uintptr_t)e[1].memory;
	write.wr.rdma.rkey = e[1].mr->rkey;
	errno = e[1].srq ? ibv_post_srq_recv(e[1].srq, &recv, &bad_recv)
			 : ibv_post_recv(e[1].qp, &recv, &bad_recv);
	if (errno)
		return false;
	errno = ibv_post_send(e[0].qp, &write, &bad);
	return !errno && await_completion(&e[0]) && await_completion(&e[0]) &&
	       await_completion(&e[1]) && !ibv_resize_cq(e[0].cq, 64);
}

static bool run_connection(bool shared)
{
	static struct end e[2];
	bool good;

	memset(e, 0, sizeof(e));
	errno = 0;
	said = named = 0;
	good = open_end(&e[0], shared) && open_end(&e[1], shared) &&
	       connect_end(&e[0], &e[1]) && connect_end(&e[1], &e[0]) &&
	       run_requests(e);
	if (!good && !errno)
		broken = "a failure without errno";
	if (!good && !said)
		broken = "a failure without a sentence";
	close_end(&e[0]);
	close_end(&e[1]);
	return good;
}

static int open_files(void)
{
	DIR *dir = opendir("/proc/self/fd");
	int n = 0;

	while (dir && readdir(dir))
		n++;
	if (dir)
		closedir(dir);
	return n;
}

static bool run_torture(bool shared)
{
	const char *victim = "";
	int files;

	broken = NULL;
	/* the first run makes the objects that a process makes once */
	if (!run_connection(shared) || broken) {
		printf("FAIL a run without failures: %s\n",
		       broken ? broken : strerror(errno));
		return false;
	}
	files = open_files();
	for (long n = 1; victim && n < MOST && !broken; n++) {
		bool good;

		fail_at(n);
		good = run_connection(shared);
		victim = fail_done();
		if (!victim && !good)
			broken = "a call fails though no allocation failed";
		if (victim && !strcmp(victim, "pthread_create") && !said)
			broken = "a thread that does not start is not told";
		if (victim && !strcmp(victim, "arena_alloc") && !good && !named)
			broken = "a sentence names no limit of memory";
		if (open_files() != files)
			broken = "descriptors stay open";
		if (broken)
			printf("FAIL %s, when %s fails (%ld)\n", broken,
			       victim ? victim : "nothing", n);
		else if (!victim)
			printf("ok each of %ld allocations may fail%s\n", n - 1,
			       shared ? ", with a shared receive queue" : "");
	}
	if (victim && !broken) {
		printf("FAIL a run makes %d allocations or more; raise MOST\n",
		       MOST);
		return false;
	}
	return !broken;
}

int main(void)
{
	int passed = run_torture(false) + run_torture(true);

	printf("%d passed, %d failed, 0 skipped\n", passed, 2 - passed);
	return passed != 2;
}
