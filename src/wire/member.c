/* SPDX-License-Identifier: BSD-2-Clause */
#include "wire/member.h"

#include <errno.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "util/inaddr.h"

static int change_member(int fd, const uint8_t ip[16], uint32_t ifindex,
			 bool join)
{
	struct ip_mreqn v4 = {.imr_ifindex = (int)ifindex};
	struct ipv6_mreq v6 = {.ipv6mr_interface = ifindex};

	if (inaddr_is_v4(ip)) {
		memcpy(&v4.imr_multiaddr, ip + 12, 4);
		return setsockopt(fd, IPPROTO_IP,
				  join ? IP_ADD_MEMBERSHIP : IP_DROP_MEMBERSHIP,
				  &v4, sizeof(v4));
	}
	memcpy(&v6.ipv6mr_multiaddr, ip, 16);
	return setsockopt(fd, IPPROTO_IPV6,
			  join ? IPV6_ADD_MEMBERSHIP : IPV6_DROP_MEMBERSHIP,
			  &v6, sizeof(v6));
}

int member_join(int fd, const uint8_t ip[16], uint32_t ifindex)
{
	return change_member(fd, ip, ifindex, true) && errno != EADDRINUSE
		       ? -errno
		       : 0;
}

void member_leave(int fd, const uint8_t ip[16])
{
	/* Each interface is named, because without an index Linux takes the
	 * interface of the route to the group, and there may be no route. */
	struct if_nameindex *all = if_nameindex();

	for (struct if_nameindex *i = all; i && i->if_index; i++)
		change_member(fd, ip, i->if_index, false);
	if (all)
		if_freenameindex(all);
}

/* Reads a line of /proc/net/igmp6: index, name, 32 hexadecimal digits. */
static bool parse_v6(const char *line, uint32_t *ifindex, uint8_t ip[16])
{
	char digits[33];

	if (sscanf(line, "%u %*s %32[0-9a-f]", ifindex, digits) != 2 ||
	    strlen(digits) != 32)
		return false;
	for (int i = 0; i < 16; i++)
		if (sscanf(digits + 2 * i, "%2hhx", &ip[i]) != 1)
			return false;
	return true;
}

/* Reads a line of /proc/net/igmp.  An indented line has the address of a group:
 * the kernel prints the four bytes of the address as one hexadecimal number in
 * this host's byte order.  Any other line, except the heading, begins with the
 * index of an interface. */
static bool parse_v4(const char *line, uint32_t *ifindex, uint8_t ip[16])
{
	uint32_t group;

	if (line[0] != '\t') {
		sscanf(line, "%u", ifindex);
		return false;
	}
	if (sscanf(line, " %x", &group) != 1)
		return false;
	memset(ip, 0, 10);
	memset(ip + 10, 0xff, 2);
	memcpy(ip + 12, &group, 4);
	return true;
}

/* Leaves the groups that a file of /proc lists.  These are the groups of all
 * sockets of the namespace, because the kernel does not report the groups of
 * one socket.  Returns whether the socket has left a group. */
static bool leave_listed(int fd, const char *path,
			 bool parse(const char *, uint32_t *, uint8_t[16]))
{
	FILE *f = fopen(path, "re");
	bool has_left = false;
	uint32_t ifindex = 0;
	char line[256];
	uint8_t ip[16];

	while (f && fgets(line, sizeof(line), f))
		if (parse(line, &ifindex, ip))
			has_left |= !change_member(fd, ip, ifindex, false);
	if (f)
		fclose(f);
	return has_left;
}

/* The kernel gives a long file in parts, and finds the beginning of the next
 * part by counting the groups in its list.  If groups have gone from the list
 * since the last part, the next part omits as many groups.  So each file is
 * read again until a reading removes the socket from no group. */
void member_leave_all(int fd)
{
	while (leave_listed(fd, "/proc/net/igmp", parse_v4))
		;
	while (leave_listed(fd, "/proc/net/igmp6", parse_v6))
		;
}
