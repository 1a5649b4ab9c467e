/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * iwarpcheck: tests what the first device, an iWARP device, reports about
 * itself, and which calls it refuses because iWARP lacks the feature.  Prints a
 * line per case.  The program has one thread.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <infiniband/verbs.h>
#include <string.h>

#include "check.h"

static struct ibv_context *ctx;
static struct ibv_pd *pd;
static struct ibv_cq *cq;

static void open_first(void)
{
	struct ibv_device **list = ibv_get_device_list(NULL);

	check_need(list && list[0], "a device");
	check_need(list[0]->node_type == IBV_NODE_RNIC &&
			   list[0]->transport_type == IBV_TRANSPORT_IWARP,
		   "a device of iWARP");
	ctx = ibv_open_device(list[0]);
	check_need(ctx, "ibv_open_device");
	ibv_free_device_list(list);
	pd = ibv_alloc_pd(ctx);
	cq = ibv_create_cq(ctx, 4, NULL, NULL, 0);
	check_need(pd && cq, "a domain and a completion queue");
}

static struct ibv_qp *new_qp(enum ibv_qp_type type)
{
	struct ibv_qp_init_attr init = {
		.send_cq = cq,
		.recv_cq = cq,
		.qp_type = type,
		.cap = {.max_send_wr = 1, .max_send_sge = 1},
	};

	return ibv_create_qp(pd, &init);
}

static void the_device_names_what_iwarp_has(void)
{
	const unsigned flags =
		IBV_DEVICE_MEM_WINDOW | IBV_DEVICE_MEM_MGT_EXTENSIONS;
	const unsigned ib = IBV_DEVICE_UD_AV_PORT_ENFORCE |
			    IBV_DEVICE_RC_RNR_NAK_GEN |
			    IBV_DEVICE_CURR_QP_STATE_MOD;
	struct ibv_device_attr a;

	EXPECT(ibv_query_device(ctx, &a) == 0);
	EXPECT((a.device_cap_flags & flags) == flags);
	EXPECT(!(a.device_cap_flags & ib));
	EXPECT(a.atomic_cap == IBV_ATOMIC_NONE);
	EXPECT(a.max_ah == 0 && a.max_pkeys == 0);
	EXPECT(a.max_mcast_grp == 0 && a.max_mcast_qp_attach == 0 &&
	       a.max_total_mcast_qp_attach == 0);
	EXPECT(a.max_qp && a.max_srq && a.max_mw && a.max_qp_rd_atom);
}

static void the_port_is_ethernet_without_grh(void)
{
	struct ibv_port_attr a;

	EXPECT(ibv_query_port(ctx, 1, &a) == 0);
	EXPECT(a.link_layer == IBV_LINK_LAYER_ETHERNET);
	EXPECT(!(a.flags & IBV_QPF_GRH_REQUIRED));
	EXPECT(a.gid_tbl_len == 1 && a.pkey_tbl_len == 0);
	EXPECT(a.port_cap_flags & IBV_PORT_CM_SUP);
	EXPECT(!(a.port_cap_flags & IBV_PORT_IP_BASED_GIDS));
}

static void the_gid_is_the_mac_and_zeros(void)
{
	static const uint8_t zeros[10];
	struct ibv_gid_entry entries[2];
	struct ibv_gid_entry entry;
	union ibv_gid gid;

	EXPECT(ibv_query_gid(ctx, 1, 0, &gid) == 0);
	EXPECT(memcmp(gid.raw, zeros, 6) != 0);
	EXPECT(memcmp(gid.raw + 6, zeros, 10) == 0);
	EXPECT(ibv_query_gid_ex(ctx, 1, 0, &entry, 0) == 0);
	EXPECT(entry.gid_type == IBV_GID_TYPE_IB && entry.gid_index == 0);
	EXPECT(entry.ndev_ifindex && entry.port_num == 1);
	EXPECT(memcmp(&entry.gid, &gid, sizeof(gid)) == 0);
	EXPECT(ibv_query_gid_table(ctx, entries, 2, 0) == 1);
	EXPECT(memcmp(&entries[0], &entry, sizeof(entry)) == 0);
}

static void there_is_no_second_gid_and_no_pkey(void)
{
	struct ibv_gid_entry entry;
	union ibv_gid gid;
	__be16 pkey;

	errno = 0;
	EXPECT(ibv_query_gid(ctx, 1, 1, &gid) == -1 && errno == EINVAL);
	EXPECT(ibv_query_gid_ex(ctx, 1, 1, &entry, 0) == EINVAL);
	EXPECT(ibv_query_pkey(ctx, 1, 0, &pkey) == -1);
	EXPECT(ibv_get_pkey_index(ctx, 1, htons(0xffff)) == -1);
}

static void queue_pairs_are_rc_alone(void)
{
	struct ibv_qp *qp = new_qp(IBV_QPT_RC);

	EXPECT(qp && ibv_destroy_qp(qp) == 0);
	EXPECT(!new_qp(IBV_QPT_UC) && errno == EOPNOTSUPP);
	EXPECT(!new_qp(IBV_QPT_UD) && errno == EOPNOTSUPP);
}

static void address_handles_are_refused(void)
{
	struct ibv_ah_attr attr = {.is_global = 1, .port_num = 1};
	struct ibv_wc wc = {.wc_flags = IBV_WC_GRH};
	struct ibv_grh grh = {0};

	EXPECT(!ibv_create_ah(pd, &attr) && errno == EOPNOTSUPP);
	EXPECT(ibv_init_ah_from_wc(ctx, 1, &wc, &grh, &attr) == -1 &&
	       errno == EOPNOTSUPP);
	EXPECT(!ibv_create_ah_from_wc(pd, &wc, &grh, 1) && errno == EOPNOTSUPP);
}

static void multicast_groups_are_refused(void)
{
	union ibv_gid group = {.raw = {0xff, 0x12, [15] = 1}};
	struct ibv_qp *qp = new_qp(IBV_QPT_RC);

	EXPECT(qp && ibv_attach_mcast(qp, &group, 0) == EOPNOTSUPP);
	EXPECT(qp && ibv_detach_mcast(qp, &group, 0) == EOPNOTSUPP);
	EXPECT(qp && ibv_destroy_qp(qp) == 0);
}

int main(void)
{
	if (!check_lists())
		open_first();
	check_run("the device names what iWARP has",
		  the_device_names_what_iwarp_has);
	check_run("the port is Ethernet, without a GRH",
		  the_port_is_ethernet_without_grh);
	check_run("the GID is the MAC and zeros", the_gid_is_the_mac_and_zeros);
	check_run("there is no second GID and no P_Key",
		  there_is_no_second_gid_and_no_pkey);
	check_run("queue pairs are RC alone", queue_pairs_are_rc_alone);
	check_run("address handles are refused", address_handles_are_refused);
	check_run("multicast groups are refused", multicast_groups_are_refused);
	if (!check_lists()) {
		EXPECT(ibv_destroy_cq(cq) == 0 && ibv_dealloc_pd(pd) == 0);
		ibv_close_device(ctx);
	}
	return check_end();
}
