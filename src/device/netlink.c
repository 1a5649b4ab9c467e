/* SPDX-License-Identifier: BSD-2-Clause */
#include "device/netlink.h"

#include <errno.h>
#include <linux/if_addr.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "util/inaddr.h"

#define DUMP_BYTES 32768 /* the most that the kernel sends at once */
#define DUMP_TRIES 3	 /* attempts; a change of the table interrupts a dump */

/* Adds one message of a dump to the scene.  Returns 0 or -ENOMEM. */
typedef int taker(struct netdev_scene *s, const struct nlmsghdr *m);

static int open_socket(uint32_t groups)
{
	struct sockaddr_nl a = {.nl_family = AF_NETLINK, .nl_groups = groups};
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
	int err;

	if (fd < 0)
		return -errno;
	if (!bind(fd, (struct sockaddr *)(void *)&a, sizeof(a)))
		return fd;
	err = -errno;
	close(fd);
	return err;
}

/* Returns the first attribute of this type, or NULL. */
static const struct rtattr *find_attr(const struct rtattr *a, size_t len,
				      unsigned short type)
{
	for (; RTA_OK(a, len); a = RTA_NEXT(a, len))
		if ((a->rta_type & NLA_TYPE_MASK) == type)
			return a;
	return NULL;
}

static const struct rtattr *attr_of(const struct nlmsghdr *m, size_t size,
				    unsigned short type)
{
	const char *body = NLMSG_DATA(m);

	if (m->nlmsg_len < NLMSG_SPACE(size))
		return NULL;
	return find_attr((const void *)(body + NLMSG_ALIGN(size)),
			 m->nlmsg_len - NLMSG_SPACE(size), type);
}

static uint32_t attr_u32(const struct rtattr *a, uint32_t otherwise)
{
	if (a && RTA_PAYLOAD(a) >= sizeof(otherwise))
		memcpy(&otherwise, RTA_DATA(a), sizeof(otherwise));
	return otherwise;
}

static bool attr_is(const struct rtattr *a, const char *text)
{
	size_t len = strlen(text);

	return a && RTA_PAYLOAD(a) >= len &&
	       memcmp(RTA_DATA(a), text, len) == 0 &&
	       (RTA_PAYLOAD(a) == len || !((char *)RTA_DATA(a))[len]);
}

/* Makes room for one more element of `size` bytes: the array doubles whenever
 * count is a power of two.  Returns the array; NULL: out of memory. */
static void *grow_array(void *array, uint32_t count, size_t size)
{
	if (count & (count - 1))
		return array;
	return realloc(array, (count ? 2 * (size_t)count : 1) * size);
}

/* Is the link's attribute `kind`, which is IFLA_INFO_KIND or
 * IFLA_INFO_SLAVE_KIND, "bridge"? */
static bool is_of_bridge(const struct nlmsghdr *m, unsigned short kind)
{
	const struct rtattr *info =
		attr_of(m, sizeof(struct ifinfomsg), IFLA_LINKINFO);

	return info &&
	       attr_is(find_attr(RTA_DATA(info), RTA_PAYLOAD(info), kind),
		       "bridge");
}

static int take_link(struct netdev_scene *s, const struct nlmsghdr *m)
{
	const struct ifinfomsg *i = NLMSG_DATA(m);
	const struct rtattr *name = attr_of(m, sizeof(*i), IFLA_IFNAME);
	const struct rtattr *mac = attr_of(m, sizeof(*i), IFLA_ADDRESS);
	struct netdev_link *l =
		grow_array(s->links, s->link_count, sizeof(*s->links));

	if (!l)
		return -ENOMEM;
	s->links = l;
	if (m->nlmsg_type != RTM_NEWLINK || !name)
		return 0;
	l += s->link_count++;
	*l = (struct netdev_link){
		.ifindex = (uint32_t)i->ifi_index,
		.mtu = attr_u32(attr_of(m, sizeof(*i), IFLA_MTU), 1500),
		.is_up = i->ifi_flags & IFF_UP,
		.has_carrier = i->ifi_flags & IFF_RUNNING,
		.is_loopback = i->ifi_flags & IFF_LOOPBACK,
		.is_bridge = is_of_bridge(m, IFLA_INFO_KIND),
		.is_port = is_of_bridge(m, IFLA_INFO_SLAVE_KIND),
	};
	strncpy(l->name, RTA_DATA(name), sizeof(l->name) - 1);
	if (mac && RTA_PAYLOAD(mac) == 6)
		memcpy(l->mac, RTA_DATA(mac), 6);
	return 0;
}

/* Reads the interface's own address.  IFA_LOCAL is read first, since on a
 * point-to-point interface IFA_ADDRESS is the peer's address. */
static bool read_ip(const struct nlmsghdr *m, uint8_t ip[16])
{
	const struct ifaddrmsg *i = NLMSG_DATA(m);
	const struct rtattr *a = attr_of(m, sizeof(*i), IFA_LOCAL);

	if (!a)
		a = attr_of(m, sizeof(*i), IFA_ADDRESS);
	if (a && i->ifa_family == AF_INET6 && RTA_PAYLOAD(a) == 16) {
		memcpy(ip, RTA_DATA(a), 16);
		return true;
	}
	if (!a || i->ifa_family != AF_INET || RTA_PAYLOAD(a) != 4)
		return false;
	inaddr_map_v4(ip, RTA_DATA(a));
	return true;
}

static int take_addr(struct netdev_scene *s, const struct nlmsghdr *m)
{
	const struct ifaddrmsg *i = NLMSG_DATA(m);
	struct netdev_addr *a =
		grow_array(s->addrs, s->addr_count, sizeof(*s->addrs));

	if (!a)
		return -ENOMEM;
	s->addrs = a;
	a += s->addr_count;
	/* An address that another host has, too (RFC 4862), is not usable. */
	if (m->nlmsg_type != RTM_NEWADDR ||
	    attr_u32(attr_of(m, sizeof(*i), IFA_FLAGS), i->ifa_flags) &
		    IFA_F_DADFAILED ||
	    !read_ip(m, a->ip))
		return 0;
	a->ifindex = i->ifa_index;
	s->addr_count++;
	return 0;
}

static void mark_routed(struct netdev_scene *s, uint32_t ifindex)
{
	for (uint32_t i = 0; i < s->link_count; i++)
		if (s->links[i].ifindex == ifindex)
			s->links[i].is_routed = true;
}

static int take_route(struct netdev_scene *s, const struct nlmsghdr *m)
{
	const struct rtmsg *r = NLMSG_DATA(m);
	const struct rtattr *many;

	if (m->nlmsg_type != RTM_NEWROUTE || r->rtm_dst_len ||
	    r->rtm_type != RTN_UNICAST ||
	    attr_u32(attr_of(m, sizeof(*r), RTA_TABLE), r->rtm_table) !=
		    RT_TABLE_MAIN)
		return 0;
	mark_routed(s, attr_u32(attr_of(m, sizeof(*r), RTA_OIF), 0));
	many = attr_of(m, sizeof(*r), RTA_MULTIPATH);
	if (many) {
		const struct rtnexthop *h = RTA_DATA(many);
		size_t len = RTA_PAYLOAD(many);

		while (len >= sizeof(*h) && h->rtnh_len >= sizeof(*h) &&
		       h->rtnh_len <= len) {
			mark_routed(s, (uint32_t)h->rtnh_ifindex);
			len -= NLMSG_ALIGN(h->rtnh_len) < len
				       ? NLMSG_ALIGN(h->rtnh_len)
				       : len;
			h = RTNH_NEXT(h);
		}
	}
	return 0;
}

/* Asks for a dump.  The request ends with a fixed part whose structure depends
 * on the type.  Each of these structures begins with the family; their other
 * fields are 0, which matches everything. */
static int ask_kernel(int fd, uint16_t type, uint8_t family)
{
	struct {
		struct nlmsghdr head;
		struct ifinfomsg body; /* the longest of the fixed parts */
	} q = {.body = {.ifi_family = family}};
	size_t size = type == RTM_GETLINK   ? sizeof(struct ifinfomsg)
		      : type == RTM_GETADDR ? sizeof(struct ifaddrmsg)
					    : sizeof(struct rtmsg);

	q.head.nlmsg_len = (uint32_t)NLMSG_LENGTH(size);
	q.head.nlmsg_type = type;
	q.head.nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP;
	return send(fd, &q, q.head.nlmsg_len, 0) < 0 ? -errno : 0;
}

/* Returns what the last message of a dump says: 1, or the -errno for which the
 * kernel has ended the dump early. */
static int dump_result(const struct nlmsghdr *m)
{
	int32_t result = 0;

	if (m->nlmsg_len >= NLMSG_LENGTH(sizeof(result)))
		memcpy(&result, NLMSG_DATA(m), sizeof(result));
	return result < 0 ? result : 1;
}

/* Returns 1 at the end of the dump, 0 if more messages follow, or -errno. */
static int take_messages(struct netdev_scene *s, const char *bytes, size_t len,
			 taker *each)
{
	const struct nlmsghdr *m = (const void *)bytes;
	int err = 0;

	for (; !err && NLMSG_OK(m, len); m = NLMSG_NEXT(m, len)) {
		if (m->nlmsg_flags & NLM_F_DUMP_INTR)
			return -EINTR;
		if (m->nlmsg_type == NLMSG_DONE)
			return dump_result(m);
		if (m->nlmsg_type == NLMSG_ERROR) {
			const struct nlmsgerr *e = NLMSG_DATA(m);

			return e->error ? e->error : -EPROTO;
		}
		err = each(s, m);
	}
	return err;
}

static int dump_table(struct netdev_scene *s, int fd, uint16_t type,
		      uint8_t family, taker *each)
{
	union {
		struct nlmsghdr align;
		char bytes[DUMP_BYTES];
	} buf;
	int err = ask_kernel(fd, type, family);

	while (!err) {
		ssize_t n = recv(fd, &buf, sizeof(buf), 0);

		if (n < 0 && errno == EINTR)
			continue;
		err = n < 0 ? -errno
			    : take_messages(s, buf.bytes, (size_t)n, each);
	}
	return err < 0 ? err : 0;
}

/*
 * Dumps the default routes.  @is_last: no further attempt follows, and an
 * interrupted dump is accepted: the links and addresses are complete, and a
 * device whose default route is missing is better than no device.  The dump of
 * the IPv6 routes fails on a machine without IPv6, which is no error.
 */
static int dump_routes(struct netdev_scene *s, int fd, bool is_last)
{
	int err = dump_table(s, fd, RTM_GETROUTE, AF_INET, take_route);

	if (!err &&
	    dump_table(s, fd, RTM_GETROUTE, AF_INET6, take_route) == -EINTR)
		err = -EINTR;
	return is_last && err == -EINTR ? 0 : err;
}

static int read_once(struct netdev_scene *s, bool routes, bool is_last)
{
	int fd = open_socket(0), err;

	*s = (struct netdev_scene){NULL};
	if (fd < 0)
		return fd;
	err = dump_table(s, fd, RTM_GETLINK, AF_UNSPEC, take_link);
	if (!err)
		err = dump_table(s, fd, RTM_GETADDR, AF_UNSPEC, take_addr);
	if (!err && routes)
		err = dump_routes(s, fd, is_last);
	close(fd);
	if (err)
		netlink_free(s);
	return err;
}

int netlink_read(struct netdev_scene *scene, bool routes)
{
	int err = -EINTR;

	for (int i = 1; i <= DUMP_TRIES && err == -EINTR; i++)
		err = read_once(scene, routes, i == DUMP_TRIES);
	return err;
}

void netlink_free(struct netdev_scene *scene)
{
	free(scene->links);
	free(scene->addrs);
	*scene = (struct netdev_scene){NULL};
}

int netlink_watch(void)
{
	return open_socket(RTMGRP_LINK | RTMGRP_IPV4_IFADDR |
			   RTMGRP_IPV6_IFADDR);
}

void netlink_drain(int fd)
{
	char byte;

	/* ENOBUFS: messages were lost.  That does no harm, since the caller
	 * reads all interfaces anyway. */
	while (recv(fd, &byte, 1, MSG_DONTWAIT | MSG_TRUNC) >= 0 ||
	       errno == EINTR || errno == ENOBUFS)
		;
}
