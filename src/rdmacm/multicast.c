/* SPDX-License-Identifier: BSD-2-Clause */
/* Calls that join multicast groups; see group.c. */
#include "rdmacm/explain.h"
#include "rdmacm/object.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define QPN_MULTICAST 0xffffff
#define HOP_LIMIT     1

static void fill_event(const struct r_id *id, const struct r_multicast *m,
		       struct rdma_ud_param *p)
{
	p->private_data = m->context;
	p->qp_num = QPN_MULTICAST;
	p->qkey = id->own.qkey;
	p->ah_attr.is_global = 1;
	p->ah_attr.port_num = id->base.port_num;
	p->ah_attr.grh.dgid = m->gid;
	p->ah_attr.grh.sgid_index = id->path.sgid_index;
	p->ah_attr.grh.hop_limit = HOP_LIMIT;
	p->ah_attr.grh.traffic_class = id->options.tos;
}

static int join_group(struct r_id *id, const struct sockaddr *addr,
		      bool only_sends, void *context)
{
	bool is_sync = id->is_sync;
	struct r_multicast *m;
	struct r_event *e;

	if (!r_addr_is_known(addr) || !id->device)
		return r_fail(EINVAL, "rdma_join_multicast: the id has no "
				      "device (call rdma_bind_addr or "
				      "rdma_resolve_addr first), or the group "
				      "has no IP address");
	if (r_is_ib(id) || r_addr_is_ib(addr))
		return r_fail(ENOTSUP, "rdma_join_multicast: adverb's rdma_cm "
				       "does not join groups of InfiniBand; "
				       "join by the subnet administration (as "
				       "ib_send_bw -c UD -g does), and attach "
				       "the queue pair by ibv_attach_mcast");
	if (r_is_iwarp(id))
		return r_fail(ENOSYS, "rdma_join_multicast: iWARP has no "
				      "multicast; use a RoCE device");
	m = calloc(1, sizeof(*m));
	e = m ? r_event_new(id, RDMA_CM_EVENT_MULTICAST_JOIN, 0) : NULL;
	if (!e) {
		free(m);
		return r_fail(ENOMEM, "rdma_join_multicast: no memory is left");
	}
	list_init(&m->link);
	memcpy(&m->addr, addr, r_addr_size(addr));
	m->context = context;
	m->only_sends = only_sends;
	r_addr_ip(addr, m->gid.raw);
	fill_event(id, m, &e->base.param.ud);
	e->multicast = m;
	r_take();
	list_push_tail(&id->multicasts, &m->link);
	r_post(e);
	r_give();
	return is_sync ? r_complete(id) : 0;
}

int rdma_join_multicast(struct rdma_cm_id *id, struct sockaddr *addr,
			void *context)
{
	return join_group(r_id(id), addr, false, context);
}

/* RDMA_MC_JOIN_FLAG_SENDONLY_FULLMEMBER: the queue pair is not attached, since
 * on Ethernet a queue pair can send to a group without being a member. */
int rdma_join_multicast_ex(struct rdma_cm_id *id,
			   struct rdma_cm_join_mc_attr_ex *mc_join_attr,
			   void *context)
{
	if (!(mc_join_attr->comp_mask & RDMA_CM_JOIN_MC_ATTR_ADDRESS) ||
	    mc_join_attr->comp_mask >= RDMA_CM_JOIN_MC_ATTR_RESERVED ||
	    mc_join_attr->join_flags >= RDMA_MC_JOIN_FLAG_RESERVED)
		return r_fail(EINVAL, "rdma_join_multicast_ex needs an address "
				      "and known flags");
	return join_group(r_id(id), mc_join_attr->addr,
			  mc_join_attr->comp_mask &
					  RDMA_CM_JOIN_MC_ATTR_JOIN_FLAGS &&
				  mc_join_attr->join_flags ==
					  RDMA_MC_JOIN_FLAG_SENDONLY_FULLMEMBER,
			  context);
}
