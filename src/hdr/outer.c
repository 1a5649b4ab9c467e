/* SPDX-License-Identifier: BSD-2-Clause */
#include "hdr/outer.h"

#include <string.h>

#include "hdr/bytes.h"

/* The header between those of Ethernet and of UDP or TCP. */
struct ip_header {
	bool is_v4;
	struct ip_v4 v4; /* if is_v4 */
	struct ip_v6 v6; /* if not is_v4 */
};

/* Fills in the header of a packet whose payload has `bytes` bytes. */
static void fill_ip(struct ip_header *ip, const struct outer *o,
		    uint8_t protocol, size_t bytes)
{
	ip->is_v4 = inaddr_is_v4(o->from->ip);
	ip->v4 = (struct ip_v4){
		.header_bytes = IP_V4_BYTES,
		.tos = o->tos,
		.total_length = (uint16_t)(IP_V4_BYTES + bytes),
		.id = o->id,
		.flags_fragment = IP_V4_DF,
		.ttl = o->ttl,
		.protocol = protocol,
		.src = bytes_get32(o->from->ip + 12),
		.dst = bytes_get32(o->to->ip + 12),
	};
	ip->v6 = (struct ip_v6){
		.traffic_class = o->tos,
		.payload_length = (uint16_t)bytes,
		.next_header = protocol,
		.hop_limit = o->ttl,
	};
	memcpy(ip->v6.src, o->from->ip, 16);
	memcpy(ip->v6.dst, o->to->ip, 16);
}

/* Writes the headers of Ethernet and IP, and returns their length. */
static size_t put_ip(uint8_t *p, const struct outer *o,
		     const struct ip_header *ip)
{
	struct eth eth = {.type = ip->is_v4 ? ETH_TYPE_IPV4 : ETH_TYPE_IPV6};

	memcpy(eth.src, o->from_mac, sizeof(eth.src));
	memcpy(eth.dst, o->to_mac, sizeof(eth.dst));
	eth_write(p, &eth);
	if (ip->is_v4) {
		ip_v4_write(p + ETH_BYTES, &ip->v4);
		return ETH_BYTES + IP_V4_BYTES;
	}
	ip_v6_write(p + ETH_BYTES, &ip->v6);
	return ETH_BYTES + IP_V6_BYTES;
}

size_t outer_write_ip(uint8_t *p, const struct outer *o, uint8_t protocol,
		      size_t bytes)
{
	struct ip_header ip;

	fill_ip(&ip, o, protocol, bytes);
	return put_ip(p, o, &ip);
}

size_t outer_write_udp(uint8_t *p, const struct outer *o, const uint8_t *bytes,
		       size_t n)
{
	struct udp udp = {
		.sport = o->from->port,
		.dport = o->to->port,
		.length = (uint16_t)(UDP_BYTES + n),
	};
	struct ip_header ip;
	uint8_t *u;

	fill_ip(&ip, o, IP_PROTOCOL_UDP, udp.length);
	u = p + put_ip(p, o, &ip);
	udp_write(u, &udp);
	memcpy(u + UDP_BYTES, bytes, n);
	udp.checksum = ip.is_v4 ? udp_checksum_v4(&ip.v4, u, udp.length)
				: udp_checksum_v6(&ip.v6, u, udp.length);
	udp_write(u, &udp);
	return (size_t)(u - p) + udp.length;
}

size_t outer_write_tcp(uint8_t *p, const struct outer *o, const struct tcp *tcp,
		       const uint8_t *bytes, size_t n)
{
	struct tcp done = *tcp;
	struct ip_header ip;
	uint8_t head[TCP_SYN_BYTES];
	size_t head_bytes, before;

	done.sport = o->from->port;
	done.dport = o->to->port;
	done.checksum = 0;
	head_bytes = tcp_write(head, &done);
	fill_ip(&ip, o, IP_PROTOCOL_TCP, head_bytes + n);
	done.checksum =
		ip.is_v4 ? tcp_checksum_v4(&ip.v4, head, head_bytes, bytes, n)
			 : tcp_checksum_v6(&ip.v6, head, head_bytes, bytes, n);
	before = put_ip(p, o, &ip);
	tcp_write(p + before, &done);
	return before + head_bytes;
}
