/* SPDX-License-Identifier: BSD-2-Clause */
#include "wire/local_ip.h"

#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "util/inaddr.h"

struct route_question {
	struct nlmsghdr head;
	struct rtmsg route;
	uint8_t attributes[64];
};

struct route_answer {
	struct nlmsghdr head;
	union {
		struct nlmsgerr failure;
		struct rtmsg route;
	};
	uint8_t attributes[1024];
};

static void put_attribute(struct route_question *q, uint16_t type,
			  const void *value, size_t bytes)
{
	size_t at = NLMSG_ALIGN(q->head.nlmsg_len);
	struct rtattr a = {.rta_len = (uint16_t)RTA_LENGTH(bytes),
			   .rta_type = type};

	memcpy((uint8_t *)q + at, &a, sizeof(a));
	memcpy((uint8_t *)q + at + RTA_LENGTH(0), value, bytes);
	q->head.nlmsg_len = (uint32_t)(at + RTA_LENGTH(bytes));
}

/* Fills *q with the request for the route of a packet to ip. */
static void make_question(struct route_question *q, const uint8_t ip[16],
			  uint32_t scope)
{
	bool v4 = inaddr_is_v4(ip);

	*q = (struct route_question){
		.head = {.nlmsg_len = NLMSG_LENGTH(sizeof(q->route)),
			 .nlmsg_type = RTM_GETROUTE,
			 .nlmsg_flags = NLM_F_REQUEST},
		.route = {.rtm_family = v4 ? AF_INET : AF_INET6,
			  .rtm_dst_len = v4 ? 32 : 128},
	};
	put_attribute(q, RTA_DST, v4 ? ip + 12 : ip, v4 ? 4 : 16);
	if (scope)
		put_attribute(q, RTA_OIF, &scope, sizeof(scope));
}

/* Sends q to the kernel and stores the answer in *a.  Returns false if the
 * kernel gives no answer. */
static bool ask_kernel(const struct route_question *q, struct route_answer *a)
{
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
	ssize_t n = -1;

	if (fd < 0)
		return false;
	/* NETLINK_ROUTE answers during send, so MSG_DONTWAIT finds the answer.
	 */
	if (send(fd, q, q->head.nlmsg_len, MSG_NOSIGNAL) ==
	    (ssize_t)q->head.nlmsg_len)
		n = recv(fd, a, sizeof(*a), MSG_DONTWAIT);
	close(fd);
	return n >= (ssize_t)NLMSG_LENGTH(sizeof(a->route));
}

/* Returns whether the kernel lists the IPv6 address for some interface. */
static bool is_listed(const uint8_t ip[16])
{
	FILE *f = fopen("/proc/net/if_inet6", "re");
	char line[128], want[33];
	bool found = false;

	for (int i = 0; i < 16; i++)
		snprintf(want + 2 * i, 3, "%02x", ip[i]);
	while (f && !found && fgets(line, sizeof(line), f))
		found = !strncmp(line, want, 32);
	if (f)
		fclose(f);
	return found;
}

/* Returns whether a socket can be bound to the address.  If the sysctl
 * net.ipv4.ip_nonlocal_bind or net.ipv6.ip_nonlocal_bind is set, a socket can
 * be bound to every address of that family, so the answer may be wrong. */
static bool can_bind(const uint8_t ip[16], uint32_t scope)
{
	struct sockaddr_in6 six = {.sin6_family = AF_INET6,
				   .sin6_scope_id = scope};
	struct sockaddr_in four = {.sin_family = AF_INET};
	bool v4 = inaddr_is_v4(ip), is_bound;
	int fd = socket(v4 ? AF_INET : AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	memcpy(&six.sin6_addr, ip, 16);
	memcpy(&four.sin_addr, ip + 12, 4);
	is_bound = fd >= 0 &&
		   !(v4 ? bind(fd, (struct sockaddr *)&four, sizeof(four))
			: bind(fd, (struct sockaddr *)&six, sizeof(six)));
	if (fd >= 0)
		close(fd);
	return is_bound;
}

bool local_ip_is(const uint8_t ip[16], uint32_t scope)
{
	struct route_question q;
	struct route_answer a;

	if (inaddr_is_loopback(ip))
		return true;
	make_question(&q, ip, scope);
	if (!ask_kernel(&q, &a))
		return inaddr_is_link_local(ip) && !scope ? is_listed(ip)
							  : can_bind(ip, scope);
	return a.head.nlmsg_type == RTM_NEWROUTE &&
	       a.route.rtm_type == RTN_LOCAL;
}
