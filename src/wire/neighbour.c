/* SPDX-License-Identifier: BSD-2-Clause */
#include "wire/neighbour.h"

#include <errno.h>
#include <ifaddrs.h>
#include <linux/if_packet.h>
#include <linux/neighbour.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "util/bits.h"
#include "util/inaddr.h"

#define PORT_DISCARD 9	   /* RFC 863 */
#define MESSAGES     4096  /* the buffer of neighbour_drain, in bytes */
#define PART_BYTES   32768 /* the most that the kernel writes at once */
/* A struct rtvia with an address of IPv6. */
#define VIA_BYTES (sizeof(struct rtvia) + 16)
/* The states of a neighbour in which its MAC is known. */
#define NUD_KNOWN                                                              \
	(NUD_REACHABLE | NUD_STALE | NUD_DELAY | NUD_PROBE | NUD_PERMANENT |   \
	 NUD_NOARP)

/* A request, and later the kernel's answer to it. */
struct kernel_message {
	struct nlmsghdr head;
	union {
		struct nlmsgerr failure;
		struct rtmsg route;
		struct ndmsg neighbour;
	};
	uint8_t attributes[1024];
};

static void put_attribute(struct kernel_message *m, uint16_t type,
			  const void *value, size_t bytes)
{
	size_t at = NLMSG_ALIGN(m->head.nlmsg_len);
	const struct rtattr a = {.rta_len = (uint16_t)RTA_LENGTH(bytes),
				 .rta_type = type};

	memcpy((uint8_t *)m + at, &a, sizeof(a));
	memcpy((uint8_t *)m + at + RTA_LENGTH(0), value, bytes);
	m->head.nlmsg_len = (uint32_t)(at + RTA_LENGTH(bytes));
}

static void put_ip(struct kernel_message *m, uint16_t type,
		   const uint8_t ip[16])
{
	bool is_v4 = inaddr_is_v4(ip);

	put_attribute(m, type, is_v4 ? ip + 12 : ip, is_v4 ? 4 : 16);
}

static uint8_t family_of(const uint8_t ip[16])
{
	return inaddr_is_v4(ip) ? AF_INET : AF_INET6;
}

/* Sends the request m; the answer, of the given type, replaces it.  Returns 0
 * or -errno. */
static int ask_kernel(struct kernel_message *m, uint16_t type)
{
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
	ssize_t n = -1;
	int err = 0;

	if (fd < 0)
		return -errno;
	/* NETLINK_ROUTE answers during send, so MSG_DONTWAIT finds the answer.
	 */
	if (send(fd, m, m->head.nlmsg_len, MSG_NOSIGNAL) >= 0)
		n = recv(fd, m, sizeof(*m), MSG_DONTWAIT);
	if (n < (ssize_t)NLMSG_LENGTH(sizeof(m->route)))
		err = n < 0 ? -errno : -EPROTO;
	close(fd);
	if (!err && m->head.nlmsg_type == NLMSG_ERROR)
		err = m->failure.error < 0 ? m->failure.error : -EPROTO;
	else if (!err && m->head.nlmsg_type != type)
		err = -EPROTO;
	if (!err && m->head.nlmsg_len > (uint32_t)n)
		err = -EPROTO;
	return err;
}

/* Finds an attribute behind a body of `body` bytes.  Returns the value of the
 * first attribute of this type whose value has `bytes` bytes; NULL: there is no
 * such attribute. */
static const void *find_attribute(const struct kernel_message *m, size_t body,
				  uint16_t type, size_t bytes)
{
	const char *at = (const char *)m + NLMSG_SPACE(body);
	const struct rtattr *a = (const void *)at;
	size_t left = m->head.nlmsg_len > NLMSG_SPACE(body)
			      ? m->head.nlmsg_len - NLMSG_SPACE(body)
			      : 0;

	for (; RTA_OK(a, left); a = RTA_NEXT(a, left))
		if (a->rta_type == type && RTA_PAYLOAD(a) == bytes)
			return RTA_DATA(a);
	return NULL;
}

static bool has_address(const struct ifaddrs *a, const uint8_t ip[16])
{
	const struct sockaddr *s = a->ifa_addr;
	uint8_t own[16];

	if (!s || s->sa_family != family_of(ip))
		return false;
	if (s->sa_family == AF_INET)
		inaddr_map_v4(own,
			      &((const struct sockaddr_in *)(const void *)s)
				       ->sin_addr);
	else
		memcpy(own,
		       &((const struct sockaddr_in6 *)(const void *)s)
				->sin6_addr,
		       16);
	return !memcmp(own, ip, 16);
}

/* Is the label that of an address of the interface `name`?  IPv4 addresses have
 * labels: the interface's name, or that and a colon and more text. */
static bool is_label_of(const char *label, const char *name)
{
	size_t length = strcspn(label, ":");

	return strlen(name) == length && !memcmp(label, name, length);
}

/* Fills in *i from the entry of the interface's link, if the label is that of
 * an address of the interface. */
static bool read_link(const struct ifaddrs *a, const char *label,
		      struct neighbour_interface *i)
{
	const struct sockaddr_ll *link = (const void *)a->ifa_addr;

	if (!link || link->sll_family != AF_PACKET ||
	    !is_label_of(label, a->ifa_name))
		return false;
	*i = (struct neighbour_interface){.ifindex =
						  (uint32_t)link->sll_ifindex};
	strncpy(i->name, a->ifa_name, sizeof(i->name) - 1);
	if (link->sll_halen == sizeof(i->mac))
		memcpy(i->mac, link->sll_addr, sizeof(i->mac));
	return true;
}

static bool find_link(const struct ifaddrs *all, const char *label,
		      struct neighbour_interface *i)
{
	for (const struct ifaddrs *a = all; a; a = a->ifa_next)
		if (read_link(a, label, i))
			return true;
	return false;
}

int neighbour_own(const uint8_t ip[16], uint32_t scope,
		  struct neighbour_interface *i)
{
	struct ifaddrs *all;
	bool is_found = false;

	if (getifaddrs(&all))
		return -errno;
	for (const struct ifaddrs *a = all; a && !is_found; a = a->ifa_next)
		is_found = has_address(a, ip) &&
			   find_link(all, a->ifa_name, i) &&
			   (!scope || scope == i->ifindex);
	freeifaddrs(all);
	return is_found ? 0 : -EADDRNOTAVAIL;
}

/* Stores the gateway of the route m, which leads to an address of IPv4 or of
 * IPv6.  A route of IPv4 may have a gateway with an address of IPv6, in the
 * attribute RTA_VIA.  False: the route has no gateway. */
static bool read_gateway(const struct kernel_message *m, bool is_v4,
			 uint8_t hop[16])
{
	const size_t body = sizeof(m->route);
	const void *gateway =
		find_attribute(m, body, RTA_GATEWAY, is_v4 ? 4 : 16);
	const struct rtvia *via = find_attribute(m, body, RTA_VIA, VIA_BYTES);

	if (gateway && is_v4)
		inaddr_map_v4(hop, gateway);
	else if (gateway)
		memcpy(hop, gateway, 16);
	else if (via && via->rtvia_family == AF_INET6)
		memcpy(hop, via->rtvia_addr, 16);
	else
		return false;
	return true;
}

int neighbour_route(const uint8_t to[16], uint32_t ifindex, uint8_t hop[16])
{
	bool is_v4 = inaddr_is_v4(to);
	struct kernel_message m = {
		.head = {.nlmsg_len = NLMSG_LENGTH(sizeof(m.route)),
			 .nlmsg_type = RTM_GETROUTE,
			 .nlmsg_flags = NLM_F_REQUEST},
		.route = {.rtm_family = family_of(to),
			  .rtm_dst_len = is_v4 ? 32 : 128},
	};
	int err;

	put_ip(&m, RTA_DST, to);
	put_attribute(&m, RTA_OIF, &ifindex, sizeof(ifindex));
	err = ask_kernel(&m, RTM_NEWROUTE);
	if (err)
		return err;
	if (!read_gateway(&m, is_v4, hop))
		memcpy(hop, to, 16);
	return 0;
}

/* Returns whether the interface learns hardware addresses by ARP or neighbour
 * discovery.  If the kernel does not say, returns true. */
static bool has_neighbours(uint32_t ifindex)
{
	struct ifreq r = {.ifr_ifindex = (int)ifindex};
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	bool is_told;

	if (fd < 0)
		return true;
	is_told = !ioctl(fd, SIOCGIFNAME, &r) && !ioctl(fd, SIOCGIFFLAGS, &r);
	close(fd);
	return !is_told ||
	       !(r.ifr_flags & (IFF_LOOPBACK | IFF_NOARP | IFF_POINTOPOINT));
}

/* Reads the next hop from the route m to an address of IPv4 or of IPv6; returns
 * as neighbour_find_hop does.  hop->ip stays if there is no gateway. */
static int read_hop(const struct kernel_message *m, bool is_v4,
		    struct neighbour_hop *hop)
{
	const void *ifindex = find_attribute(m, sizeof(m->route), RTA_OIF,
					     sizeof(hop->ifindex));

	if (m->route.rtm_type != RTN_UNICAST)
		return -EADDRNOTAVAIL;
	if (!ifindex)
		return -EPROTO;
	memcpy(&hop->ifindex, ifindex, sizeof(hop->ifindex));
	read_gateway(m, is_v4, hop->ip);
	return has_neighbours(hop->ifindex) ? 0 : -EADDRNOTAVAIL;
}

int neighbour_find_hop(const uint8_t to[16], const uint8_t from[16],
		       uint32_t scope, struct neighbour_hop *hop)
{
	bool is_v4 = inaddr_is_v4(to);
	uint8_t bits = is_v4 ? 32 : 128;
	struct kernel_message m = {
		.head = {.nlmsg_len = NLMSG_LENGTH(sizeof(m.route)),
			 .nlmsg_type = RTM_GETROUTE,
			 .nlmsg_flags = NLM_F_REQUEST},
		.route = {.rtm_family = family_of(to),
			  .rtm_dst_len = bits,
			  .rtm_src_len = bits},
	};
	int err;

	put_ip(&m, RTA_DST, to);
	put_ip(&m, RTA_SRC, from);
	if (scope)
		put_attribute(&m, RTA_OIF, &scope, sizeof(scope));
	err = ask_kernel(&m, RTM_NEWROUTE);
	if (err)
		return err;
	memcpy(hop->ip, to, 16);
	return read_hop(&m, is_v4, hop);
}

/* Reads the MAC from an entry of the kernel's table.  -EAGAIN: the kernel does
 * not know it. */
static int read_mac(const struct kernel_message *m,
		    uint8_t mac[NEIGHBOUR_MAC_BYTES])
{
	const void *found = find_attribute(m, sizeof(m->neighbour), NDA_LLADDR,
					   NEIGHBOUR_MAC_BYTES);

	if (!(m->neighbour.ndm_state & NUD_KNOWN))
		return -EAGAIN;
	if (found)
		memcpy(mac, found, NEIGHBOUR_MAC_BYTES);
	else
		memset(mac, 0, NEIGHBOUR_MAC_BYTES);
	return 0;
}

static bool is_entry_of(const struct kernel_message *m, uint32_t ifindex,
			const uint8_t hop[16])
{
	bool is_v4 = inaddr_is_v4(hop);
	size_t bytes = is_v4 ? 4 : 16;
	const void *to;

	if (m->head.nlmsg_type != RTM_NEWNEIGH ||
	    m->neighbour.ndm_ifindex != (int)ifindex)
		return false;
	to = find_attribute(m, sizeof(m->neighbour), NDA_DST, bytes);
	return to && !memcmp(to, is_v4 ? hop + 12 : hop, bytes);
}

/* Returns the -errno of a message of the kernel that reports an error, of which
 * there are n bytes. */
static int read_error(const uint8_t *message, size_t n)
{
	int err = 0;

	if (n >= NLMSG_LENGTH(sizeof(err)))
		memcpy(&err, message + NLMSG_LENGTH(0), sizeof(err));
	return err < 0 ? err : -EPROTO;
}

/* Looks for the neighbour in a part of the kernel's table.  Returns 0: *m is
 * the neighbour's entry; -EAGAIN: a further part is to be read; -ENOENT: this
 * was the last part; or the -errno that the kernel reports, for example
 * -EOPNOTSUPP in a sandbox without neighbours. */
static int search_part(const uint8_t *bytes, size_t n, uint32_t ifindex,
		       const uint8_t hop[16], struct kernel_message *m)
{
	struct nlmsghdr head;

	for (; n >= sizeof(head); n -= NLMSG_ALIGN(head.nlmsg_len),
				  bytes += NLMSG_ALIGN(head.nlmsg_len)) {
		memcpy(&head, bytes, sizeof(head));
		if (head.nlmsg_type == NLMSG_ERROR)
			return read_error(bytes, n);
		if (head.nlmsg_len < sizeof(head) ||
		    NLMSG_ALIGN(head.nlmsg_len) > n ||
		    head.nlmsg_type == NLMSG_DONE)
			return -ENOENT;
		memset(m, 0, sizeof(*m));
		memcpy(m, bytes, bits_min_u64(head.nlmsg_len, sizeof(*m)));
		if (head.nlmsg_len <= sizeof(*m) &&
		    is_entry_of(m, ifindex, hop))
			return 0;
	}
	return -EAGAIN;
}

int neighbour_search(uint32_t ifindex, const uint8_t hop[16],
		     uint8_t mac[NEIGHBOUR_MAC_BYTES])
{
	struct kernel_message m = {
		.head = {.nlmsg_len = NLMSG_LENGTH(sizeof(m.neighbour)),
			 .nlmsg_type = RTM_GETNEIGH,
			 .nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP},
		.neighbour = {.ndm_family = family_of(hop)},
	};
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
	uint8_t part[PART_BYTES];
	int err = -EAGAIN;
	ssize_t n;

	if (fd < 0)
		return -errno;
	if (send(fd, &m, m.head.nlmsg_len, MSG_NOSIGNAL) < 0)
		err = -errno;
	while (err == -EAGAIN) {
		n = recv(fd, part, sizeof(part), MSG_DONTWAIT);
		err = n < 0 ? -ENOENT
			    : search_part(part, (size_t)n, ifindex, hop, &m);
	}
	close(fd);
	return err ? err : read_mac(&m, mac);
}

int neighbour_look(uint32_t ifindex, const uint8_t hop[16],
		   uint8_t mac[NEIGHBOUR_MAC_BYTES])
{
	struct kernel_message m = {
		.head = {.nlmsg_len = NLMSG_LENGTH(sizeof(m.neighbour)),
			 .nlmsg_type = RTM_GETNEIGH,
			 .nlmsg_flags = NLM_F_REQUEST},
		.neighbour = {.ndm_family = family_of(hop),
			      .ndm_ifindex = (int)ifindex},
	};
	int err;

	put_ip(&m, NDA_DST, hop);
	err = ask_kernel(&m, RTM_NEWNEIGH);
	if (err == -EOPNOTSUPP) /* before Linux 5.0 */
		return neighbour_search(ifindex, hop, mac);
	return err ? err : read_mac(&m, mac);
}

/* Writes the address of the neighbour's port "discard".  Returns the length of
 * the socket address. */
static socklen_t put_discard(struct sockaddr_storage *to, uint32_t ifindex,
			     const uint8_t hop[16])
{
	struct sockaddr_in6 *six = (void *)to;
	struct sockaddr_in *four = (void *)to;

	memset(to, 0, sizeof(*to));
	to->ss_family = family_of(hop);
	if (to->ss_family == AF_INET) {
		four->sin_port = htons(PORT_DISCARD);
		memcpy(&four->sin_addr, hop + 12, 4);
		return sizeof(*four);
	}
	six->sin6_port = htons(PORT_DISCARD);
	memcpy(&six->sin6_addr, hop, 16);
	six->sin6_scope_id = inaddr_is_link_local(hop) ? ifindex : 0;
	return sizeof(*six);
}

void neighbour_ask(uint32_t ifindex, const uint8_t hop[16])
{
	struct sockaddr_storage to;
	socklen_t length = put_discard(&to, ifindex, hop);
	int fd = socket(to.ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	int index = (int)ifindex;

	if (fd < 0)
		return;
	/* A kernel before 5.7 refuses this option to an ordinary user, or lacks
	 * it; then the route decides which interface sends the datagram. */
	setsockopt(fd, SOL_SOCKET, SO_BINDTOIFINDEX, &index, sizeof(index));
	sendto(fd, "", 0, MSG_DONTWAIT | MSG_NOSIGNAL, (struct sockaddr *)&to,
	       length);
	close(fd);
}

int neighbour_join(uint32_t ifindex, const uint8_t group[16])
{
	struct group_req r = {.gr_interface = ifindex};
	int fd, err;

	put_discard(&r.gr_group, ifindex, group);
	fd = socket(family_of(group), SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	if (!setsockopt(fd, inaddr_is_v4(group) ? IPPROTO_IP : IPPROTO_IPV6,
			MCAST_JOIN_GROUP, &r, sizeof(r)))
		return fd;
	err = -errno;
	close(fd);
	return err;
}

int neighbour_watch(void)
{
	struct sockaddr_nl a = {.nl_family = AF_NETLINK,
				.nl_groups = RTMGRP_NEIGH};
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

void neighbour_wake(int fd)
{
	const struct nlmsghdr nothing = {.nlmsg_len = sizeof(nothing),
					 .nlmsg_type = NLMSG_NOOP,
					 .nlmsg_flags =
						 NLM_F_REQUEST | NLM_F_ACK};

	/* the kernel's ACK makes fd readable */
	send(fd, &nothing, sizeof(nothing), MSG_DONTWAIT | MSG_NOSIGNAL);
}

void neighbour_drain(int fd)
{
	char bytes[MESSAGES];
	ssize_t n;

	do
		n = recv(fd, bytes, sizeof(bytes), MSG_DONTWAIT);
	while (n > 0 || (n < 0 && (errno == EINTR || errno == ENOBUFS)));
}
