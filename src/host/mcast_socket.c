/* SPDX-License-Identifier: BSD-2-Clause */
#include "host/mcast_socket.h"

#include <errno.h>
#include <string.h>

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
static int join_interfaces(struct progress *l, const struct device *dev,
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
		err = udp_join(&l->wire, ip, g.ifindex);
		joined |= !err;
	}
	return joined ? 0 : err;
}

static struct progress_group *find_group(struct progress *l,
					 const uint8_t gid[16])
{
	for (uint32_t i = 0; i < l->group_count; i++)
		if (!memcmp(l->groups[i].gid, gid, 16))
			return &l->groups[i];
	return NULL;
}

/* Joins the group gid and, if gid is an IPv6 address, its alias, because queue
 * pairs that are attached to gid get the packets of the alias, too.  Returns 0
 * if at least one of the two groups was joined, else -errno. */
static int join_both(struct progress *l, const struct device *dev,
		     const uint8_t gid[16])
{
	int err = join_interfaces(l, dev, gid);
	uint8_t alias[16];

	if (inaddr_is_v4(gid))
		return err;
	mcast_socket_alias(gid, alias);
	return join_interfaces(l, dev, alias) ? err : 0;
}

static uint32_t bit_of(const struct device *dev)
{
	const struct device *all;

	device_list(&all);
	return 1u << (dev - all);
}

/* Joins a group on the interfaces of dev, unless the socket has already joined
 * it there. */
static int listen_to(struct progress *l, const struct device *dev,
		     const uint8_t gid[16], const char **why)
{
	struct progress_group *g = find_group(l, gid);
	uint32_t device = bit_of(dev);
	int err;

	if (g && g->devices & device)
		return 0;
	*why = "the process has joined as many multicast groups as adverb "
	       "allows; detach queue pairs from other groups first";
	if (!g && l->group_count == PROGRESS_GROUPS)
		return -ENOSPC;
	*why = "no interface of the device can join the multicast group";
	err = join_both(l, dev, gid);
	if (err)
		return err;
	if (!g) {
		g = &l->groups[l->group_count++];
		*g = (struct progress_group){0};
		memcpy(g->gid, gid, 16);
	}
	g->devices |= device;
	return 0;
}

int mcast_socket_attach(struct progress *l, const struct device *dev,
			struct ibt_qp *q, const uint8_t gid[16],
			const char **why)
{
	uint8_t alias[16];
	int err;

	*why = "the GID is not a multicast GID";
	if (!inaddr_is_multicast(gid))
		return -EINVAL;
	err = listen_to(l, dev, gid, why);
	if (err)
		return err;
	*why = "the adapter has no room for more attachments to multicast "
	       "groups; detach queue pairs first";
	err = engine_mcast_attach(l->engine, q, gid);
	if (!err && !inaddr_is_v4(gid)) {
		mcast_socket_alias(gid, alias);
		err = engine_mcast_attach_alias(l->engine, q, gid, alias);
		if (err)
			engine_mcast_detach(l->engine, q, gid);
	}
	mcast_socket_sweep(l);
	return err;
}

int mcast_socket_detach(struct progress *l, struct ibt_qp *q,
			const uint8_t gid[16], const char **why)
{
	int err = engine_mcast_detach(l->engine, q, gid);

	*why = "the queue pair is not attached to this multicast group";
	mcast_socket_sweep(l);
	return err;
}

void mcast_socket_sweep(struct progress *l)
{
	for (uint32_t i = l->group_count; i-- > 0;) {
		const struct progress_group *g = &l->groups[i];
		uint8_t alias[16];

		if (engine_mcast_is_used(l->engine, g->gid))
			continue;
		udp_leave(&l->wire, g->gid);
		mcast_socket_alias(g->gid, alias);
		if (!inaddr_is_v4(g->gid) &&
		    !engine_mcast_is_used(l->engine, alias))
			udp_leave(&l->wire, alias);
		l->groups[i] = l->groups[--l->group_count];
	}
}
