/* SPDX-License-Identifier: BSD-2-Clause */
#include "hdr/tcp.h"

#include "hdr/bytes.h"

/* The kinds and lengths of options. */
enum {
	OPTION_NOP = 1,
	OPTION_SEGMENT_MAX = 2,
	OPTION_SCALE = 3,
	SEGMENT_MAX_BYTES = 4,
	SCALE_BYTES = 3,
};

static void put_options(uint8_t *p, const struct tcp *tcp)
{
	p[0] = OPTION_SEGMENT_MAX;
	p[1] = SEGMENT_MAX_BYTES;
	bytes_put16(p + 2, tcp->segment_max);
	p[4] = OPTION_NOP;
	p[5] = OPTION_SCALE;
	p[6] = SCALE_BYTES;
	p[7] = tcp->shift;
}

size_t tcp_write(uint8_t *p, const struct tcp *tcp)
{
	size_t bytes = tcp->flags & TCP_SYN ? TCP_SYN_BYTES : TCP_BYTES;

	bytes_put16(p, tcp->sport);
	bytes_put16(p + 2, tcp->dport);
	bytes_put32(p + 4, tcp->seq);
	bytes_put32(p + 8, tcp->ack);
	p[12] = (uint8_t)(bytes / 4 << 4);
	p[13] = tcp->flags;
	bytes_put16(p + 14, tcp->window);
	bytes_put16(p + 16, tcp->checksum);
	bytes_put16(p + 18, 0);
	if (tcp->flags & TCP_SYN)
		put_options(p + TCP_BYTES, tcp);
	return bytes;
}

/* Adds the rest of the pseudo header and the segment to `sum`, the sum of the
 * pseudo header's addresses.  Returns the checksum. */
static uint16_t sum_segment(uint64_t sum, const uint8_t *head,
			    size_t head_bytes, const uint8_t *payload,
			    size_t bytes)
{
	sum += IP_PROTOCOL_TCP + head_bytes + bytes;
	sum = ip_sum(sum, head, head_bytes);
	return ip_sum_fold(ip_sum(sum, payload, bytes));
}

uint16_t tcp_checksum_v4(const struct ip_v4 *ip, const uint8_t *head,
			 size_t head_bytes, const uint8_t *payload,
			 size_t bytes)
{
	return sum_segment((uint64_t)ip->src + ip->dst, head, head_bytes,
			   payload, bytes);
}

uint16_t tcp_checksum_v6(const struct ip_v6 *ip, const uint8_t *head,
			 size_t head_bytes, const uint8_t *payload,
			 size_t bytes)
{
	uint64_t sum = ip_sum(0, ip->src, sizeof(ip->src));

	return sum_segment(ip_sum(sum, ip->dst, sizeof(ip->dst)), head,
			   head_bytes, payload, bytes);
}
