/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * lidcheck inactive | verbs | qkey | watch: uses the InfiniBand device of a
 * host of a fabric through libibverbs alone.
 *
 *	inactive	moves a queue pair to RTR through a port that no subnet
 *			manager has configured
 *	verbs		checks the results of calls of libibverbs by LID; port 1
 *			is active, and port 2 is down
 *	qkey		sends a datagram with a wrong Q_Key, and then a datagram
 *			with the right Q_Key, to the port's own LID
 *	watch		prints the asynchronous events of the ports
 */
#include "check.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <infiniband/verbs.h>

#define QKEY  0x11111111
#define BYTES 64
#define GRH   40

static struct ibv_context *ctx;
static struct ibv_pd *pd;
static struct ibv_cq *cq;
static struct ibv_mr *mr;
static uint8_t memory[2][GRH + BYTES];

static void open_device(void)
{
	struct ibv_device **list = ibv_get_device_list(NULL);

	NEED(list && list[0] && !list[1]);
	ctx = ibv_open_device(list[0]);
	NEED(ctx);
	ibv_free_device_list(list);
	pd = ibv_alloc_pd(ctx);
	cq = ibv_create_cq(ctx, 16, NULL, NULL, 0);
	NEED(pd && cq);
	mr = ibv_reg_mr(pd, memory, sizeof(memory), IBV_ACCESS_LOCAL_WRITE);
	NEED(mr);
}

static void close_device(void)
{
	NEED(!ibv_dereg_mr(mr) && !ibv_destroy_cq(cq) && !ibv_dealloc_pd(pd));
	NEED(!ibv_close_device(ctx));
}

static struct ibv_qp *make_qp(enum ibv_qp_type type)
{
	struct ibv_qp_init_attr init = {
		.send_cq = cq,
		.recv_cq = cq,
		.cap = {4, 4, 1, 1, 0},
		.qp_type = type,
		.sq_sig_all = 1,
	};
	struct ibv_qp *qp = ibv_create_qp(pd, &init);

	NEED(qp);
	return qp;
}

static int to_init(struct ibv_qp *qp, uint8_t port)
{
	bool is_ud = qp->qp_type == IBV_QPT_UD;
	struct ibv_qp_attr a = {
		.qp_state = IBV_QPS_INIT, .port_num = port, .qkey = QKEY};

	return ibv_modify_qp(
		qp, &a,
		IBV_QP_STATE | IBV_QP_PORT | IBV_QP_PKEY_INDEX |
			(is_ud ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS));
}

static int to_rtr(struct ibv_qp *qp, uint16_t dlid, uint8_t port)
{
	struct ibv_qp_attr a = {.qp_state = IBV_QPS_RTR,
				.path_mtu = IBV_MTU_256,
				.dest_qp_num = 5,
				.max_dest_rd_atomic = 1,
				.min_rnr_timer = 12,
				.ah_attr = {.dlid = dlid, .port_num = port}};

	return ibv_modify_qp(qp, &a,
			     IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU |
				     IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
				     IBV_QP_MAX_DEST_RD_ATOMIC |
				     IBV_QP_MIN_RNR_TIMER);
}

static void go_inactive(void)
{
	struct ibv_qp *qp = make_qp(IBV_QPT_RC);

	NEED(!to_init(qp, 1));
	NEED(!to_rtr(qp, 5, 1));
	NEED(!ibv_destroy_qp(qp));
}

static uint16_t check_ports(void)
{
	struct ibv_port_attr a;
	uint16_t lid;

	NEED(!ibv_query_port(ctx, 1, &a));
	NEED(a.state == IBV_PORT_ACTIVE && a.lid && a.sm_lid);
	NEED(a.link_layer == IBV_LINK_LAYER_INFINIBAND);
	NEED(a.gid_tbl_len == 32 && a.pkey_tbl_len == 64);
	NEED(!a.flags && a.phys_state == 5);
	lid = a.lid;
	NEED(!ibv_query_port(ctx, 2, &a));
	NEED(a.state == IBV_PORT_DOWN && !a.lid);
	NEED(ibv_query_port(ctx, 3, &a) == EINVAL);
	NEED(ibv_query_port(ctx, 0, &a) == EINVAL);
	return lid;
}

static void check_tables(void)
{
	struct ibv_gid_entry entries[64];
	union ibv_gid gid, none = {{0}};
	__be16 pkey;

	NEED(!ibv_query_pkey(ctx, 1, 0, &pkey));
	NEED((ntohs(pkey) & 0x7fff) == 0x7fff);
	NEED(ibv_get_pkey_index(ctx, 1, pkey) == 0);
	NEED(ibv_get_pkey_index(ctx, 1, htons(0x1234)) == -1);
	NEED(ibv_query_pkey(ctx, 1, 64, &pkey) &&
	     ibv_query_pkey(ctx, 3, 0, &pkey));
	NEED(!ibv_query_gid(ctx, 1, 0, &gid));
	NEED(gid.raw[0] == 0xfe && gid.raw[1] == 0x80);
	NEED(ibv_query_gid(ctx, 1, 32, &gid) && ibv_query_gid(ctx, 3, 0, &gid));
	NEED(!ibv_query_gid(ctx, 1, 1, &gid));
	NEED(!memcmp(&gid, &none, sizeof(gid)));
	NEED(ibv_query_gid_table(ctx, entries, 64, 0) == 2);
	NEED(entries[0].port_num == 1 && entries[1].port_num == 2);
	NEED(entries[1].gid_index == 0 && !entries[1].ndev_ifindex);
	NEED(entries[1].gid_type == IBV_GID_TYPE_IB);
	NEED(ibv_query_gid_ex(ctx, 2, 1, entries, 0) == ENODATA);
	NEED(ibv_query_gid_ex(ctx, 3, 0, entries, 0) == EINVAL);
}

/* Returns whether ibv_create_ah makes a handle with these attributes. */
static bool has_ah(uint16_t dlid, uint8_t port, bool is_global, uint8_t index)
{
	struct ibv_ah_attr a = {.dlid = dlid,
				.port_num = port,
				.is_global = is_global,
				.grh = {.sgid_index = index, .hop_limit = 1}};
	struct ibv_ah *ah = ibv_create_ah(pd, &a);

	return ah && !ibv_destroy_ah(ah);
}

static void check_handles(void)
{
	NEED(has_ah(1, 1, false, 0) && has_ah(1, 1, true, 0));
	NEED(has_ah(0xc000, 1, true, 0) && !has_ah(0xc000, 1, false, 0));
	NEED(!has_ah(0, 1, false, 0) && !has_ah(0xffff, 1, true, 0));
	NEED(!has_ah(1, 0, false, 0) && !has_ah(1, 3, false, 0));
	NEED(!has_ah(1, 1, true, 1));
}

static void check_states(void)
{
	struct ibv_qp *qp = make_qp(IBV_QPT_RC);

	NEED(to_init(qp, 3) == EINVAL && to_init(qp, 0) == EINVAL);
	NEED(!to_init(qp, 1));
	NEED(to_rtr(qp, 0, 1) == EINVAL && to_rtr(qp, 0xc000, 1) == EINVAL);
	NEED(to_rtr(qp, 1, 3) == EINVAL);
	NEED(!to_rtr(qp, 1, 1));
	NEED(!ibv_destroy_qp(qp));
}

static void check_groups(void)
{
	union ibv_gid gid = {{0xff, 0x12, 0x40, 0x1b, [15] = 9}};
	union ibv_gid v4 = {{[10] = 0xff, 0xff, 239, 1, 1, 1}};
	struct ibv_qp *qp = make_qp(IBV_QPT_UD);

	NEED(ibv_attach_mcast(qp, &gid, 0xc009) == EINVAL); /* in RESET */
	NEED(!to_init(qp, 1));
	NEED(ibv_attach_mcast(qp, &v4, 0xc009) == EINVAL);
	NEED(ibv_detach_mcast(qp, &gid, 0xc009) == EINVAL);
	for (int i = 0; i < 2; i++)
		NEED(!ibv_attach_mcast(qp, &gid, 0xc009));
	NEED(!ibv_detach_mcast(qp, &gid, 0xc009));
	NEED(!ibv_attach_mcast(qp, &gid, 0xc009));
	NEED(!ibv_destroy_qp(qp));
}

static struct ibv_qp *make_ud(void)
{
	struct ibv_qp *qp = make_qp(IBV_QPT_UD);
	struct ibv_qp_attr a = {.qp_state = IBV_QPS_RTR, .sq_psn = 1};

	NEED(!to_init(qp, 1));
	NEED(!ibv_modify_qp(qp, &a, IBV_QP_STATE));
	a.qp_state = IBV_QPS_RTS;
	NEED(!ibv_modify_qp(qp, &a, IBV_QP_STATE | IBV_QP_SQ_PSN));
	return qp;
}

/* The device allows as many multicast attachments as it reports, and no more.
 */
static void fill_groups(void)
{
	union ibv_gid gid = {{0xff, 0x12, 0x40, 0x1b, 0xff, 0xff, [14] = 7}};
	struct ibv_device_attr a = {0};
	struct ibv_qp *member[256], *more = make_qp(IBV_QPT_UD);
	int members;

	NEED(!ibv_query_device(ctx, &a) && a.max_mcast_grp <= 256);
	members = a.max_total_mcast_qp_attach / a.max_mcast_grp;
	NEED(members > 0 && members <= 256);
	NEED(members * a.max_mcast_grp == a.max_total_mcast_qp_attach);
	NEED(!to_init(more, 1));
	for (int i = 0; i < members; i++) {
		member[i] = make_qp(IBV_QPT_UD);
		NEED(!to_init(member[i], 1));
		for (int k = 0; k < a.max_mcast_grp; k++) {
			gid.raw[15] = (uint8_t)k;
			NEED(!ibv_attach_mcast(member[i], &gid, 0xc009));
		}
	}
	NEED(ibv_attach_mcast(more, &gid, 0xc009) == ENOSPC);
	for (int i = 0; i < members; i++)
		NEED(!ibv_destroy_qp(member[i]));
	NEED(!ibv_attach_mcast(more, &gid, 0xc009));
	NEED(!ibv_destroy_qp(more));
}

static void post_receive(struct ibv_qp *qp)
{
	struct ibv_sge sge = {(uintptr_t)memory[1], sizeof(memory[1]),
			      mr->lkey};
	struct ibv_recv_wr wr = {.sg_list = &sge, .num_sge = 1}, *bad;

	NEED(!ibv_post_recv(qp, &wr, &bad));
}

static void post_send(struct ibv_qp *qp, struct ibv_ah *ah, uint32_t qpn,
		      uint32_t qkey)
{
	struct ibv_sge sge = {(uintptr_t)memory[0], BYTES, mr->lkey};
	struct ibv_send_wr wr = {.sg_list = &sge,
				 .num_sge = 1,
				 .opcode = IBV_WR_SEND,
				 .wr.ud = {ah, qpn, qkey}},
			   *bad;

	NEED(!ibv_post_send(qp, &wr, &bad));
}

/* Polls until the send and the receive have completed.  Returns the receive's
 * completion. */
static struct ibv_wc await_receive(void)
{
	struct ibv_wc wc, received = {0};

	for (int done = 0; done < 2;) {
		int n = ibv_poll_cq(cq, 1, &wc);

		NEED(n >= 0);
		if (!n)
			continue;
		NEED(wc.status == IBV_WC_SUCCESS);
		if (wc.opcode == IBV_WC_RECV)
			received = wc;
		done++;
	}
	return received;
}

/* Sends a datagram to the port's own LID, and then an answer by an address
 * handle that is made from the completion of the receive. */
static void send_to_self(uint16_t lid, bool is_global)
{
	struct ibv_ah_attr a = {.dlid = lid,
				.sl = 1,
				.port_num = 1,
				.is_global = is_global,
				.grh = {.hop_limit = 3, .flow_label = 7}};
	struct ibv_qp *from = make_ud(), *to = make_ud();
	struct ibv_grh *grh = (void *)memory[1];
	union ibv_gid gid;
	struct ibv_wc wc;
	struct ibv_ah *ah;

	NEED(!ibv_query_gid(ctx, 1, 0, &gid));
	a.grh.dgid = gid;
	memset(memory, 0, sizeof(memory));
	memory[0][BYTES - 1] = 99;
	ah = ibv_create_ah(pd, &a);
	NEED(ah);
	post_receive(to);
	post_send(from, ah, to->qp_num, QKEY);
	wc = await_receive();
	NEED(wc.byte_len == GRH + BYTES && memory[1][GRH + BYTES - 1] == 99);
	NEED(wc.slid == lid && wc.sl == 1 && wc.src_qp == from->qp_num);
	NEED(!!(wc.wc_flags & IBV_WC_GRH) == is_global);
	if (is_global)
		NEED(!memcmp(&grh->sgid, &gid, sizeof(gid)));
	NEED(!ibv_init_ah_from_wc(ctx, 1, &wc, grh, &a));
	NEED(a.dlid == lid && a.sl == 1 && a.is_global == is_global);
	NEED(!is_global || !memcmp(&a.grh.dgid, &gid, sizeof(gid)));
	NEED(ibv_init_ah_from_wc(ctx, 3, &wc, grh, &a) == -1);
	NEED(!ibv_destroy_ah(ah));
	ah = ibv_create_ah_from_wc(pd, &wc, grh, 1);
	NEED(ah);
	post_receive(from);
	post_send(to, ah, wc.src_qp, QKEY);
	wc = await_receive();
	NEED(wc.src_qp == to->qp_num);
	NEED(!ibv_destroy_ah(ah));
	NEED(!ibv_destroy_qp(from) && !ibv_destroy_qp(to));
}

static void send_wrong_qkey(void)
{
	struct ibv_ah_attr a = {.dlid = check_ports(), .port_num = 1};
	struct ibv_qp *from = make_ud(), *to = make_ud();
	struct ibv_ah *ah = ibv_create_ah(pd, &a);
	struct ibv_wc wc;

	NEED(ah);
	post_receive(to);
	post_send(from, ah, to->qp_num, QKEY + 1);
	while (!ibv_poll_cq(cq, 1, &wc))
		;
	NEED(wc.opcode == IBV_WC_SEND && !wc.status);
	post_send(from, ah, to->qp_num, QKEY);
	await_receive();
	NEED(!ibv_destroy_ah(ah));
	NEED(!ibv_destroy_qp(from) && !ibv_destroy_qp(to));
}

static void check_verbs(void)
{
	uint16_t lid = check_ports();

	check_tables();
	check_handles();
	check_states();
	check_groups();
	fill_groups();
	send_to_self(lid, false);
	send_to_self(lid, true);
}

static const char *name_of(enum ibv_event_type type)
{
	return type == IBV_EVENT_PORT_ERR	     ? "PORT_ERR"
	       : type == IBV_EVENT_PORT_ACTIVE	     ? "PORT_ACTIVE"
	       : type == IBV_EVENT_LID_CHANGE	     ? "LID_CHANGE"
	       : type == IBV_EVENT_SM_CHANGE	     ? "SM_CHANGE"
	       : type == IBV_EVENT_PKEY_CHANGE	     ? "PKEY_CHANGE"
	       : type == IBV_EVENT_CLIENT_REREGISTER ? "CLIENT_REREGISTER"
	       : type == IBV_EVENT_GID_CHANGE	     ? "GID_CHANGE"
						     : "other";
}

static void watch_ports(void)
{
	struct ibv_async_event e;

	setvbuf(stdout, NULL, _IOLBF, 0);
	puts("watches");
	while (!ibv_get_async_event(ctx, &e)) {
		printf("%s %d\n", name_of(e.event_type), e.element.port_num);
		ibv_ack_async_event(&e);
	}
}

int main(int argc, char **argv)
{
	static const struct {
		const char *mode;
		void (*body)(void);
	} modes[] = {{"inactive", go_inactive},
		     {"verbs", check_verbs},
		     {"qkey", send_wrong_qkey},
		     {"watch", watch_ports}};

	for (int i = 0; argc == 2 && i < 4; i++) {
		if (strcmp(argv[1], modes[i].mode) != 0)
			continue;
		open_device();
		modes[i].body();
		close_device();
		return 0;
	}
	fprintf(stderr, "usage: lidcheck inactive|verbs|qkey|watch\n");
	return 2;
}
