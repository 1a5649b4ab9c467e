/* SPDX-License-Identifier: BSD-2-Clause */
#include "device/netdev.h"

#include <stdio.h>
#include <string.h>

#include "util/inaddr.h"

#define FIRST_OTHER 4 /* index of the first entry without a fixed meaning */

/* The kinds of interfaces, the preferred first: the interfaces of the first
 * kind that this machine has become devices. */
enum wish {
	WISH_ROUTED,
	WISH_ROUTED_BRIDGE,
	WISH_GLOBAL,
	WISH_GLOBAL_BRIDGE,
	WISH_LOOPBACK,
};

/* The addresses for a device's GID table. */
struct wanted {
	const uint8_t *local;	/* link-local, for index 0, or NULL */
	const uint8_t *primary; /* for indexes 1 to 3, or NULL */
	const struct netdev_addr *others[DEVICE_MAX_GIDS];
	uint32_t other_count;
};

static const struct netdev_link *find_link(const struct netdev_scene *s,
					   uint32_t ifindex)
{
	for (uint32_t i = 0; i < s->link_count; i++)
		if (s->links[i].ifindex == ifindex)
			return &s->links[i];
	return NULL;
}

static bool has_global(const struct netdev_scene *s, uint32_t ifindex)
{
	for (uint32_t i = 0; i < s->addr_count; i++)
		if (s->addrs[i].ifindex == ifindex &&
		    !inaddr_is_link_local(s->addrs[i].ip))
			return true;
	return false;
}

static bool fits_wish(const struct netdev_scene *s, const struct netdev_link *l,
		      enum wish wish)
{
	switch (wish) {
	case WISH_ROUTED:
		return l->is_up && l->is_routed && !l->is_bridge && !l->is_port;
	case WISH_ROUTED_BRIDGE:
		return l->is_up && l->is_routed && l->is_bridge && !l->is_port;
	case WISH_GLOBAL:
		return l->is_up && !l->is_loopback && !l->is_bridge &&
		       !l->is_port && has_global(s, l->ifindex);
	case WISH_GLOBAL_BRIDGE:
		/* A bridge without carrier serves containers that do not
		 * run. */
		return l->is_up && l->has_carrier && l->is_bridge &&
		       !l->is_port && has_global(s, l->ifindex);
	case WISH_LOOPBACK:
		/* Also if down, so that a user sees why. */
		return l->is_loopback;
	}
	return false;
}

/* The EUI-64 of the MAC; an interface without a MAC gets one from its index. */
static uint64_t guid_of(const struct netdev_link *l)
{
	uint8_t m[6];
	uint64_t hi, lo;

	memcpy(m, l->mac, 6);
	if (!(m[0] | m[1] | m[2] | m[3] | m[4] | m[5]))
		m[5] = (uint8_t)l->ifindex;
	hi = (uint64_t)(m[0] ^ 2) << 16 | (uint64_t)m[1] << 8 | m[2];
	lo = (uint64_t)m[3] << 16 | (uint64_t)m[4] << 8 | m[5];
	return hi << 40 | 0xfffeull << 24 | lo;
}

static bool is_device(const struct device *devices, uint32_t count,
		      uint32_t ifindex)
{
	for (uint32_t i = 0; i < count; i++)
		if (devices[i].ifindex == ifindex)
			return true;
	return false;
}

static void add_device(const struct netdev_link *l, struct device *devices,
		       uint32_t *count)
{
	struct device *d = &devices[*count];

	if (*count == DEVICE_MAX || is_device(devices, *count, l->ifindex))
		return;
	memset(d, 0, sizeof(*d));
	snprintf(d->name, sizeof(d->name), "adv%u", *count);
	snprintf(d->netdev, sizeof(d->netdev), "%s", l->name);
	d->ifindex = l->ifindex;
	memcpy(d->mac, l->mac, 6);
	d->guid = guid_of(l);
	(*count)++;
}

/* Whether name is the first name of the list, which has len bytes. */
static bool is_first(const char *name, const char *list, size_t len)
{
	return strlen(name) == len && memcmp(name, list, len) == 0;
}

/* Adds the named interfaces, in the order of the user's list. */
static uint32_t choose_named(const struct netdev_scene *s, const char *names,
			     struct device *devices)
{
	uint32_t count = 0;

	while (*names) {
		size_t len = strcspn(names, ",");

		for (uint32_t i = 0; i < s->link_count; i++)
			if (is_first(s->links[i].name, names, len))
				add_device(&s->links[i], devices, &count);
		names += len + (names[len] == ',');
	}
	return count;
}

const char *netdev_missing(const char *named, const struct device *devices,
			   uint32_t count, int *len)
{
	for (; *named; named += *len + (named[*len] == ',')) {
		uint32_t i = 0;

		*len = (int)strcspn(named, ",");
		while (i < count &&
		       !is_first(devices[i].netdev, named, (size_t)*len))
			i++;
		if (*len && i == count)
			return named;
	}
	return NULL;
}

uint32_t netdev_choose(const struct netdev_scene *scene, const char *named,
		       struct device devices[DEVICE_MAX])
{
	uint32_t count = 0, changes[DEVICE_MAX];

	if (named)
		count = choose_named(scene, named, devices);
	for (enum wish w = WISH_ROUTED; !named && w <= WISH_LOOPBACK && !count;
	     w++)
		for (uint32_t i = 0; i < scene->link_count; i++)
			if (fits_wish(scene, &scene->links[i], w))
				add_device(&scene->links[i], devices, &count);
	netdev_update(scene, devices, count, changes);
	return count;
}

static bool is_entry(const struct device_port *p, uint32_t i,
		     const struct netdev_addr *a)
{
	return p->gids[i].ifindex == a->ifindex &&
	       inaddr_has_same_ip(p->gids[i].gid, a->ip);
}

static bool is_among(const struct wanted *w, const uint8_t ip[16])
{
	if ((w->local && inaddr_has_same_ip(w->local, ip)) ||
	    (w->primary && inaddr_has_same_ip(w->primary, ip)))
		return true;
	for (uint32_t i = 0; i < w->other_count; i++)
		if (inaddr_has_same_ip(w->others[i]->ip, ip))
			return true;
	return false;
}

static void want_address(struct wanted *w, const struct netdev_addr *a)
{
	if (w->other_count < DEVICE_MAX_GIDS - FIRST_OTHER &&
	    !is_among(w, a->ip))
		w->others[w->other_count++] = a;
}

/* Whether `a` belongs at index 1 rather than `b`: IPv4 is better than IPv6,
 * and the present entry is better than another one. */
static bool is_better(const struct device_port *p, const struct netdev_addr *a,
		      const uint8_t *b)
{
	if (!b || inaddr_is_v4(a->ip) != inaddr_is_v4(b))
		return !b || inaddr_is_v4(a->ip);
	return is_entry(p, 1, a);
}

static void want_own(const struct netdev_scene *s, const struct device *d,
		     struct wanted *w)
{
	for (uint32_t i = 0; i < s->addr_count; i++) {
		const struct netdev_addr *a = &s->addrs[i];

		if (a->ifindex != d->ifindex)
			continue;
		if (inaddr_is_link_local(a->ip)) {
			if (!w->local || is_entry(&d->port, 0, a))
				w->local = a->ip;
		} else if (is_better(&d->port, a, w->primary)) {
			w->primary = a->ip;
		}
	}
	for (uint32_t i = 0; i < s->addr_count; i++)
		if (s->addrs[i].ifindex == d->ifindex)
			want_address(w, &s->addrs[i]);
}

/* Adds the addresses of interfaces that are not devices, loopback's last. */
static void want_tail(const struct netdev_scene *s,
		      const struct device *devices, uint32_t count,
		      struct wanted *w)
{
	for (int loopback = 0; loopback < 2; loopback++)
		for (uint32_t i = 0; i < s->addr_count; i++) {
			const struct netdev_addr *a = &s->addrs[i];
			const struct netdev_link *l = find_link(s, a->ifindex);

			if (l && l->is_up &&
			    inaddr_is_loopback(a->ip) == loopback &&
			    !inaddr_is_link_local(a->ip) &&
			    !is_device(devices, count, a->ifindex))
				want_address(w, a);
		}
}

static void put_gid(struct device_port *p, uint32_t i, const uint8_t ip[16],
		    uint8_t type, uint32_t ifindex)
{
	memcpy(p->gids[i].gid, ip, 16);
	p->gids[i].type = type;
	p->gids[i].ifindex = ifindex;
}

static void put_fixed(const struct device *d, const struct wanted *w,
		      struct device_port *p)
{
	uint8_t eui[16] = {0xfe, 0x80};

	for (unsigned i = 0; i < 8; i++)
		eui[8 + i] = (uint8_t)(d->guid >> (56 - 8 * i));
	put_gid(p, 0, w->local ? w->local : eui,
		w->local ? DEVICE_GID_ROCE_V2 : DEVICE_GID_ROCE_V1, d->ifindex);
	for (uint32_t i = 1; w->primary && i < FIRST_OTHER; i++)
		put_gid(p, i, w->primary,
			i == 2 ? DEVICE_GID_ROCE_V1 : DEVICE_GID_ROCE_V2,
			d->ifindex);
}

/* First keeps the old entries at their indexes, then fills the new ones in. */
static void put_others(const struct device_port *old, const struct wanted *w,
		       struct device_port *p)
{
	bool placed[DEVICE_MAX_GIDS] = {false};
	uint32_t hole = FIRST_OTHER;

	for (uint32_t k = 0; k < w->other_count; k++)
		for (uint32_t i = FIRST_OTHER; i < DEVICE_MAX_GIDS; i++)
			if (is_entry(old, i, w->others[k])) {
				p->gids[i] = old->gids[i];
				placed[k] = true;
			}
	for (uint32_t k = 0; k < w->other_count; k++) {
		while (hole < DEVICE_MAX_GIDS && p->gids[hole].ifindex)
			hole++;
		if (!placed[k] && hole < DEVICE_MAX_GIDS)
			put_gid(p, hole, w->others[k]->ip, DEVICE_GID_ROCE_V2,
				w->others[k]->ifindex);
	}
}

static uint32_t update_port(const struct netdev_scene *s, struct device *all,
			    uint32_t count, struct device *d)
{
	const struct netdev_link *l = find_link(s, d->ifindex);
	struct device_port *old = &d->port, p = {.mtu = old->mtu};
	struct wanted w = {NULL};
	uint32_t changes = 0;

	p.is_up = l && l->is_up && l->has_carrier;
	if (l)
		p.mtu = l->mtu;
	p.active_mtu = netdev_path_mtu(p.mtu);
	if (l)
		want_own(s, d, &w);
	if (d == all)
		want_tail(s, all, count, &w);
	put_fixed(d, &w, &p);
	put_others(old, &w, &p);
	if (memcmp(p.gids, old->gids, sizeof(p.gids)) != 0)
		changes |= NETDEV_GIDS;
	if (p.is_up != old->is_up)
		changes |= p.is_up ? NETDEV_UP : NETDEV_DOWN;
	if (p.mtu != old->mtu)
		changes |= NETDEV_MTU;
	*old = p;
	return changes;
}

void netdev_update(const struct netdev_scene *scene, struct device *devices,
		   uint32_t count, uint32_t *changes)
{
	for (uint32_t i = 0; i < count; i++)
		changes[i] = update_port(scene, devices, count, &devices[i]);
}
