/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The GID of a multicast group of IP, made from the broadcast group of the
 * interface as IPoIB makes it (RFC 4391, 4).  As with the kernel's rdma_cm, a
 * group of RDMA_PS_IPOIB is the group that IP uses at the interface, with IP's
 * Q_Key.  A group of another port space has another signature in its GID, and
 * the Q_Key RDMA_UDP_QKEY, so that datagrams of IP and of rdma_cm do not mix.
 * (For RDMA_PS_IB the kernel's rdma_cm differs: it asks for IP's group with the
 * Q_Key RDMA_UDP_QKEY, and the subnet administration refuses this join once IP
 * is a member.)
 */
#include "rdmacm/ib.h"

#include <endian.h>
#include <string.h>

#include "ipoib/mgid.h"
#include "util/inaddr.h"

#define PKEY_DEFAULT 0xffff
#define AT_SIGNATURE 3	  /* in a GID: the second byte of the signature */
#define SIGNATURE_CM 0x01 /* 0x4001 and 0x6001, where IPoIB has 0x1b */

uint16_t r_ib_pkey(const struct r_id *id)
{
	uint16_t pkey = be16toh(id->base.route.addr.addr.ibaddr.pkey);

	return pkey ? pkey : PKEY_DEFAULT;
}

/* Returns whether the address has the form of a GID that a subnet
 * administration has chosen for a group.  Such an address is itself the GID, as
 * for the kernel's rdma_cm. */
static bool is_chosen_gid(const uint8_t ip[16])
{
	return ip[0] == 0xff && (ip[1] & 0xf0) == 0x10 && ip[2] == 0xa0 &&
	       ip[3] == 0x1b;
}

void r_ib_group_gid(const struct r_id *id, const struct sockaddr *group,
		    uint8_t gid[16])
{
	uint8_t broadcast[16], ip[16];
	uint32_t four;

	r_addr_ip(group, ip);
	memcpy(&four, ip + 12, sizeof(four));
	mgid_broadcast(r_ib_pkey(id), broadcast);
	if (inaddr_is_v4(ip))
		mgid_ipv4(broadcast, be32toh(four), gid);
	else
		mgid_ipv6(broadcast, ip, gid);
}

void r_ib_choose_gid(const struct r_id *id, const struct sockaddr *group,
		     uint8_t gid[16])
{
	r_addr_ip(group, gid);
	if (r_addr_is_any(group)) {
		memset(gid, 0, 16);
		return;
	}
	if (r_addr_is_ib(group) ||
	    (group->sa_family == AF_INET6 && is_chosen_gid(gid)))
		return;
	r_ib_group_gid(id, group, gid);
	if (id->base.ps != RDMA_PS_IPOIB)
		gid[AT_SIGNATURE] = SIGNATURE_CM;
}

bool r_ib_is_of_ip(const struct r_id *id, const struct sockaddr *group)
{
	uint8_t ip[16];

	r_addr_ip(group, ip);
	return id->base.ps == RDMA_PS_IPOIB && !r_addr_is_ib(group) &&
	       r_addr_is_multicast(group) && !is_chosen_gid(ip);
}
