/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The multicast groups of an id.  On Ethernet a group's GID is its IP address,
 * and a queue pair becomes a member when it is attached (IBTA A17.9.2).  On
 * InfiniBand the port joins first; see ib_group.c.
 */
#include "rdmacm/explain.h"
#include "rdmacm/ib.h"
#include "rdmacm/object.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static struct r_multicast *multicast_of(struct list *n)
{
	return (struct r_multicast *)(void *)n;
}

int r_group_joined(struct r_event *e)
{
	struct r_multicast *m = e->multicast;
	struct ibv_qp *qp = e->base.id->qp;
	int err = 0;

	if (qp && !m->only_sends)
		err = ibv_attach_mcast(qp, &m->gid, m->lid);
	r_take();
	m->is_attached = qp && !m->only_sends && !err;
	m->is_joining = false;
	pthread_cond_broadcast(&r_changed);
	r_give();
	errno = err;
	return err ? -1 : 0;
}

/* Drops the event of a join, or waits until the thread that has taken the event
 * has attached the queue pair.  Under r_lock. */
static void settle_join(const struct r_id *id, const struct r_multicast *m)
{
	r_forget_join(id, m);
	while (m->is_joining)
		pthread_cond_wait(&r_changed, &r_lock);
}

/* Returns whether the program has joined the group by this address. */
static bool is_named(const struct r_multicast *m, const struct sockaddr *addr)
{
	const struct sockaddr *own = (const struct sockaddr *)&m->addr;
	uint8_t ip[16], other[16];

	r_addr_ip(own, ip);
	r_addr_ip(addr, other);
	return own->sa_family == addr->sa_family && !memcmp(ip, other, 16);
}

/* Removes from the id the group that it has joined last by this address, and
 * returns the group, which the caller owns; NULL: there is none. */
static struct r_multicast *take_group(struct r_id *id,
				      const struct sockaddr *addr)
{
	struct r_multicast *m = NULL;

	r_take();
	list_for_each (n, &id->multicasts)
		if (is_named(multicast_of(n), addr))
			m = multicast_of(n);
	if (m) {
		list_remove(&m->link);
		settle_join(id, m);
	}
	r_give();
	return m;
}

void r_group_leave(struct r_id *id, struct r_multicast *m)
{
	if (m->is_attached && id->base.qp)
		ibv_detach_mcast(id->base.qp, &m->gid, m->lid);
	r_ib_leave(m);
	free(m);
}

int rdma_leave_multicast(struct rdma_cm_id *base, struct sockaddr *addr)
{
	struct r_id *id = r_id(base);
	struct r_multicast *m;
	char text[R_ADDR_TEXT];

	if (!r_addr_is_known(addr))
		return r_fail(EINVAL, "rdma_leave_multicast: the group's "
				      "address is not of AF_INET, AF_INET6 or "
				      "AF_IB; give the address of the join");
	m = take_group(id, addr);
	if (!m)
		return r_fail(EADDRNOTAVAIL,
			      "rdma_leave_multicast: the id has not joined the "
			      "group %s, or has left it; give the address and "
			      "the id of the join",
			      r_addr_text(addr, text));
	r_group_leave(id, m);
	return 0;
}

void r_group_leave_all(struct r_id *id)
{
	struct list *n;

	/* A group is taken from the list before it is freed, since an answer to
	 * its join may come meanwhile (r_ib_joined). */
	r_take();
	while ((n = list_pop_head(&id->multicasts))) {
		settle_join(id, multicast_of(n));
		r_give();
		r_group_leave(id, multicast_of(n));
		r_take();
	}
	r_give();
}
