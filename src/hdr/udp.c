/* SPDX-License-Identifier: BSD-2-Clause */
#include "hdr/udp.h"

#include "hdr/bytes.h"

bool udp_parse(const uint8_t *p, size_t len, struct udp *udp)
{
	if (len < UDP_BYTES)
		return false;
	udp->sport = bytes_get16(p);
	udp->dport = bytes_get16(p + 2);
	udp->length = bytes_get16(p + 4);
	udp->checksum = bytes_get16(p + 6);
	return udp->length >= UDP_BYTES && udp->length <= len;
}

void udp_write(uint8_t *p, const struct udp *udp)
{
	bytes_put16(p, udp->sport);
	bytes_put16(p + 2, udp->dport);
	bytes_put16(p + 4, udp->length);
	bytes_put16(p + 6, udp->checksum);
}

/* Returns the checksum over the pseudo header and the datagram at p. */
static uint16_t sum_v4(const struct ip_v4 *ip, const uint8_t *p, size_t len)
{
	uint64_t sum = (uint64_t)ip->src + ip->dst + IP_PROTOCOL_UDP + len;

	return ip_sum_fold(ip_sum(sum, p, len));
}

static uint16_t sum_v6(const struct ip_v6 *ip, const uint8_t *p, size_t len)
{
	uint64_t sum = IP_PROTOCOL_UDP + len;

	sum = ip_sum(sum, ip->src, sizeof(ip->src));
	sum = ip_sum(sum, ip->dst, sizeof(ip->dst));
	return ip_sum_fold(ip_sum(sum, p, len));
}

/* A checksum field of 0 means that the datagram has no checksum.  So a sum of 0
 * is sent as 0xffff, which is the same number in one's complement (RFC 768). */
static uint16_t never_zero(uint16_t sum)
{
	return sum ? sum : 0xffff;
}

uint16_t udp_checksum_v4(const struct ip_v4 *ip, const uint8_t *p, size_t len)
{
	return never_zero(sum_v4(ip, p, len));
}

uint16_t udp_checksum_v6(const struct ip_v6 *ip, const uint8_t *p, size_t len)
{
	return never_zero(sum_v6(ip, p, len));
}

bool udp_checksum_v4_ok(const struct ip_v4 *ip, const uint8_t *p, size_t len)
{
	return bytes_get16(p + 6) == 0 || sum_v4(ip, p, len) == 0;
}

bool udp_checksum_v6_ok(const struct ip_v6 *ip, const uint8_t *p, size_t len)
{
	return bytes_get16(p + 6) == 0 || sum_v6(ip, p, len) == 0;
}
