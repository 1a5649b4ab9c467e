/* SPDX-License-Identifier: BSD-2-Clause */
#include "ipoib/toobig.h"

#include <string.h>

#include "hdr/bytes.h"
#include "hdr/ip.h"

enum {
	HEADER_BYTES = 8, /* of ICMP */
	QUOTED_MAX = TOOBIG_MAX - IP_V6_BYTES - HEADER_BYTES,
	AT_CHECKSUM = 2,
	AT_MTU = 4,
	TTL = 64,
	ICMP = 1,
	ICMP_UNREACHABLE = 3,
	ICMP_FRAGMENTATION_NEEDED = 4,
	ICMPV6 = 58,
	ICMPV6_PACKET_TOO_BIG = 2,
	ICMPV6_FIRST_QUERY = 128, /* the types below are error messages */
	MULTICAST = 0xff,
};

/* From this address on: groups, reserved addresses, and last the broadcast
 * address. */
#define IPV4_FIRST_GROUP 0xe0000000u

/* May the packet be an error message of ICMP?  No error message tells of
 * another one (RFC 1122, 3.2.2). */
static bool is_icmp_error(const uint8_t *p, const struct ip_v4 *ip)
{
	/* echo and timestamp, and the replies to them, are no errors; a
	 * fragment other than the first has no type */
	return ip->protocol == ICMP &&
	       (ip->flags_fragment & IP_V4_FRAGMENT_MASK ||
		ip->total_length <= ip->header_bytes ||
		(p[ip->header_bytes] != 0 && p[ip->header_bytes] != 8 &&
		 p[ip->header_bytes] != 13 && p[ip->header_bytes] != 14));
}

static size_t write_ipv4(const uint8_t *p, size_t len, uint32_t mtu,
			 uint8_t *out)
{
	uint8_t *body = out + IP_V4_BYTES;
	size_t quoted = len < QUOTED_MAX ? len : QUOTED_MAX, bytes;
	struct ip_v4 ip, head = {.ttl = TTL, .protocol = ICMP};

	if (!ip_v4_parse(p, len, &ip) || is_icmp_error(p, &ip) || !ip.src ||
	    ip.dst >= IPV4_FIRST_GROUP)
		return 0;
	bytes = HEADER_BYTES + quoted;
	head.total_length = (uint16_t)(IP_V4_BYTES + bytes);
	head.src = ip.dst;
	head.dst = ip.src;
	ip_v4_write(out, &head);
	memset(body, 0, HEADER_BYTES);
	body[0] = ICMP_UNREACHABLE;
	body[1] = ICMP_FRAGMENTATION_NEEDED;
	bytes_put32(body + AT_MTU, mtu & 0xffff);
	memcpy(body + HEADER_BYTES, p, quoted);
	bytes_put16(body + AT_CHECKSUM, ip_sum_fold(ip_sum(0, body, bytes)));
	return IP_V4_BYTES + bytes;
}

static size_t write_ipv6(const uint8_t *p, size_t len, uint32_t mtu,
			 uint8_t *out)
{
	uint8_t *body = out + IP_V6_BYTES;
	size_t quoted = len < QUOTED_MAX ? len : QUOTED_MAX, bytes;
	struct ip_v6 ip, head = {.next_header = ICMPV6, .hop_limit = TTL};
	uint64_t sum;

	if (!ip_v6_parse(p, len, &ip) || ip.dst[0] == MULTICAST ||
	    (ip.next_header == ICMPV6 &&
	     (len == IP_V6_BYTES || p[IP_V6_BYTES] < ICMPV6_FIRST_QUERY)))
		return 0;
	bytes = HEADER_BYTES + quoted;
	head.payload_length = (uint16_t)bytes;
	memcpy(head.src, ip.dst, 16);
	memcpy(head.dst, ip.src, 16);
	ip_v6_write(out, &head);
	memset(body, 0, HEADER_BYTES);
	body[0] = ICMPV6_PACKET_TOO_BIG;
	bytes_put32(body + AT_MTU, mtu);
	memcpy(body + HEADER_BYTES, p, quoted);
	sum = ip_sum(ICMPV6 + bytes, out + 8, 32);
	bytes_put16(body + AT_CHECKSUM, ip_sum_fold(ip_sum(sum, body, bytes)));
	return IP_V6_BYTES + bytes;
}

size_t toobig_write(const uint8_t *p, size_t len, uint32_t mtu,
		    uint8_t out[TOOBIG_MAX])
{
	if (len && p[0] >> 4 == 4)
		return write_ipv4(p, len, mtu, out);
	if (len && p[0] >> 4 == 6)
		return write_ipv6(p, len, mtu, out);
	return 0;
}
