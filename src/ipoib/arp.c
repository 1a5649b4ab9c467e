/* SPDX-License-Identifier: BSD-2-Clause */
#include "ipoib/arp.h"

#include <string.h>

#include "hdr/bytes.h"

#define TYPE_ETHERNET	1
#define TYPE_INFINIBAND 32
#define PROTOCOL_IPV4	0x0800
#define FIXED_BYTES	8
#define IP_BYTES	4

static bool parse_with(const uint8_t *p, size_t len, uint16_t type, uint8_t hw,
		       struct arp *arp)
{
	memset(arp, 0, sizeof(*arp));
	if (len < FIXED_BYTES + 2u * (hw + IP_BYTES) ||
	    bytes_get16(p) != type || bytes_get16(p + 2) != PROTOCOL_IPV4 ||
	    p[4] != hw || p[5] != IP_BYTES)
		return false;
	arp->operation = bytes_get16(p + 6);
	p += FIXED_BYTES;
	memcpy(arp->sender, p, hw);
	memcpy(arp->sender_ip, p + hw, IP_BYTES);
	p += hw + IP_BYTES;
	memcpy(arp->target, p, hw);
	memcpy(arp->target_ip, p + hw, IP_BYTES);
	return true;
}

static void write_with(uint8_t *p, const struct arp *arp, uint16_t type,
		       uint8_t hw)
{
	bytes_put16(p, type);
	bytes_put16(p + 2, PROTOCOL_IPV4);
	p[4] = hw;
	p[5] = IP_BYTES;
	bytes_put16(p + 6, arp->operation);
	p += FIXED_BYTES;
	memcpy(p, arp->sender, hw);
	memcpy(p + hw, arp->sender_ip, IP_BYTES);
	p += hw + IP_BYTES;
	memcpy(p, arp->target, hw);
	memcpy(p + hw, arp->target_ip, IP_BYTES);
}

bool arp_parse_mac(const uint8_t *p, size_t len, struct arp *arp)
{
	return parse_with(p, len, TYPE_ETHERNET, HWADDR_MAC_BYTES, arp);
}

bool arp_parse_hwaddr(const uint8_t *p, size_t len, struct arp *arp)
{
	return parse_with(p, len, TYPE_INFINIBAND, HWADDR_BYTES, arp);
}

void arp_write_mac(uint8_t *p, const struct arp *arp)
{
	write_with(p, arp, TYPE_ETHERNET, HWADDR_MAC_BYTES);
}

void arp_write_hwaddr(uint8_t *p, const struct arp *arp)
{
	write_with(p, arp, TYPE_INFINIBAND, HWADDR_BYTES);
}
