/* SPDX-License-Identifier: BSD-2-Clause */
#include "ipoib/ipoib.h"

#include <stdlib.h>
#include <string.h>

#include "hdr/bytes.h"
#include "hdr/ip.h"
#include "ipoib/arp.h"
#include "ipoib/inside.h"
#include "ipoib/member.h"
#include "ipoib/mgid.h"
#include "ipoib/ndisc.h"
#include "ipoib/report.h"
#include "ipoib/stream.h"
#include "ipoib/way.h"

enum {
	ETHERNET_BYTES = 14,
	AT_SOURCE = 6, /* in a header of Ethernet */
	AT_TYPE = 12,
	TYPE_IPV4 = 0x0800,
	TYPE_ARP = 0x0806,
	TYPE_IPV6 = 0x86dd,
	IPV4_IGMP = 2,
	IPV6_HOP_BY_HOP = 0, /* the extension header of MLD reports */
	MULTICAST = 0xff,    /* first byte of a group's GID or IPv6 address */
	ANNOUNCED = 64,	     /* the most addresses that are announced */
};

_Static_assert(ETHERNET_BYTES - IPOIB_HEADER_BYTES == IPOIB_HEADROOM,
	       "a packet becomes a frame in place");

static const uint8_t mac_broadcast[HWADDR_MAC_BYTES] = {0xff, 0xff, 0xff,
							0xff, 0xff, 0xff};
/* The source of frames whose sender is not known. */
static const uint8_t mac_unknown[HWADDR_MAC_BYTES] = {2};

/* The translation of a frame or a packet: its sender and the time. */
struct passage {
	struct ipoib *m;
	const struct ipoib_from *from; /* NULL: the kernel */
	uint64_t now_ms;
};

struct ipoib *ipoib_new(const struct ipoib_sink *sink, void *ctx, uint32_t qpn)
{
	struct ipoib *m = calloc(1, sizeof(*m));

	if (!m)
		return NULL;
	m->sink = sink;
	m->ctx = ctx;
	m->self.qpn = qpn;
	m->deadline_ms = IPOIB_NEVER;
	return m;
}

static void release_all(struct ipoib *m)
{
	stream_end(m);
	way_forget(m);
	for (uint32_t i = 0; i < GROUP_MAX; i++) {
		struct group *g = &m->groups.all[i];

		waiting_drop(&g->waiting);
		if (g->state != GROUP_FREE && g->route.handle)
			m->sink->release(m->ctx, &g->route);
	}
}

void ipoib_free(struct ipoib *m)
{
	if (!m)
		return;
	release_all(m);
	free(m);
}

static enum ipoib_reason why_down(const struct ipoib_port *p)
{
	if (!p->is_active || !p->lid)
		return IPOIB_REASON_PORT;
	if (!p->has_pkey)
		return IPOIB_REASON_PKEY;
	return p->sm_lid ? IPOIB_REASON_NONE : IPOIB_REASON_MANAGER;
}

static void take_down(struct ipoib *m)
{
	struct ipoib_link link = {.is_up = false};

	member_forget(m);
	way_renew(m);
	stream_end(m);
	announce_end(&m->announce);
	m->is_up = false;
	memcpy(link.mac, m->mac, HWADDR_MAC_BYTES);
	m->sink->link(m->ctx, &link);
}

static bool has_moved(const struct ipoib_port *a, const struct ipoib_port *b)
{
	return a->lid != b->lid || a->sm_lid != b->sm_lid;
}

/* Must the interface begin again, because its partition, its GID or the port's
 * MTU has changed? */
static bool is_other(const struct ipoib_port *a, const struct ipoib_port *b)
{
	return a->pkey != b->pkey || a->mtu != b->mtu ||
	       memcmp(a->gid, b->gid, 16) != 0;
}

void ipoib_port(struct ipoib *m, const struct ipoib_port *port, uint64_t now_ms)
{
	struct ipoib_port old = m->port;
	enum ipoib_reason why = why_down(port), before = why_down(&old);
	bool begins =
		!m->has_port || is_other(&old, port) ||
		(before == IPOIB_REASON_NONE) != (why == IPOIB_REASON_NONE);

	m->has_port = true;
	m->port = *port;
	memcpy(m->self.gid, port->gid, 16);
	hwaddr_mac(&m->self, m->mac);
	if (begins)
		take_down(m);
	/* the connections use the LID that the port had before */
	else if (old.lid != port->lid)
		stream_end(m);
	if (why != IPOIB_REASON_NONE) {
		report_down(m, why, 0);
		return;
	}
	if (begins)
		member_begin(m, now_ms);
	else if (has_moved(&old, port))
		ipoib_reregister(m, now_ms);
	m->deadline_ms = now_ms;
}

void ipoib_reregister(struct ipoib *m, uint64_t now_ms)
{
	member_renew(m);
	way_renew(m);
	m->deadline_ms = now_ms;
}

void ipoib_joined(struct ipoib *m, const struct joined *j, uint64_t now_ms)
{
	member_set_joined(m, j, now_ms);
	m->deadline_ms = now_ms;
}

/* Finds the address of IPoIB that a MAC stands for. */
static bool find_hwaddr(void *ctx, const uint8_t *from, uint8_t *to)
{
	const struct passage *p = ctx;
	struct neigh *n;

	if (!memcmp(from, p->m->mac, HWADDR_MAC_BYTES)) {
		hwaddr_write(to, &p->m->self);
		return true;
	}
	n = neigh_find(&p->m->neighs, from);
	if (n)
		hwaddr_write(to, &n->address);
	return n != NULL;
}

/* Learns an address of IPoIB, and gives it a MAC. */
static bool find_mac(void *ctx, const uint8_t *from, uint8_t *to)
{
	const struct passage *p = ctx;
	struct hwaddr a;
	const uint8_t *mac = NULL;

	if (hwaddr_parse(from, &a))
		mac = way_learn(p->m, &a, p->from, p->now_ms);
	if (mac)
		memcpy(to, mac, HWADDR_MAC_BYTES);
	return mac != NULL;
}

/* Finds the MGID to which a frame goes.  False: to none. */
static bool find_mgid(const struct ipoib *m, const uint8_t *frame, size_t bytes,
		      uint8_t mgid[16])
{
	const uint8_t *broadcast = m->groups.all[0].route.gid;
	const uint8_t *ip = frame + ETHERNET_BYTES;
	uint16_t type = bytes_get16(frame + AT_TYPE);
	size_t left = bytes - ETHERNET_BYTES;

	if (type == TYPE_IPV6) {
		if (left < IP_V6_BYTES || ip[24] != MULTICAST)
			return false;
		mgid_ipv6(broadcast, ip + 24, mgid);
	} else if (type == TYPE_IPV4 && left >= IP_V4_BYTES &&
		   mgid_is_ipv4(bytes_get32(ip + 16))) {
		mgid_ipv4(broadcast, bytes_get32(ip + 16), mgid);
	} else {
		memcpy(mgid, broadcast, 16);
	}
	return true;
}

/* Sends a packet to the destination of a frame. */
static void send_packet(struct ipoib *m, const uint8_t *frame, const uint8_t *p,
			size_t bytes, uint64_t now_ms)
{
	struct neigh *n = neigh_find(&m->neighs, frame);

	if (n)
		way_send(m, n, p, bytes, now_ms);
	else
		m->counters.unknown++;
}

/* Translates an ARP packet of the kernel to m->scratch.  Returns the length of
 * the result; 0: the packet is malformed, or its sender is not this interface.
 */
static size_t translate_arp(struct passage *t, const uint8_t *p, size_t bytes)
{
	uint8_t *out = t->m->scratch + IPOIB_HEADER_BYTES;
	uint8_t sender[HWADDR_BYTES], target[HWADDR_BYTES] = {0};
	struct arp arp;

	if (!arp_parse_mac(p, bytes, &arp) ||
	    memcmp(arp.sender, t->m->mac, HWADDR_MAC_BYTES) != 0)
		return 0;
	find_hwaddr(t, arp.sender, sender);
	/* the target of a request has no address yet */
	find_hwaddr(t, arp.target, target);
	memcpy(arp.sender, sender, HWADDR_BYTES);
	memcpy(arp.target, target, HWADDR_BYTES);
	arp_write_hwaddr(out, &arp);
	return ARP_HWADDR_BYTES;
}

/* May the frame be a report of IGMP or MLD, which tells that the kernel has
 * joined or left a group? */
static bool is_report(const uint8_t *frame, size_t bytes)
{
	const uint8_t *ip = frame + ETHERNET_BYTES;
	uint16_t type = bytes_get16(frame + AT_TYPE);

	return (type == TYPE_IPV4 && bytes >= ETHERNET_BYTES + IP_V4_BYTES &&
		ip[9] == IPV4_IGMP) ||
	       (type == TYPE_IPV6 && bytes >= ETHERNET_BYTES + IP_V6_BYTES &&
		ip[6] == IPV6_HOP_BY_HOP);
}

/*
 * Makes a packet of IPoIB from a frame: in the frame's place, or, if hardware
 * addresses are translated, in m->scratch.  Returns the packet and its length,
 * or NULL.
 */
static uint8_t *make_packet(struct passage *t, uint8_t *frame, size_t *bytes)
{
	const uint8_t *ip = frame + ETHERNET_BYTES;
	size_t left = *bytes - ETHERNET_BYTES, made = left;
	uint16_t type = bytes_get16(frame + AT_TYPE);
	uint8_t *out = frame + IPOIB_HEADROOM;
	struct ipoib *m = t->m;

	if (type == TYPE_ARP) {
		made = translate_arp(t, ip, left);
		out = m->scratch;
	} else if (type == TYPE_IPV6 && ndisc_is(ip, left)) {
		made = ndisc_translate(ip, left, NDISC_TO_HWADDR, find_hwaddr,
				       t, m->scratch + IPOIB_HEADER_BYTES,
				       (128u << m->mtu) - IPOIB_HEADER_BYTES);
		out = m->scratch;
	} else if (type != TYPE_IPV4 && type != TYPE_IPV6) {
		made = 0;
	}
	if (!made)
		return NULL;
	bytes_put16(out, type);
	bytes_put16(out + 2, 0);
	*bytes = made + IPOIB_HEADER_BYTES;
	return out;
}

/* Is this a frame that the interface can send? */
static bool is_frame(const struct ipoib *m, const uint8_t *p, size_t bytes)
{
	size_t most = m->connected_mtu ? m->connected_mtu + IPOIB_HEADER_BYTES
				       : 128u << m->mtu;

	return bytes > ETHERNET_BYTES && bytes - IPOIB_HEADROOM <= most &&
	       !memcmp(p + AT_SOURCE, m->mac, HWADDR_MAC_BYTES);
}

void ipoib_frame(struct ipoib *m, uint8_t *p, size_t bytes, uint64_t now_ms)
{
	struct passage t = {.m = m, .now_ms = now_ms};
	bool has_group = false;
	uint8_t mgid[16], *packet;

	if (!m->is_up || m->ends) {
		m->counters.down++;
		return;
	}
	if (!is_frame(m, p, bytes)) {
		m->counters.bad++;
		return;
	}
	if (is_report(p, bytes))
		m->sink->look(m->ctx);
	if (p[0] & 1)
		has_group = find_mgid(m, p, bytes, mgid);
	packet = make_packet(&t, p, &bytes);
	/* packets to groups go by UD in connected mode, too */
	if (!packet || (p[0] & 1 && !has_group) ||
	    (has_group && bytes > 128u << m->mtu)) {
		m->counters.bad++;
		return;
	}
	if (has_group)
		member_send(m, mgid, packet, bytes, now_ms);
	else
		send_packet(m, p, packet, bytes, now_ms);
}

/* Writes the header of a frame whose payload is at frame + ETHERNET_BYTES. */
static void write_header(const struct passage *t, uint8_t *frame, uint16_t type)
{
	const struct ipoib_from *from = t->from;
	const uint8_t *ip = frame + ETHERNET_BYTES, *source;
	struct hwaddr a = {.qpn = from->qpn};
	bool is_group = from->is_global && from->dgid[0] == MULTICAST;

	memcpy(frame, is_group ? mac_broadcast : t->m->mac, HWADDR_MAC_BYTES);
	if (is_group && type == TYPE_IPV6) {
		memset(frame, 0x33, 2);
		memcpy(frame + 2, ip + 36, 4); /* RFC 2464, 7 */
	} else if (is_group && type == TYPE_IPV4 &&
		   mgid_is_ipv4(bytes_get32(ip + 16))) {
		/* RFC 1112, 6.4 */
		bytes_put24(frame, 0x01005e);
		bytes_put24(frame + 3, bytes_get24(ip + 17) & 0x7fffff);
	}
	memcpy(a.gid, from->sgid, 16);
	source = neigh_source(&t->m->neighs, from->lid, from->qpn);
	if (from->is_global)
		hwaddr_mac(&a, frame + AT_SOURCE);
	else
		memcpy(frame + AT_SOURCE, source ? source : mac_unknown,
		       HWADDR_MAC_BYTES);
	bytes_put16(frame + AT_TYPE, type);
}

/* Translates an ARP packet of another host to m->scratch.  Returns the length
 * of the result; 0: the packet is malformed, or its sender gets no MAC
 * (way_learn). */
static size_t translate_arp_in(struct passage *t, const uint8_t *p,
			       size_t bytes)
{
	uint8_t *out = t->m->scratch + ETHERNET_BYTES;
	uint8_t mac[HWADDR_MAC_BYTES];
	struct hwaddr target;
	struct arp arp;

	if (!arp_parse_hwaddr(p, bytes, &arp) || !find_mac(t, arp.sender, mac))
		return 0;
	memcpy(arp.sender, mac, HWADDR_MAC_BYTES);
	if (hwaddr_parse(arp.target, &target))
		hwaddr_mac(&target, arp.target);
	else
		memset(arp.target, 0, HWADDR_MAC_BYTES);
	arp_write_mac(out, &arp);
	return ARP_MAC_BYTES;
}

/* Makes a frame from a packet, the reverse of make_packet: in the packet's
 * place, or in m->scratch.  Returns the frame and its length, or NULL. */
static uint8_t *make_frame(struct passage *t, uint8_t *p, size_t *bytes)
{
	const uint8_t *ip = p + IPOIB_HEADER_BYTES;
	size_t left = *bytes - IPOIB_HEADER_BYTES, made = left;
	uint16_t type = bytes_get16(p);
	uint8_t *frame = p - IPOIB_HEADROOM;
	struct ipoib *m = t->m;

	if (type == TYPE_ARP) {
		made = translate_arp_in(t, ip, left);
		frame = m->scratch;
	} else if (type == TYPE_IPV6 && left < IP_V6_BYTES) {
		made = 0;
	} else if (type == TYPE_IPV6 && ndisc_is(ip, left)) {
		made = ndisc_translate(ip, left, NDISC_TO_MAC, find_mac, t,
				       m->scratch + ETHERNET_BYTES,
				       IPOIB_PACKET_MAX - IPOIB_HEADER_BYTES);
		frame = m->scratch;
	} else if ((type == TYPE_IPV4 && left < IP_V4_BYTES) ||
		   (type != TYPE_IPV4 && type != TYPE_IPV6)) {
		made = 0;
	}
	if (!made)
		return NULL;
	write_header(t, frame, type);
	*bytes = made + ETHERNET_BYTES;
	return frame;
}

/* Has this interface sent the packet?  A packet to a group may come back to its
 * sender, even after the sender's LID has changed. */
static bool is_own(const struct ipoib *m, const struct ipoib_from *from)
{
	if (from->qpn != m->self.qpn)
		return false;
	return from->lid == m->port.lid ||
	       (from->is_global && !memcmp(from->sgid, m->self.gid, 16));
}

void ipoib_packet(struct ipoib *m, const struct ipoib_from *from, uint8_t *p,
		  size_t bytes, uint64_t now_ms)
{
	struct passage t = {.m = m, .from = from, .now_ms = now_ms};
	uint8_t *frame = NULL;

	if (!m->is_up) {
		m->counters.down++;
		return;
	}
	if (is_own(m, from))
		return;
	if (bytes > IPOIB_HEADER_BYTES &&
	    bytes <= (m->connected_mtu ? IPOIB_STREAM_MAX : IPOIB_PACKET_MAX))
		frame = make_frame(&t, p, &bytes);
	if (frame)
		m->sink->frame(m->ctx, frame, bytes);
	else
		m->counters.bad++;
}

void ipoib_answer(struct ipoib *m, const uint8_t *mad, size_t bytes,
		  uint64_t now_ms)
{
	struct sa_answer answer;

	if (!sa_read(mad, bytes, &answer) || !answer.id)
		return;
	if (!member_answer(m, &answer, now_ms))
		way_answer(m, &answer, now_ms);
	m->deadline_ms = now_ms;
}

bool ipoib_leave(struct ipoib *m, uint64_t now_ms)
{
	m->ends = true;
	announce_end(&m->announce);
	ipoib_turn(m, now_ms);
	return member_has_left(m);
}

/* Announces the addresses of the interface.  The kernel announces IPv4
 * addresses (arp_notify) only before there is a carrier, so its announcements
 * are lost.  It announces IPv6 addresses only once. */
static void announce_all(struct ipoib *m, uint64_t now_ms)
{
	struct announce_address all[ANNOUNCED];
	uint32_t count = m->sink->addresses(m->ctx, all, ANNOUNCED);
	uint8_t frame[ANNOUNCE_FRAME_MAX];

	for (uint32_t i = 0; i < count; i++)
		ipoib_frame(m, frame, announce_write(m->mac, &all[i], frame),
			    now_ms);
}

void ipoib_turn(struct ipoib *m, uint64_t now_ms)
{
	uint64_t member, way, announce, stream;

	if (why_down(&m->port) != IPOIB_REASON_NONE) {
		m->deadline_ms = IPOIB_NEVER;
		return;
	}
	if (announce_take(&m->announce, now_ms))
		announce_all(m, now_ms);
	member = member_turn(m, now_ms);
	way = m->is_up ? way_turn(m, now_ms) : IPOIB_NEVER;
	announce = announce_deadline(&m->announce);
	stream = stream_turn(m, now_ms);
	m->deadline_ms = member < way ? member : way;
	if (announce < m->deadline_ms)
		m->deadline_ms = announce;
	if (stream < m->deadline_ms)
		m->deadline_ms = stream;
}

uint64_t ipoib_deadline(const struct ipoib *m)
{
	return m->deadline_ms;
}

const struct ipoib_counters *ipoib_counters(const struct ipoib *m)
{
	return &m->counters;
}
