/* SPDX-License-Identifier: BSD-2-Clause */
#include "ipoib/announce.h"

#include <string.h>

#include "hdr/bytes.h"
#include "hdr/ip.h"
#include "ipoib/arp.h"

enum {
	ETHERNET_BYTES = 14,
	AT_SOURCE = 6,
	AT_TYPE = 12,
	TYPE_ARP = 0x0806,
	TYPE_IPV6 = 0x86dd,
	ARP_REQUEST = 1,
	ICMPV6 = 58,
	HOP_LIMIT = 255,
	ADVERTISEMENT = 136,
	ADVERTISEMENT_BYTES = 24, /* without options */
	AT_CHECKSUM = 2,
	AT_FLAGS = 4,
	AT_TARGET = 8,
	OPTION_TARGET = 2,
	OPTION_BYTES = 8,
};

#define FLAG_OVERRIDE 0x20

/* When the addresses are announced, after the interface has come up.  RFC 5227
 * has two announcements 2 s apart, and RFC 4861 has three 1 s apart.  A subnet
 * manager may need longer than that for its switches. */
static const uint16_t times_ms[] = {0, 1000, 3000, 7000, 15000};
#define TIMES (sizeof(times_ms) / sizeof(times_ms[0]))

_Static_assert(ETHERNET_BYTES + IP_V6_BYTES + ADVERTISEMENT_BYTES +
			       OPTION_BYTES ==
		       ANNOUNCE_FRAME_MAX,
	       "the longest frame");

void announce_begin(struct announce *a, uint64_t now_ms)
{
	a->began_ms = now_ms;
	a->left = TIMES;
}

void announce_end(struct announce *a)
{
	a->left = 0;
}

uint64_t announce_deadline(const struct announce *a)
{
	if (!a->left || a->left > TIMES)
		return ANNOUNCE_NEVER;
	return a->began_ms + times_ms[TIMES - a->left];
}

bool announce_take(struct announce *a, uint64_t now_ms)
{
	bool is_due = false;

	for (; now_ms >= announce_deadline(a); a->left--)
		is_due = true;
	return is_due;
}

static size_t write_arp(const uint8_t *mac, const uint8_t *ip, uint8_t *frame)
{
	struct arp arp = {.operation = ARP_REQUEST};

	memcpy(arp.sender, mac, HWADDR_MAC_BYTES);
	memcpy(arp.sender_ip, ip, 4);
	memcpy(arp.target_ip, ip, 4);
	memset(frame, 0xff, HWADDR_MAC_BYTES);
	bytes_put16(frame + AT_TYPE, TYPE_ARP);
	arp_write_mac(frame + ETHERNET_BYTES, &arp);
	return ETHERNET_BYTES + ARP_MAC_BYTES;
}

/* Writes an advertisement to all nodes, with the checksum of RFC 4443, 2.3. */
static size_t write_ndisc(const uint8_t *mac, const uint8_t *ip, uint8_t *frame)
{
	struct ip_v6 head = {.payload_length =
				     ADVERTISEMENT_BYTES + OPTION_BYTES,
			     .next_header = ICMPV6,
			     .hop_limit = HOP_LIMIT,
			     .dst = {0xff, 0x02, [15] = 1}};
	uint8_t *p = frame + ETHERNET_BYTES, *body = p + IP_V6_BYTES;
	uint8_t *option = body + ADVERTISEMENT_BYTES;
	uint64_t sum = ICMPV6 + head.payload_length;

	memcpy(head.src, ip, 16);
	ip_v6_write(p, &head);
	body[0] = ADVERTISEMENT;
	body[AT_FLAGS] = FLAG_OVERRIDE;
	memcpy(body + AT_TARGET, ip, 16);
	option[0] = OPTION_TARGET;
	option[1] = OPTION_BYTES / 8;
	memcpy(option + 2, mac, HWADDR_MAC_BYTES);
	sum = ip_sum(ip_sum(sum, p + 8, 32), body, head.payload_length);
	bytes_put16(body + AT_CHECKSUM, ip_sum_fold(sum));
	bytes_put16(frame, 0x3333); /* RFC 2464, 7 */
	memcpy(frame + 2, head.dst + 12, 4);
	bytes_put16(frame + AT_TYPE, TYPE_IPV6);
	return ANNOUNCE_FRAME_MAX;
}

size_t announce_write(const uint8_t mac[HWADDR_MAC_BYTES],
		      const struct announce_address *address,
		      uint8_t frame[ANNOUNCE_FRAME_MAX])
{
	memset(frame, 0, ANNOUNCE_FRAME_MAX);
	memcpy(frame + AT_SOURCE, mac, HWADDR_MAC_BYTES);
	return address->is_v6 ? write_ndisc(mac, address->ip, frame)
			      : write_arp(mac, address->ip, frame);
}
