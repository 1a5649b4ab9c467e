/* SPDX-License-Identifier: BSD-2-Clause */
/* Address handles, and multicast groups.  The path of an address handle is
 * looked up when the handle is created. */
#include "verbs/ah.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "host/path.h"
#include "verbs/fail.h"
#include "verbs/object.h"

/* V4_AT: where an IPv4 header begins in the 40 bytes before a datagram. */
enum { V4_AT = 20, HOPS = 255, DSCP = 0xfc };

void v_ah_in(struct hca_ah *to, const struct ibv_ah_attr *from)
{
	memset(to, 0, sizeof(*to));
	memcpy(to->dgid, from->grh.dgid.raw, sizeof(to->dgid));
	to->flow_label = from->grh.flow_label;
	to->sgid_index = from->grh.sgid_index;
	to->hop_limit = from->grh.hop_limit;
	to->traffic_class = from->grh.traffic_class;
	to->dlid = from->dlid;
	to->sl = from->sl;
	to->src_path_bits = from->src_path_bits;
	to->static_rate = from->static_rate;
	to->is_global = from->is_global;
	to->port_num = from->port_num;
}

static bool is_iwarp(const struct v_context *c)
{
	return c->dev->kind == DEVICE_IWARP;
}

struct ibv_ah *ibv_create_ah(struct ibv_pd *pd, struct ibv_ah_attr *attr)
{
	struct v_context *c = v_context(pd->context);
	const char *why = "no memory is left";
	struct hca_ah path;
	struct v_ah *ah;
	int err;

	if (!v_is_ours(c))
		return v_fail_null(EPERM, V_FORKED, "ibv_create_ah");
	if (is_iwarp(c))
		return v_fail_null(EOPNOTSUPP, V_NOT_SUPPORTED,
				   "address handles on iWARP, which has no UD "
				   "(ibv_create_ah)");
	if (c->dev->kind == DEVICE_ROCE &&
	    (attr->port_num != 1 || !attr->is_global))
		return v_fail_null(EINVAL, V_INPUT,
				   "ibv_create_ah on RoCE needs port_num 1, "
				   "is_global 1 and a GID");
	if (!hca_ah_new(host_hca(c->host)))
		return v_fail_null(ENOMEM, V_LIMIT,
				   "the number of address handles");
	ah = calloc(1, sizeof(*ah));
	v_ah_in(&path, attr);
	err = ah ? path_find(c->host, c->dev, &path, &ah->to, &why) : -ENOMEM;
	if (err) {
		hca_ah_free(host_hca(c->host));
		free(ah);
		return v_fail_null(-err, V_AH, why);
	}
	ah->base.context = pd->context;
	ah->base.pd = pd;
	count_up(&v_pd(pd)->users);
	return &ah->base;
}

int ibv_destroy_ah(struct ibv_ah *ah)
{
	struct v_context *c = v_context(ah->context);

	if (v_is_ours(c))
		hca_ah_free(host_hca(c->host));
	v_pd_drop(v_pd(ah->pd));
	free(v_ah(ah));
	return 0;
}

/* Returns the index of the RoCE v2 GID `like`; if the device lacks `like`, the
 * index of the first RoCE v2 GID of the same address family; else -1. */
static int gid_index(const struct device *dev, const uint8_t like[16])
{
	int first = -1;

	for (uint32_t i = 0; i < DEVICE_MAX_GIDS; i++) {
		struct device_gid g;

		if (!device_gid(dev, 1, i, &g) ||
		    g.type != DEVICE_GID_ROCE_V2 ||
		    inaddr_is_v4(g.gid) != inaddr_is_v4(like))
			continue;
		if (!memcmp(g.gid, like, 16))
			return (int)i;
		if (first < 0)
			first = (int)i;
	}
	/* The GID of a multicast group is not in the device's table. */
	return first;
}

/* Returns the traffic class in the 40 bytes before a datagram, without the bits
 * of ECN, which concern the received packet and not the reply. */
static uint8_t grh_class(const struct ibv_grh *grh)
{
	const uint8_t *p = (const uint8_t *)grh;
	int traffic_class =
		p[0] >> 4 == 6 ? p[0] << 4 | p[1] >> 4 : p[V4_AT + 1];

	return (uint8_t)(traffic_class & DSCP);
}

/* Reads both addresses from the IP header in the 40 bytes before a datagram,
 * and stores them as GIDs in `from` and `to` (IBTA A17.4.5.2). */
static void grh_addresses(const struct ibv_grh *grh, uint8_t from[16],
			  uint8_t to[16])
{
	const uint8_t *p = (const uint8_t *)grh;

	if (p[0] >> 4 == 6) {
		memcpy(from, grh->sgid.raw, 16);
		memcpy(to, grh->dgid.raw, 16);
		return;
	}
	memset(from, 0, 16);
	memset(from + 10, 0xff, 2);
	memcpy(to, from, 16);
	memcpy(from + 12, p + V4_AT + 12, 4);
	memcpy(to + 12, p + V4_AT + 16, 4);
}

/* Returns the index of the port's GID that a datagram by LID was sent to; 0 for
 * a multicast group, whose GID the table does not have. */
static uint8_t index_of(const struct device *dev, uint8_t port,
			const uint8_t gid[16])
{
	struct device_gid g;

	for (uint32_t i = 0; i < FABRIC_GUIDS; i++)
		if (device_gid(dev, port, i, &g) && !memcmp(g.gid, gid, 16))
			return (uint8_t)i;
	return 0;
}

/* Fills in *attr for the reply to a datagram by LID.  The reply goes to the
 * datagram's source LID, and has a GRH if the datagram had one (IBTA Vol 1,
 * 13.5.4.4).  Returns 0, or -1 and errno with a message. */
static int reply_by_lid(const struct device *dev, uint8_t port,
			const struct ibv_wc *wc, const struct ibv_grh *grh,
			struct ibv_ah_attr *attr)
{
	if (!port || port > dev->port_count)
		return v_fail_errno(EINVAL, V_INPUT,
				    "ibv_init_ah_from_wc: the device has no "
				    "such port; ports count from 1 to "
				    "phys_port_cnt");
	memset(attr, 0, sizeof(*attr));
	attr->dlid = wc->slid;
	attr->sl = wc->sl;
	attr->src_path_bits = wc->dlid_path_bits;
	attr->port_num = port;
	if (!(wc->wc_flags & IBV_WC_GRH))
		return 0;
	attr->is_global = 1;
	memcpy(attr->grh.dgid.raw, grh->sgid.raw, 16);
	attr->grh.sgid_index = index_of(dev, port, grh->dgid.raw);
	attr->grh.flow_label = be32toh(grh->version_tclass_flow) & 0xfffff;
	attr->grh.traffic_class =
		(uint8_t)(be32toh(grh->version_tclass_flow) >> 20);
	attr->grh.hop_limit = UINT8_MAX;
	return 0;
}

int ibv_init_ah_from_wc(struct ibv_context *context, uint8_t port,
			struct ibv_wc *wc, struct ibv_grh *grh,
			struct ibv_ah_attr *attr)
{
	const struct device *dev = v_context(context)->dev;
	uint8_t from[16], to[16];
	int index;

	if (is_iwarp(v_context(context)))
		return v_fail_errno(EOPNOTSUPP, V_NOT_SUPPORTED,
				    "address handles on iWARP, which has no UD "
				    "(ibv_init_ah_from_wc)");
	if (dev->kind == DEVICE_IB)
		return reply_by_lid(dev, port, wc, grh, attr);
	if (port != 1 || !(wc->wc_flags & IBV_WC_GRH))
		return v_fail_errno(EINVAL, V_INPUT,
				    "ibv_init_ah_from_wc on RoCE needs port 1 "
				    "and a completion with IBV_WC_GRH");
	grh_addresses(grh, from, to);
	index = gid_index(dev, to);
	if (index < 0)
		return v_fail_errno(EINVAL, V_INPUT,
				    "ibv_init_ah_from_wc: this device has no "
				    "RoCE v2 GID of the address family to "
				    "which the datagram was sent; check that "
				    "grh points to the start of the receive "
				    "buffer");
	memset(attr, 0, sizeof(*attr));
	memcpy(attr->grh.dgid.raw, from, 16);
	attr->grh.sgid_index = (uint8_t)index;
	attr->grh.hop_limit = HOPS;
	attr->grh.traffic_class = grh_class(grh);
	attr->is_global = 1;
	attr->dlid = wc->slid;
	attr->sl = wc->sl;
	attr->src_path_bits = wc->dlid_path_bits;
	attr->port_num = port;
	return 0;
}

struct ibv_ah *ibv_create_ah_from_wc(struct ibv_pd *pd, struct ibv_wc *wc,
				     struct ibv_grh *grh, uint8_t port)
{
	struct ibv_ah_attr attr = {0};

	if (ibv_init_ah_from_wc(pd->context, port, wc, grh, &attr))
		return NULL;
	return ibv_create_ah(pd, &attr);
}

/* adverb does not support this call: the kernel finds the link layer address of
 * each packet, so programs need no such address. */
int ibv_resolve_eth_l2_from_gid(struct ibv_context *context,
				struct ibv_ah_attr *attr,
				uint8_t eth_mac[ETHERNET_LL_SIZE],
				uint16_t *vid)
{
	return v_fail(EOPNOTSUPP, V_NOT_SUPPORTED,
		      "the link layer address of a GID "
		      "(ibv_resolve_eth_l2_from_gid)");
}

/* what: the name of the call.  Returns 0, or a positive errno with a message.
 */
static int check_mcast(const struct ibv_qp *qp, const char *what)
{
	if (!v_is_ours(v_context(qp->context)))
		return v_fail(EPERM, V_FORKED, what);
	if (is_iwarp(v_context(qp->context)))
		return v_fail(EOPNOTSUPP, V_NOT_SUPPORTED,
			      "multicast groups on iWARP, which has no UD "
			      "(ibv_attach_mcast and ibv_detach_mcast)");
	if (qp->qp_type != IBV_QPT_UD)
		return v_fail(EINVAL, V_INPUT,
			      "ibv_attach_mcast and ibv_detach_mcast need a UD "
			      "queue pair");
	return 0;
}

/* The GID names the group, also on InfiniBand, so ibv_attach_mcast and
 * ibv_detach_mcast do not read lid. */
int ibv_attach_mcast(struct ibv_qp *qp, const union ibv_gid *gid, uint16_t lid)
{
	struct v_qp *q = v_qp(qp);
	const char *why = "";
	int err = check_mcast(qp, "ibv_attach_mcast");

	if (err)
		return err;
	err = host_mcast_attach(q->host, v_context(qp->context)->dev, q->side,
				gid->raw, &why);
	return err ? v_fail(-err, V_MCAST, why) : 0;
}

int ibv_detach_mcast(struct ibv_qp *qp, const union ibv_gid *gid, uint16_t lid)
{
	struct v_qp *q = v_qp(qp);
	const char *why = "";
	int err = check_mcast(qp, "ibv_detach_mcast");

	if (err)
		return err;
	err = host_mcast_detach(q->host, q->side, gid->raw, &why);
	return err ? v_fail(-err, V_MCAST, why) : 0;
}
