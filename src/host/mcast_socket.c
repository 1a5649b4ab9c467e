/* SPDX-License-Identifier: BSD-2-Clause */
#include "host/mcast_socket.h"

#include <errno.h>
#include <string.h>

#include "host/fabric_link.h"
#include "util/inaddr.h"

void mcast_socket_alias(const uint8_t gid[16], uint8_t ip[16])
{
	uint32_t h = 2166136261u;

	for (int i = 0; i < 16; i++)
		h = (h ^ gid[i]) * 16777619u;
	h ^= h >> 18;
	memset(ip, 0, 10);
	memset(ip + 10, 0xff, 2);
	ip[12] = 239;
	/* RFC 2365 6.2: 239.192.0.0/14 is the organization-local scope */
	ip[13] = (uint8_t)(192 | (h >> 16 & 3));
	ip[14] = (uint8_t)(h >> 8);
	ip[15] = (uint8_t)h;
}

/* Joins the group on each interface that has an address of the device.  Returns
 * 0 if at least one interface has joined, else -errno. */
static int join_interfaces(struct progress *p, const struct device *dev,
			   const uint8_t ip[16])
{
	uint32_t done[DEVICE_MAX_GIDS] = {0}, n = 0, k;
	int err = -EADDRNOTAVAIL;
	bool joined = false;

	for (uint32_t i = 0; i < DEVICE_MAX_GIDS; i++) {
		struct device_gid g;

		if (!device_gid(dev, 1, i, &g) ||
		    inaddr_is_v4(g.gid) != inaddr_is_v4(ip))
			continue;
		for (k = 0; k < n && done[k] != g.ifindex; k++)
			;
		if (k < n)
			continue;
		done[n++] = g.ifindex;
		err = udp_join(&p->wire, ip, g.ifindex);
		joined |= !err;
	}
	return joined ? 0 : err;
}

static struct progress_group *find_group(struct progress *p,
					 const uint8_t gid[16])
{
	for (uint32_t i = 0; i < p->groups.count; i++)
		if (!memcmp(p->groups.all[i].gid, gid, 16))
			return &p->groups.all[i];
	return NULL;
}

/* Joins the group gid and, if gid is an IPv6 address, its alias, because queue
 * pairs that are attached to gid get the packets of the alias, too.  Returns 0
 * if at least one of the two groups was joined, else -errno. */
static int join_both(struct progress *p, const struct device *dev,
		     const uint8_t gid[16])
{
	int err = join_interfaces(p, dev, gid);
	uint8_t alias[16];

	if (inaddr_is_v4(gid))
		return err;
	mcast_socket_alias(gid, alias);
	return join_interfaces(p, dev, alias) ? err : 0;
}

static uint32_t bit_of(const struct device *dev)
{
	const struct device *all;

	device_list(&all);
	return 1u << (dev - all);
}

/* Returns the entry of a group, and makes the entry if there is none.  NULL:
 * the process has joined too many groups. */
static struct progress_group *
make_group(struct progress *p, const struct device *dev, const uint8_t gid[16])
{
	uint32_t most =
		dev->kind == DEVICE_IB ? PROGRESS_GROUPS : HOST_MAX_GROUPS;
	struct progress_group *g = find_group(p, gid);

	if (g || p->groups.count >= most)
		return g;
	g = &p->groups.all[p->groups.count++];
	*g = (struct progress_group){0};
	memcpy(g->gid, gid, 16);
	return g;
}

static uint32_t port_of(struct progress *p, const struct ibt_qp *q)
{
	struct hca_qp_attr now;

	engine_qp_query(p->engine, q, &now);
	return now.port_num;
}

/* Returns why no interface of a device could join a group, and what to do.
 * ENOBUFS is the kernel's word for its limit on the groups of a socket. */
static const char *why_apart(int err)
{
	if (err == -ENOBUFS || err == -ENOMEM)
		return "the kernel lets this process's socket join no further "
		       "multicast group; detach queue pairs from other groups, "
		       "or raise the sysctls net.ipv4.igmp_max_memberships and "
		       "net.core.optmem_max";
	if (err == -EADDRNOTAVAIL)
		return "the device has no address of the family of the "
		       "multicast group; give its interface one (ip address), "
		       "or join a group of the other family";
	return "no interface of the device can join the multicast group; set "
	       "the interface up, with multicast (ip link set DEV up multicast "
	       "on)";
}

/* Joins a group on the interfaces of dev, unless the process has already joined
 * the group there.  Returns 0, or -errno with a sentence in *why. */
static int listen_on(struct progress *p, const struct device *dev,
		     struct progress_group *g, const char **why)
{
	int err = 0;

	if (!(g->devices & bit_of(dev)))
		err = join_both(p, dev, g->gid);
	*why = why_apart(err);
	if (!err)
		g->devices |= bit_of(dev);
	return err;
}

/*
 * Joins a group at the port of a QP by LID.  The process keeps one use of the
 * group at the port (fabric_link_attach), however many queue pairs are attached
 * to the group.  Each attachment calls fabric_link_attach, since this call asks
 * the fabric again if the fabric has refused the group.  If the process had a
 * use before, fabric_link_detach ends the new one at once.  Returns 0, or
 * -errno with a sentence in *why.
 */
static int listen_by_lid(struct progress *p, const struct ibt_qp *q,
			 struct progress_group *g, const char **why)
{
	uint32_t port = port_of(p, q);
	int err;

	*why = "the queue pair is in RESET; move it to INIT first, which gives "
	       "it a port";
	if (!port)
		return -EINVAL;
	err = fabric_link_attach(p->engine, port, g->gid, p->now_ns, why);
	if (!err && g->ports & 1u << port)
		fabric_link_detach(p->engine, port, g->gid, p->now_ns, why);
	if (!err)
		g->ports |= 1u << port;
	return err;
}

/* Lets the process receive the packets of a group.  Returns 0, or -errno: then
 * the caller calls mcast_socket_sweep, which removes the entry of a group that
 * was not joined. */
static int listen_to(struct progress *p, const struct device *dev,
		     struct ibt_qp *q, const uint8_t gid[16], const char **why)
{
	struct progress_group *g = make_group(p, dev, gid);

	*why = "the process has joined as many multicast groups as adverb "
	       "allows; detach queue pairs from other groups first";
	if (!g)
		return -ENOSPC;
	return dev->kind == DEVICE_IB ? listen_by_lid(p, q, g, why)
				      : listen_on(p, dev, g, why);
}

int mcast_socket_attach(struct progress *p, const struct device *dev,
			struct ibt_qp *q, const uint8_t gid[16],
			const char **why)
{
	uint8_t alias[16];
	int err;

	*why = "the GID is not a multicast GID; give one that begins with ff, or "
	       "one of ::ffff:224.0.0.0/100";
	if (!inaddr_is_multicast(gid))
		return -EINVAL;
	err = listen_to(p, dev, q, gid, why);
	if (err) {
		mcast_socket_sweep(p);
		return err;
	}
	err = engine_mcast_attach(p->engine, q, gid);
	if (!err && dev->kind != DEVICE_IB && !inaddr_is_v4(gid)) {
		mcast_socket_alias(gid, alias);
		err = engine_mcast_attach_alias(p->engine, q, gid, alias);
		if (err)
			engine_mcast_detach(p->engine, q, gid);
	}
	*why = err == -ENOMEM
		       ? "no memory is left; free some, or raise ulimit -v"
		       : "as many queue pairs are attached to this multicast "
			 "group, or to all groups together, as the adapter "
			 "allows (max_mcast_qp_attach and "
			 "max_total_mcast_qp_attach of ibv_query_device); "
			 "detach some first";
	mcast_socket_sweep(p);
	return err;
}

int mcast_socket_detach(struct progress *p, struct ibt_qp *q,
			const uint8_t gid[16], const char **why)
{
	int err = engine_mcast_detach(p->engine, q, gid);

	*why = "the queue pair is not attached to this multicast group; give "
	       "the GID with which it was attached";
	mcast_socket_sweep(p);
	return err;
}

static void leave_interfaces(struct progress *p, const uint8_t gid[16])
{
	uint8_t alias[16];

	udp_leave(&p->wire, gid);
	mcast_socket_alias(gid, alias);
	if (!inaddr_is_v4(gid) && !engine_mcast_is_used(p->engine, alias))
		udp_leave(&p->wire, alias);
}

static void leave_ports(struct progress *p, const struct progress_group *g)
{
	const char *why;

	for (uint32_t port = 1; port <= HCA_MAX_PORTS; port++)
		if (g->ports & 1u << port)
			fabric_link_detach(p->engine, port, g->gid, p->now_ns,
					   &why);
}

void mcast_socket_sweep(struct progress *p)
{
	for (uint32_t i = p->groups.count; i-- > 0;) {
		const struct progress_group *g = &p->groups.all[i];

		if (engine_mcast_is_used(p->engine, g->gid))
			continue;
		if (g->devices)
			leave_interfaces(p, g->gid);
		leave_ports(p, g);
		p->groups.all[i] = p->groups.all[--p->groups.count];
	}
}
