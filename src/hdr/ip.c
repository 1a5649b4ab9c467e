/* SPDX-License-Identifier: BSD-2-Clause */
#include "hdr/ip.h"

#include <string.h>

#include "hdr/bytes.h"

uint64_t ip_sum(uint64_t sum, const void *data, size_t bytes)
{
	const uint8_t *p = data;

	/* Words of 32 bits give the same checksum as words of 16 bits, because
	 * 2^16 is 1 modulo 65535. */
	for (; bytes >= 4; bytes -= 4, p += 4)
		sum += bytes_get32(p);
	if (bytes >= 2) {
		sum += bytes_get16(p);
		bytes -= 2;
		p += 2;
	}
	if (bytes > 0)
		sum += (uint64_t)p[0] << 8;
	return sum;
}

uint16_t ip_sum_fold(uint64_t sum)
{
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return (uint16_t)~sum;
}

bool ip_v4_parse(const uint8_t *p, size_t len, struct ip_v4 *ip)
{
	if (len < IP_V4_BYTES || p[0] >> 4 != 4)
		return false;
	ip->header_bytes = (uint8_t)((p[0] & 0xf) * 4);
	ip->tos = p[1];
	ip->total_length = bytes_get16(p + 2);
	ip->id = bytes_get16(p + 4);
	ip->flags_fragment = bytes_get16(p + 6);
	ip->ttl = p[8];
	ip->protocol = p[9];
	ip->checksum = bytes_get16(p + 10);
	ip->src = bytes_get32(p + 12);
	ip->dst = bytes_get32(p + 16);
	return ip->header_bytes >= IP_V4_BYTES &&
	       ip->header_bytes <= ip->total_length && ip->total_length <= len;
}

void ip_v4_write(uint8_t *p, const struct ip_v4 *ip)
{
	p[0] = 0x45;
	p[1] = ip->tos;
	bytes_put16(p + 2, ip->total_length);
	bytes_put16(p + 4, ip->id);
	bytes_put16(p + 6, ip->flags_fragment);
	p[8] = ip->ttl;
	p[9] = ip->protocol;
	bytes_put16(p + 10, 0);
	bytes_put32(p + 12, ip->src);
	bytes_put32(p + 16, ip->dst);
	bytes_put16(p + 10, ip_sum_fold(ip_sum(0, p, IP_V4_BYTES)));
}

bool ip_v4_checksum_ok(const uint8_t *p, const struct ip_v4 *ip)
{
	return ip_sum_fold(ip_sum(0, p, ip->header_bytes)) == 0;
}

bool ip_v6_parse(const uint8_t *p, size_t len, struct ip_v6 *ip)
{
	if (len < IP_V6_BYTES || p[0] >> 4 != 6)
		return false;
	ip->traffic_class = (uint8_t)(bytes_get16(p) >> 4);
	ip->flow_label = bytes_get32(p) & 0xfffff;
	ip->payload_length = bytes_get16(p + 4);
	ip->next_header = p[6];
	ip->hop_limit = p[7];
	memcpy(ip->src, p + 8, 16);
	memcpy(ip->dst, p + 24, 16);
	return ip->payload_length <= len - IP_V6_BYTES;
}

void ip_v6_write(uint8_t *p, const struct ip_v6 *ip)
{
	bytes_put32(p, 6u << 28 | (uint32_t)ip->traffic_class << 20 |
			       (ip->flow_label & 0xfffff));
	bytes_put16(p + 4, ip->payload_length);
	p[6] = ip->next_header;
	p[7] = ip->hop_limit;
	memcpy(p + 8, ip->src, 16);
	memcpy(p + 24, ip->dst, 16);
}
