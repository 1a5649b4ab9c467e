/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * queuecheck: tests what programs see of shared receive queues, memory windows,
 * extended polling and extended posting.  Prints a line per case, as verbcheck
 * does.
 */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "check.h"
#include "endpoint.h"
#include "sleeps.h"

static struct endpoint a, b;

static void both_open(void)
{
	endpoint_open(&a, IBV_ACCESS_LOCAL_WRITE | ENDPOINT_ALL_REMOTE,
		      ENDPOINT_ALL_REMOTE);
	endpoint_open(&b, IBV_ACCESS_LOCAL_WRITE | ENDPOINT_ALL_REMOTE,
		      ENDPOINT_ALL_REMOTE);
}

static void both_close(void)
{
	endpoint_close(&a);
	endpoint_close(&b);
}

static struct ibv_srq *srq_open(uint32_t depth)
{
	struct ibv_srq_init_attr init = {
		.attr = {.max_wr = depth, .max_sge = 1}};
	struct ibv_srq *srq = ibv_create_srq(b.pd, &init);

	EXPECT(srq);
	return srq;
}

static struct ibv_qp *qp_on(struct ibv_srq *srq)
{
	struct ibv_qp_init_attr init = {
		.send_cq = b.cq,
		.recv_cq = b.cq,
		.srq = srq,
		.qp_type = IBV_QPT_RC,
		.sq_sig_all = 1,
		.cap = {.max_send_wr = 8, .max_send_sge = 1},
	};

	return ibv_create_qp(b.pd, &init);
}

static int srq_post(struct ibv_srq *srq, uint64_t wr_id)
{
	struct ibv_sge sge = {(uintptr_t)b.region, 64, b.mr->lkey};
	struct ibv_recv_wr wr = {.wr_id = wr_id, .sg_list = &sge, .num_sge = 1};
	struct ibv_recv_wr *bad = NULL;
	int err = ibv_post_srq_recv(srq, &wr, &bad);

	EXPECT(!err || bad == &wr);
	return err;
}

static void send_one(void)
{
	struct ibv_sge sge = {(uintptr_t)a.region, 64, a.mr->lkey};
	struct ibv_send_wr wr = {.sg_list = &sge,
				 .num_sge = 1,
				 .opcode = IBV_WR_SEND,
				 .send_flags = IBV_SEND_SIGNALED};
	struct ibv_send_wr *bad;

	EXPECT(ibv_post_send(a.qp, &wr, &bad) == 0);
}

static struct ibv_wc next_completion(struct endpoint *e)
{
	struct ibv_wc wc = {.status = IBV_WC_GENERAL_ERR};

	EXPECT(endpoint_wait(e, &wc));
	return wc;
}

static bool event_waits(struct ibv_context *ctx, int ms)
{
	struct pollfd p = {.fd = ctx->async_fd, .events = POLLIN};

	return poll(&p, 1, ms) == 1;
}

static void a_shared_queue_is_what_was_asked(void)
{
	struct ibv_srq_attr attr = {.max_wr = 32, .srq_limit = 33};
	struct ibv_device_attr dev;
	struct ibv_srq *srq;
	uint32_t num;

	both_open();
	srq = srq_open(16);
	EXPECT(ibv_query_device(b.ctx, &dev) == 0 && dev.max_srq > 0);
	EXPECT(ibv_get_srq_num(srq, &num) == 0);
	EXPECT(ibv_modify_srq(srq, &attr, IBV_SRQ_MAX_WR | IBV_SRQ_LIMIT) ==
	       EINVAL);
	EXPECT(ibv_modify_srq(srq, &attr, IBV_SRQ_MAX_WR) == 0);
	EXPECT(ibv_query_srq(srq, &attr) == 0);
	EXPECT(attr.max_wr == 32 && attr.max_sge == 1 && attr.srq_limit == 0);
	for (uint64_t i = 0; i < 32; i++)
		EXPECT(srq_post(srq, i) == 0);
	EXPECT(srq_post(srq, 32) == ENOMEM);
	attr.max_wr = 31;
	EXPECT(ibv_modify_srq(srq, &attr, IBV_SRQ_MAX_WR) == EINVAL);
	endpoint_replace_qp(&b, qp_on(srq), ENDPOINT_ALL_REMOTE);
	EXPECT(ibv_post_recv(b.qp, &(struct ibv_recv_wr){0},
			     &(struct ibv_recv_wr *){0}) == EINVAL);
	EXPECT(ibv_destroy_srq(srq) == EBUSY);
	endpoint_replace_qp(&b, qp_on(NULL), ENDPOINT_ALL_REMOTE);
	EXPECT(ibv_dealloc_pd(b.pd) == EBUSY);
	EXPECT(ibv_destroy_srq(srq) == 0);
	both_close();
}

static void the_limit_event_comes_once(void)
{
	struct ibv_srq_attr attr = {.srq_limit = 3};
	struct ibv_async_event event;
	struct ibv_srq *srq;

	both_open();
	srq = srq_open(16);
	endpoint_replace_qp(&b, qp_on(srq), ENDPOINT_ALL_REMOTE);
	endpoint_connect(&a, &b);
	for (uint64_t i = 0; i < 5; i++)
		srq_post(srq, i);
	EXPECT(ibv_modify_srq(srq, &attr, IBV_SRQ_LIMIT) == 0);
	for (uint64_t i = 0; i < 4; i++) {
		/* The third message leaves two receives, fewer than the limit.
		 * The event may come later than that message's completion. */
		EXPECT(event_waits(b.ctx, i == 3 ? ENDPOINT_EVENT_MS : 0) ==
		       (i == 3));
		send_one();
		EXPECT(next_completion(&b).wr_id == i);
	}
	if (event_waits(b.ctx, ENDPOINT_EVENT_MS) &&
	    !ibv_get_async_event(b.ctx, &event)) {
		EXPECT(event.event_type == IBV_EVENT_SRQ_LIMIT_REACHED);
		EXPECT(event.element.srq == srq);
		ibv_ack_async_event(&event);
	}
	EXPECT(!event_waits(b.ctx, 0));
	EXPECT(ibv_query_srq(srq, &attr) == 0 && attr.srq_limit == 0);
	endpoint_replace_qp(&b, qp_on(NULL), ENDPOINT_ALL_REMOTE);
	EXPECT(ibv_destroy_srq(srq) == 0);
	both_close();
}

static void a_queue_pair_in_error_reports_its_last_wqe(void)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_ERR};
	struct ibv_async_event event;
	struct ibv_srq *srq;

	both_open();
	srq = srq_open(4);
	endpoint_replace_qp(&b, qp_on(srq), ENDPOINT_ALL_REMOTE);
	endpoint_connect(&a, &b);
	EXPECT(srq_post(srq, 1) == 0);
	EXPECT(ibv_modify_qp(b.qp, &attr, IBV_QP_STATE) == 0);
	EXPECT(event_waits(b.ctx, ENDPOINT_EVENT_MS));
	if (!check_is_wrong() && !ibv_get_async_event(b.ctx, &event)) {
		EXPECT(event.event_type == IBV_EVENT_QP_LAST_WQE_REACHED);
		EXPECT(event.element.qp == b.qp);
		ibv_ack_async_event(&event);
	}
	/* The receive stays in the shared queue for another queue pair. */
	EXPECT(ibv_poll_cq(b.cq, 1, &(struct ibv_wc){0}) == 0);
	endpoint_replace_qp(&b, qp_on(NULL), ENDPOINT_ALL_REMOTE);
	EXPECT(ibv_destroy_srq(srq) == 0);
	both_close();
}

static _Atomic pid_t destroyer; /* the thread of destroy_qp; 0: not yet known */

static void *destroy_qp(void *qp)
{
	destroyer = gettid();
	return (void *)(intptr_t)ibv_destroy_qp(qp);
}

/* Waits until the thread of destroy_qp sleeps.  False: the thread has ended. */
static bool await_destroyer(void)
{
	char path[64], text[128] = "";

	while (!destroyer)
		sched_yield();
	snprintf(path, sizeof(path), "/proc/self/task/%d/stat", (int)destroyer);
	while (!strstr(text, ") S")) {
		FILE *f = fopen(path, "re");

		if (!f || !fgets(text, sizeof(text), f))
			return false;
		fclose(f);
	}
	return true;
}

/* Another thread destroys the queue pair while this thread still handles an
 * event of the queue pair. */
static void a_queue_pair_lives_until_its_event_is_acknowledged(void)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_ERR};
	struct ibv_qp_init_attr init;
	struct ibv_async_event event;
	struct ibv_qp *old, *next;
	struct ibv_srq *srq;
	void *result = NULL;
	pthread_t thread;

	both_open();
	srq = srq_open(4);
	old = endpoint_beside(&b, srq, ENDPOINT_ALL_REMOTE).qp;
	EXPECT(ibv_modify_qp(old, &attr, IBV_QP_STATE) == 0);
	if (!check_is_wrong() && !ibv_get_async_event(b.ctx, &event)) {
		EXPECT(event.element.qp == old);
		destroyer = 0;
		EXPECT(!pthread_create(&thread, NULL, destroy_qp, old));
		EXPECT(await_destroyer());
		/* would get the memory of `old`, if that were free */
		next = qp_on(srq);
		EXPECT(next &&
		       ibv_query_qp(old, &attr, IBV_QP_STATE, &init) == 0);
		EXPECT(attr.qp_state == IBV_QPS_ERR && init.srq == srq);
		attr.qp_state = IBV_QPS_ERR;
		EXPECT(ibv_modify_qp(old, &attr, IBV_QP_STATE) == 0);
		ibv_ack_async_event(&event);
		EXPECT(!pthread_join(thread, &result) && !result);
		EXPECT(next && ibv_destroy_qp(next) == 0);
	}
	EXPECT(ibv_destroy_srq(srq) == 0);
	both_close();
}

static struct ibv_qp *ex_open(struct endpoint *e, struct ibv_cq *cq,
			      uint64_t ops)
{
	struct ibv_qp_init_attr_ex init = {
		.send_cq = cq,
		.recv_cq = cq,
		.qp_type = IBV_QPT_RC,
		.cap = {.max_send_wr = 4,
			.max_recv_wr = 4,
			.max_send_sge = 2,
			.max_recv_sge = 1,
			.max_inline_data = 16},
		.comp_mask =
			IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		.pd = e->pd,
		.send_ops_flags = ops,
	};

	return ibv_create_qp_ex(e->ctx, &init);
}

/* ibv_create_srq_ex ignores the completion queue of a basic SRQ, as rdma-core
 * and the kernel do. */
static void a_basic_shared_queue_may_name_a_completion_queue(void)
{
	struct ibv_srq_init_attr_ex init = {
		.attr = {.max_wr = 4, .max_sge = 1},
		.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD |
			     IBV_SRQ_INIT_ATTR_CQ,
		.srq_type = IBV_SRQT_BASIC,
	};
	struct ibv_srq *srq;

	both_open();
	init.pd = b.pd;
	init.cq = b.cq;
	srq = ibv_create_srq_ex(b.ctx, &init);
	EXPECT(srq);
	EXPECT(srq && ibv_destroy_srq(srq) == 0);
	init.srq_type = IBV_SRQT_XRC;
	EXPECT(!ibv_create_srq_ex(b.ctx, &init) && errno == EOPNOTSUPP);
	both_close();
}

static void a_region_with_windows_stays(void)
{
	struct ibv_mw *mw;
	struct ibv_mr *mr;
	struct ibv_mw_bind bind = {.send_flags = IBV_SEND_SIGNALED};
	uint32_t first;

	both_open();
	endpoint_connect(&a, &b);
	mr = ibv_reg_mr(a.pd, a.region, 4096,
			IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND);
	mw = ibv_alloc_mw(a.pd, IBV_MW_TYPE_1);
	EXPECT(mr && mw);
	first = mw->rkey;
	bind.bind_info = (struct ibv_mw_bind_info){mr, (uintptr_t)a.region, 64,
						   IBV_ACCESS_REMOTE_WRITE};
	EXPECT(ibv_bind_mw(a.qp, mw, &bind) == 0);
	EXPECT(next_completion(&a).opcode == IBV_WC_BIND_MW);
	EXPECT(mw->rkey != first);
	EXPECT(ibv_dereg_mr(mr) == EBUSY);
	bind.bind_info.length = 0;
	EXPECT(ibv_bind_mw(a.qp, mw, &bind) == 0);
	EXPECT(next_completion(&a).status == IBV_WC_SUCCESS);
	EXPECT(ibv_dereg_mr(mr) == 0);
	EXPECT(ibv_dealloc_mw(mw) == 0);
	both_close();
}

static long long now_ns(clockid_t id)
{
	struct timespec t;

	clock_gettime(id, &t);
	return t.tv_sec * 1000000000ll + t.tv_nsec;
}

/* Returns the clock of completion timestamps, as programs do that read tv_nsec
 * alone. */
static uint64_t raw_clock(void)
{
	struct ibv_values_ex values = {.comp_mask = IBV_VALUES_MASK_RAW_CLOCK};

	EXPECT(!ibv_query_rt_values_ex(b.ctx, &values));
	EXPECT(values.raw_clock.tv_sec == 0);
	return (uint64_t)values.raw_clock.tv_nsec;
}

static void read_fields(struct ibv_cq_ex *cq, uint64_t before_send)
{
	long long wall = (long long)ibv_wc_read_completion_wallclock_ns(cq);
	long long age = now_ns(CLOCK_REALTIME) - wall;

	EXPECT(cq->status == IBV_WC_SUCCESS && cq->wr_id == 11);
	EXPECT(ibv_wc_read_opcode(cq) == IBV_WC_RECV);
	EXPECT(ibv_wc_read_byte_len(cq) == 64);
	EXPECT(ibv_wc_read_wc_flags(cq) == IBV_WC_WITH_IMM);
	EXPECT(ibv_wc_read_imm_data(cq) == 0x12345678);
	EXPECT(ibv_wc_read_qp_num(cq) == b.qp->qp_num);
	EXPECT(ibv_wc_read_src_qp(cq) == a.qp->qp_num);
	/* the clock of completions may be read a little before the completion
	 */
	EXPECT(ibv_wc_read_completion_ts(cq) + 1000000000 >= before_send);
	EXPECT(ibv_wc_read_completion_ts(cq) <= raw_clock());
	EXPECT(age >= 0 && age < 600 * 1000000000ll);
}

static void extended_polling_reads_each_field(void)
{
	struct ibv_cq_init_attr_ex init = {
		.cqe = 16,
		.wc_flags = IBV_WC_STANDARD_FLAGS |
			    IBV_WC_EX_WITH_COMPLETION_TIMESTAMP |
			    IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK};
	struct ibv_poll_cq_attr none = {0};
	struct ibv_sge sge;
	struct ibv_send_wr wr = {.sg_list = &sge,
				 .num_sge = 1,
				 .opcode = IBV_WR_SEND_WITH_IMM,
				 .send_flags = IBV_SEND_SIGNALED,
				 .imm_data = 0x12345678};
	struct ibv_recv_wr recv = {.wr_id = 11, .sg_list = &sge, .num_sge = 1};
	struct ibv_send_wr *bad;
	struct ibv_recv_wr *bad_recv;
	struct ibv_cq_ex *cq;
	uint64_t before_send;
	int err;

	both_open();
	before_send = raw_clock();
	init.wc_flags |= IBV_WC_EX_WITH_CVLAN;
	EXPECT(!ibv_create_cq_ex(b.ctx, &init) && errno == EOPNOTSUPP);
	init.wc_flags &= ~(uint64_t)IBV_WC_EX_WITH_CVLAN;
	cq = ibv_create_cq_ex(b.ctx, &init);
	EXPECT(cq);
	endpoint_replace_qp(&b, ex_open(&b, ibv_cq_ex_to_cq(cq), 0),
			    ENDPOINT_ALL_REMOTE);
	endpoint_connect(&a, &b);
	EXPECT(ibv_start_poll(cq, &none) == ENOENT);
	sge = (struct ibv_sge){(uintptr_t)b.region, 64, b.mr->lkey};
	EXPECT(ibv_post_recv(b.qp, &recv, &bad_recv) == 0);
	sge = (struct ibv_sge){(uintptr_t)a.region, 64, a.mr->lkey};
	EXPECT(ibv_post_send(a.qp, &wr, &bad) == 0);
	EXPECT(next_completion(&a).status == IBV_WC_SUCCESS);
	do {
		err = ibv_start_poll(cq, &none);
	} while (err == ENOENT);
	EXPECT(!err);
	if (!err) {
		read_fields(cq, before_send);
		EXPECT(ibv_next_poll(cq) == ENOENT);
		ibv_end_poll(cq);
	}
	endpoint_replace_qp(&b, qp_on(NULL), ENDPOINT_ALL_REMOTE);
	EXPECT(ibv_destroy_cq(ibv_cq_ex_to_cq(cq)) == 0);
	both_close();
}

static void requests_are_posted_all_or_none(void)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;
	struct ibv_qp_ex *qp;
	char text[] = "all or none";

	both_open();
	EXPECT(!ibv_qp_to_qp_ex(a.qp));
	EXPECT(!ex_open(&a, a.cq, IBV_QP_EX_WITH_TSO) && errno == EOPNOTSUPP);
	endpoint_replace_qp(&a, ex_open(&a, a.cq, IBV_QP_EX_WITH_RDMA_WRITE),
			    ENDPOINT_ALL_REMOTE);
	qp = ibv_qp_to_qp_ex(a.qp);
	EXPECT(qp);
	EXPECT(ibv_query_qp(a.qp, &attr, IBV_QP_CAP, &init) == 0);
	ibv_wr_start(qp);
	ibv_wr_rdma_write(qp, 1, 2);
	EXPECT(ibv_wr_complete(qp) == EINVAL); /* in INIT */
	endpoint_connect(&a, &b);
	ibv_wr_start(qp);
	for (int i = 0; i < 5; i++) /* the queue holds four */
		ibv_wr_rdma_write(qp, b.mr->rkey, (uintptr_t)b.region);
	EXPECT(ibv_wr_complete(qp) == ENOMEM);
	ibv_wr_start(qp);
	ibv_wr_rdma_write(qp, b.mr->rkey, (uintptr_t)b.region);
	ibv_wr_set_inline_data(qp, b.region, init.cap.max_inline_data + 1);
	EXPECT(ibv_wr_complete(qp) == EINVAL);
	ibv_wr_start(qp);
	qp->wr_id = 1;
	qp->wr_flags = IBV_SEND_SIGNALED;
	ibv_wr_rdma_write(qp, b.mr->rkey, (uintptr_t)b.region);
	ibv_wr_abort(qp);
	EXPECT(ibv_poll_cq(a.cq, 1, &(struct ibv_wc){0}) == 0);
	ibv_wr_start(qp);
	for (qp->wr_id = 0; qp->wr_id < 4; qp->wr_id++) {
		ibv_wr_rdma_write(qp, b.mr->rkey,
				  (uintptr_t)b.region + qp->wr_id * 64);
		ibv_wr_set_inline_data(qp, text, sizeof(text));
	}
	EXPECT(ibv_wr_complete(qp) == 0);
	memset(text, 0, sizeof(text));
	for (uint64_t i = 0; i < 4; i++) {
		EXPECT(next_completion(&a).wr_id == i);
		EXPECT(!strcmp((char *)b.region + i * 64, "all or none"));
	}
	both_close();
}

/* WRITEs are posted one by one and no thread polls, and yet the last WRITE must
 * arrive.  If the WRITEs go by packets, the library may hold them back, to send
 * several together; same_host/gathered.c tests direct WRITEs that wait. */
static void what_is_posted_leaves_without_a_poll(void)
{
	struct ibv_sge sge = {.length = 8};
	struct ibv_send_wr wr = {
		.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE};
	struct ibv_send_wr *bad;
	volatile uint64_t *last;
	int ms = 0;

	both_open();
	endpoint_connect(&a, &b);
	sge.addr = (uintptr_t)a.region;
	sge.lkey = a.mr->lkey;
	wr.wr.rdma.rkey = b.mr->rkey;
	memset(a.region, 1, 8);
	for (uint64_t i = 0; i < 60; i++) {
		wr.wr.rdma.remote_addr = (uintptr_t)b.region + 8 * i;
		EXPECT(ibv_post_send(a.qp, &wr, &bad) == 0);
	}
	last = (volatile uint64_t *)(void *)(b.region + 8 * 59);
	for (; *last != 0x0101010101010101 && ms < ENDPOINT_EVENT_MS; ms++)
		nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
	EXPECT(ms < ENDPOINT_EVENT_MS);
	both_close();
}

/* Sleeps until e's completion queue, which is armed, has an event, and
 * acknowledges the event. */
static void await_event(struct endpoint *e)
{
	struct ibv_cq *cq;
	void *context;

	EXPECT(ibv_get_cq_event(e->channel, &cq, &context) == 0);
	ibv_ack_cq_events(cq, 1);
}

/* Takes an event of e's completion queue if there is one.  Returns whether
 * there was one. */
static bool take_event(struct endpoint *e)
{
	struct pollfd ready = {.fd = e->channel->fd, .events = POLLIN};

	if (poll(&ready, 1, 0) != 1)
		return false;
	await_event(e);
	return true;
}

/*
 * One poll takes the completions of 16 requests, and then that of a receive
 * whose memory is unmapped: the queue pair goes to ERR, and the next receive is
 * flushed.  The flushed receive must give an event to a thread that sleeps for
 * an event.
 */
static void a_flush_by_a_long_poll_gives_an_event(void)
{
	size_t size = (size_t)sysconf(_SC_PAGESIZE);
	void *page = mmap(NULL, size, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct ibv_sge sge = {(uintptr_t)page, 8, 0};
	struct ibv_recv_wr recv = {.sg_list = &sge, .num_sge = 1}, *bad_recv;
	struct ibv_send_wr wr = {
		.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE};
	struct ibv_send_wr *bad;
	struct pollfd ready = {.events = POLLIN};
	struct ibv_wc wc[32];
	int n;
	struct ibv_mr *mr;

	both_open();
	endpoint_connect(&a, &b);
	mr = ibv_reg_mr(b.pd, page, size, IBV_ACCESS_LOCAL_WRITE);
	EXPECT(mr);
	sge.lkey = mr->lkey;
	for (int i = 0; i < 2; i++)
		EXPECT(ibv_post_recv(b.qp, &recv, &bad_recv) == 0);
	sge = (struct ibv_sge){(uintptr_t)a.region, 8, a.mr->lkey};
	EXPECT(ibv_post_recv(a.qp, &recv, &bad_recv) == 0);
	EXPECT(ibv_req_notify_cq(a.cq, 0) == 0);
	sge = (struct ibv_sge){(uintptr_t)b.region, 8, b.mr->lkey};
	wr.wr.rdma.remote_addr = (uintptr_t)a.region;
	wr.wr.rdma.rkey = a.mr->rkey;
	for (int i = 0; i < 16; i++) {
		wr.opcode = i < 15 ? IBV_WR_RDMA_WRITE : IBV_WR_SEND;
		EXPECT(ibv_post_send(b.qp, &wr, &bad) == 0);
	}
	/* When a has b's SEND, a has all of b's requests.  The acknowledgements
	 * of these requests reach b before the message that a sends next.  So
	 * b's CQ gets the completions of the requests before the completion of
	 * the message. */
	await_event(&a);
	EXPECT(munmap(page, size) == 0);
	sge = (struct ibv_sge){(uintptr_t)a.region, 8, a.mr->lkey};
	EXPECT(ibv_req_notify_cq(a.cq, 0) == 0);
	EXPECT(ibv_post_send(a.qp, &wr, &bad) == 0);
	/* When a's SEND has completed, b has the message. */
	await_event(&a);
	/* The library's threads sleep and no earlier event is left, so only the
	 * poll below can cause the next event. */
	do {
		EXPECT(ibv_req_notify_cq(b.cq, 0) == 0);
		sleeps_await();
	} while (take_event(&b));
	n = ibv_poll_cq(b.cq, 32, wc);
	EXPECT(n >= 17 && wc[16].status == IBV_WC_LOC_PROT_ERR);
	/* With packets, the same poll may already have taken the flushed
	 * receive. */
	if (n < 18) {
		ready.fd = b.channel->fd;
		EXPECT(poll(&ready, 1, ENDPOINT_EVENT_MS) == 1);
		wc[17] = next_completion(&b);
	}
	EXPECT(wc[17].status == IBV_WC_WR_FLUSH_ERR);
	take_event(&b);
	EXPECT(ibv_dereg_mr(mr) == 0);
	both_close();
}

int main(void)
{
	check_run("a region with a bound window is not deregistered",
		  a_region_with_windows_stays);
	check_run("extended polling reads each field",
		  extended_polling_reads_each_field);
	check_run("requests are posted all or none",
		  requests_are_posted_all_or_none);
	check_run("a posted request leaves without a poll",
		  what_is_posted_leaves_without_a_poll);
	check_run("a shared queue has the capacity that was asked for",
		  a_shared_queue_is_what_was_asked);
	check_run("a basic shared queue may name a completion queue",
		  a_basic_shared_queue_may_name_a_completion_queue);
	check_run("the limit event comes once", the_limit_event_comes_once);
	check_run("a queue pair in error reports its last WQE",
		  a_queue_pair_in_error_reports_its_last_wqe);
	check_run("a queue pair lives until its event is acknowledged",
		  a_queue_pair_lives_until_its_event_is_acknowledged);
	check_run("a receive that a long poll flushes gives an event",
		  a_flush_by_a_long_poll_gives_an_event);
	return check_end();
}
