/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * verbcheck: tests the promises of verbs to a program, between two queue pairs
 * of one process.  Prints a line per case (../../check.h).  One thread.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

#include "check.h"
#include "endpoint.h"

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

/* Returns a signaled request for a's queue pair: the local memory is the first
 * `bytes` bytes of a's region, and the remote memory of a WRITE or READ is b's
 * region.  The request refers to *sge, which this function sets. */
static struct ibv_send_wr make_request(enum ibv_wr_opcode opcode,
				       struct ibv_sge *sge, uint32_t bytes)
{
	struct ibv_send_wr wr = {
		.wr_id = 7,
		.sg_list = sge,
		.num_sge = 1,
		.opcode = opcode,
		.send_flags = IBV_SEND_SIGNALED,
	};

	*sge = (struct ibv_sge){(uintptr_t)a.region, bytes, a.mr->lkey};
	wr.wr.rdma.remote_addr = (uintptr_t)b.region;
	wr.wr.rdma.rkey = b.mr->rkey;
	return wr;
}

static struct ibv_wc next_completion(struct endpoint *e)
{
	struct ibv_wc wc = {.status = IBV_WC_GENERAL_ERR};

	EXPECT(endpoint_wait(e, &wc));
	return wc;
}

/* A peer that knows the numbers of some queue pairs cannot compute the next
 * number by a constant step. */
static void queue_pair_numbers_are_not_in_a_row(void)
{
	struct ibv_qp_init_attr init = {.cap = {1, 1, 1, 1, 0},
					.qp_type = IBV_QPT_RC};
	struct ibv_qp *qps[32] = {NULL};
	uint32_t step = 0, same = 0;

	both_open();
	init.send_cq = init.recv_cq = a.cq;
	for (int i = 0; i < 32; i++) {
		qps[i] = ibv_create_qp(a.pd, &init);
		EXPECT(qps[i]);
		if (!i || !qps[i] || !qps[i - 1])
			continue;
		same += qps[i]->qp_num - qps[i - 1]->qp_num == step;
		step = qps[i]->qp_num - qps[i - 1]->qp_num;
	}
	/* With random numbers of 14 bits, the chance that a step repeats itself
	 * is at most 1 in 16384. */
	EXPECT(same < 3);
	for (int i = 0; i < 32; i++)
		EXPECT(!qps[i] || !ibv_destroy_qp(qps[i]));
	both_close();
}

static void refusals_have_their_errno(void)
{
	struct ibv_mr *mr;

	both_open();
	EXPECT(!ibv_create_cq(a.ctx, 0, NULL, NULL, 0) && errno == EINVAL);
	EXPECT(!ibv_create_cq(a.ctx, 1, NULL, NULL, a.ctx->num_comp_vectors) &&
	       errno == EINVAL);
	mr = ibv_reg_mr(a.pd, a.region, 64, IBV_ACCESS_REMOTE_WRITE);
	EXPECT(!mr && errno == EINVAL);
	mr = ibv_reg_mr(a.pd, (void *)64, 64, IBV_ACCESS_LOCAL_WRITE);
	EXPECT(!mr && errno == EFAULT);
	EXPECT(ibv_dealloc_pd(a.pd) == EBUSY);
	EXPECT(ibv_destroy_cq(a.cq) == EBUSY);
	both_close();
}

/* Expects that a queue pair with these capabilities is refused. */
static void more_is_refused(struct ibv_qp_cap cap)
{
	struct ibv_qp_init_attr init = {.qp_type = IBV_QPT_RC,
					.send_cq = a.cq,
					.recv_cq = a.cq,
					.cap = cap};

	EXPECT(!ibv_create_qp(a.pd, &init) && errno == EINVAL);
}

static void more_than_the_limit_is_refused(void)
{
	const int mask = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU |
			 IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
			 IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
	struct ibv_qp_attr to = {.qp_state = IBV_QPS_RTR,
				 .path_mtu = IBV_MTU_1024,
				 .dest_qp_num = 1 << 24,
				 .ah_attr = {.is_global = 1, .port_num = 1}};
	struct ibv_device_attr dev;

	both_open();
	EXPECT(ibv_query_device(a.ctx, &dev) == 0);
	more_is_refused(
		(struct ibv_qp_cap){(uint32_t)dev.max_qp_wr + 1, 1, 1, 1, 0});
	more_is_refused(
		(struct ibv_qp_cap){1, (uint32_t)dev.max_qp_wr + 1, 1, 1, 0});
	more_is_refused(
		(struct ibv_qp_cap){1, 1, (uint32_t)dev.max_sge + 1, 1, 0});
	more_is_refused(
		(struct ibv_qp_cap){1, 1, 1, (uint32_t)dev.max_sge + 1, 0});
	/* a QPN has 24 bits; all other attributes of the call are valid */
	EXPECT(ibv_query_gid(a.ctx, 1, ENDPOINT_GID_INDEX,
			     &to.ah_attr.grh.dgid) == 0);
	to.ah_attr.grh.sgid_index = ENDPOINT_GID_INDEX;
	EXPECT(ibv_modify_qp(a.qp, &to, mask) == EINVAL);
	to.dest_qp_num--;
	EXPECT(ibv_modify_qp(a.qp, &to, mask) == 0);
	both_close();
}

/* Calls for features that adverb lacks fail with EOPNOTSUPP, and the device's
 * attributes do not advertise these features. */
static void what_is_not_built_is_eopnotsupp(void)
{
	struct ibv_flow_attr flow = {
		.type = IBV_FLOW_ATTR_NORMAL, .size = sizeof(flow), .port = 1};
	struct ibv_xrcd_init_attr xrcd = {
		.comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS,
		.fd = -1,
		.oflags = O_CREAT};
	struct ibv_qp_init_attr raw = {.qp_type = IBV_QPT_RAW_PACKET,
				       .cap = {1, 1, 1, 1, 0}};
	struct ibv_srq_init_attr_ex tags = {
		.attr = {4, 1, 0},
		.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD |
			     IBV_SRQ_INIT_ATTR_CQ | IBV_SRQ_INIT_ATTR_TM,
		.srq_type = IBV_SRQT_TM,
		.tm_cap = {4, 4}};
	struct ibv_device_attr_ex dev;

	both_open();
	EXPECT(!ibv_create_flow(a.qp, &flow) && errno == EOPNOTSUPP);
	EXPECT(!ibv_open_xrcd(a.ctx, &xrcd) && errno == EOPNOTSUPP);
	raw.send_cq = raw.recv_cq = tags.cq = a.cq;
	tags.pd = a.pd;
	EXPECT(!ibv_create_qp(a.pd, &raw) && errno == EOPNOTSUPP);
	raw.qp_type = IBV_QPT_XRC_SEND;
	EXPECT(!ibv_create_qp(a.pd, &raw) && errno == EOPNOTSUPP);
	EXPECT(!ibv_create_srq_ex(a.ctx, &tags) && errno == EOPNOTSUPP);
	EXPECT(!ibv_reg_mr(a.pd, a.region, ENDPOINT_SIZE,
			   IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_ON_DEMAND) &&
	       errno == EOPNOTSUPP);
	EXPECT(ibv_advise_mr(a.pd, IBV_ADVISE_MR_ADVICE_PREFETCH, 0, NULL, 0) ==
	       EOPNOTSUPP);
	EXPECT(ibv_query_device_ex(a.ctx, NULL, &dev) == 0);
	EXPECT(!(dev.orig_attr.device_cap_flags & IBV_DEVICE_XRC) &&
	       !(dev.orig_attr.device_cap_flags &
		 IBV_DEVICE_MANAGED_FLOW_STEERING));
	EXPECT(dev.device_cap_flags_ex == dev.orig_attr.device_cap_flags);
	EXPECT(!dev.odp_caps.general_caps && !dev.tm_caps.max_num_tags &&
	       !dev.raw_packet_caps && !dev.max_wq_type_rq);
	both_close();
}

static void posting_needs_the_right_state(void)
{
	struct ibv_qp_attr reset = {.qp_state = IBV_QPS_RESET},
			   rts = {.qp_state = IBV_QPS_RTS};
	struct ibv_sge sge;
	struct ibv_send_wr send, *bad_send = NULL;
	struct ibv_recv_wr recv = {0}, *bad_recv = NULL;

	both_open();
	send = make_request(IBV_WR_SEND, &sge, 8);
	/* Some programs print errno instead of the value returned. */
	errno = 0;
	EXPECT(ibv_post_send(a.qp, &send, &bad_send) == EINVAL);
	EXPECT(bad_send == &send && errno == EINVAL);
	errno = 0;
	EXPECT(ibv_modify_qp(a.qp, &rts, IBV_QP_STATE) == EINVAL);
	EXPECT(errno == EINVAL);
	EXPECT(ibv_post_recv(a.qp, &recv, &bad_recv) == 0);
	EXPECT(ibv_modify_qp(a.qp, &reset, IBV_QP_STATE) == 0);
	EXPECT(ibv_post_recv(a.qp, &recv, &bad_recv) == EINVAL);
	EXPECT(bad_recv == &recv);
	both_close();
}

/* As with the kernel's drivers, a queue pair with a shared receive queue has no
 * receives of its own, so their numbers mean nothing. */
static void capacities_of_receives_mean_nothing_beside_an_srq(void)
{
	struct ibv_srq_init_attr shared = {
		.attr = {.max_wr = 16, .max_sge = 1}};
	struct ibv_qp_init_attr init = {.qp_type = IBV_QPT_RC,
					.cap = {.max_send_wr = 1,
						.max_send_sge = 1,
						.max_recv_wr = UINT32_MAX,
						.max_recv_sge = UINT32_MAX}};
	struct ibv_qp *qp;

	both_open();
	init.srq = ibv_create_srq(a.pd, &shared);
	init.send_cq = init.recv_cq = a.cq;
	qp = ibv_create_qp(a.pd, &init);
	EXPECT(init.srq && qp);
	EXPECT(init.cap.max_recv_wr == 0 && init.cap.max_recv_sge == 0);
	EXPECT(qp && !ibv_destroy_qp(qp));
	EXPECT(!ibv_destroy_srq(init.srq));
	both_close();
}

static void a_post_to_a_full_queue_is_enomem(void)
{
	struct ibv_sge sge;
	struct ibv_send_wr wr, *bad;
	struct ibv_qp_attr attr;
	struct ibv_qp_init_attr init;
	unsigned int n = 0;
	int err;

	both_open();
	endpoint_connect(&a, &b);
	EXPECT(ibv_query_qp(a.qp, &attr, IBV_QP_CAP, &init) == 0);
	wr = make_request(IBV_WR_RDMA_WRITE, &sge, 0);
	wr.num_sge = 0;
	wr.send_flags = 0;
	while (!(err = ibv_post_send(a.qp, &wr, &bad)) && n < 100000)
		n++;
	EXPECT(err == ENOMEM);
	EXPECT(bad == &wr);
	EXPECT(n == init.cap.max_send_wr);
	both_close();
}

static void inline_data_is_copied_without_a_key(void)
{
	char text[] = "inline";
	struct ibv_sge sge;
	struct ibv_send_wr wr, *bad;

	both_open();
	endpoint_connect(&a, &b);
	wr = make_request(IBV_WR_RDMA_READ, &sge, sizeof(text));
	wr.send_flags |= IBV_SEND_INLINE;
	EXPECT(ibv_post_send(a.qp, &wr, &bad) == EINVAL);
	wr = make_request(IBV_WR_RDMA_WRITE, &sge, sizeof(text));
	sge = (struct ibv_sge){(uintptr_t)text, sizeof(text), 0xdead};
	wr.send_flags |= IBV_SEND_INLINE;
	EXPECT(ibv_post_send(a.qp, &wr, &bad) == 0);
	memset(text, 0, sizeof(text));
	EXPECT(next_completion(&a).status == IBV_WC_SUCCESS);
	EXPECT(strcmp((char *)b.region, "inline") == 0);
	both_close();
}

/* Adapters do not check the length of an atomic when the request is posted, so
 * an atomic of 9 bytes completes in error. */
static void an_atomic_is_of_8_bytes(void)
{
	struct ibv_send_wr wr, *bad;
	struct ibv_sge sge;
	uint64_t before;

	both_open();
	endpoint_connect(&a, &b);
	memcpy(&before, b.region, sizeof(before));
	wr = make_request(IBV_WR_ATOMIC_FETCH_AND_ADD, &sge, 9);
	wr.wr.atomic.remote_addr = (uintptr_t)b.region;
	wr.wr.atomic.rkey = b.mr->rkey;
	wr.wr.atomic.compare_add = 1;
	EXPECT(ibv_post_send(a.qp, &wr, &bad) == 0);
	EXPECT(next_completion(&a).status == IBV_WC_LOC_LEN_ERR);
	EXPECT(endpoint_state(&a) == IBV_QPS_ERR);
	EXPECT(!memcmp(&before, b.region, sizeof(before)));
	both_close();
}

static void atomics_return_what_was_there(void)
{
	uint64_t *mine, *theirs;
	struct ibv_sge sge;
	struct ibv_send_wr wr, *bad;

	both_open();
	endpoint_connect(&a, &b);
	mine = (uint64_t *)(void *)a.region;
	theirs = (uint64_t *)(void *)b.region;
	*theirs = 40;
	wr = make_request(IBV_WR_ATOMIC_FETCH_AND_ADD, &sge, 8);
	wr.wr.atomic.remote_addr = (uintptr_t)theirs;
	wr.wr.atomic.rkey = b.mr->rkey;
	wr.wr.atomic.compare_add = 2;
	EXPECT(ibv_post_send(a.qp, &wr, &bad) == 0);
	EXPECT(next_completion(&a).status == IBV_WC_SUCCESS);
	EXPECT(*mine == 40 && *theirs == 42);
	wr.opcode = IBV_WR_ATOMIC_CMP_AND_SWP;
	wr.wr.atomic.compare_add = 42;
	wr.wr.atomic.swap = 99;
	EXPECT(ibv_post_send(a.qp, &wr, &bad) == 0);
	EXPECT(next_completion(&a).opcode == IBV_WC_COMP_SWAP);
	EXPECT(*mine == 42 && *theirs == 99);
	both_close();
}

static void a_queue_pair_in_error_flushes_what_is_posted(void)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_ERR};
	struct ibv_sge sge;
	struct ibv_send_wr send, *bad_send;
	struct ibv_recv_wr recv = {.wr_id = 9}, *bad_recv;

	both_open();
	endpoint_connect(&a, &b);
	EXPECT(ibv_post_recv(a.qp, &recv, &bad_recv) == 0);
	EXPECT(ibv_modify_qp(a.qp, &attr, IBV_QP_STATE) == 0);
	EXPECT(a.qp->state == IBV_QPS_ERR);
	EXPECT(next_completion(&a).status == IBV_WC_WR_FLUSH_ERR);
	send = make_request(IBV_WR_SEND, &sge, 8);
	EXPECT(ibv_post_send(a.qp, &send, &bad_send) == 0);
	EXPECT(next_completion(&a).status == IBV_WC_WR_FLUSH_ERR);
	EXPECT(ibv_post_recv(a.qp, &recv, &bad_recv) == 0);
	attr.qp_state = IBV_QPS_RESET;
	EXPECT(ibv_modify_qp(a.qp, &attr, IBV_QP_STATE) == 0);
	EXPECT(ibv_poll_cq(a.cq, 1, &(struct ibv_wc){0}) == 0);
	both_close();
}

static void an_armed_queue_gives_one_event(void)
{
	struct ibv_context *ctx;
	struct ibv_comp_channel *channel;
	struct ibv_cq *cq, *got = NULL;
	struct pollfd ready = {.events = POLLIN};
	void *cookie = NULL;
	struct ibv_qp_init_attr init = {.cap = {4, 4, 1, 1, 0},
					.qp_type = IBV_QPT_RC};
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 1};
	struct ibv_recv_wr recv = {0}, *bad;
	struct ibv_qp *qp;

	both_open();
	ctx = a.ctx;
	channel = ibv_create_comp_channel(ctx);
	cq = ibv_create_cq(ctx, 8, &ready, channel, 0);
	init.send_cq = init.recv_cq = cq;
	qp = ibv_create_qp(a.pd, &init);
	EXPECT(channel && cq && qp);
	EXPECT(ibv_destroy_comp_channel(channel) == EBUSY);
	EXPECT(ibv_modify_qp(qp, &attr,
			     IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
				     IBV_QP_ACCESS_FLAGS) == 0);
	EXPECT(ibv_req_notify_cq(cq, 0) == 0);
	EXPECT(ibv_post_recv(qp, &recv, &bad) == 0);
	EXPECT(ibv_post_recv(qp, &recv, &bad) == 0);
	ready.fd = channel->fd;
	EXPECT(poll(&ready, 1, 0) == 0);
	attr.qp_state = IBV_QPS_ERR;
	EXPECT(ibv_modify_qp(qp, &attr, IBV_QP_STATE) == 0);
	EXPECT(poll(&ready, 1, ENDPOINT_EVENT_MS) == 1);
	if (!check_is_wrong() && ibv_get_cq_event(channel, &got, &cookie) == 0)
		ibv_ack_cq_events(got, 1);
	EXPECT(got == cq && cookie == &ready);
	EXPECT(poll(&ready, 1, 0) == 0);
	EXPECT(ibv_destroy_qp(qp) == 0);
	EXPECT(ibv_destroy_cq(cq) == 0);
	EXPECT(ibv_destroy_comp_channel(channel) == 0);
	both_close();
}

static void rights_change_while_the_keys_stay(void)
{
	struct ibv_sge sge;
	struct ibv_send_wr wr, *bad;
	uint32_t rkey;

	both_open();
	endpoint_connect(&a, &b);
	rkey = b.mr->rkey;
	EXPECT(ibv_rereg_mr(b.mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0,
			    IBV_ACCESS_LOCAL_WRITE) == 0);
	EXPECT(b.mr->rkey == rkey);
	wr = make_request(IBV_WR_RDMA_WRITE, &sge, 64);
	EXPECT(ibv_post_send(a.qp, &wr, &bad) == 0);
	EXPECT(next_completion(&a).status == IBV_WC_REM_ACCESS_ERR);
	both_close();
}

/* ibv_import_mr(3): a program that has two handles of a region destroys the
 * region by one handle, and gives the other handle back by ibv_unimport_mr. */
static void an_imported_region_can_be_destroyed(void)
{
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	struct ibv_mr *mr, *imported;
	struct ibv_sge sge;
	struct ibv_send_wr wr, *bad;

	both_open();
	endpoint_connect(&a, &b);
	ctx = ibv_import_device(dup(b.ctx->cmd_fd));
	pd = ctx ? ibv_import_pd(ctx, b.pd->handle) : NULL;
	mr = ibv_reg_mr(b.pd, b.region, 64, IBV_ACCESS_LOCAL_WRITE);
	imported = pd && mr ? ibv_import_mr(pd, mr->handle) : NULL;
	EXPECT(imported && imported->lkey == mr->lkey);
	if (!imported)
		return;
	EXPECT(ibv_rereg_mr(imported, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0,
			    0) == IBV_REREG_MR_ERR_INPUT);
	EXPECT(errno == EINVAL);
	EXPECT(ibv_dereg_mr(imported) == 0);
	wr = make_request(IBV_WR_RDMA_WRITE, &sge, 8);
	wr.wr.rdma.rkey = mr->rkey;
	EXPECT(ibv_post_send(a.qp, &wr, &bad) == 0);
	EXPECT(next_completion(&a).status == IBV_WC_REM_ACCESS_ERR);
	ibv_unimport_mr(mr);
	EXPECT(ibv_dealloc_pd(pd) == EBUSY); /* b.pd has a queue pair */
	ibv_unimport_pd(pd);
	EXPECT(ibv_close_device(ctx) == 0);
	both_close();
}

/* A domain is freed by any of its handles, if none of them has objects.  A
 * region that was imported with one handle does not keep ibv_dealloc_pd from
 * freeing the domain by another. */
static void a_domain_is_busy_if_any_of_its_handles_has_objects(void)
{
	struct ibv_pd *first, *second;
	struct ibv_mr *mr, *imported;

	both_open();
	first = ibv_alloc_pd(a.ctx);
	second = first ? ibv_import_pd(a.ctx, first->handle) : NULL;
	mr = second ? ibv_reg_mr(second, a.region, 64, 0) : NULL;
	EXPECT(mr);
	if (!mr)
		return;
	EXPECT(ibv_dealloc_pd(first) == EBUSY);
	imported = ibv_import_mr(first, mr->handle);
	EXPECT(imported);
	EXPECT(ibv_dereg_mr(mr) == 0);
	EXPECT(ibv_dealloc_pd(second) == 0);
	ibv_unimport_mr(imported);
	EXPECT(ibv_dealloc_pd(first) == 0);
	first = ibv_alloc_pd(a.ctx);
	second = first ? ibv_import_pd(a.ctx, first->handle) : NULL;
	mr = second ? ibv_reg_mr(second, a.region, 64, 0) : NULL;
	EXPECT(mr);
	if (!mr)
		return;
	ibv_unimport_pd(second);
	EXPECT(ibv_dealloc_pd(first) == EBUSY);
	EXPECT(ibv_dereg_mr(mr) == 0);
	EXPECT(ibv_dealloc_pd(first) == 0);
	both_close();
}

/* A program may give an imported domain back while a region that was made with
 * the imported handle exists.  AddressSanitizer reports an access to the handle
 * after it was freed. */
static void an_imported_domain_outlives_its_handle(void)
{
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	struct ibv_mr *mr;

	both_open();
	ctx = ibv_import_device(dup(b.ctx->cmd_fd));
	pd = ctx ? ibv_import_pd(ctx, b.pd->handle) : NULL;
	mr = pd ? ibv_reg_mr(pd, b.region, 64, 0) : NULL;
	EXPECT(mr);
	if (!mr)
		return;
	ibv_unimport_pd(pd);
	EXPECT(ibv_dereg_mr(mr) == 0);
	EXPECT(ibv_close_device(ctx) == 0);
	both_close();
}

/* The handle of a domain that was freed names no domain any more, also if a
 * domain with a greater handle exists.  The handles 0 and UINT32_MAX name no
 * domain either. */
static void a_freed_domain_is_not_imported(void)
{
	struct ibv_pd *first, *second, *imported;
	uint32_t handle;

	both_open();
	first = ibv_alloc_pd(a.ctx);
	second = ibv_alloc_pd(a.ctx);
	imported = first ? ibv_import_pd(a.ctx, first->handle) : NULL;
	EXPECT(imported && second);
	if (!imported || !second)
		return;
	handle = first->handle;
	EXPECT(ibv_dealloc_pd(first) == 0);
	errno = 0;
	EXPECT(!ibv_import_pd(a.ctx, handle) && errno == ENOENT);
	ibv_unimport_pd(imported);
	EXPECT(!ibv_import_pd(a.ctx, 0) && !ibv_import_pd(a.ctx, UINT32_MAX));
	imported = ibv_import_pd(a.ctx, second->handle);
	EXPECT(imported);
	EXPECT(ibv_dealloc_pd(second) == 0);
	if (imported)
		ibv_unimport_pd(imported);
	both_close();
}

/* ibv_import_mr finds only a region of the domain that the caller passes, and
 * no region has the handle 0.  ibv_import_device finds only an open context. */
static void a_region_of_another_domain_is_not_imported(void)
{
	struct ibv_pd *pd;
	struct ibv_mr *mr;

	both_open();
	pd = ibv_alloc_pd(a.ctx);
	mr = ibv_reg_mr(a.pd, a.region, 64, 0);
	EXPECT(pd && mr);
	if (!pd || !mr)
		return;
	errno = 0;
	EXPECT(!ibv_import_mr(pd, mr->handle) && errno == ENOENT);
	EXPECT(!ibv_import_mr(pd, 0) && errno == ENOENT);
	EXPECT(!ibv_import_device(-1) && errno == EINVAL);
	EXPECT(ibv_dereg_mr(mr) == 0);
	EXPECT(ibv_dealloc_pd(pd) == 0);
	both_close();
}

/* Device memory has no address with which its region could be registered again.
 */
static void a_region_of_device_memory_stays_as_it_is(void)
{
	struct ibv_alloc_dm_attr attr = {.length = 64};
	struct ibv_dm *dm;
	struct ibv_pd *pd;
	struct ibv_mr *mr;

	both_open();
	dm = ibv_alloc_dm(a.ctx, &attr);
	pd = ibv_alloc_pd(a.ctx);
	mr = dm ? ibv_reg_dm_mr(a.pd, dm, 0, 64,
				IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_ZERO_BASED)
		: NULL;
	EXPECT(mr && pd);
	EXPECT(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_PD, pd, NULL, 0, 0) ==
	       IBV_REREG_MR_ERR_INPUT);
	EXPECT(errno == EINVAL && mr->pd == a.pd);
	EXPECT(ibv_dereg_mr(mr) == 0);
	EXPECT(ibv_free_dm(dm) == 0);
	EXPECT(ibv_dealloc_pd(pd) == 0);
	both_close();
}

/* A program that computes the number of completions to poll for may get a
 * negative number. */
static void a_poll_for_fewer_than_none_takes_none(void)
{
	struct ibv_wc wc = {.wr_id = 77};
	struct ibv_send_wr wr, *bad;
	struct ibv_sge sge;

	both_open();
	endpoint_connect(&a, &b);
	wr = make_request(IBV_WR_RDMA_WRITE, &sge, 64);
	EXPECT(ibv_post_send(a.qp, &wr, &bad) == 0);
	for (int i = 0; i < 1000; i++) {
		EXPECT(ibv_poll_cq(a.cq, 0, &wc) == 0);
		EXPECT(ibv_poll_cq(a.cq, -1, &wc) == 0);
	}
	EXPECT(wc.wr_id == 77);
	EXPECT(next_completion(&a).status == IBV_WC_SUCCESS);
	both_close();
}

int main(void)
{
	check_run("the numbers of queue pairs have no constant step",
		  queue_pair_numbers_are_not_in_a_row);
	check_run("refusals have their errno", refusals_have_their_errno);
	check_run("more than a limit is refused",
		  more_than_the_limit_is_refused);
	check_run("a call that is not built is EOPNOTSUPP",
		  what_is_not_built_is_eopnotsupp);
	check_run("posting needs the right state",
		  posting_needs_the_right_state);
	check_run("a post to a full queue is ENOMEM",
		  a_post_to_a_full_queue_is_enomem);
	check_run("capacities of receives mean nothing beside an SRQ",
		  capacities_of_receives_mean_nothing_beside_an_srq);
	check_run("inline data is copied without a key",
		  inline_data_is_copied_without_a_key);
	check_run("an atomic of other than 8 bytes is a length error",
		  an_atomic_is_of_8_bytes);
	check_run("atomics return the value from before",
		  atomics_return_what_was_there);
	check_run("a queue pair in error flushes posted requests",
		  a_queue_pair_in_error_flushes_what_is_posted);
	check_run("an armed queue gives one event",
		  an_armed_queue_gives_one_event);
	check_run("a poll for fewer than none takes none",
		  a_poll_for_fewer_than_none_takes_none);
	check_run("rights change while the keys stay",
		  rights_change_while_the_keys_stay);
	check_run("an imported region can be destroyed",
		  an_imported_region_can_be_destroyed);
	check_run("a domain is busy if any of its handles has objects",
		  a_domain_is_busy_if_any_of_its_handles_has_objects);
	check_run("an imported domain outlives its handle",
		  an_imported_domain_outlives_its_handle);
	check_run("a freed domain is not imported",
		  a_freed_domain_is_not_imported);
	check_run("a region of another domain is not imported",
		  a_region_of_another_domain_is_not_imported);
	check_run("a region of device memory stays as it is",
		  a_region_of_device_memory_stays_as_it_is);
	return check_end();
}
