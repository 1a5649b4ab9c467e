/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One interface of IPoIB (ipoib/ipoib).  The test plays the interface's kernel,
 * the interface's queue pair and the subnet administration.  struct seen holds
 * the interface's outputs.
 */
#ifndef TESTS_UNIT_IPOIB_SEEN_H
#define TESTS_UNIT_IPOIB_SEEN_H

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
	QPN = 0x123,  /* the interface's */
	PEER = 0x456, /* the peer's QPN */
	LID = 4,
	PEER_LID = 5,
	MTU = 2044,
	QKEY = 0xb1b,
};

/* The latest output of each kind, and how many outputs there were. */
struct seen {
	struct ipoib *m;
	uint8_t frame[IPOIB_FRAME_MAX], packet[IPOIB_PACKET_MAX];
	size_t frame_bytes, packet_bytes;
	uint32_t frames, packets, questions, sentences, looks;
	uint32_t handles;     /* of routes that are not released */
	uint32_t attachments; /* to groups; only those that have succeeded */
	bool is_full;	      /* no attachment succeeds */
	/* the addresses that sink.addresses gives */
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

static inline void take_frame(void *ctx, const uint8_t *p, size_t bytes)
{
	struct seen *s = ctx;

	assert_uint_in_range(bytes, ETHERNET + 1, IPOIB_FRAME_MAX);
	memcpy(s->frame, p, bytes);
	s->frame_bytes = bytes;
	s->frames++;
}

static inline void take_packet(void *ctx, struct route *r, const uint8_t *p,
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

static inline void take_release(void *ctx, struct route *r)
{
	struct seen *s = ctx;

	assert_ptr_equal(r->handle, s);
	s->handles--;
}

static inline void take_question(void *ctx, const uint8_t mad[MAD_BYTES])
{
	struct seen *s = ctx;

	memcpy(s->mad, mad, MAD_BYTES);
	s->questions++;
}

static inline bool take_attach(void *ctx, const uint8_t mgid[16], bool attaches)
{
	struct seen *s = ctx;

	assert_int_equal(mgid[0], 0xff);
	s->attachments += attaches && !s->is_full;
	return !attaches || !s->is_full;
}

static inline void take_link(void *ctx, const struct ipoib_link *link)
{
	((struct seen *)ctx)->link = *link;
}

static inline void take_look(void *ctx)
{
	((struct seen *)ctx)->looks++;
}

static inline uint32_t take_addresses(void *ctx, struct announce_address *all,
				      uint32_t room)
{
	struct seen *s = ctx;
	uint32_t count = s->address_count;

	assert_true(count <= room);
	memcpy(all, s->addresses, count * sizeof(*all));
	return count;
}

static inline void take_sentence(void *ctx, const char *text)
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

/* Returns a port with which the interface can come up. */
static inline struct ipoib_port good_port(void)
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

/* Answers the last question to the subnet administration with success. */
static inline void answer_last(struct seen *s, uint64_t now_ms)
{
	if (sa_asks_path(s->mad))
		sa_answer_path(s->mad, PEER_LID, LID, 4);
	else if (!sa_asks_leave(s->mad))
		sa_answer_group(s->mad, 0xc001, QKEY, 4);
	sa_answer(s->mad, 0);
	ipoib_answer(s->m, s->mad, MAD_BYTES, now_ms);
}

/* Answers the last question to the subnet administration with an error. */
static inline void refuse_last(struct seen *s, uint16_t status, uint64_t now_ms)
{
	sa_answer(s->mad, status);
	ipoib_answer(s->m, s->mad, MAD_BYTES, now_ms);
}

/* Makes an interface that is up. */
static inline int set_up(void **state)
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

static inline int tear_down(void **state)
{
	struct seen *s = *state;

	ipoib_free(s->m);
	assert_int_equal(s->handles, 0);
	free(s);
	return 0;
}

/* Gives the interface a frame of the kernel, in a block of the exact length of
 * the frame, so that AddressSanitizer reports a read behind the frame. */
static inline void send_frame(struct seen *s, const uint8_t *to, uint16_t type,
			      const uint8_t *payload, size_t bytes,
			      uint64_t now_ms)
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

/* Gives the interface a packet, in a block that begins with the headroom and
 * ends with the packet, so that AddressSanitizer reports a read behind the
 * packet. */
static inline void receive_packet_at(struct seen *s,
				     const struct ipoib_from *from,
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

static inline void receive_packet(struct seen *s, const struct ipoib_from *from,
				  uint16_t type, const uint8_t *payload,
				  size_t bytes)
{
	receive_packet_at(s, from, type, payload, bytes, 0);
}

/* Writes at p an IPv4 packet of `bytes` bytes for the address dst, with the
 * protocol number of UDP. */
static inline void write_datagram(uint8_t *p, uint32_t dst, uint16_t bytes)
{
	struct ip_v4 ip = {.total_length = bytes,
			   .ttl = 1,
			   .protocol = 17,
			   .src = 0x0a000001,
			   .dst = dst};

	memset(p, 0x77, bytes);
	ip_v4_write(p, &ip);
}

/* Gives the interface an ARP request of the peer for this host.  Sets mac to
 * the MAC by which the kernel reaches the peer. */
static inline void learn_peer(struct seen *s, uint8_t mac[6])
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

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

#endif
