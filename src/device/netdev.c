/* SPDX-License-Identifier: BSD-2-Clause */
#include "device/netdev.h"

#include <stdio.h>
#include <string.h>

#include "device/ib.h"
#include "util/inaddr.h"

/* The entries without a fixed meaning are from FIRST_OTHER to before LAST, the
 * index of the last entry. */
#define FIRST_OTHER 4
#define LAST	    (DEVICE_MAX_GIDS - 1)

/* Sorts of interfaces, in the order of preference.  The preferred interfaces
 * are all interfaces of the first sort of which the machine has any. */
enum sort {
	SORT_ROUTED,
	SORT_ROUTED_BRIDGE,
	SORT_GLOBAL,
	SORT_GLOBAL_BRIDGE,
	SORT_LOOPBACK,
};

/* The addresses for a device's GID table; all are borrowed. */
struct wanted {
	const uint8_t *local;	/* link-local, for index 0, or NULL */
	const uint8_t *primary; /* for indexes 1 to 3 and LAST, or NULL */
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

static bool is_of_sort(const struct netdev_scene *s,
		       const struct netdev_link *l, enum sort sort)
{
	switch (sort) {
	case SORT_ROUTED:
		return l->is_up && l->is_routed && !l->is_bridge && !l->is_port;
	case SORT_ROUTED_BRIDGE:
		return l->is_up && l->is_routed && l->is_bridge && !l->is_port;
	case SORT_GLOBAL:
		return l->is_up && !l->is_loopback && !l->is_bridge &&
		       !l->is_port && has_global(s, l->ifindex);
	case SORT_GLOBAL_BRIDGE:
		/* A bridge without carrier serves containers that do not
		 * run. */
		return l->is_up && l->has_carrier && l->is_bridge &&
		       !l->is_port && has_global(s, l->ifindex);
	case SORT_LOOPBACK:
		/* The interface may be down: a device whose port is down tells
		 * the user more than a machine without devices does. */
		return l->is_loopback;
	}
	return false;
}

/* Returns the MAC of an interface or, if it has none, its index. */
static uint64_t mac_of(const struct netdev_link *l)
{
	uint64_t mac = 0;

	for (unsigned i = 0; i < 6; i++)
		mac = mac << 8 | l->mac[i];
	return mac ? mac : l->ifindex;
}

/* For RoCE, returns the EUI-64 of the MAC.  For iWARP, returns the MAC and two
 * zero bytes, as in the device's GID.  So two devices of one interface have
 * different GUIDs. */
static uint64_t guid_of(const struct netdev_link *l, enum device_kind kind)
{
	const uint64_t universal = 1ull << 57;
	uint64_t mac = mac_of(l);

	if (kind == DEVICE_IWARP)
		return mac << 16;
	return ((mac >> 24 << 40) ^ universal) | 0xfffeull << 24 |
	       (mac & 0xffffff);
}

static bool is_device(const struct device *devices, uint32_t count,
		      uint32_t ifindex, uint32_t kind)
{
	for (uint32_t i = 0; i < count; i++)
		if (devices[i].ifindex == ifindex && devices[i].kind == kind)
			return true;
	return false;
}

static uint32_t count_of_kind(const struct device *devices, uint32_t count,
			      enum device_kind kind)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < count; i++)
		n += devices[i].kind == kind;
	return n;
}

static void add_device(const struct netdev_link *l, enum device_kind kind,
		       struct device *devices, uint32_t *count)
{
	struct device *d = &devices[*count];

	if (*count == DEVICE_MAX ||
	    is_device(devices, *count, l->ifindex, kind))
		return;
	memset(d, 0, sizeof(*d));
	snprintf(d->name, sizeof(d->name), "%s%u",
		 kind == DEVICE_IWARP ? "iw" : "adv",
		 count_of_kind(devices, *count, kind));
	snprintf(d->netdev, sizeof(d->netdev), "%s", l->name);
	d->ifindex = l->ifindex;
	memcpy(d->mac, l->mac, 6);
	d->kind = kind;
	d->guid = d->system_guid = guid_of(l, kind);
	snprintf(d->node_desc, sizeof(d->node_desc), "adverb");
	d->port_count = 1;
	(*count)++;
}

/* Is `name` the first token of the list?  That token has len bytes. */
static bool is_first(const char *name, const char *list, size_t len)
{
	return strlen(name) == len && memcmp(name, list, len) == 0;
}

/* The devices that a token of the user's list asks for. */
struct token {
	enum device_kind kind;
	const char *name; /* an interface; NULL: the preferred interfaces */
	size_t len;	  /* bytes of `name` */
	enum sort sort;	  /* the sort of the preferred interfaces */
};

static bool fits_token(const struct netdev_scene *s,
		       const struct netdev_link *l, const struct token *t)
{
	return t->name ? is_first(l->name, t->name, t->len)
		       : is_of_sort(s, l, t->sort);
}

static bool has_any(const struct netdev_scene *s, const struct token *t)
{
	for (uint32_t i = 0; i < s->link_count; i++)
		if (fits_token(s, &s->links[i], t))
			return true;
	return false;
}

/* Returns a token for the preferred interfaces. */
static struct token preferred_token(const struct netdev_scene *s,
				    enum device_kind kind)
{
	struct token t = {.kind = kind, .sort = SORT_ROUTED};

	while (t.sort < SORT_LOOPBACK && !has_any(s, &t))
		t.sort++;
	return t;
}

/* Reads the first token of the list; the token has len bytes.  An interface
 * whose name is "roce" or "iwarp" takes precedence over that word.  A token
 * with a colon is no interface's name, since Linux allows no colon there. */
static struct token read_token(const struct netdev_scene *s, const char *list,
			       size_t len)
{
	const size_t prefix = strlen(NETDEV_IWARP_PREFIX);
	struct token t = {.kind = DEVICE_ROCE, .name = list, .len = len};

	if (has_any(s, &t))
		return t;
	if (is_first("roce", list, len))
		return preferred_token(s, DEVICE_ROCE);
	if (is_first("iwarp", list, len))
		return preferred_token(s, DEVICE_IWARP);
	if (len >= prefix && !memcmp(list, NETDEV_IWARP_PREFIX, prefix))
		t = (struct token){DEVICE_IWARP, list + prefix, len - prefix,
				   SORT_ROUTED};
	return t;
}

static void add_token(const struct netdev_scene *s, const struct token *t,
		      struct device *devices, uint32_t *count)
{
	for (uint32_t i = 0; i < s->link_count; i++)
		if (fits_token(s, &s->links[i], t))
			add_device(&s->links[i], t->kind, devices, count);
}

/* Adds the devices of the user's list, in its order. */
static uint32_t choose_named(const struct netdev_scene *s, const char *names,
			     struct device *devices)
{
	uint32_t count = 0;

	while (*names) {
		size_t len = strcspn(names, ",");
		struct token t = read_token(s, names, len);

		add_token(s, &t, devices, &count);
		names += len + (names[len] == ',');
	}
	return count;
}

/* Does the token fit at least one interface, and is each interface that it fits
 * among the devices? */
static bool is_chosen(const struct netdev_scene *s, const struct token *t,
		      const struct device *devices, uint32_t count)
{
	for (uint32_t i = 0; i < s->link_count; i++)
		if (fits_token(s, &s->links[i], t) &&
		    !is_device(devices, count, s->links[i].ifindex, t->kind))
			return false;
	return has_any(s, t);
}

const char *netdev_missing(const struct netdev_scene *scene, const char *named,
			   const struct device *devices, uint32_t count,
			   int *len)
{
	for (size_t n; *named; named += n + (named[n] == ',')) {
		struct token t;

		n = strcspn(named, ",");
		t = read_token(scene, named, n);
		if (n && !is_chosen(scene, &t, devices, count)) {
			*len = (int)n;
			return named;
		}
	}
	return NULL;
}

bool netdev_fits(const struct netdev_scene *scene, const char *token,
		 size_t len)
{
	struct token t = read_token(scene, token, len);

	return has_any(scene, &t);
}

uint32_t netdev_choose(const struct netdev_scene *scene, const char *named,
		       struct device devices[DEVICE_MAX])
{
	uint32_t count = 0, changes[DEVICE_MAX];

	if (named) {
		count = choose_named(scene, named, devices);
	} else {
		struct token t = preferred_token(scene, DEVICE_ROCE);

		add_token(scene, &t, devices, &count);
	}
	netdev_update(scene, devices, count, changes);
	return count;
}

bool netdev_gid(const struct device *d, const struct device_port *port,
		uint32_t index, struct device_gid *gid)
{
	memset(gid, 0, sizeof(*gid));
	if (index >= netdev_gid_count(d))
		return false;
	if (d->kind == DEVICE_IB)
		return ib_gid(port, index, gid->gid);
	if (d->kind == DEVICE_ROCE) {
		*gid = port->gids[index];
		return gid->ifindex;
	}
	for (unsigned i = 0; i < 8; i++)
		gid->gid[i] = (uint8_t)(d->guid >> (56 - 8 * i));
	gid->type = DEVICE_GID_ROCE_V1; /* the kernel's "IB/RoCE v1" */
	gid->ifindex = d->ifindex;
	return true;
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
	if (w->other_count < LAST - FIRST_OTHER && !is_among(w, a->ip))
		w->others[w->other_count++] = a;
}

/* Is the address `a` to be at index 1 rather than the address `b`?  Any address
 * is preferred to none (b is NULL), and IPv4 to IPv6.  If both are of one
 * family, `a` is preferred only if it is at index 1 now. */
static bool is_better(const struct device_port *p, const struct netdev_addr *a,
		      const uint8_t *b)
{
	if (!b || inaddr_is_v4(a->ip) != inaddr_is_v4(b))
		return !b || inaddr_is_v4(a->ip);
	return is_entry(p, 1, a);
}

/* Adds the addresses of the device's own interface. */
static void want_own(const struct netdev_scene *s, const struct device *d,
		     struct wanted *w)
{
	for (uint32_t i = 0; i < s->addr_count; i++) {
		const struct netdev_addr *a = &s->addrs[i];

		if (a->ifindex != d->ifindex)
			continue;
		if (inaddr_is_link_local(a->ip)) {
			if (!w->local || is_entry(&d->ports[0], 0, a))
				w->local = a->ip;
		} else if (is_better(&d->ports[0], a, w->primary)) {
			w->primary = a->ip;
		}
	}
	for (uint32_t i = 0; i < s->addr_count; i++)
		if (s->addrs[i].ifindex == d->ifindex)
			want_address(w, &s->addrs[i]);
}

/* Adds the addresses, other than link-local ones, of interfaces that are up and
 * are not devices of this kind, with loopback addresses at the end. */
static void want_tail(const struct netdev_scene *s,
		      const struct device *devices, uint32_t count,
		      enum device_kind kind, struct wanted *w)
{
	for (int loopback = 0; loopback < 2; loopback++)
		for (uint32_t i = 0; i < s->addr_count; i++) {
			const struct netdev_addr *a = &s->addrs[i];
			const struct netdev_link *l = find_link(s, a->ifindex);

			if (l && l->is_up &&
			    inaddr_is_loopback(a->ip) == loopback &&
			    !inaddr_is_link_local(a->ip) &&
			    !is_device(devices, count, a->ifindex, kind))
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

/* Fills the entries below FIRST_OTHER and the last one, which netdev.h
 * describes. */
static void put_fixed(const struct device *d, const struct wanted *w,
		      struct device_port *p)
{
	uint8_t eui[16] = {0xfe, 0x80};

	for (unsigned i = 0; i < 8; i++)
		eui[8 + i] = (uint8_t)(d->guid >> (56 - 8 * i));
	if (w->local || d->kind == DEVICE_ROCE)
		put_gid(p, 0, w->local ? w->local : eui,
			w->local ? DEVICE_GID_ROCE_V2 : DEVICE_GID_ROCE_V1,
			d->ifindex);
	for (uint32_t i = 1; w->primary && i < FIRST_OTHER; i++)
		put_gid(p, i, w->primary,
			i == 2 ? DEVICE_GID_ROCE_V1 : DEVICE_GID_ROCE_V2,
			d->ifindex);
	if (w->primary)
		put_gid(p, LAST, w->primary, DEVICE_GID_ROCE_V2, d->ifindex);
}

/* Fills the entries from FIRST_OTHER to before LAST.  An address that is in the
 * old table stays at its index; the other addresses take the indexes that are
 * free. */
static void put_others(const struct device_port *old, const struct wanted *w,
		       struct device_port *p)
{
	bool placed[DEVICE_MAX_GIDS] = {false};
	uint32_t hole = FIRST_OTHER;

	for (uint32_t k = 0; k < w->other_count; k++)
		for (uint32_t i = FIRST_OTHER; i < LAST; i++)
			if (is_entry(old, i, w->others[k])) {
				p->gids[i] = old->gids[i];
				placed[k] = true;
			}
	for (uint32_t k = 0; k < w->other_count; k++) {
		while (hole < LAST && p->gids[hole].ifindex)
			hole++;
		if (!placed[k] && hole < LAST)
			put_gid(p, hole, w->others[k]->ip, DEVICE_GID_ROCE_V2,
				w->others[k]->ifindex);
	}
}

static uint32_t active_mtu(const struct device *d, uint32_t mtu)
{
	uint32_t code = 1;

	if (d->kind == DEVICE_ROCE)
		return netdev_path_mtu(mtu);
	while (code < 5 && 256u << code <= mtu)
		code++;
	return code;
}

static bool is_first_of_kind(const struct device *all, const struct device *d)
{
	return !count_of_kind(all, (uint32_t)(d - all), d->kind);
}

static uint32_t update_port(const struct netdev_scene *s, struct device *all,
			    uint32_t count, struct device *d)
{
	const struct netdev_link *l = find_link(s, d->ifindex);
	struct device_port *old = &d->ports[0], p = {.mtu = old->mtu};
	struct wanted w = {NULL};
	uint32_t changes = 0;

	p.is_up = l && l->is_up && l->has_carrier;
	if (l)
		p.mtu = l->mtu;
	p.active_mtu = active_mtu(d, p.mtu);
	if (l)
		want_own(s, d, &w);
	if (is_first_of_kind(all, d))
		want_tail(s, all, count, d->kind, &w);
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
