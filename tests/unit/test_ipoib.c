/* SPDX-License-Identifier: BSD-2-Clause */
/* ipoib/ipoib: one interface, whose kernel, queue pair and subnet
 * administration the test plays. */
#include "test.h"

#include "hdr/bytes.h"
#include "hdr/ip.h"
#include "hdr/sa.h"
#include "ipoib/arp.h"
#include "ipoib/inside.h"
#include "ipoib/mgid.h"
#include "sa_answer.h"
#include "util/rng.h"

enum {
	ETHERNET = 14,
	TYPE_IPV4 = 0x0800,
	TYPE_ARP = 0x0806,
	TYPE_IPV6 = 0x86dd,
	QPN = 0x123,
	PEER = 0x456,
	LID = 4,
	PEER_LID = 5,
	MTU = 2044,
	QKEY = 0xb1b,
};

/* What the interface has done last, and how often. */
struct seen {
	struct ipoib *m;
	uint8_t frame[IPOIB_FRAME_MAX], packet[IPOIB_PACKET_MAX];
	size_t frame_bytes, packet_bytes;
	uint32_t frames, packets, questions, sentences, looks, handles;
	uint32_t attachments;
	bool is_full; /* no attachment succeeds */
	struct announce_address addresses[4];
	uint32_t address_count;
	uint8_t mad[MAD_BYTES];
	struct route route;
	struct ipoib_link link;
	char text[600];
};

static const uint8_t gid[16] = {0xfe, 0x80, [15] = 1};
static const struct hwaddr peer = {.qpn = PEER, .gid = {0xfe, 0x80, [15] = 2}};
static const struct ipoib_from from_peer = {.qpn = PEER, .lid = PEER_LID};

static void take_frame(void *ctx, const uint8_t *p, size_t bytes)
{
	struct seen *s = ctx;

	assert_uint_in_range(bytes, ETHERNET + 1, IPOIB_FRAME_MAX);
	memcpy(s->frame, p, bytes);
	s->frame_bytes = bytes;
	s->frames++;
}

static void take_packet(void *ctx, struct route *r, const uint8_t *p,
			size_t bytes)
{
	struct seen *s = ctx;

	assert_uint_in_range(bytes, IPOIB_HEADER_BYTES + 1,
			     MTU + IPOIB_HEADER_BYTES);
	assert_true(r->lid);
	memcpy(s->packet, p, bytes);
	s->packet_bytes = bytes;
	s->route = *r;
	s->packets++;
	if (!r->handle)
		s->handles++;
	r->handle = s;
}

static void take_release(void *ctx, struct route *r)
{
	struct seen *s = ctx;

	assert_ptr_equal(r->handle, s);
	s->handles--;
}

static void take_question(void *ctx, const uint8_t mad[MAD_BYTES])
{
	struct seen *s = ctx;

	memcpy(s->mad, mad, MAD_BYTES);
	s->questions++;
}

static bool take_attach(void *ctx, const uint8_t mgid[16], bool attaches)
{
	struct seen *s = ctx;

	assert_int_equal(mgid[0], 0xff);
	s->attachments += attaches && !s->is_full;
	return !attaches || !s->is_full;
}

static void take_link(void *ctx, const struct ipoib_link *link)
{
	((struct seen *)ctx)->link = *link;
}

static void take_look(void *ctx)
{
	((struct seen *)ctx)->looks++;
}

static uint32_t take_addresses(void *ctx, struct announce_address *all,
			       uint32_t room)
{
	struct seen *s = ctx;
	uint32_t count = s->address_count;

	assert_true(count <= room);
	memcpy(all, s->addresses, count * sizeof(*all));
	return count;
}

static void take_sentence(void *ctx, const char *text)
{
	struct seen *s = ctx;

	snprintf(s->text, sizeof(s->text), "%s", text);
	s->sentences++;
}

static const struct ipoib_sink sink = {
	.frame = take_frame,
	.packet = take_packet,
	.release = take_release,
	.ask = take_question,
	.attach = take_attach,
	.link = take_link,
	.look = take_look,
	.addresses = take_addresses,
	.say = take_sentence,
};

static struct ipoib_port good_port(void)
{
	struct ipoib_port port = {.is_active = true,
				  .has_pkey = true,
				  .pkey = 0xffff,
				  .lid = LID,
				  .sm_lid = 1,
				  .mtu = 5};

	memcpy(port.gid, gid, sizeof(gid));
	return port;
}

/* Answers the last question with success. */
static void answer_last(struct seen *s, uint64_t now_ms)
{
	if (sa_asks_path(s->mad))
		sa_answer_path(s->mad, PEER_LID, LID, 4);
	else if (!sa_asks_leave(s->mad))
		sa_answer_group(s->mad, 0xc001, QKEY, 4);
	sa_answer(s->mad, 0);
	ipoib_answer(s->m, s->mad, MAD_BYTES, now_ms);
}

static void refuse_last(struct seen *s, uint16_t status, uint64_t now_ms)
{
	sa_answer(s->mad, status);
	ipoib_answer(s->m, s->mad, MAD_BYTES, now_ms);
}

static int set_up(void **state)
{
	struct seen *s = calloc(1, sizeof(*s));
	struct ipoib_port port = good_port();

	assert_non_null(s);
	s->m = ipoib_new(&sink, s, QPN);
	assert_non_null(s->m);
	ipoib_port(s->m, &port, 0);
	ipoib_turn(s->m, 0);
	answer_last(s, 0);
	assert_true(s->link.is_up);
	assert_int_equal(s->link.mtu, MTU);
	assert_int_equal(s->link.broadcast.qkey, QKEY);
	*state = s;
	return 0;
}

static int tear_down(void **state)
{
	struct seen *s = *state;

	ipoib_free(s->m);
	assert_int_equal(s->handles, 0);
	free(s);
	return 0;
}

/* Sends a frame of the kernel, from a block of its exact length. */
static void send_frame(struct seen *s, const uint8_t *to, uint16_t type,
		       const uint8_t *payload, size_t bytes, uint64_t now_ms)
{
	uint8_t *p = malloc(ETHERNET + bytes);

	assert_non_null(p);
	memcpy(p, to, 6);
	memcpy(p + 6, s->link.mac, 6);
	bytes_put16(p + 12, type);
	memcpy(p + ETHERNET, payload, bytes);
	ipoib_frame(s->m, p, ETHERNET + bytes, now_ms);
	free(p);
}

/* Receives a packet, which lies behind the headroom in a block of its exact
 * length. */
static void receive_packet_at(struct seen *s, const struct ipoib_from *from,
			      uint16_t type, const uint8_t *payload,
			      size_t bytes, uint64_t now_ms)
{
	size_t head = IPOIB_HEADROOM + IPOIB_HEADER_BYTES;
	uint8_t *p = calloc(1, head + bytes);

	assert_non_null(p);
	bytes_put16(p + IPOIB_HEADROOM, type);
	memcpy(p + head, payload, bytes);
	ipoib_packet(s->m, from, p + IPOIB_HEADROOM, IPOIB_HEADER_BYTES + bytes,
		     now_ms);
	free(p);
}

static void receive_packet(struct seen *s, const struct ipoib_from *from,
			   uint16_t type, const uint8_t *payload, size_t bytes)
{
	receive_packet_at(s, from, type, payload, bytes, 0);
}

static void write_datagram(uint8_t *p, uint32_t dst, uint16_t bytes)
{
	struct ip_v4 ip = {.total_length = bytes,
			   .ttl = 1,
			   .protocol = 17,
			   .src = 0x0a000001,
			   .dst = dst};

	memset(p, 0x77, bytes);
	ip_v4_write(p, &ip);
}

/* The peer asks for this host by ARP. */
static void learn_peer(struct seen *s, uint8_t mac[6])
{
	uint8_t p[ARP_HWADDR_BYTES];
	struct arp arp = {.operation = 1,
			  .sender_ip = {10, 0, 0, 2},
			  .target_ip = {10, 0, 0, 1}};

	hwaddr_write(arp.sender, &peer);
	arp_write_hwaddr(p, &arp);
	receive_packet(s, &from_peer, TYPE_ARP, p, sizeof(p));
	hwaddr_mac(&peer, mac);
}

static void an_arp_request_makes_a_neighbour(void **state)
{
	struct seen *s = *state;
	uint8_t mac[6], datagram[100];
	struct arp arp;

	learn_peer(s, mac);
	assert_int_equal(s->frame_bytes, ETHERNET + ARP_MAC_BYTES);
	assert_memory_equal(s->frame, s->link.mac, 6);
	assert_memory_equal(s->frame + 6, mac, 6);
	assert_true(arp_parse_mac(s->frame + ETHERNET, ARP_MAC_BYTES, &arp));
	assert_memory_equal(arp.sender, mac, 6);
	write_datagram(datagram, 0x0a000002, sizeof(datagram));
	for (int i = 0; i < WAITING_MAX + 2; i++)
		send_frame(s, mac, TYPE_IPV4, datagram, sizeof(datagram), 0);
	assert_int_equal(s->packets, 0);
	ipoib_turn(s->m, 0);
	answer_last(s, 1);
	/* only the last few have waited */
	assert_int_equal(s->packets, WAITING_MAX);
	assert_int_equal(ipoib_counters(s->m)->waited, 2);
	assert_int_equal(s->route.lid, PEER_LID);
	assert_int_equal(s->route.qpn, PEER);
	assert_int_equal(s->packet_bytes,
			 IPOIB_HEADER_BYTES + sizeof(datagram));
	assert_int_equal(bytes_get32(s->packet), TYPE_IPV4 << 16);
	assert_memory_equal(s->packet + 4, datagram, sizeof(datagram));
}

static void an_arp_reply_has_the_addresses_of_both(void **state)
{
	struct seen *s = *state;
	uint8_t p[ARP_MAC_BYTES], mac[6];
	struct arp arp = {.operation = 2};
	struct hwaddr a;

	learn_peer(s, mac);
	memcpy(arp.sender, s->link.mac, 6);
	memcpy(arp.target, mac, 6);
	arp_write_mac(p, &arp);
	send_frame(s, mac, TYPE_ARP, p, sizeof(p), 0);
	ipoib_turn(s->m, 0);
	answer_last(s, 1);
	assert_int_equal(s->packets, 1);
	assert_true(arp_parse_hwaddr(s->packet + 4, ARP_HWADDR_BYTES, &arp));
	assert_true(hwaddr_parse(arp.target, &a) && hwaddr_is_equal(&a, &peer));
	assert_true(hwaddr_parse(arp.sender, &a));
	assert_int_equal(a.qpn, QPN);
	assert_memory_equal(a.gid, gid, 16);
}

static void frames_that_cannot_be_sent_are_dropped(void **state)
{
	static const uint8_t all[6] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff};
	static const uint8_t nobody[6] = {2, 1, 2, 3, 4, 5};
	struct seen *s = *state;
	uint8_t payload[MTU + 1] = {0x45};

	send_frame(s, all, TYPE_IPV4, payload, MTU, 0);
	assert_int_equal(s->packets, 1);
	send_frame(s, all, TYPE_IPV4, payload, MTU + 1, 0);
	send_frame(s, all, 0x8100, payload, 60, 0); /* a VLAN */
	send_frame(s, nobody, TYPE_IPV4, payload, 60, 0);
	s->link.mac[5] ^= 1; /* from another interface, as through a bridge */
	send_frame(s, all, TYPE_IPV4, payload, 60, 0);
	assert_int_equal(s->packets, 1);
	assert_int_equal(ipoib_counters(s->m)->bad, 3);
	assert_int_equal(ipoib_counters(s->m)->unknown, 1);
}

static void own_packets_do_not_come_back(void **state)
{
	const struct ipoib_from self = {.qpn = QPN, .lid = LID};
	struct seen *s = *state;
	uint8_t datagram[60];

	write_datagram(datagram, 0x0a0000ff, sizeof(datagram));
	receive_packet(s, &self, TYPE_IPV4, datagram, sizeof(datagram));
	assert_int_equal(s->frames, 0);
	receive_packet(s, &from_peer, TYPE_IPV4, datagram, sizeof(datagram));
	assert_int_equal(s->frames, 1);
	assert_memory_equal(s->frame + ETHERNET, datagram, sizeof(datagram));
}

static void a_packet_to_a_group_has_the_mac_of_the_group(void **state)
{
	static const uint8_t v4[6] = {1, 0, 0x5e, 0x01, 2, 3};
	static const uint8_t v6[6] = {0x33, 0x33, 1, 2, 3, 4};
	const struct ipoib_from from = {.qpn = PEER,
					.lid = PEER_LID,
					.is_global = true,
					.sgid = {0xfe, 0x80, [15] = 2},
					.dgid = {0xff}};
	struct seen *s = *state;
	uint8_t p[60], mac[6];
	struct ip_v6 ip = {.next_header = 17,
			   .dst = {0xff, 2, [12] = 1, 2, 3, 4}};

	hwaddr_mac(&peer, mac);
	write_datagram(p, 0xef810203, sizeof(p));
	receive_packet(s, &from, TYPE_IPV4, p, sizeof(p));
	assert_memory_equal(s->frame, v4, 6);
	assert_memory_equal(s->frame + 6, mac, 6);
	ip_v6_write(p, &ip);
	receive_packet(s, &from, TYPE_IPV6, p, sizeof(p));
	assert_memory_equal(s->frame, v6, 6);
	write_datagram(p, 0x0a0000ff, sizeof(p));
	receive_packet(s, &from, TYPE_IPV4, p, sizeof(p));
	assert_int_equal(s->frame[0], 0xff);
}

static void reports_of_membership_let_the_caller_look(void **state)
{
	static const uint8_t group[6] = {1, 0, 0x5e, 0, 0, 22};
	static const uint8_t group6[6] = {0x33, 0x33, 0, 0, 0, 22};
	struct seen *s = *state;
	uint8_t p[60];
	struct ip_v6 ip = {.next_header = 0, .dst = {0xff, 2, [15] = 22}};

	write_datagram(p, 0xe0000016, sizeof(p));
	send_frame(s, group, TYPE_IPV4, p, sizeof(p), 0);
	assert_int_equal(s->looks, 0);
	p[9] = 2;
	send_frame(s, group, TYPE_IPV4, p, sizeof(p), 0);
	assert_int_equal(s->looks, 1);
	ip_v6_write(p, &ip);
	send_frame(s, group6, TYPE_IPV6, p, sizeof(p), 0);
	assert_int_equal(s->looks, 2);
}

static void a_group_nobody_has_joined_gets_no_packets(void **state)
{
	static const uint8_t group[6] = {1, 0, 0x5e, 1, 2, 3};
	struct seen *s = *state;
	uint32_t asked = s->questions;
	uint8_t p[60];

	write_datagram(p, 0xef010203, sizeof(p));
	send_frame(s, group, TYPE_IPV4, p, sizeof(p), 0);
	ipoib_turn(s->m, 0);
	assert_int_equal(s->questions, asked + 1);
	assert_int_equal(s->mad[SA_AT_RECORD + 48], SA_JOIN_SEND_ONLY);
	refuse_last(s, SA_COMPONENTS, 0);
	/* no question follows at once, and the user need not know */
	send_frame(s, group, TYPE_IPV4, p, sizeof(p), 1);
	ipoib_turn(s->m, 1);
	assert_int_equal(s->questions, asked + 1);
	assert_int_equal(s->sentences, 0);
	send_frame(s, group, TYPE_IPV4, p, sizeof(p), 1001);
	ipoib_turn(s->m, 1001);
	assert_int_equal(s->questions, asked + 2);
	answer_last(s, 1002);
	assert_int_equal(s->packets, 1);
	assert_int_equal(s->route.qpn, ROUTE_QPN_MULTICAST);
	assert_true(s->route.is_global);
}

static void senders_do_not_take_the_room_of_members(void **state)
{
	struct seen *s = *state;
	struct joined j = {0};
	uint8_t p[60], group[6] = {1, 0, 0x5e, 9};
	uint32_t groups = 0;

	for (uint32_t i = 0; i < 2 * GROUP_MAX; i++) {
		group[5] = (uint8_t)i;
		write_datagram(p, 0xe9000000 + i, sizeof(p));
		send_frame(s, group, TYPE_IPV4, p, sizeof(p), 0);
	}
	for (int i = 0; i < GROUP_MAX; i++)
		groups += s->m->groups.all[i].state != GROUP_FREE;
	assert_int_equal(groups, 1 + GROUP_MAX / 2);
	for (uint32_t i = 0; i < 2 * GROUP_MAX; i++)
		j.all[j.count++].ipv4 = 0xef000000 + i;
	ipoib_joined(s->m, &j, 0);
	ipoib_joined(s->m, &j, 0);
	assert_int_equal(s->sentences, 1);
	assert_non_null(strstr(s->text, "table has 60"));
}

static void groups_without_room_are_told_each_time_that_they_come(void **state)
{
	struct seen *s = *state;
	struct joined many = {0}, one = {.count = 1};

	for (uint32_t i = 0; i < 2 * GROUP_MAX; i++)
		many.all[many.count++].ipv4 = 0xef000000 + i;
	one.all[0].ipv4 = 0xef000000;
	for (uint32_t i = 1; i <= 2; i++) {
		ipoib_joined(s->m, &many, 0);
		ipoib_joined(s->m, &many, 0);
		assert_int_equal(s->sentences, i);
		ipoib_joined(s->m, &one, 0);
	}
}

/* A program sends to a group, and another one joins the group. */
static void a_sender_that_may_not_become_a_member_still_sends(void **state)
{
	static const uint8_t group[6] = {1, 0, 0x5e, 1, 2, 3};
	struct joined j = {.count = 1, .all[0].ipv4 = 0xef010203};
	struct seen *s = *state;
	uint32_t asked, attached = s->attachments;
	uint8_t p[60];

	write_datagram(p, 0xef010203, sizeof(p));
	send_frame(s, group, TYPE_IPV4, p, sizeof(p), 0);
	ipoib_turn(s->m, 0);
	answer_last(s, 0);
	assert_int_equal(s->packets, 1);
	ipoib_joined(s->m, &j, 1);
	ipoib_turn(s->m, 1);
	assert_int_equal(s->mad[SA_AT_RECORD + 48], SA_JOIN_FULL);
	refuse_last(s, SA_COMPONENTS, 1);
	assert_int_equal(s->sentences, 1);
	send_frame(s, group, TYPE_IPV4, p, sizeof(p), 2);
	assert_int_equal(s->packets, 2);
	/* the port asks again, and receives nothing from the group until then
	 */
	asked = s->questions;
	ipoib_turn(s->m, 2);
	assert_int_equal(s->questions, asked);
	assert_int_equal(s->attachments, attached);
	ipoib_turn(s->m, 2000);
	assert_int_equal(s->questions, asked + 1);
	answer_last(s, 2000);
	assert_int_equal(s->attachments, attached + 1);
}

static void two_interfaces_with_one_mac_are_told(void **state)
{
	struct seen *s = *state;
	uint8_t mac[6], p[ARP_HWADDR_BYTES];
	struct arp arp = {.operation = 1};
	struct hwaddr other = peer;
	struct neigh *n;
	uint32_t frames;

	learn_peer(s, mac);
	/* as if the hashes were equal */
	n = neigh_find(&s->m->neighs, mac);
	n->address.qpn++;
	frames = s->frames;
	hwaddr_write(arp.sender, &other);
	arp_write_hwaddr(p, &arp);
	receive_packet(s, &from_peer, TYPE_ARP, p, sizeof(p));
	receive_packet(s, &from_peer, TYPE_ARP, p, sizeof(p));
	assert_int_equal(s->frames, frames);
	assert_int_equal(s->sentences, 1);
	assert_non_null(strstr(s->text, "the same MAC"));
}

static void the_oldest_neighbour_is_forgotten(void **state)
{
	struct seen *s = *state;
	uint8_t p[ARP_HWADDR_BYTES];
	struct arp arp = {.operation = 1};
	struct hwaddr a = peer;

	for (uint32_t i = 0; i < NEIGH_MAX + 100; i++) {
		a.qpn = 1000 + i;
		hwaddr_write(arp.sender, &a);
		arp_write_hwaddr(p, &arp);
		receive_packet(s, &from_peer, TYPE_ARP, p, sizeof(p));
	}
	assert_int_equal(s->frames, NEIGH_MAX + 100);
	assert_int_equal(s->m->neighs.count, NEIGH_MAX);
}

/* Each reason for an interface that is down is told once. */
static void the_user_is_told_why_the_interface_is_down(void **state)
{
	static const char *const want[] = {
		"port is not active", "no full member", "no subnet manager"};
	struct seen *s = *state;

	for (int i = 0; i < 3; i++) {
		struct ipoib_port port = good_port();

		port.is_active = i != 0;
		port.has_pkey = i != 1;
		port.sm_lid = i != 2;
		ipoib_port(s->m, &port, 0);
		ipoib_port(s->m, &port, 0);
		assert_int_equal(s->sentences, i + 1);
		assert_non_null(strstr(s->text, want[i]));
		assert_false(s->link.is_up);
		assert_true(ipoib_deadline(s->m) == IPOIB_NEVER ||
			    (ipoib_turn(s->m, 0),
			     ipoib_deadline(s->m) == IPOIB_NEVER));
	}
}

static void a_missing_broadcast_group_is_told_and_asked_for(void **state)
{
	struct seen *s = *state;
	struct ipoib_port port = good_port();
	uint64_t now_ms = 0;

	port.pkey = 0x8001;
	ipoib_port(s->m, &port, 0);
	for (int i = 0; i < 3; i++) {
		uint32_t asked = s->questions;

		now_ms = ipoib_deadline(s->m);
		ipoib_turn(s->m, now_ms);
		assert_int_equal(s->questions, asked + 1);
		refuse_last(s, SA_COMPONENTS, now_ms);
		ipoib_turn(s->m, now_ms);
		assert_true(ipoib_deadline(s->m) > now_ms);
		assert_int_equal(s->sentences, 1);
		assert_non_null(
			strstr(s->text, "ff12:401b:8001:0:0:0:ffff:ffff"));
	}
	/* no answer at all is another reason */
	now_ms = ipoib_deadline(s->m);
	for (int i = 0; i <= ASK_TRIES; i++, now_ms += ASK_TRY_MS)
		ipoib_turn(s->m, now_ms);
	assert_int_equal(s->sentences, 2);
	assert_non_null(strstr(s->text, "does not answer"));
	now_ms = ipoib_deadline(s->m);
	ipoib_turn(s->m, now_ms);
	answer_last(s, now_ms);
	assert_true(s->link.is_up);
	assert_int_equal(s->sentences, 3);
}

/* A port may carry less than the broadcast group says. */
static void the_port_bounds_the_mtu(void **state)
{
	struct seen *s = *state;
	struct ipoib_port port = good_port();
	uint8_t payload[MTU] = {0x45};
	static const uint8_t all[6] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff};

	port.mtu = 3;
	ipoib_port(s->m, &port, 0);
	ipoib_turn(s->m, 0);
	answer_last(s, 0);
	assert_int_equal(s->link.mtu, 1024 - IPOIB_HEADER_BYTES);
	send_frame(s, all, TYPE_IPV4, payload, 1020, 0);
	assert_int_equal(s->packets, 1);
	send_frame(s, all, TYPE_IPV4, payload, 1021, 0);
	assert_int_equal(s->packets, 1);
}

static void addresses_are_announced_to_all_hosts(void **state)
{
	static const uint8_t ip[4] = {10, 0, 0, 1};
	struct seen *s = *state;
	struct hwaddr a;
	struct arp arp;

	s->addresses[s->address_count++] =
		(struct announce_address){.ip = {10, 0, 0, 1}};
	assert_int_equal(ipoib_deadline(s->m), 0);
	ipoib_turn(s->m, 0);
	assert_int_equal(s->packets, 1);
	assert_int_equal(s->route.qpn, ROUTE_QPN_MULTICAST);
	assert_true(arp_parse_hwaddr(s->packet + 4, ARP_HWADDR_BYTES, &arp));
	assert_int_equal(arp.operation, 1);
	assert_memory_equal(arp.sender_ip, ip, 4);
	assert_memory_equal(arp.target_ip, ip, 4);
	assert_true(hwaddr_parse(arp.sender, &a));
	assert_int_equal(a.qpn, QPN);
	/* IPv6, whose group must be joined first */
	s->addresses[0] =
		(struct announce_address){.is_v6 = true, .ip = {0xfd}};
	ipoib_turn(s->m, ipoib_deadline(s->m));
	assert_int_equal(s->packets, 1);
	answer_last(s, 1000);
	assert_int_equal(s->packets, 2);
	assert_int_equal(bytes_get16(s->packet), TYPE_IPV6);
}

/* The first announcements may be lost. */
static void announcements_end_with_the_interface(void **state)
{
	struct seen *s = *state;
	struct ipoib_port port = good_port();

	s->addresses[s->address_count++] =
		(struct announce_address){.ip = {10, 0, 0, 1}};
	ipoib_turn(s->m, 0);
	ipoib_turn(s->m, 1000);
	assert_int_equal(s->packets, 2);
	port.is_active = false;
	ipoib_port(s->m, &port, 1000);
	ipoib_turn(s->m, 60000);
	assert_int_equal(s->packets, 2);
	/* and begin again with it */
	port = good_port();
	ipoib_port(s->m, &port, 70000);
	ipoib_turn(s->m, 70000);
	answer_last(s, 70000);
	while (ipoib_deadline(s->m) != IPOIB_NEVER)
		ipoib_turn(s->m, ipoib_deadline(s->m));
	assert_uint_in_range(s->packets, 2 + 3, 2 + 10);
	ipoib_leave(s->m, 70000);
}

/* Addresses that are told and never used push out no neighbour in use. */
static void a_neighbour_in_use_is_kept(void **state)
{
	struct seen *s = *state;
	uint8_t p[ARP_HWADDR_BYTES], datagram[60], mac[6];
	struct arp arp = {.operation = 1};
	struct hwaddr a = peer;

	learn_peer(s, mac);
	write_datagram(datagram, 0x0a000002, sizeof(datagram));
	send_frame(s, mac, TYPE_IPV4, datagram, sizeof(datagram), 1);
	for (uint32_t i = 0; i < 2 * NEIGH_MAX; i++) {
		a.qpn = 1000 + i;
		hwaddr_write(arp.sender, &a);
		arp_write_hwaddr(p, &arp);
		receive_packet_at(s, &from_peer, TYPE_ARP, p, sizeof(p), 10);
	}
	assert_int_equal(s->m->neighs.count, NEIGH_MAX);
	assert_non_null(neigh_find(&s->m->neighs, mac));
}

/* Neighbours beyond the bound of open questions are asked for when the first
 * questions have failed. */
static void paths_that_fail_make_room_for_others(void **state)
{
	enum { MANY = 40 };
	struct seen *s = *state;
	uint8_t p[ARP_HWADDR_BYTES], datagram[60], mac[6];
	struct arp arp = {.operation = 1};
	struct hwaddr a = peer;
	struct neigh *n = NULL;
	uint32_t asked = s->questions;

	write_datagram(datagram, 0x0a000002, sizeof(datagram));
	for (uint32_t i = 0; i < MANY; i++) {
		a.qpn = 1000 + i;
		hwaddr_write(arp.sender, &a);
		arp_write_hwaddr(p, &arp);
		receive_packet(s, &from_peer, TYPE_ARP, p, sizeof(p));
		hwaddr_mac(&a, mac);
		send_frame(s, mac, TYPE_IPV4, datagram, sizeof(datagram), 0);
	}
	for (int i = 0; i < 1000 && s->questions < asked + MANY * ASK_TRIES &&
			ipoib_deadline(s->m) != IPOIB_NEVER;
	     i++)
		ipoib_turn(s->m, ipoib_deadline(s->m));
	assert_int_equal(s->questions, asked + MANY * ASK_TRIES);
	while ((n = neigh_next(&s->m->neighs, n)))
		assert_int_equal(n->ask.tries, ASK_TRIES);
}

/* A lost answer to a renewal leaves the interface up. */
static void renewals_without_an_answer_are_repeated(void **state)
{
	struct seen *s = *state;
	uint32_t asked = s->questions;
	uint64_t now_ms = 100;

	ipoib_reregister(s->m, now_ms);
	for (int i = 0; i < ASK_TRIES; i++, now_ms += ASK_TRY_MS)
		ipoib_turn(s->m, now_ms);
	ipoib_turn(s->m, now_ms);
	assert_true(s->link.is_up);
	assert_int_equal(s->questions, asked + ASK_TRIES);
	for (int i = 0; i < 3 * ASK_TRIES && s->link.is_up; i++) {
		now_ms = ipoib_deadline(s->m);
		ipoib_turn(s->m, now_ms);
	}
	assert_false(s->link.is_up);
	assert_non_null(strstr(s->text, "does not answer"));
	/* a refusal ends it at once */
	ipoib_turn(s->m, ipoib_deadline(s->m));
	answer_last(s, now_ms);
	assert_true(s->link.is_up);
	ipoib_reregister(s->m, now_ms);
	ipoib_turn(s->m, now_ms);
	refuse_last(s, SA_COMPONENTS, now_ms);
	assert_false(s->link.is_up);
}

static void an_attachment_that_fails_is_tried_again(void **state)
{
	struct seen *s = *state;
	struct joined j = {.count = 1, .all = {{.ipv4 = 0xef010203}}};
	uint64_t now_ms = 10;
	uint32_t before = s->attachments;

	announce_end(&s->m->announce); /* the deadlines are the group's */
	s->is_full = true;
	ipoib_joined(s->m, &j, now_ms);
	ipoib_turn(s->m, now_ms);
	answer_last(s, now_ms);
	assert_int_equal(s->sentences, 1);
	assert_non_null(strstr(s->text, "ff12:401b:ffff:0:0:0:f01:203"));
	for (int i = 0; i < 3; i++) {
		ipoib_turn(s->m, now_ms);
		assert_uint_in_range(ipoib_deadline(s->m), now_ms + 1,
				     now_ms + 60000);
		now_ms = ipoib_deadline(s->m);
	}
	assert_int_equal(s->sentences, 1);
	s->is_full = false;
	ipoib_turn(s->m, now_ms);
	assert_int_equal(s->attachments, before + 1);
	ipoib_turn(s->m, now_ms);
	assert_true(ipoib_deadline(s->m) == IPOIB_NEVER);
}

/* Fills a block with random bytes, which begin as a packet does. */
static void fill_block(struct rng *r, uint8_t *p, size_t bytes)
{
	for (size_t i = 0; i < bytes; i++)
		p[i] = (uint8_t)rng_u32(r);
	if (bytes && rng_below(r, 2))
		p[0] = rng_below(r, 2) ? 0x60 : 0x45;
	if (bytes > 40 && rng_below(r, 2)) {
		p[6] = 58;
		p[7] = 255;
		p[40] = (uint8_t)(133 + rng_below(r, 5));
	}
}

static void hostile_frames_and_packets_do_no_harm(void **state)
{
	static const uint16_t types[] = {TYPE_IPV4, TYPE_ARP, TYPE_IPV6};
	struct seen *s = *state;
	struct rng r;

	rng_init(&r, 7);
	for (size_t n = 0; n < 2200; n++)
		for (int k = 0; k < 9; k++) {
			struct ipoib_from from = {.qpn = rng_u32(&r) & 0xffffff,
						  .lid = (uint16_t)k,
						  .is_global = k & 1};
			uint8_t p[2200], to[6];

			fill_block(&r, p, n);
			memcpy(to, p, n < 6 ? n : 6);
			from.dgid[0] = k & 2 ? 0xff : 0xfe;
			send_frame(s, to, types[k % 3], p, n, n);
			receive_packet(s, &from, types[k % 3], p, n);
			ipoib_answer(s->m, p, n, n);
			ipoib_turn(s->m, n);
		}
	for (size_t n = 0; n < 20; n++) {
		uint8_t *p = calloc(1, IPOIB_HEADROOM + n);

		ipoib_frame(s->m, p, n, 0);
		ipoib_packet(s->m, &from_peer, p + IPOIB_HEADROOM, n, 0);
		free(p);
	}
	assert_true(s->link.is_up);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(an_arp_request_makes_a_neighbour),
		CASE(an_arp_reply_has_the_addresses_of_both),
		CASE(frames_that_cannot_be_sent_are_dropped),
		CASE(own_packets_do_not_come_back),
		CASE(a_packet_to_a_group_has_the_mac_of_the_group),
		CASE(reports_of_membership_let_the_caller_look),
		CASE(a_group_nobody_has_joined_gets_no_packets),
		CASE(senders_do_not_take_the_room_of_members),
		CASE(groups_without_room_are_told_each_time_that_they_come),
		CASE(a_sender_that_may_not_become_a_member_still_sends),
		CASE(two_interfaces_with_one_mac_are_told),
		CASE(the_oldest_neighbour_is_forgotten),
		CASE(the_user_is_told_why_the_interface_is_down),
		CASE(a_missing_broadcast_group_is_told_and_asked_for),
		CASE(the_port_bounds_the_mtu),
		CASE(addresses_are_announced_to_all_hosts),
		CASE(announcements_end_with_the_interface),
		CASE(a_neighbour_in_use_is_kept),
		CASE(paths_that_fail_make_room_for_others),
		CASE(renewals_without_an_answer_are_repeated),
		CASE(an_attachment_that_fails_is_tried_again),
		CASE(hostile_frames_and_packets_do_no_harm),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
