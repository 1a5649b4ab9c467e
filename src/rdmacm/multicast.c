/* SPDX-License-Identifier: BSD-2-Clause */
/* Calls that join multicast groups; see group.c. */
#include "rdmacm/explain.h"
#include "rdmacm/ib.h"
#include "rdmacm/object.h"

#include <errno.h>
#include <stdlib.h>

#include "util/inaddr.h"
#include <string.h>

#define QPN_MULTICAST 0xffffff
/* as in the kernel's cma_iboe_join_multicast */
#define HOP_LIMIT_V4 64
#define HOP_LIMIT    1
#define NO_MEMORY                                                              \
	"rdma_join_multicast: no memory is left; free some, or raise ulimit "  \
	"-v and -d"

/* Fills in the members of a JOIN event on Ethernet. */
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
	p->ah_attr.grh.hop_limit =
		inaddr_is_v4(m->gid.raw) ? HOP_LIMIT_V4 : HOP_LIMIT;
	p->ah_attr.grh.traffic_class = id->options.tos;
}

/* Returns a new group, or NULL. */
static struct r_multicast *make_group(const struct sockaddr *addr,
				      bool only_sends, void *context)
{
	struct r_multicast *m = calloc(1, sizeof(*m));

	if (!m)
		return NULL;
	list_init(&m->link);
	memcpy(&m->addr, addr, r_addr_size(addr));
	m->context = context;
	m->only_sends = only_sends;
	m->kernel_fd = -1;
	return m;
}

/* Posts the event of a join on Ethernet, and adds the group to the id.  Returns
 * 0, or -1 and errno with a message. */
static int join_ethernet(struct r_id *id, struct r_multicast *m)
{
	struct r_event *e = r_event_new(id, RDMA_CM_EVENT_MULTICAST_JOIN, 0);

	if (!e)
		return r_fail(ENOMEM, NO_MEMORY);
	r_addr_ip((const struct sockaddr *)&m->addr, m->gid.raw);
	fill_event(id, m, &e->base.param.ud);
	e->multicast = m;
	r_take();
	list_push_tail(&id->multicasts, &m->link);
	r_post(e);
	r_give();
	return 0;
}

/* Returns whether the id is in a state to join groups: it has only an address
 * of its own, or its destination is resolved but its route is not. */
static bool may_join(const struct r_id *id)
{
	const struct r_state *s = &id->state;
	bool may;

	r_take();
	may = s->wants_route ||
	      (!s->has_destination && !s->is_passive && !s->is_listening);
	r_give();
	return may;
}

/* Does the work of rdma_join_multicast.  only_sends: the queue pair is not
 * attached to the group. */
static int join_group(struct r_id *id, const struct sockaddr *addr,
		      bool only_sends, void *context)
{
	bool is_sync = id->is_sync;
	struct r_multicast *m;

	if (!r_addr_is_known(addr) || !id->device)
		return r_fail(EINVAL, "rdma_join_multicast: the id has no "
				      "device (call rdma_bind_addr or "
				      "rdma_resolve_addr first), or the "
				      "group's address is NULL or not of "
				      "AF_INET, AF_INET6 or AF_IB");
	if (r_addr_is_ib(addr) && !r_is_ib(id))
		return r_fail(EINVAL, "rdma_join_multicast: the group is a GID "
				      "(AF_IB), and the id's device is no "
				      "InfiniBand device; give the IP address "
				      "of a group");
	if (r_is_iwarp(id))
		return r_fail(ENOSYS, "rdma_join_multicast: iWARP has no "
				      "multicast; use a RoCE device");
	if (id->base.qp_type != IBV_QPT_UD || !may_join(id))
		return r_fail(EINVAL, "rdma_join_multicast: the id is of no "
				      "datagram port space, listens, came with "
				      "a request, or has a route or has begun "
				      "to look for one; use an id of "
				      "RDMA_PS_UDP or RDMA_PS_IPOIB, and join "
				      "after rdma_bind_addr or ADDR_RESOLVED");
	m = make_group(addr, only_sends, context);
	if (!m)
		return r_fail(ENOMEM, NO_MEMORY);
	if (r_is_ib(id) ? r_ib_join(id, m) : join_ethernet(id, m)) {
		free(m);
		return -1;
	}
	return is_sync ? r_complete(id) : 0;
}

int rdma_join_multicast(struct rdma_cm_id *id, struct sockaddr *addr,
			void *context)
{
	return join_group(r_id(id), addr, false, context);
}

/* Returns 0, or -1 and errno with a message. */
static int check_join(uint32_t comp_mask, uint32_t flags)
{
	if (comp_mask >= RDMA_CM_JOIN_MC_ATTR_RESERVED)
		return r_fail(ENOTSUP,
			      "rdma_join_multicast_ex: comp_mask 0x%x has bits "
			      "that adverb does not know; set "
			      "RDMA_CM_JOIN_MC_ATTR_ADDRESS and "
			      "RDMA_CM_JOIN_MC_ATTR_JOIN_FLAGS only",
			      comp_mask);
	if (!(comp_mask & RDMA_CM_JOIN_MC_ATTR_ADDRESS))
		return r_fail(EINVAL,
			      "rdma_join_multicast_ex: comp_mask 0x%x names no "
			      "address of a group; set addr and "
			      "RDMA_CM_JOIN_MC_ATTR_ADDRESS",
			      comp_mask);
	if (flags >= RDMA_MC_JOIN_FLAG_RESERVED)
		return r_fail(EINVAL,
			      "rdma_join_multicast_ex: join_flags %u is "
			      "unknown; use RDMA_MC_JOIN_FLAG_FULLMEMBER or "
			      "RDMA_MC_JOIN_FLAG_SENDONLY_FULLMEMBER",
			      flags);
	return 0;
}

/* RDMA_MC_JOIN_FLAG_SENDONLY_FULLMEMBER: the queue pair is not attached, since
 * a queue pair sends to a group without being attached. */
int rdma_join_multicast_ex(struct rdma_cm_id *id,
			   struct rdma_cm_join_mc_attr_ex *mc_join_attr,
			   void *context)
{
	uint32_t flags = RDMA_MC_JOIN_FLAG_FULLMEMBER;

	if (mc_join_attr->comp_mask & RDMA_CM_JOIN_MC_ATTR_JOIN_FLAGS)
		flags = mc_join_attr->join_flags;
	if (check_join(mc_join_attr->comp_mask, flags))
		return -1;
	return join_group(r_id(id), mc_join_attr->addr,
			  flags == RDMA_MC_JOIN_FLAG_SENDONLY_FULLMEMBER,
			  context);
}
