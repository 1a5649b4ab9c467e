/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * datagramcheck: tests what programs see of UD queue pairs, address handles and
 * multicast, and of operations that UC lacks.  Prints a line per case, as
 * verbcheck does.  One case forks processes, one after the other.  The program
 * makes no thread in any of its processes.
 */
#include <errno.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "check.h"
#include "endpoint.h"

enum { QPS = 3, GRH = 40, QKEY = 0x11111111, BYTES = 64, CLASS = 0x48 };
/* The values of the bytes of send_list()'s messages.  FIRST: each byte of every
 * message but the last.  LAST: each byte of the last message. */
enum { FIRST = 1, LAST };
enum { MANY = 300, LONG = 480 }; /* LONG is too long for a receive's slot */

/* All queue pairs use the memory of e, and, except for that of receive_all, the
 * CQ of e. */
static struct endpoint e;
static struct ibv_qp *qp[QPS];
static struct ibv_ah *ah;  /* to this process's own GID */
static union ibv_gid self; /* the GID of the port, at ENDPOINT_GID_INDEX */

static struct ibv_qp *ud_open(struct ibv_cq *cq, uint32_t depth)
{
	struct ibv_qp_init_attr init = {
		.send_cq = cq,
		.recv_cq = cq,
		.cap = {depth, depth, 1, 1, BYTES},
		.qp_type = IBV_QPT_UD,
	};
	struct ibv_qp_attr a = {
		.qp_state = IBV_QPS_INIT, .port_num = 1, .qkey = QKEY};
	struct ibv_qp *q = ibv_create_qp(e.pd, &init);

	if (!q)
		return NULL;
	EXPECT(!ibv_modify_qp(q, &a,
			      IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
				      IBV_QP_QKEY));
	a.qp_state = IBV_QPS_RTR;
	EXPECT(!ibv_modify_qp(q, &a, IBV_QP_STATE));
	a.qp_state = IBV_QPS_RTS;
	EXPECT(!ibv_modify_qp(q, &a, IBV_QP_STATE | IBV_QP_SQ_PSN));
	return q;
}

static struct ibv_ah *ah_open(const union ibv_gid *to)
{
	struct ibv_ah_attr a = {.is_global = 1, .port_num = 1};

	a.grh.dgid = *to;
	a.grh.traffic_class = CLASS;
	a.grh.sgid_index = ENDPOINT_GID_INDEX;
	a.grh.hop_limit = 1;
	return ibv_create_ah(e.pd, &a);
}

static void post_receive(struct ibv_qp *q)
{
	struct ibv_sge sge = {(uintptr_t)e.region, GRH + BYTES, e.mr->lkey};
	struct ibv_recv_wr wr = {.wr_id = 100, .sg_list = &sge, .num_sge = 1};
	struct ibv_recv_wr *bad;

	EXPECT(!ibv_post_recv(q, &wr, &bad));
}

static int post_request(struct ibv_qp *q, struct ibv_ah *to, uint32_t qpn,
			uint32_t bytes, enum ibv_wr_opcode op)
{
	struct ibv_sge sge = {(uintptr_t)e.region + 1024, bytes, e.mr->lkey};
	struct ibv_send_wr *bad;
	struct ibv_send_wr wr = {
		.wr_id = 200,
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = op,
		.send_flags = IBV_SEND_SIGNALED,
		.imm_data = 77,
	};

	wr.wr.ud.ah = to;
	wr.wr.ud.remote_qpn = qpn;
	wr.wr.ud.remote_qkey = QKEY;
	return ibv_post_send(q, &wr, &bad);
}

/* Takes n completions, which must be successful.  Returns how many of them are
 * receives, with the last receive in *got, or -1 if the case has failed: too
 * few completions come, or an earlier check was wrong. */
static int take_completions(int n, struct ibv_wc *got)
{
	struct ibv_wc wc;
	int receives = 0;

	while (n--) {
		EXPECT(endpoint_wait(&e, &wc));
		if (check_is_wrong())
			return -1;
		EXPECT(wc.status == IBV_WC_SUCCESS);
		if (wc.opcode != IBV_WC_RECV)
			continue;
		receives++;
		*got = wc;
	}
	return receives;
}

static void completions_tell_the_source(void)
{
	struct ibv_wc wc = {0};

	post_receive(qp[1]);
	memset(e.region + 1024, 9, BYTES);
	EXPECT(!post_request(qp[0], ah, qp[1]->qp_num, BYTES,
			     IBV_WR_SEND_WITH_IMM));
	EXPECT(take_completions(2, &wc) == 1);
	EXPECT(wc.qp_num == qp[1]->qp_num && wc.src_qp == qp[0]->qp_num);
	EXPECT(wc.byte_len == GRH + BYTES && wc.imm_data == 77);
	EXPECT(wc.wc_flags & IBV_WC_GRH && wc.wc_flags & IBV_WC_WITH_IMM);
	EXPECT(!memcmp(e.region + GRH, e.region + 1024, BYTES));
}

/* Answers a datagram with an address handle made from its completion. */
static void an_answer_reaches_the_sender(void)
{
	struct ibv_wc wc = {0};
	struct ibv_ah_attr attr;
	struct ibv_ah *back;

	post_receive(qp[1]);
	EXPECT(!post_request(qp[0], ah, qp[1]->qp_num, BYTES, IBV_WR_SEND));
	EXPECT(take_completions(2, &wc) == 1);
	EXPECT(!ibv_init_ah_from_wc(e.ctx, 1, &wc, (void *)e.region, &attr));
	EXPECT(attr.grh.traffic_class == CLASS);
	back = ibv_create_ah_from_wc(e.pd, &wc, (void *)e.region, 1);
	EXPECT(back);
	if (!back)
		return;
	post_receive(qp[0]);
	EXPECT(!post_request(qp[1], back, wc.src_qp, BYTES, IBV_WR_SEND));
	EXPECT(take_completions(2, &wc) == 1);
	EXPECT(wc.qp_num == qp[0]->qp_num);
	EXPECT(!ibv_destroy_ah(back));
}

static void a_queue_pair_sends_to_itself(void)
{
	struct ibv_wc wc = {0};

	post_receive(qp[0]);
	EXPECT(!post_request(qp[0], ah, qp[0]->qp_num, 0, IBV_WR_SEND));
	EXPECT(take_completions(2, &wc) == 1);
	EXPECT(wc.byte_len == GRH);
}

/* Posts, in one call, @list messages of LONG bytes of value n to the queue pair
 * qpn.  Messages of different values have different memory, since those that
 * were posted earlier may not have been sent yet. */
static void send_list(uint32_t qpn, int n, int list)
{
	uint8_t *bytes = e.region + 1024 * n;
	struct ibv_sge sge = {(uintptr_t)bytes, LONG, e.mr->lkey};
	struct ibv_send_wr wr[8] = {{0}}, *bad;

	memset(bytes, n, LONG);
	for (int i = 0; i < list; i++) {
		wr[i] = (struct ibv_send_wr){.sg_list = &sge,
					     .num_sge = 1,
					     .opcode = IBV_WR_SEND,
					     .next = i + 1 < list ? &wr[i + 1]
								  : NULL};
		wr[i].wr.ud.ah = ah;
		wr[i].wr.ud.remote_qpn = qpn;
		wr[i].wr.ud.remote_qkey = QKEY;
	}
	EXPECT(!ibv_post_send(qp[0], wr, &bad));
}

/* Polls until the last byte of a message has the value n.  Returns whether the
 * byte has this value within about ENDPOINT_EVENT_MS. */
static bool is_heard(struct ibv_cq *cq, int n)
{
	volatile uint8_t *last = e.region + GRH + LONG - 1;
	struct ibv_wc wc;
	int ms = 0;

	for (; *last != n && ms < ENDPOINT_EVENT_MS; ms++) {
		ibv_poll_cq(cq, 1, &wc);
		nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
	}
	return *last == n;
}

/* Runs the receiving process, which polls until the last message has come.
 * Writes its QPN to the pipe @tell twice: when the receives are posted, and
 * when the first message has come.  Returns the exit status of the process. */
static int receive_all(int tell)
{
	struct ibv_sge sge;
	struct ibv_recv_wr wr = {.sg_list = &sge, .num_sge = 1}, *bad;
	struct ibv_qp *q;

	endpoint_open(&e, IBV_ACCESS_LOCAL_WRITE, 0);
	q = ud_open(ibv_create_cq(e.ctx, MANY, NULL, NULL, 0), MANY);
	if (!q)
		return 1;
	sge = (struct ibv_sge){(uintptr_t)e.region, GRH + LONG, e.mr->lkey};
	for (int i = 0; i < MANY; i++)
		if (ibv_post_recv(q, &wr, &bad))
			return 1;
	e.region[GRH + LONG - 1] = 0;
	for (int n = FIRST; n <= LAST; n++) {
		if (write(tell, &q->qp_num, sizeof(q->qp_num)) < 0 ||
		    !is_heard(q->recv_cq, n))
			return 1;
	}
	return 0;
}

/* Sends eight datagrams in a list, and then @singly datagrams one by one, so
 * that the library may hold some back to send them together with later ones.
 * The sender does not poll, and yet the last datagram must arrive. */
static void leaves_without_a_poll(int singly)
{
	int pair[2], status = -1;
	uint32_t qpn = 0;
	pid_t child;

	EXPECT(!pipe(pair));
	child = fork();
	if (!child)
		_exit(receive_all(pair[1]));
	close(pair[1]);
	EXPECT(read(pair[0], &qpn, sizeof(qpn)) == sizeof(qpn));
	send_list(qpn, FIRST, 1);
	/* The first datagram has arrived, so its path is set up. */
	EXPECT(read(pair[0], &qpn, sizeof(qpn)) == sizeof(qpn));
	/* After a pause longer than POLL_POLICY_SERVE_NS the library counts
	 * unanswered posts from 0 again (poll_policy_unanswered). */
	nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
	send_list(qpn, FIRST, 8);
	for (int i = 1; i < singly; i++)
		send_list(qpn, FIRST, 1);
	send_list(qpn, LAST, 1);
	EXPECT(waitpid(child, &status, 0) == child && status == 0);
	close(pair[0]);
}

static void what_is_posted_leaves_without_a_poll(void)
{
	endpoint_open(&e, IBV_ACCESS_LOCAL_WRITE, 0);
	EXPECT(!ibv_query_gid(e.ctx, 1, ENDPOINT_GID_INDEX, &self));
	EXPECT(ah = ah_open(&self));
	for (int singly = 1; singly < MANY - 9; singly += 90) {
		EXPECT(qp[0] = ud_open(e.cq, MANY));
		leaves_without_a_poll(singly);
		EXPECT(!ibv_destroy_qp(qp[0]));
	}
	EXPECT(!ibv_destroy_ah(ah));
	endpoint_close(&e);
}

static void check_refusals(void)
{
	struct ibv_ah_attr a = {.port_num = 1};
	union ibv_gid none = {{0}};

	EXPECT(post_request(qp[0], ah, 5, 8, IBV_WR_LOCAL_INV) == EINVAL);
	EXPECT(post_request(qp[0], NULL, 5, 8, IBV_WR_SEND) == EINVAL);
	EXPECT(!ibv_create_ah(e.pd, &a) && errno == EINVAL);
	a.is_global = 1;
	a.grh.sgid_index = 60;
	EXPECT(!ibv_create_ah(e.pd, &a) && errno == EINVAL);
	EXPECT(ibv_attach_mcast(qp[0], &none, 0) == EINVAL);
	EXPECT(ibv_attach_mcast(e.qp, &self, 0) == EINVAL);
}

/* Posts on q a request that fails, so that q goes to SQE, moves q back to RTS,
 * and expects that q sends again. */
static void expect_misuse_error(struct ibv_qp *q, uint32_t bytes,
				enum ibv_wr_opcode op,
				enum ibv_wc_status status)
{
	struct ibv_qp_attr a = {.qp_state = IBV_QPS_RTS};
	struct ibv_qp_init_attr init;
	struct ibv_wc wc = {0};

	EXPECT(!post_request(q, ah, qp[1]->qp_num, bytes, op));
	EXPECT(endpoint_wait(&e, &wc));
	EXPECT(wc.status == status && wc.wr_id == 200 &&
	       wc.qp_num == q->qp_num);
	EXPECT(!ibv_query_qp(q, &a, IBV_QP_STATE, &init));
	EXPECT(a.qp_state == IBV_QPS_SQE);
	a.qp_state = IBV_QPS_RTS;
	EXPECT(!ibv_modify_qp(q, &a, IBV_QP_STATE));
	post_receive(qp[1]);
	EXPECT(!post_request(q, ah, qp[1]->qp_num, BYTES, IBV_WR_SEND));
	EXPECT(take_completions(2, &wc) == 1);
}

/* A WRITE, READ, atomic or SEND with invalidate, which UD lacks, and a message
 * longer than the MTU are posted, and complete in error. */
static void misuse_completes_in_error(void)
{
	static const enum ibv_wr_opcode ops[] = {
		IBV_WR_RDMA_READ,
		IBV_WR_RDMA_WRITE,
		IBV_WR_RDMA_WRITE_WITH_IMM,
		IBV_WR_ATOMIC_CMP_AND_SWP,
		IBV_WR_ATOMIC_FETCH_AND_ADD,
		IBV_WR_SEND_WITH_INV,
	};

	for (size_t i = 0; i < sizeof(ops) / sizeof(ops[0]); i++)
		expect_misuse_error(qp[0], 8, ops[i], IBV_WC_LOC_QP_OP_ERR);
	expect_misuse_error(qp[0], 4097, IBV_WR_SEND, IBV_WC_LOC_LEN_ERR);
}

/* Returns a new UC queue pair that is connected to itself, or NULL. */
static struct ibv_qp *uc_open(void)
{
	struct ibv_qp_init_attr init = {
		.send_cq = e.cq,
		.recv_cq = e.cq,
		.cap = {4, 4, 1, 1, 0},
		.qp_type = IBV_QPT_UC,
	};
	struct ibv_qp *q = ibv_create_qp(e.pd, &init);
	struct ibv_qp_attr a = {.qp_state = IBV_QPS_INIT, .port_num = 1};

	if (!q)
		return NULL;
	EXPECT(!ibv_modify_qp(q, &a,
			      IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
				      IBV_QP_ACCESS_FLAGS));
	a.qp_state = IBV_QPS_RTR;
	a.path_mtu = IBV_MTU_1024;
	a.dest_qp_num = q->qp_num;
	a.ah_attr = (struct ibv_ah_attr){.is_global = 1, .port_num = 1};
	a.ah_attr.grh.dgid = self;
	a.ah_attr.grh.sgid_index = ENDPOINT_GID_INDEX;
	EXPECT(!ibv_modify_qp(q, &a,
			      IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU |
				      IBV_QP_DEST_QPN | IBV_QP_RQ_PSN));
	a.qp_state = IBV_QPS_RTS;
	EXPECT(!ibv_modify_qp(q, &a, IBV_QP_STATE | IBV_QP_SQ_PSN));
	return q;
}

/* A request with an operation that UC lacks is posted, and completes in error.
 */
static void misuse_of_uc_completes_in_error(void)
{
	static const enum ibv_wr_opcode ops[] = {
		IBV_WR_RDMA_READ,
		IBV_WR_ATOMIC_CMP_AND_SWP,
		IBV_WR_ATOMIC_FETCH_AND_ADD,
		IBV_WR_SEND_WITH_INV,
	};

	for (size_t i = 0; i < sizeof(ops) / sizeof(ops[0]); i++) {
		struct ibv_qp *q = uc_open();
		struct ibv_wc wc = {0};

		EXPECT(q);
		if (!q)
			return;
		EXPECT(!post_request(q, ah, 0, 8, ops[i]));
		EXPECT(endpoint_wait(&e, &wc));
		EXPECT(wc.status == IBV_WC_LOC_QP_OP_ERR);
		EXPECT(!ibv_destroy_qp(q));
	}
}

/* Each member of the group except the sender gets a datagram once; a queue pair
 * that has left the group gets none. */
static void check_group(const union ibv_gid *gid)
{
	struct ibv_ah *to = ah_open(gid);
	struct ibv_wc wc = {0};

	EXPECT(to);
	if (!to)
		return;
	for (int i = 0; i < QPS; i++) {
		post_receive(qp[i]);
		EXPECT(!ibv_attach_mcast(qp[i], gid, 0));
	}
	EXPECT(!post_request(qp[0], to, 0xffffff, BYTES, IBV_WR_SEND));
	EXPECT(take_completions(3, &wc) == 2);
	EXPECT(wc.src_qp == qp[0]->qp_num);
	EXPECT(!ibv_detach_mcast(qp[1], gid, 0));
	EXPECT(ibv_detach_mcast(qp[1], gid, 0) == EINVAL);
	/* qp[1] has left the group, so its receive stays posted. */
	post_receive(qp[1]);
	post_receive(qp[2]);
	EXPECT(!post_request(qp[0], to, 0xffffff, BYTES, IBV_WR_SEND));
	EXPECT(take_completions(2, &wc) == 1);
	EXPECT(wc.qp_num == qp[2]->qp_num);
	EXPECT(!ibv_detach_mcast(qp[0], gid, 0));
	EXPECT(!ibv_detach_mcast(qp[2], gid, 0));
	EXPECT(!ibv_destroy_ah(to));
	/* These SENDs consume the receives that are still posted. */
	EXPECT(!post_request(qp[1], ah, qp[0]->qp_num, 0, IBV_WR_SEND));
	EXPECT(take_completions(2, &wc) == 1);
	EXPECT(wc.qp_num == qp[0]->qp_num);
	EXPECT(!post_request(qp[0], ah, qp[1]->qp_num, 0, IBV_WR_SEND));
	EXPECT(take_completions(2, &wc) == 1);
	EXPECT(wc.qp_num == qp[1]->qp_num);
}

static void an_ipv4_group_is_heard_by_its_members(void)
{
	static const union ibv_gid gid = {
		{[10] = 0xff, [11] = 0xff, 239, 7, 7, 7}};

	check_group(&gid);
}

static void an_ipv6_group_is_reached_from_ipv4(void)
{
	static const union ibv_gid gid = {{0xff, 0x0e, [15] = 7}};

	check_group(&gid);
}

static void the_groups_reported_can_be_had(void)
{
	union ibv_gid gid = {{[10] = 0xff, [11] = 0xff, 239, 8, 8}};
	struct ibv_device_attr a = {0};

	EXPECT(!ibv_query_device(e.ctx, &a) && a.max_mcast_grp > 0);
	for (int i = 0; i < a.max_mcast_grp; i++) {
		gid.raw[15] = (uint8_t)i;
		EXPECT(!ibv_attach_mcast(qp[0], &gid, 0));
	}
	gid.raw[14] = 9;
	EXPECT(ibv_attach_mcast(qp[0], &gid, 0) == ENOSPC);
	for (int i = 0; i < a.max_mcast_grp; i++) {
		gid.raw[14] = 8;
		gid.raw[15] = (uint8_t)i;
		EXPECT(!ibv_detach_mcast(qp[0], &gid, 0));
	}
}

static void a_group_takes_as_many_members_as_reported(void)
{
	union ibv_gid gid = {{[10] = 0xff, [11] = 0xff, 239, 8, 8, 1}};
	struct ibv_device_attr a = {0};
	struct ibv_qp *member[512] = {NULL};
	int n = 0;

	EXPECT(!ibv_query_device(e.ctx, &a) && a.max_mcast_qp_attach < 512);
	for (; n < a.max_mcast_qp_attach; n++) {
		member[n] = ud_open(e.cq, 1);
		EXPECT(!ibv_attach_mcast(member[n], &gid, 0));
	}
	EXPECT(ibv_attach_mcast(qp[0], &gid, 0) == ENOSPC);
	/* A queue pair that is a member already can be attached again. */
	EXPECT(!ibv_attach_mcast(member[0], &gid, 0));
	EXPECT(!ibv_detach_mcast(member[0], &gid, 0));
	EXPECT(!ibv_attach_mcast(qp[0], &gid, 0));
	EXPECT(!ibv_detach_mcast(qp[0], &gid, 0));
	while (n)
		EXPECT(!ibv_destroy_qp(member[--n]));
}

static void set_up(void)
{
	endpoint_open(&e, IBV_ACCESS_LOCAL_WRITE, 0);
	for (int i = 0; i < QPS; i++)
		EXPECT(qp[i] = ud_open(e.cq, 16));
	EXPECT(!ibv_query_gid(e.ctx, 1, ENDPOINT_GID_INDEX, &self));
	EXPECT(ah = ah_open(&self));
}

static void tear_down(void)
{
	EXPECT(!ibv_destroy_ah(ah));
	for (int i = 0; i < QPS; i++)
		EXPECT(!ibv_destroy_qp(qp[i]));
	endpoint_close(&e);
}

int main(void)
{
	check_run("datagrams that are posted leave without a poll",
		  what_is_posted_leaves_without_a_poll);
	check_run("datagram queue pairs are created", set_up);
	if (check_has_failed())
		return 1;
	check_run("a datagram's completion tells its source",
		  completions_tell_the_source);
	check_run("an address handle of a completion leads to the sender",
		  an_answer_reaches_the_sender);
	check_run("a datagram queue pair sends to itself",
		  a_queue_pair_sends_to_itself);
	check_run("an operation that UD lacks completes in error",
		  misuse_completes_in_error);
	check_run("an operation that UC lacks completes in error",
		  misuse_of_uc_completes_in_error);
	check_run("wrong requests, address handles and groups are refused",
		  check_refusals);
	check_run("an IPv4 group is heard by its members",
		  an_ipv4_group_is_heard_by_its_members);
	check_run("an IPv6 group is reached from IPv4",
		  an_ipv6_group_is_reached_from_ipv4);
	check_run("as many groups as reported can be had",
		  the_groups_reported_can_be_had);
	check_run("a group takes as many members as reported",
		  a_group_takes_as_many_members_as_reported);
	check_run("datagram queue pairs are destroyed", tear_down);
	return check_end();
}
