/* SPDX-License-Identifier: BSD-2-Clause */
#include "ipoib/mgid.h"

#include <string.h>

#include "hdr/bytes.h"

#define FLAGS_TRANSIENT 0x1 /* RFC 4391, 4: the flag T is set */
#define SCOPE_LINK	0x2
#define SIGNATURE_IPV4	0x401b
#define SIGNATURE_IPV6	0x601b
#define IPV4_GROUP_BITS 0x0fffffffu

void mgid_broadcast(uint16_t pkey, uint8_t mgid[16])
{
	memset(mgid, 0, 16);
	mgid[0] = 0xff;
	mgid[1] = FLAGS_TRANSIENT << 4 | SCOPE_LINK;
	bytes_put16(mgid + 2, SIGNATURE_IPV4);
	bytes_put16(mgid + 4, pkey);
	bytes_put32(mgid + 12, 0xffffffff);
}

void mgid_ipv4(const uint8_t broadcast[16], uint32_t ip, uint8_t mgid[16])
{
	memcpy(mgid, broadcast, 6);
	memset(mgid + 6, 0, 6);
	bytes_put16(mgid + 2, SIGNATURE_IPV4);
	bytes_put32(mgid + 12, ip & IPV4_GROUP_BITS);
}

void mgid_ipv6(const uint8_t broadcast[16], const uint8_t ip[16],
	       uint8_t mgid[16])
{
	memcpy(mgid, broadcast, 6);
	bytes_put16(mgid + 2, SIGNATURE_IPV6);
	memcpy(mgid + 6, ip + 6, 10);
}

bool mgid_is_ipv4(uint32_t ip)
{
	return ip >> 28 == 0xe;
}
