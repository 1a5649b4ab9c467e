/* SPDX-License-Identifier: BSD-2-Clause */
#include "host/capture.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "hdr/eth.h"
#include "hdr/udp.h"
#include "host/host.h"

#define BLOCK_SECTION	0x0a0d0d0au
#define BLOCK_INTERFACE 1u
#define BLOCK_PACKET	6u
#define LINK_ETHERNET	1
#define SNAP_BYTES	65535u
#define HEADERS_MAX	(ETH_BYTES + IP_V6_BYTES + UDP_BYTES)

static FILE *file; /* NULL: not capturing */

static void put(const void *p, size_t n)
{
	if (fwrite(p, 1, n, file) != n)
		clearerr(file); /* a full disk must not stop traffic */
}

/* A pcapng block: type, total length, body, padding, total length. */
static void block(uint32_t type, const void *head, size_t head_len,
		  const void *body, size_t body_len)
{
	static const uint8_t zero[4];
	size_t pad = -body_len & 3;
	uint32_t total = (uint32_t)(12 + head_len + body_len + pad);

	put(&type, 4);
	put(&total, 4);
	put(head, head_len);
	if (body_len)
		put(body, body_len);
	put(zero, pad);
	put(&total, 4);
}

static void start(void)
{
	const char *name = getenv("ADVERB_PCAP");
	struct {
		uint32_t magic;
		uint16_t major, minor;
		uint64_t length;
	} section = {0x1a2b3c4d, 1, 0, UINT64_MAX};
	struct {
		uint16_t link, reserved;
		uint32_t snap;
		uint16_t option, option_len; /* if_tsresol = 9: ns */
		uint8_t resolution[4];
		uint32_t end;
	} interface = {LINK_ETHERNET, 0, SNAP_BYTES, 9, 1, {9}, 0};

	if (!name || !*name)
		return;
	file = fopen(name, "wbe");
	if (!file) {
		host_say(0xca, "cannot write the capture %s: %s", name,
			 strerror(errno));
		return;
	}
	block(BLOCK_SECTION, &section, sizeof section, NULL, 0);
	block(BLOCK_INTERFACE, &interface, sizeof interface, NULL, 0);
	fflush(file);
}

static uint32_t be32(const uint8_t *p)
{
	return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 |
	       (uint32_t)p[2] << 8 | p[3];
}

/* Ethernet, IP, UDP around a datagram; returns their size in front of it. */
static size_t headers(uint8_t *p, const struct inaddr *from,
		      const struct inaddr *to, uint8_t tos, uint8_t ttl,
		      size_t len)
{
	bool v4 = inaddr_is_v4(to->ip);
	uint16_t udp_len = (uint16_t)(UDP_BYTES + len);
	struct eth eth = {.type = v4 ? ETH_TYPE_IPV4 : ETH_TYPE_IPV6};
	size_t at = ETH_BYTES;

	memcpy(eth.src, (uint8_t[]){2, 0}, 2);
	memcpy(eth.src + 2, from->ip + 12, 4);
	memcpy(eth.dst, (uint8_t[]){2, 0}, 2);
	memcpy(eth.dst + 2, to->ip + 12, 4);
	eth_write(p, &eth);
	if (v4) {
		struct ip_v4 ip = {
			.tos = tos,
			.total_length = (uint16_t)(IP_V4_BYTES + udp_len),
			.flags_fragment = IP_V4_DF,
			.ttl = ttl,
			.protocol = IP_PROTOCOL_UDP,
			.src = be32(from->ip + 12),
			.dst = be32(to->ip + 12),
		};

		ip_v4_write(p + at, &ip);
		at += IP_V4_BYTES;
	} else {
		struct ip_v6 ip = {.traffic_class = tos,
				   .payload_length = udp_len,
				   .next_header = IP_PROTOCOL_UDP,
				   .hop_limit = ttl};

		memcpy(ip.src, from->ip, 16);
		memcpy(ip.dst, to->ip, 16);
		ip_v6_write(p + at, &ip);
		at += IP_V6_BYTES;
	}
	udp_write(p + at, &(struct udp){.sport = from->port,
					.dport = to->port,
					.length = udp_len});
	return at + UDP_BYTES;
}

void capture_frame(const struct inaddr *from, const struct inaddr *to,
		   const uint8_t *bytes, size_t len, uint8_t tos, uint8_t ttl)
{
	uint8_t packet[HEADERS_MAX + 9000];
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	struct timespec now;
	uint64_t ns;
	size_t head;

	pthread_once(&once, start);
	if (!file || len > sizeof packet - HEADERS_MAX)
		return;
	clock_gettime(CLOCK_REALTIME, &now);
	ns = (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
	head = headers(packet, from, to, tos, ttl, len);
	memcpy(packet + head, bytes, len);
	uint32_t fields[5] = {0, (uint32_t)(ns >> 32), (uint32_t)ns,
			      (uint32_t)(head + len), (uint32_t)(head + len)};
	block(BLOCK_PACKET, fields, sizeof fields, packet, head + len);
	fflush(file);
}
