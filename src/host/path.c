/* SPDX-License-Identifier: BSD-2-Clause */
#include "host/path.h"

#include <errno.h>
#include <netinet/in.h>
#include <string.h>

#include "device/gso_policy.h"
#include "device/netif.h"
#include "host/broker_link.h"
#include "host/inside.h"
#include "host/lid_path.h"
#include "host/mcast_socket.h"
#include "host/path_check.h"
#include "util/inaddr.h"

int path_source_gid(const struct device *dev, const struct hca_ah *ah,
		    uint8_t from[16], uint32_t *link, const char **why)
{
	struct device_gid gid;
	int err = path_check_gid(dev, 1, ah->sgid_index, &gid, why);

	if (err)
		return err;
	if (gid.type != DEVICE_GID_ROCE_V2) {
		*why = "sgid_index names a RoCE v1 GID, which adverb does not "
		       "support; use a RoCE v2 GID, for example index 1";
		return -EINVAL;
	}
	memcpy(from, gid.gid, 16);
	*link = gid.ifindex;
	return 0;
}

/*
 * Sets the addresses of a datagram for the IPv6 group `dest`.  The kernel has
 * no route to a group from ::1, so 127.0.0.1 stands for ::1.  A datagram from
 * an IPv4 address goes to the group's alias (mcast_socket.h).
 */
static void to_group(uint8_t from[16], uint8_t dest[16])
{
	static const uint8_t lo4[16] = {[10] = 0xff, 0xff, 127, 0, 0, 1};
	uint8_t gid[16];

	if (!memcmp(from, &in6addr_loopback, 16))
		memcpy(from, lo4, 16);
	if (!inaddr_is_v4(from))
		return;
	memcpy(gid, dest, 16);
	mcast_socket_alias(gid, dest);
}

int path_find(struct host *h, const struct device *dev, const struct hca_ah *ah,
	      struct wq_to *to, const char **why)
{
	struct device_port port;
	uint8_t from[16], dest[16];
	uint32_t link;
	int err;

	if (dev->kind == DEVICE_IB)
		return lid_path_find(dev, ah, to, why);
	err = path_source_gid(dev, ah, from, &link, why);
	if (err)
		return err;
	netif_say_unreachable(from, ah);
	memcpy(dest, ah->dgid, 16);
	if (inaddr_is_multicast(dest) && !inaddr_is_v4(dest))
		to_group(from, dest);
	if (inaddr_is_v4(from) != inaddr_is_v4(dest)) {
		*why = "one of source GID and destination GID is an IPv4 "
		       "address and the other an IPv6 address; use an "
		       "sgid_index whose GID is of the destination's kind";
		return -EINVAL;
	}
	device_port(dev, 1, &port);
	/* only for multicast the program decides, see burst_path_of */
	*to = (struct wq_to){.mtu = (uint8_t)port.active_mtu,
			     .tos = ah->traffic_class,
			     .ttl = inaddr_is_multicast(dest) ? ah->hop_limit
							      : 0,
			     .local = netif_is_local(ah->dgid),
			     .link = link};
	to->bursts = host_progress(h)->wire.has.gso &&
		     gso_policy_is_known(from, dest);
	memcpy(to->from, from, 16);
	memcpy(to->to, dest, 16);
	return 0;
}

void path_fill(struct host *h, const uint8_t from[16], uint32_t mask,
	       struct hca_ah *ah)
{
	ah->local = netif_is_local(ah->dgid);
	ah->bursts = (mask & HCA_QP_AV) && host_progress(h)->wire.has.gso &&
		     gso_policy_is_known(from, ah->dgid);
}

uint16_t path_port(struct host *h, const struct ibt_qp *side)
{
	struct hca_qp_attr now;

	engine_qp_query(host_progress(h)->engine, side, &now);
	return now.ah.port;
}

uint16_t path_take_port(struct host *h, const struct ibt_qp *side,
			const struct hca_qp_attr *attr, uint32_t mask)
{
	struct progress *p = host_progress(h);
	struct hca_qp_attr now;

	engine_qp_query(p->engine, side, &now);
	if (mask & HCA_QP_DEST_QPN)
		now.dest_qpn = attr->dest_qpn;
	return sport_take(&p->wire.sports, attr->ah.dgid,
			  broker_link_class(now.dest_qpn),
			  clock_now(&p->clock));
}

void path_aim(struct host *h, struct wq_to *to) NO_LOCK_ANALYSIS
{
	struct progress *p = host_progress(h);
	uint32_t class = broker_link_class(to->qpn);

	to->port = sport_find(&p->wire.sports, to->to, class);
	if (to->port)
		return;
	progress_take(p);
	to->port = sport_open(&p->wire.sports, to->to, class,
			      clock_now(&p->clock));
	progress_give(p);
}
