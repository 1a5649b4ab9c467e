/* SPDX-License-Identifier: BSD-2-Clause */
/* The fabric's answers to joins of multicast groups, and their events. */
#include "rdmacm/ib.h"

#include <errno.h>
#include <string.h>

#include "rdmacm/explain.h"
#include "util/bits.h"

#define QPN_MULTICAST	0xffffff
#define LID_MULTICAST	0xc000 /* the first multicast LID */
#define LID_PERMISSIVE	0xffff
#define MTU_MOST	5
#define SL_MOST		15
#define FLOW_LABEL_MOST 0xfffff

static struct r_multicast *find_group(const struct r_id *id, uint32_t number)
{
	list_for_each (n, &id->multicasts) {
		struct r_multicast *m =
			CONTAINER_OF(n, struct r_multicast, link);

		if (m->number == number)
			return m;
	}
	return NULL;
}

/* Returns whether the group in an answer of the fabric has valid values. */
static bool is_valid_group(const struct cmproto *m)
{
	const struct cmproto_group *g = &m->group;

	return m->at.peer[0] == 0xff && g->mlid >= LID_MULTICAST &&
	       g->mlid != LID_PERMISSIVE && g->mtu && g->mtu <= MTU_MOST &&
	       g->sl <= SL_MOST && g->flow_label <= FLOW_LABEL_MOST;
}

static void explain_error(const struct r_multicast *m, int err)
{
	char text[R_ADDR_TEXT];

	r_addr_text((const struct sockaddr *)&m->addr, text);
	if (err == -EREMOTEIO)
		r_say("rdma_join_multicast: MULTICAST_ERROR: the port with the "
		      "LID of the subnet manager answers that no subnet "
		      "manager runs there, or that it is busy, so the port did "
		      "not join %s; start opensm on a host of the fabric, or "
		      "wait until it logs SUBNET UP",
		      text);
	else if (err == -ETIMEDOUT)
		r_say("rdma_join_multicast: MULTICAST_ERROR: no subnet manager "
		      "has answered the request to join %s; start opensm on a "
		      "host of the fabric",
		      text);
	else if (err == -ECONNREFUSED)
		r_say("rdma_join_multicast: MULTICAST_ERROR: the subnet "
		      "manager refuses to let the port join %s; its log has "
		      "the reason (opensm -f), and saquery -g shows the groups",
		      text);
	else if (err == -ENETDOWN)
		r_say("rdma_join_multicast: MULTICAST_ERROR: the port is not "
		      "active, so it cannot join %s; start opensm on a host of "
		      "the fabric, and wait until ibv_devinfo shows "
		      "PORT_ACTIVE",
		      text);
	else if (err == -EINVAL)
		r_say("rdma_join_multicast: MULTICAST_ERROR: %s has another "
		      "Q_Key or P_Key than the id; use ids of one port space "
		      "and partition for a group, or join a group with another "
		      "GID",
		      text);
	else
		r_say("rdma_join_multicast: MULTICAST_ERROR: the port cannot "
		      "join %s: %s; if the host has many memberships, leave "
		      "groups that are not needed",
		      text, strerror(-err));
}

/* Returns the status of MULTICAST_ERROR.  If the subnet administration answers
 * a join by an error, whichever it is, the kernel's status is -EINVAL, too. */
static int status_of(int err)
{
	return err == -ECONNREFUSED || err == -EREMOTEIO ? -EINVAL : err;
}

static void fill_event(const struct r_id *id, const struct r_multicast *m,
		       const struct cmproto_group *g, struct rdma_ud_param *p)
{
	struct ibv_ah_attr *a = &p->ah_attr;

	p->qp_num = QPN_MULTICAST;
	p->qkey = g->qkey;
	a->dlid = g->mlid;
	a->sl = g->sl;
	a->static_rate = g->rate;
	a->port_num = id->base.port_num;
	a->is_global = 1;
	a->grh.dgid = m->gid;
	a->grh.sgid_index = id->path.sgid_index;
	a->grh.flow_label = g->flow_label;
	a->grh.hop_limit = g->hop_limit;
	a->grh.traffic_class = g->traffic_class;
}

/* Returns 0, or the -errno with which the join fails. */
static int check_answer(const struct r_id *id, const struct cmproto *m)
{
	if (m->err)
		return m->err;
	if (!is_valid_group(m))
		return -EPROTO;
	return m->group.qkey == id->own.qkey ? 0 : -EINVAL;
}

void r_ib_joined(struct r_id *id, uint32_t number, const struct cmproto *answer)
{
	struct r_multicast *m = find_group(id, number);
	int err = check_answer(id, answer);
	struct r_event *e = m ? r_event_sure(id,
					     err ? RDMA_CM_EVENT_MULTICAST_ERROR
						 : RDMA_CM_EVENT_MULTICAST_JOIN,
					     status_of(err))
			      : NULL;

	if (m && err)
		explain_error(m, err);
	if (!e)
		return;
	e->base.param.ud.private_data = m->context;
	e->multicast = m;
	if (!err) {
		memcpy(m->gid.raw, answer->at.peer, 16);
		m->lid = answer->group.mlid;
		fill_event(id, m, &answer->group, &e->base.param.ud);
	}
	r_post(e);
}

/* As with the kernel, the status is -ENETRESET, the queue pair stays attached,
 * and the program may leave the group and join it again. */
bool r_ib_lost(struct r_id *id, uint32_t number)
{
	struct r_multicast *m = find_group(id, number);
	char text[R_ADDR_TEXT];
	struct r_event *e;

	if (!m)
		return false;
	r_addr_text((const struct sockaddr *)&m->addr, text);
	r_say("rdma_join_multicast: MULTICAST_ERROR: the port is no member of "
	      "%s any more: it went down, has another LID or P_Key, or the "
	      "subnet manager has started again; leave the group and join it "
	      "again (rdma_leave_multicast, rdma_join_multicast)",
	      text);
	e = r_event_sure(id, RDMA_CM_EVENT_MULTICAST_ERROR, -ENETRESET);
	if (!e)
		return true;
	e->base.param.ud.private_data = m->context;
	e->multicast = m;
	r_post(e);
	return true;
}
