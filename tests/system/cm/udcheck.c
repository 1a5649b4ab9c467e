/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * udcheck: tests calls of librdmacm for ids in RDMA_PS_UDP and RDMA_PS_IPOIB:
 * services are resolved by SIDR, and ids with UD queue pairs join and leave
 * multicast groups.  Prints a line per case, as verbcheck does.  One thread.
 */
#include <errno.h>
#include <poll.h>
#include <rdma/rdma_cma.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "sides.h"

static void a_datagram_service_is_resolved(enum rdma_port_space ps)
{
	static const uint8_t words[255] = {1, 2, 3};
	struct rdma_conn_param p = {.private_data = words,
				    .private_data_len = 181};
	struct rdma_cm_event *e;

	listen_at(ps, "127.0.0.1");
	resolve_address(ps, "127.0.0.1");
	resolve_route();
	EXPECT(rdma_connect(id[ACTIVE], &p) == -1 && errno == EINVAL);
	p.private_data_len = 180;
	e = connect_active(&p);
	if (!e) {
		end_sides();
		return;
	}
	EXPECT(e->param.ud.private_data_len == 180 &&
	       !memcmp(e->param.ud.private_data, words, 180));
	EXPECT(!rdma_ack_cm_event(e));
	p.qp_num = QPN;
	p.private_data_len = 137;
	EXPECT(rdma_accept(id[PASSIVE], &p) == -1 && errno == EINVAL);
	p.private_data_len = 136;
	EXPECT(!rdma_accept(id[PASSIVE], &p));
	e = await_event(ACTIVE, RDMA_CM_EVENT_ESTABLISHED);
	if (e) {
		EXPECT(e->param.ud.qp_num == QPN &&
		       e->param.ud.qkey == RDMA_UDP_QKEY);
		EXPECT(e->param.ud.private_data_len == 136 &&
		       !memcmp(e->param.ud.private_data, words, 136));
		EXPECT(e->param.ud.ah_attr.is_global);
		EXPECT(!rdma_ack_cm_event(e));
	}
	end_sides();
}

static void ud_services_are_resolved_in_both_port_spaces(void)
{
	a_datagram_service_is_resolved(RDMA_PS_UDP);
	a_datagram_service_is_resolved(RDMA_PS_IPOIB);
}

/* Makes an id with a UD queue pair, registers @memory as *mr, posts two
 * receives into @memory, checks that wrong joins are refused, and has the id
 * join the group.  @flags: one of RDMA_MC_JOIN_FLAG_*.  Returns the id, and
 * leaves the event of the join in the channel. */
static struct rdma_cm_id *join_group(struct sockaddr_storage *group,
				     uint32_t flags, struct ibv_mr **mr,
				     uint8_t *memory, size_t bytes)
{
	struct rdma_cm_join_mc_attr_ex join = {
		.comp_mask = RDMA_CM_JOIN_MC_ATTR_ADDRESS |
			     RDMA_CM_JOIN_MC_ATTR_JOIN_FLAGS,
		.join_flags = flags,
		.addr = (struct sockaddr *)group};
	struct ibv_qp_init_attr init = {.cap = {4, 4, 1, 1, 64},
					.qp_type = IBV_QPT_UD,
					.sq_sig_all = 1};
	struct sockaddr_storage from = address_of(AF_INET, "127.0.0.1", 0);
	struct rdma_cm_id *i = id_new(ACTIVE, RDMA_PS_UDP);
	struct ibv_recv_wr wr = {.num_sge = 1}, *bad;
	struct ibv_sge sge;

	EXPECT(!rdma_resolve_addr(i, (struct sockaddr *)&from,
				  (struct sockaddr *)group, RESOLVE_MS));
	take_event(ACTIVE, RDMA_CM_EVENT_ADDR_RESOLVED);
	EXPECT(!rdma_create_qp(i, NULL, &init));
	*mr = ibv_reg_mr(i->pd, memory, bytes, IBV_ACCESS_LOCAL_WRITE);
	if (!*mr || !i->qp)
		abort();
	sge = (struct ibv_sge){(uintptr_t)memory, (uint32_t)bytes, (*mr)->lkey};
	wr.sg_list = &sge;
	for (int k = 0; k < 2; k++)
		EXPECT(!ibv_post_recv(i->qp, &wr, &bad));
	join.comp_mask |= RDMA_CM_JOIN_MC_ATTR_RESERVED;
	EXPECT(rdma_join_multicast_ex(i, &join, i) && errno == ENOTSUP);
	join.comp_mask = RDMA_CM_JOIN_MC_ATTR_JOIN_FLAGS;
	EXPECT(rdma_join_multicast_ex(i, &join, i) && errno == EINVAL);
	join.comp_mask |= RDMA_CM_JOIN_MC_ATTR_ADDRESS;
	join.join_flags = RDMA_MC_JOIN_FLAG_RESERVED;
	EXPECT(rdma_join_multicast_ex(i, &join, i) && errno == EINVAL);
	/* For a full member join_flags stays wrong, and comp_mask lacks the bit
	 * of join_flags: librdmacm must then not read join_flags. */
	if (flags != RDMA_MC_JOIN_FLAG_FULLMEMBER)
		join.join_flags = flags;
	else
		join.comp_mask = RDMA_CM_JOIN_MC_ATTR_ADDRESS;
	EXPECT(!rdma_join_multicast_ex(i, &join, i));
	return i;
}

/* Polls until `want` requests have completed with success, or for wait_ms
 * milliseconds or more.  Returns how many have completed with success. */
static int count_completions(struct ibv_cq *cq, int want, int wait_ms)
{
	struct ibv_wc wc;
	int n = 0;

	for (int turn = 0; n < want && turn <= wait_ms; turn++) {
		if (ibv_poll_cq(cq, 1, &wc) == 1)
			n += wc.status == IBV_WC_SUCCESS;
		else
			poll(NULL, 0, 1);
	}
	return n;
}

/* Sends two datagrams to the group that `to` describes, and waits for their
 * completions. */
static void send_two(struct rdma_cm_id *from, const struct rdma_ud_param *to)
{
	struct ibv_sge sge = {(uintptr_t) "data", 4, 0};
	struct ibv_send_wr wr = {.opcode = IBV_WR_SEND,
				 .send_flags = IBV_SEND_INLINE,
				 .sg_list = &sge,
				 .num_sge = 1};
	struct ibv_ah_attr attr = to->ah_attr;
	struct ibv_send_wr *bad;

	EXPECT(to->qp_num == 0xffffff && to->private_data == from);
	wr.wr.ud.ah = ibv_create_ah(from->pd, &attr);
	wr.wr.ud.remote_qpn = to->qp_num;
	wr.wr.ud.remote_qkey = to->qkey;
	EXPECT(wr.wr.ud.ah);
	if (!wr.wr.ud.ah)
		return;
	for (int k = 0; k < 2; k++)
		EXPECT(!ibv_post_send(from->qp, &wr, &bad));
	EXPECT(count_completions(from->send_cq, 2, WAIT_MS) == 2);
	ibv_destroy_ah(wr.wr.ud.ah);
}

/* Has the id leave the group, which it can do once, and destroys the id and its
 * objects. */
static void leave_group(struct rdma_cm_id *i, struct sockaddr_storage *group,
			struct ibv_mr *mr)
{
	EXPECT(!rdma_leave_multicast(i, (struct sockaddr *)group));
	EXPECT(rdma_leave_multicast(i, (struct sockaddr *)group) == -1 &&
	       errno == EADDRNOTAVAIL);
	EXPECT(!ibv_dereg_mr(mr));
	rdma_destroy_qp(i);
	EXPECT(!rdma_destroy_id(i));
}

static void a_send_only_member_receives_nothing(void)
{
	struct sockaddr_storage group = address_of(AF_INET, "239.1.2.4", 0);
	enum { SENDER, MEMBER, SENDS_ONLY, ALL };
	static uint8_t memory[ALL][128];
	struct rdma_cm_event *e;
	struct rdma_cm_id *i[ALL] = {NULL};
	struct ibv_mr *mr[ALL] = {NULL};
	bool have_joined = true;

	for (int k = ALL - 1; k >= 0 && have_joined; k--) {
		i[k] = join_group(
			&group,
			k == SENDS_ONLY ? RDMA_MC_JOIN_FLAG_SENDONLY_FULLMEMBER
					: RDMA_MC_JOIN_FLAG_FULLMEMBER,
			&mr[k], memory[k], sizeof(memory[k]));
		e = await_event(ACTIVE, RDMA_CM_EVENT_MULTICAST_JOIN);
		have_joined = e;
		/* as in the kernel: routers forward the datagrams */
		EXPECT(!e || e->param.ud.ah_attr.grh.hop_limit == 64);
		if (e && k == SENDER)
			send_two(i[k], &e->param.ud);
		EXPECT(!e || !rdma_ack_cm_event(e));
	}
	/* The first datagram is delivered to all receivers before the second
	 * datagram is delivered to any.  So when MEMBER has the second
	 * datagram, SENDS_ONLY would have the first, if SENDS_ONLY received
	 * datagrams. */
	if (have_joined) {
		EXPECT(count_completions(i[MEMBER]->recv_cq, 2, WAIT_MS) == 2);
		EXPECT(count_completions(i[SENDS_ONLY]->recv_cq, 1, 0) == 0);
	}
	for (int k = 0; k < ALL; k++)
		if (i[k])
			leave_group(i[k], &group, mr[k]);
}

static void a_group_may_be_left_before_its_event_is_taken(void)
{
	struct sockaddr_storage group = address_of(AF_INET, "239.1.2.5", 0);
	static uint8_t memory[128];
	struct ibv_mr *mr;
	struct rdma_cm_id *i = join_group(&group, RDMA_MC_JOIN_FLAG_FULLMEMBER,
					  &mr, memory, sizeof(memory));

	EXPECT(is_readable(ACTIVE, 0));
	EXPECT(!rdma_leave_multicast(i, (struct sockaddr *)&group));
	EXPECT(!is_readable(ACTIVE, 0));
	EXPECT(!ibv_dereg_mr(mr));
	rdma_destroy_qp(i);
	EXPECT(!rdma_destroy_id(i));
}

int main(void)
{
	if (!sides_open())
		return 1;
	check_run("UD services are resolved in RDMA_PS_UDP and RDMA_PS_IPOIB",
		  ud_services_are_resolved_in_both_port_spaces);
	check_run("a send-only group member receives nothing",
		  a_send_only_member_receives_nothing);
	check_run("a group may be left before its event is taken",
		  a_group_may_be_left_before_its_event_is_taken);
	return check_end();
}
