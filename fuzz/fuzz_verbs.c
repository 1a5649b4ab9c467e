/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * libibverbs: the input is a program of valid and invalid calls, which create,
 * modify and destroy objects, and post requests.  Each call must succeed or
 * return a possible error code, and a call that destroys an object may return
 * no error but EBUSY.  In the end all objects can be destroyed in the right
 * order.  The harness needs a network namespace with a broker, both of which
 * tests/threads/with_broker.sh makes.
 */
#include "fuzz.h"
#include "input.h"

#include <errno.h>
#include <string.h>

#include <infiniband/verbs.h>

#define SLOTS  4
#define MEMORY 65536
#define GID    1 /* the index of the IPv4 address as RoCEv2 */

struct script {
	struct input_bytes in;
	struct ibv_pd *pd[SLOTS];
	struct ibv_comp_channel *channel;
	struct ibv_cq *cq[SLOTS];
	struct ibv_mr *mr[SLOTS];
	struct ibv_srq *srq[SLOTS];
	struct ibv_qp *qp[SLOTS];
	struct ibv_ah *ah[SLOTS];
	struct ibv_mw *mw[SLOTS];
};

static struct ibv_context *ctx;
static union ibv_gid gid;
static char memory[MEMORY];

/* Returns a number, mostly a small one, sometimes the largest. */
static uint32_t some_number(struct script *s)
{
	uint8_t v = input_u8(&s->in);

	if (v < 200)
		return v % 40;
	return v < 250 ? 1u << v % 32 : UINT32_MAX;
}

/* Returns a slot, mostly one of the first two: make_objects puts a PD, a CQ, an
 * MR and a QP there. */
static uint32_t some_slot(struct script *s)
{
	uint8_t v = input_u8(&s->in);

	return v < 200 ? v % 2 : v % SLOTS;
}

static int check_err(int err)
{
	FUZZ_REQUIRE(err >= 0 && err < 200);
	return err;
}

static void *check_made(void *object)
{
	FUZZ_REQUIRE(object || (errno > 0 && errno < 200));
	return object;
}

/* Destroys an object and empties its slot.  With EBUSY the object stays. */
#define DESTROY(pointer, call)                                                 \
	do {                                                                   \
		if (pointer) {                                                 \
			int err = check_err(call(pointer));                    \
                                                                               \
			FUZZ_REQUIRE(!err || err == EBUSY);                    \
			if (!err)                                              \
				(pointer) = NULL;                              \
		}                                                              \
	} while (0)

static void make_qp(struct script *s, uint32_t i)
{
	struct ibv_pd *pd = s->pd[some_slot(s)];
	struct ibv_qp_init_attr init = {
		.send_cq = s->cq[some_slot(s)],
		.recv_cq = s->cq[some_slot(s)],
		.srq = input_u8(&s->in) & 1 ? s->srq[some_slot(s)] : NULL,
		.qp_type = (enum ibv_qp_type)(input_u8(&s->in) % 11),
		.sq_sig_all = input_u8(&s->in) & 1,
		.cap = {some_number(s), some_number(s), some_number(s),
			some_number(s), some_number(s)}};

	if (input_u8(&s->in) & 3) {
		init.qp_type =
			(enum ibv_qp_type)(IBV_QPT_RC + input_u8(&s->in) % 3);
		init.cap = (struct ibv_qp_cap){8, 8, 2, 2, 64};
	}
	if (pd && init.send_cq && init.recv_cq && !s->qp[i])
		s->qp[i] = check_made(ibv_create_qp(pd, &init));
}

static void make_mr(struct script *s, uint32_t i)
{
	struct ibv_pd *pd = s->pd[some_slot(s)];
	size_t off = some_number(s) % MEMORY, bytes = some_number(s) % MEMORY;
	unsigned access = input_u8(&s->in);

	if (off + bytes > MEMORY)
		bytes = MEMORY - off;
	if (pd && !s->mr[i])
		s->mr[i] =
			check_made(ibv_reg_mr(pd, memory + off, bytes, access));
}

static void create_object(struct script *s)
{
	uint32_t i = some_slot(s);
	struct ibv_pd *pd = s->pd[some_slot(s)];
	struct ibv_srq_init_attr srq = {
		.attr = {some_number(s), some_number(s), 0}};
	struct ibv_ah_attr ah = {
		.is_global = input_u8(&s->in) & 1,
		.port_num = input_u8(&s->in) % 3,
		.grh = {.dgid = gid, .sgid_index = input_u8(&s->in) % 4}};

	errno = 0;
	switch (input_u8(&s->in) % 8) {
	case 0:
		if (!s->pd[i])
			s->pd[i] = check_made(ibv_alloc_pd(ctx));
		break;
	case 1:
		if (!s->channel)
			s->channel = check_made(ibv_create_comp_channel(ctx));
		break;
	case 2:
		if (!s->cq[i])
			s->cq[i] = check_made(ibv_create_cq(
				ctx, (int)some_number(s), NULL,
				input_u8(&s->in) & 1 ? s->channel : NULL,
				input_u8(&s->in) % 3));
		break;
	case 3:
		make_mr(s, i);
		break;
	case 4:
		if (pd && !s->srq[i])
			s->srq[i] = check_made(ibv_create_srq(pd, &srq));
		break;
	case 5:
		make_qp(s, i);
		break;
	case 6:
		if (pd && !s->ah[i])
			s->ah[i] = check_made(ibv_create_ah(pd, &ah));
		break;
	case 7:
		if (pd && !s->mw[i])
			s->mw[i] = check_made(ibv_alloc_mw(
				pd, (enum ibv_mw_type)(input_u8(&s->in) % 4)));
		break;
	}
}

static void destroy_object(struct script *s)
{
	uint32_t i = some_slot(s);

	switch (input_u8(&s->in) % 8) {
	case 0:
		DESTROY(s->pd[i], ibv_dealloc_pd);
		break;
	case 1:
		DESTROY(s->channel, ibv_destroy_comp_channel);
		break;
	case 2:
		DESTROY(s->cq[i], ibv_destroy_cq);
		break;
	case 3:
		DESTROY(s->mr[i], ibv_dereg_mr);
		break;
	case 4:
		DESTROY(s->srq[i], ibv_destroy_srq);
		break;
	case 5:
		DESTROY(s->qp[i], ibv_destroy_qp);
		break;
	case 6:
		DESTROY(s->ah[i], ibv_destroy_ah);
		break;
	case 7:
		DESTROY(s->mw[i], ibv_dealloc_mw);
		break;
	}
}

/* Modifies a QP: mostly by a valid step towards RTS, sometimes to any state
 * with any attributes. */
static void modify_qp(struct script *s)
{
	static const int steps[][3] = {
		{IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS,
		 IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
			 IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER,
		 IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
			 IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC},
		{IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS,
		 IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN,
		 IBV_QP_SQ_PSN},
		{IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY, 0,
		 IBV_QP_SQ_PSN}};
	struct ibv_qp *qp = s->qp[some_slot(s)], *peer = s->qp[some_slot(s)];
	uint8_t how = input_u8(&s->in);
	struct ibv_qp_attr a = {
		.qp_state = (enum ibv_qp_state)(input_u8(&s->in) % 9),
		.port_num = 1,
		.qp_access_flags = 15,
		.path_mtu = (enum ibv_mtu)(1 + input_u8(&s->in) % 5),
		.dest_qp_num = peer ? peer->qp_num : 77,
		.max_rd_atomic = 4,
		.max_dest_rd_atomic = 4,
		.min_rnr_timer = 1,
		.timeout = 8,
		.retry_cnt = 1,
		.rnr_retry = 1,
		.qkey = 0x1234,
		.ah_attr = {.is_global = 1,
			    .port_num = 1,
			    .grh = {.dgid = gid,
				    .sgid_index = GID,
				    .hop_limit = 9}}};
	int mask = IBV_QP_STATE;

	if (!qp)
		return;
	if (how < 32)
		mask = input_u8(&s->in) | input_u8(&s->in) << 8 |
		       input_u8(&s->in) << 16;
	else if (how < 200 && qp->qp_type <= IBV_QPT_UD &&
		 qp->qp_type >= IBV_QPT_RC && qp->state < IBV_QPS_RTS) {
		a.qp_state = (enum ibv_qp_state)(qp->state + 1);
		mask |= steps[qp->qp_type - IBV_QPT_RC][qp->state];
	}
	check_err(ibv_modify_qp(qp, &a, mask));
}

static struct ibv_sge some_memory(struct script *s)
{
	struct ibv_mr *mr = s->mr[some_slot(s)];
	uint32_t off = some_number(s) % MEMORY, bytes = some_number(s);

	return (struct ibv_sge){(uintptr_t)memory + off, bytes % (MEMORY - off),
				mr ? mr->lkey : input_u8(&s->in)};
}

static void post_send(struct script *s)
{
	struct ibv_qp *qp = s->qp[some_slot(s)];
	struct ibv_mr *mr = s->mr[some_slot(s)];
	struct ibv_sge sge[12];
	struct ibv_send_wr wr = {.wr_id = 1, .sg_list = sge}, *bad = NULL;
	uint8_t strange = input_u8(&s->in);

	/* one request in four has a num_sge of -4, -3, 4 or 5 and any flags;
	 * half of the requests have an opcode up to 13, the others up to 6 */
	wr.opcode =
		(enum ibv_wr_opcode)(input_u8(&s->in) % (strange & 1 ? 7 : 14));
	wr.num_sge = strange & 6 ? strange >> 7 : strange % 16 - 4;
	wr.send_flags =
		input_u8(&s->in) & (strange & 6 ? IBV_SEND_SIGNALED : 0xff);
	for (int i = 0; i < 12; i++)
		sge[i] = some_memory(s);
	if (!qp)
		return;
	if (qp->qp_type == IBV_QPT_UD) {
		wr.wr.ud.ah = s->ah[some_slot(s)];
		wr.wr.ud.remote_qpn = qp->qp_num;
		wr.wr.ud.remote_qkey = 0x1234;
		if (!wr.wr.ud.ah)
			return;
	} else if (wr.opcode == IBV_WR_BIND_MW) {
		wr.bind_mw.mw = s->mw[some_slot(s)];
		wr.bind_mw.bind_info.mr = mr;
		if (!mr || !wr.bind_mw.mw)
			return;
	} else {
		wr.wr.rdma.remote_addr = (uintptr_t)memory + some_number(s);
		wr.wr.rdma.rkey = mr ? mr->rkey : 1;
	}
	if (check_err(ibv_post_send(qp, &wr, &bad)))
		FUZZ_REQUIRE(bad == &wr);
}

static void post_recv(struct script *s)
{
	struct ibv_qp *qp = s->qp[some_slot(s)];
	struct ibv_srq *srq = s->srq[some_slot(s)];
	struct ibv_sge sge = some_memory(s);
	struct ibv_recv_wr wr = {.wr_id = 2, .sg_list = &sge, .num_sge = 1};
	struct ibv_recv_wr *bad = NULL;

	wr.num_sge = input_u8(&s->in) % 8 ? 1 : 0;
	if (input_u8(&s->in) & 1 && srq)
		check_err(ibv_post_srq_recv(srq, &wr, &bad));
	else if (qp && !qp->srq)
		check_err(ibv_post_recv(qp, &wr, &bad));
}

static void poll_cq(struct script *s)
{
	struct ibv_cq *cq = s->cq[some_slot(s)];
	struct ibv_wc wc[4];

	if (!cq)
		return;
	if (input_u8(&s->in) % 4 == 0)
		check_err(ibv_req_notify_cq(cq, input_u8(&s->in) & 1));
	FUZZ_REQUIRE(ibv_poll_cq(cq, 4, wc) >= -200);
}

static void query_objects(struct script *s)
{
	struct ibv_qp *qp = s->qp[some_slot(s)];
	struct ibv_srq *srq = s->srq[some_slot(s)];
	struct ibv_cq *cq = s->cq[some_slot(s)];
	struct ibv_qp_attr a;
	struct ibv_qp_init_attr init;
	struct ibv_srq_attr limits = {.srq_limit = some_number(s)};

	if (qp)
		FUZZ_REQUIRE(!ibv_query_qp(qp, &a, IBV_QP_STATE, &init));
	if (srq)
		check_err(ibv_modify_srq(srq, &limits, IBV_SRQ_LIMIT));
	if (cq && input_u8(&s->in) & 1)
		check_err(ibv_resize_cq(cq, (int)(some_number(s) & INT32_MAX)));
}

static void rereg_mr(struct script *s)
{
	struct ibv_mr *mr = s->mr[some_slot(s)];
	struct ibv_pd *pd = s->pd[some_slot(s)];
	int flags = input_u8(&s->in) % 16, err;

	if (!mr || (!pd && flags & IBV_REREG_MR_CHANGE_PD))
		return;
	err = ibv_rereg_mr(mr, flags, pd, memory, some_number(s) % MEMORY,
			   input_u8(&s->in));
	FUZZ_REQUIRE(err <= 0 && err >= -8);
}

static void run_command(struct script *s)
{
	switch (input_u8(&s->in) % 16) {
	case 0:
	case 1:
	case 2:
	case 3:
		create_object(s);
		break;
	case 4:
		destroy_object(s);
		break;
	case 5:
	case 6:
	case 7:
		modify_qp(s);
		break;
	case 8:
	case 9:
	case 10:
		post_send(s);
		break;
	case 11:
	case 12:
		post_recv(s);
		break;
	case 13:
		poll_cq(s);
		break;
	case 14:
		query_objects(s);
		break;
	case 15:
		rereg_mr(s);
		break;
	}
}

static void open_once(void)
{
	struct ibv_device **list = ibv_get_device_list(NULL);

	FUZZ_REQUIRE(list && list[0]);
	ctx = ibv_open_device(list[0]);
	ibv_free_device_list(list);
	FUZZ_REQUIRE(ctx && !ibv_query_gid(ctx, 1, GID, &gid));
}

/* Makes two PDs, CQs, MRs and QPs. */
static void make_objects(struct script *s)
{
	for (int i = 0; i < 2; i++) {
		struct ibv_qp_init_attr init = {.qp_type = IBV_QPT_RC,
						.cap = {8, 8, 2, 2, 64}};

		s->pd[i] = check_made(ibv_alloc_pd(ctx));
		s->cq[i] = check_made(ibv_create_cq(ctx, 64, NULL, NULL, 0));
		s->mr[i] = check_made(ibv_reg_mr(s->pd[0], memory, MEMORY, 15));
		init.send_cq = init.recv_cq = s->cq[i];
		s->qp[i] = check_made(ibv_create_qp(s->pd[0], &init));
		FUZZ_REQUIRE(s->pd[i] && s->cq[i] && s->mr[i] && s->qp[i]);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct script s = {.in = {data, data + size}};

	if (!ctx)
		open_once();
	make_objects(&s);
	while (s.in.at < s.in.end)
		run_command(&s);
	for (int i = 0; i < SLOTS; i++) {
		DESTROY(s.qp[i], ibv_destroy_qp);
		FUZZ_REQUIRE(!s.qp[i]);
	}
	for (int i = 0; i < SLOTS; i++) {
		DESTROY(s.srq[i], ibv_destroy_srq);
		DESTROY(s.mw[i], ibv_dealloc_mw);
		DESTROY(s.mr[i], ibv_dereg_mr);
		DESTROY(s.ah[i], ibv_destroy_ah);
		DESTROY(s.cq[i], ibv_destroy_cq);
		FUZZ_REQUIRE(!s.srq[i] && !s.mw[i] && !s.mr[i] && !s.ah[i]);
		FUZZ_REQUIRE(!s.cq[i]);
	}
	for (int i = 0; i < SLOTS; i++) {
		DESTROY(s.pd[i], ibv_dealloc_pd);
		FUZZ_REQUIRE(!s.pd[i]);
	}
	DESTROY(s.channel, ibv_destroy_comp_channel);
	FUZZ_REQUIRE(!s.channel);
	return 0;
}
