/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The attributes of a device, its ports and their tables.  Each limit that is
 * reported is enforced; limits and capabilities of features that adverb does
 * not support are 0.
 */
#include <arpa/inet.h>
#include <endian.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "device/ib.h"
#include "device/netdev.h"
#include "log/env.h"
#include "util/bits.h"
#include "util/monotonic.h"
#include "verbs/dm.h"
#include "verbs/fail.h"
#include "verbs/object.h"
#include "verbs/ops.h"

enum {
	VENDOR_ID = 0xadbe,
	PART_ID = 0xad01,
	PKEY = 0xffff, /* full membership in the default partition */
};

/*
 * IBV_DEVICE_MEM_MGT_EXTENSIONS stands for SEND with Invalidate, local
 * invalidation and type 2 windows.  The flag also stands for fast registration,
 * which has no call in the verbs API.  IBV_DEVICE_UD_AV_PORT_ENFORCE:
 * ibv_create_ah checks the port.  The flags that iWARP lacks concern features
 * of InfiniBand.
 */
#define IWARP_FLAGS                                                            \
	(IBV_DEVICE_PORT_ACTIVE_EVENT | IBV_DEVICE_SYS_IMAGE_GUID |            \
	 IBV_DEVICE_SRQ_RESIZE | IBV_DEVICE_MEM_WINDOW |                       \
	 IBV_DEVICE_MEM_MGT_EXTENSIONS | IBV_DEVICE_MEM_WINDOW_TYPE_2B)
#define ROCE_FLAGS                                                             \
	(IWARP_FLAGS | IBV_DEVICE_UD_AV_PORT_ENFORCE |                         \
	 IBV_DEVICE_CURR_QP_STATE_MOD | IBV_DEVICE_RC_RNR_NAK_GEN)

static bool is_iwarp(struct ibv_context *context)
{
	return v_context(context)->dev->kind == DEVICE_IWARP;
}

/* Returns whether the context's device has a port of this number. */
static bool has_port(struct ibv_context *context, uint32_t port)
{
	return port && port <= v_context(context)->dev->port_count;
}

/* Returns how many P_Keys a port's table has. */
static uint16_t pkey_count(const struct device *dev)
{
	return dev->kind == DEVICE_IWARP ? 0
	       : dev->kind == DEVICE_IB	 ? HCA_MAX_PKEYS
					 : 1;
}

/* perftest chooses its calls by the vendor_part_id.  With ADVERB_PART_ID a test
 * makes the device report another vendor_part_id. */
static uint32_t part_id(void)
{
	const char *value = env_text("ADVERB_PART_ID");

	return value && *value ? (uint32_t)strtoul(value, NULL, 0) : PART_ID;
}

/* iWARP has no atomics, no address handles, no multicast groups, and no
 * acknowledgements of its own. */
static void limit_iwarp(struct ibv_device_attr *a)
{
	a->device_cap_flags = IWARP_FLAGS;
	a->atomic_cap = IBV_ATOMIC_NONE;
	a->max_ah = 0;
	a->max_mcast_grp = 0;
	a->max_mcast_qp_attach = 0;
	a->max_total_mcast_qp_attach = 0;
	a->local_ca_ack_delay = 0;
}

int ibv_query_device(struct ibv_context *context, struct ibv_device_attr *a)
{
	const struct v_context *c = v_context(context);

	memset(a, 0, sizeof(*a));
	strcpy(a->fw_ver, "1.0");
	a->node_guid = htobe64(c->dev->guid);
	a->sys_image_guid = htobe64(c->dev->system_guid);
	a->max_mr_size = UINT64_MAX;
	a->page_size_cap = 0xfffff000;
	a->vendor_id = VENDOR_ID;
	a->vendor_part_id = part_id();
	a->hw_ver = 1;
	a->max_qp = HCA_MAX_QP;
	a->max_qp_wr = HCA_MAX_WR;
	a->device_cap_flags = ROCE_FLAGS;
	a->max_sge = HCA_MAX_SGE;
	a->max_sge_rd = HCA_MAX_SGE;
	a->max_cq = HCA_MAX_CQ;
	a->max_cqe = HCA_MAX_CQE;
	a->max_mr = HCA_MAX_MR - 1;
	a->max_mw = HCA_MAX_MR - 1;
	a->max_pd = HCA_MAX_PD;
	a->max_qp_rd_atom = HCA_MAX_RD_ATOMIC;
	a->max_res_rd_atom = HCA_MAX_RD_ATOMIC * HCA_MAX_QP;
	a->max_qp_init_rd_atom = HCA_MAX_RD_ATOMIC;
	a->atomic_cap = IBV_ATOMIC_HCA;
	a->max_ah = HCA_MAX_AH;
	a->max_srq = HCA_MAX_SRQ;
	a->max_srq_wr = HCA_MAX_WR;
	a->max_srq_sge = HCA_MAX_SGE;
	a->max_mcast_grp = c->dev->kind == DEVICE_IB ? HOST_MAX_LID_GROUPS
						     : HOST_MAX_GROUPS;
	a->max_mcast_qp_attach = HCA_MAX_ATTACH;
	a->max_total_mcast_qp_attach = (int)bits_min_u32(
		HCA_MAX_ATTACH * (uint32_t)a->max_mcast_grp, HCA_MAX_ATTACHED);
	a->max_pkeys = pkey_count(c->dev);
	a->local_ca_ack_delay = 15;
	a->phys_port_cnt = (uint8_t)c->dev->port_count;
	if (c->dev->kind == DEVICE_IB)
		a->device_cap_flags |= IBV_DEVICE_AUTO_PATH_MIG;
	if (is_iwarp(context))
		limit_iwarp(a);
	return 0;
}

int v_query_device_ex(struct ibv_context *context,
		      const struct ibv_query_device_ex_input *input,
		      struct ibv_device_attr_ex *attr, size_t size)
{
	struct ibv_device_attr_ex a = {
		.phys_port_cnt_ex = v_context(context)->dev->port_count,
		.completion_timestamp_mask = UINT64_MAX,
		.max_dm_size = DM_BYTES,
		.cq_mod_caps = {.max_cq_count = UINT16_MAX,
				.max_cq_period = UINT16_MAX},
		.hca_core_clock = 1000000, /* kHz: timestamps count ns */
	};

	if (size < sizeof(a.orig_attr))
		return EINVAL;
	ibv_query_device(context, &a.orig_attr);
	a.device_cap_flags_ex = a.orig_attr.device_cap_flags;
	memset(attr, 0, size);
	memcpy(attr, &a, size < sizeof(a) ? size : sizeof(a));
	return 0;
}

/* The raw clock is CLOCK_MONOTONIC, from which completion timestamps are taken.
 * As with the drivers of hardware, tv_nsec has the whole value: programs
 * compare tv_nsec alone with these timestamps. */
int v_query_rt_values(struct ibv_context *context, struct ibv_values_ex *values)
{
	if (values->comp_mask & ~(uint32_t)IBV_VALUES_MASK_RAW_CLOCK)
		return v_fail(EINVAL, V_INPUT,
			      "ibv_query_rt_values_ex: a bit of comp_mask is "
			      "unknown; ask for IBV_VALUES_MASK_RAW_CLOCK "
			      "alone");
	if (values->comp_mask & IBV_VALUES_MASK_RAW_CLOCK)
		values->raw_clock =
			(struct timespec){.tv_nsec = (long)monotonic_ns()};
	return 0;
}

enum { WIDTH_4X = 2, SPEED_EDR = 32, SPEED_MBPS = 100000 };

/* An iWARP device has the flags that the kernel's siw driver reports. */
#define ROCE_PORT_FLAGS	 (IBV_PORT_CM_SUP | IBV_PORT_IP_BASED_GIDS)
#define IWARP_PORT_FLAGS (IBV_PORT_CM_SUP | IBV_PORT_DEVICE_MGMT_SUP)

static void ethernet_attr(const struct device *dev,
			  const struct device_port *port, union v_port_attr *a)
{
	enum { DISABLED = 3, LINK_UP = 5 };
	bool is_roce = dev->kind == DEVICE_ROCE;

	a->base = (struct ibv_port_attr){
		.state = port->is_up ? IBV_PORT_ACTIVE : IBV_PORT_DOWN,
		.max_mtu = IBV_MTU_4096,
		.active_mtu = (enum ibv_mtu)port->active_mtu,
		.gid_tbl_len = (int)netdev_gid_count(dev),
		.port_cap_flags = is_roce ? ROCE_PORT_FLAGS : IWARP_PORT_FLAGS,
		.max_msg_sz = HCA_MAX_MESSAGE,
		.pkey_tbl_len = pkey_count(dev),
		.max_vl_num = 1,
		.active_width = WIDTH_4X,
		.active_speed = SPEED_EDR,
		.phys_state = port->is_up ? LINK_UP : DISABLED,
		.link_layer = IBV_LINK_LAYER_ETHERNET,
		.flags = is_roce ? IBV_QPF_GRH_REQUIRED : 0,
	};
	a->newest.active_speed_ex = SPEED_EDR;
}

/* The codes of states, widths, speeds, MTUs and VLs are those of PortInfo (IBTA
 * 14.2.5.6). */
static void subnet_attr(const struct device *dev,
			const struct device_port *port, union v_port_attr *a)
{
	const struct fabric_port *p = &port->subnet;

	a->base = (struct ibv_port_attr){
		.state = (enum ibv_port_state)p->state,
		.max_mtu = (enum ibv_mtu)p->max_mtu,
		.active_mtu = (enum ibv_mtu)port->active_mtu,
		.gid_tbl_len = (int)netdev_gid_count(dev),
		.port_cap_flags = p->capabilities,
		.max_msg_sz = HCA_MAX_MESSAGE,
		.pkey_tbl_len = pkey_count(dev),
		.lid = p->lid,
		.sm_lid = p->sm_lid,
		.lmc = p->lmc,
		.max_vl_num = p->vl_cap,
		.sm_sl = p->sm_sl,
		.subnet_timeout = p->timeout,
		.active_width = p->width,
		.active_speed = p->speed,
		.phys_state = p->phys_state,
		.link_layer = IBV_LINK_LAYER_INFINIBAND,
	};
	a->newest.active_speed_ex = p->speed;
}

static void port_attr(const struct device *dev, uint32_t number,
		      union v_port_attr *a)
{
	struct device_port port;

	device_port(dev, number, &port);
	memset(a, 0, sizeof(*a));
	if (dev->kind == DEVICE_IB)
		subnet_attr(dev, &port, a);
	else
		ethernet_attr(dev, &port, a);
}

int v_query_port(struct ibv_context *context, uint8_t port,
		 struct ibv_port_attr *attr, size_t size)
{
	union v_port_attr a;

	if (!has_port(context, port))
		return v_fail(EINVAL, V_INPUT,
			      "ibv_query_port: the device has no such port; "
			      "ports count from 1 to phys_port_cnt");
	port_attr(v_context(context)->dev, port, &a);
	memset(attr, 0, size);
	memcpy(attr, &a, size < sizeof(a) ? size : sizeof(a));
	return 0;
}

int v_query_port_compat(struct ibv_context *context, uint8_t port,
			struct _compat_ibv_port_attr *attr)
{
	enum { OLDEST = 48 };

	return v_query_port(context, port, (struct ibv_port_attr *)(void *)attr,
			    OLDEST);
}

int ibv_query_port_speed(struct ibv_context *context, uint32_t port_num,
			 uint64_t *port_speed)
{
	const struct device *dev = v_context(context)->dev;
	struct device_port port;

	if (!device_port(dev, port_num, &port))
		return v_fail(EINVAL, V_INPUT,
			      "ibv_query_port_speed: the device has no such "
			      "port; ports count from 1 to phys_port_cnt");
	/* in units of 100 Mbit/s; a lane of SDR has 2.5 Gbit/s */
	*port_speed = dev->kind == DEVICE_IB
			      ? 25u * ib_lanes(&port.subnet) * port.subnet.speed
			      : SPEED_MBPS / 100;
	return 0;
}

/* Called by programs that look up the symbol, and by programs that were built
 * with a header whose struct verbs_context has no query_port. */
#undef ibv_query_port
int ibv_query_port(struct ibv_context *context, uint8_t port,
		   struct _compat_ibv_port_attr *attr)
{
	return v_query_port_compat(context, port, attr);
}

/* Copies an entry of the GID table, or zeroes if the entry is empty, and stores
 * in *has whether the entry is in use.  Returns false if the device has no such
 * port, or the table has no such index. */
static bool gid_at(struct ibv_context *context, uint32_t port, uint32_t index,
		   struct device_gid *g, bool *has)
{
	const struct device *dev = v_context(context)->dev;
	struct device_port now;

	memset(g, 0, sizeof(*g));
	*has = false;
	if (!device_port(dev, port, &now) || index >= netdev_gid_count(dev))
		return false;
	*has = netdev_gid(dev, &now, index, g);
	return true;
}

int ibv_query_gid(struct ibv_context *context, uint8_t port, int index,
		  union ibv_gid *gid)
{
	struct device_gid g;
	bool has;

	if (!gid_at(context, port, (uint32_t)index, &g, &has))
		return v_fail_errno(EINVAL, V_INPUT,
				    "ibv_query_gid: the device has no such "
				    "port or index; ports count from 1 to "
				    "phys_port_cnt, indices from 0 to "
				    "gid_tbl_len - 1");
	memcpy(gid->raw, g.gid, sizeof(gid->raw));
	return 0;
}

int v_query_gid_type(struct ibv_context *context, uint8_t port,
		     unsigned int index, unsigned int *type)
{
	struct device_gid g;
	bool has;

	if (!gid_at(context, port, index, &g, &has))
		return v_fail_errno(
			EINVAL, V_INPUT,
			"ibv_query_gid_type: the device has no such port or "
			"index; ports count from 1 to phys_port_cnt, indices "
			"from 0 to gid_tbl_len - 1");
	*type = has && g.type == DEVICE_GID_ROCE_V2;
	return 0;
}

/* Returns IBV_GID_TYPE_*.  As with the kernel, the GIDs of an iWARP device have
 * the type IBV_GID_TYPE_IB. */
static uint32_t entry_type(const struct device *dev, const struct device_gid *g)
{
	if (dev->kind != DEVICE_ROCE)
		return IBV_GID_TYPE_IB;
	return g->type == DEVICE_GID_ROCE_V2 ? IBV_GID_TYPE_ROCE_V2
					     : IBV_GID_TYPE_ROCE_V1;
}

static void entry_fill(struct ibv_gid_entry *entry, const struct device *dev,
		       uint32_t port, uint32_t index,
		       const struct device_gid *g, size_t size)
{
	struct ibv_gid_entry e = {
		.gid_index = index,
		.port_num = port,
		.gid_type = entry_type(dev, g),
		.ndev_ifindex = g->ifindex,
	};

	memcpy(e.gid.raw, g->gid, sizeof(e.gid.raw));
	memset(entry, 0, size);
	memcpy(entry, &e, size < sizeof(e) ? size : sizeof(e));
}

int _ibv_query_gid_ex(struct ibv_context *context, uint32_t port,
		      uint32_t index, struct ibv_gid_entry *entry,
		      uint32_t flags, size_t entry_size)
{
	struct device_gid g;
	bool has;

	if (!gid_at(context, port, index, &g, &has))
		return v_fail(EINVAL, V_INPUT,
			      "ibv_query_gid_ex: the device has no such port "
			      "or index; ports count from 1 to phys_port_cnt, "
			      "indices from 0 to gid_tbl_len - 1");
	if (flags)
		return v_fail(EINVAL, V_INPUT,
			      "ibv_query_gid_ex needs flags 0");
	if (!has)
		return ENODATA;
	entry_fill(entry, v_context(context)->dev, port, index, &g, entry_size);
	return 0;
}

ssize_t _ibv_query_gid_table(struct ibv_context *context,
			     struct ibv_gid_entry *entries, size_t max_entries,
			     uint32_t flags, size_t entry_size)
{
	const struct device *dev = v_context(context)->dev;
	uint32_t count = netdev_gid_count(dev), port, index;
	struct device_gid g;
	size_t n = 0;

	if (flags)
		return -v_fail(EINVAL, V_INPUT,
			       "ibv_query_gid_table needs flags 0");
	for (uint32_t i = 0; i < dev->port_count * count; i++) {
		port = 1 + i / count;
		index = i % count;
		if (!device_gid(dev, port, index, &g))
			continue;
		if (n == max_entries)
			return -v_fail(EINVAL, V_INPUT,
				       "ibv_query_gid_table: the device has "
				       "more than max_entries GIDs; make room "
				       "for gid_tbl_len entries of each port");
		entry_fill((void *)((char *)entries + n++ * entry_size), dev,
			   port, index, &g, entry_size);
	}
	return (ssize_t)n;
}

static uint16_t pkey_at(struct ibv_context *context, uint32_t port,
			uint32_t index)
{
	const struct device *dev = v_context(context)->dev;
	struct device_port now;

	device_port(dev, port, &now);
	return dev->kind == DEVICE_IB ? now.subnet.pkeys[index] : PKEY;
}

int ibv_query_pkey(struct ibv_context *context, uint8_t port, int index,
		   __be16 *pkey)
{
	if (is_iwarp(context))
		return v_fail_errno(EINVAL, V_INPUT,
				    "ibv_query_pkey: iWARP has no P_Keys");
	if (!has_port(context, port) || index < 0 ||
	    index >= pkey_count(v_context(context)->dev))
		return v_fail_errno(EINVAL, V_INPUT,
				    "ibv_query_pkey: the device has no such "
				    "port or index; ports count from 1 to "
				    "phys_port_cnt, indices from 0 to "
				    "pkey_tbl_len - 1");
	*pkey = htons(pkey_at(context, port, (uint32_t)index));
	return 0;
}

int ibv_get_pkey_index(struct ibv_context *context, uint8_t port, __be16 pkey)
{
	uint32_t count = pkey_count(v_context(context)->dev);

	for (uint32_t i = 0; has_port(context, port) && i < count; i++)
		if (htons(pkey_at(context, port, i)) == pkey)
			return (int)i;
	return -1;
}
