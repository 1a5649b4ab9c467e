/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ipoib: for all inputs from the kernel, other hosts and the subnet manager,
 * and after any time, each frame and packet that an interface makes has an
 * allowed length, a packet is sent only by a route that is known, address
 * handles are released, and there are at most NEIGH_MAX neighbours and
 * GROUP_MAX groups.  The input is a program of commands.
 */
#include "fuzz.h"
#include "input.h"

#include <stdlib.h>
#include <string.h>

#include "hdr/bytes.h"
#include "hdr/ip.h"
#include "ipoib/inside.h"
#include "ipoib/stream.h"
#include "sa_answer.h"

#define ETHERNET 14
#define MOST	 200 /* a frame or packet has fewer bytes behind its headers */

struct script {
	struct input_bytes in;
	struct ipoib *m;
	struct ipoib_link link;
	uint8_t mad[MAD_BYTES]; /* the last question */
	uint8_t mac[6];		/* the source of the last frame to the kernel */
	uint64_t now_ms;
	uint32_t handles;  /* address handles that are not released */
	uint32_t attached; /* groups to which the queue pair is attached */
	/* asked: the last connection for which the interface has asked; 0:
	 * none, or the interface has closed it.  accepted: the last one for
	 * which a neighbour has asked; 0: none, or the interface has refused or
	 * closed it. */
	uint32_t asked, accepted;
};

static void take_frame(void *ctx, const uint8_t *p, size_t bytes)
{
	struct script *s = ctx;

	FUZZ_REQUIRE(bytes > ETHERNET && bytes <= IPOIB_FRAME_MAX);
	FUZZ_REQUIRE(p[0] & 1 || !memcmp(p, s->link.mac, 6));
	memcpy(s->mac, p + 6, 6);
}

static void take_packet(void *ctx, struct route *r, const uint8_t *p,
			size_t bytes)
{
	struct script *s = ctx;

	FUZZ_REQUIRE(s->link.is_up && r->lid);
	FUZZ_REQUIRE(bytes > IPOIB_HEADER_BYTES &&
		     bytes <= s->link.mtu + IPOIB_HEADER_BYTES &&
		     bytes <= IPOIB_PACKET_MAX);
	FUZZ_REQUIRE(bytes_get16(p + 2) == 0);
	s->handles += !r->handle;
	r->handle = s;
}

static void take_release(void *ctx, struct route *r)
{
	struct script *s = ctx;

	FUZZ_REQUIRE(r->handle == s);
	s->handles--;
}

static void take_question(void *ctx, const uint8_t mad[MAD_BYTES])
{
	memcpy(((struct script *)ctx)->mad, mad, MAD_BYTES);
}

static bool take_attach(void *ctx, const uint8_t mgid[16], bool attaches)
{
	struct script *s = ctx;

	s->attached += attaches ? 1 : -1u;
	FUZZ_REQUIRE(mgid[0] == 0xff && s->attached <= GROUP_MAX);
	return true;
}

static void take_link(void *ctx, const struct ipoib_link *link)
{
	struct script *s = ctx;

	FUZZ_REQUIRE(link->is_up || !s->attached);
	s->link = *link;
}

static void take_look(void *ctx)
{
}

static uint32_t take_addresses(void *ctx, struct announce_address *all,
			       uint32_t room)
{
	struct script *s = ctx;
	uint32_t count = input_u8(&s->in) & 3;

	FUZZ_REQUIRE(count <= room);
	for (uint32_t i = 0; i < count; i++)
		all[i] = (struct announce_address){
			.is_v6 = i & 1, .ip = {0xfd, [15] = (uint8_t)i}};
	return count;
}

static void take_sentence(void *ctx, const char *text)
{
	FUZZ_REQUIRE(strlen(text) > 10);
}

static bool take_connect(void *ctx, uint32_t id, const struct route *r,
			 const uint8_t data[CONN_DATA_BYTES])
{
	struct script *s = ctx;
	struct conn_data d;

	FUZZ_REQUIRE(id && r->lid && conn_read(data, CONN_DATA_BYTES, &d));
	s->asked = id;
	return id & 1;
}

static void take_stream(void *ctx, uint32_t id, const uint8_t *p, size_t bytes)
{
	FUZZ_REQUIRE(id && bytes > IPOIB_HEADER_BYTES &&
		     bytes <= IPOIB_CONNECTED_MTU + IPOIB_HEADER_BYTES);
	FUZZ_REQUIRE(bytes_get16(p + 2) == 0);
}

static void take_close(void *ctx, uint32_t id)
{
	struct script *s = ctx;

	FUZZ_REQUIRE(id);
	s->asked = s->asked == id ? 0 : s->asked;
	s->accepted = s->accepted == id ? 0 : s->accepted;
}

static const struct ipoib_sink sink = {
	.connect = take_connect,
	.stream = take_stream,
	.close = take_close,
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

static void set_port(struct script *s, uint8_t how)
{
	struct ipoib_port port = {
		.is_active = !(how & 1) || how & 2,
		.has_pkey = !(how & 4) || how & 8,
		.pkey = how & 16 ? 0x8001 : 0xffff,
		.lid = 1 + (how >> 5 & 1),
		.sm_lid = 1,
		.mtu = how & 128 ? 2 : 5,
		.gid = {0xfe, 0x80, [15] = how & 64 ? 1 : 2},
	};

	ipoib_port(s->m, &port, s->now_ms);
}

/* Fills a payload with bytes of the input.  If the input says so, then writes
 * fields of ARP or of neighbour discovery over some of these bytes.  wide: the
 * hardware addresses of ARP have 20 bytes, as on IPoIB; otherwise 6. */
static void fill_payload(struct script *s, uint8_t *p, size_t bytes, bool wide)
{
	uint8_t how = input_u8(&s->in);

	for (size_t i = 0; i < bytes; i++)
		p[i] = input_u8(&s->in);
	if (how & 1 && bytes >= 8) {
		bytes_put32(p, (wide ? 32u : 1u) << 16 | 0x0800);
		p[4] = wide ? 20 : 6;
		p[5] = 4;
	} else if (how & 2 && bytes >= 48) {
		size_t left = bytes - IP_V6_BYTES;

		p[0] = 0x60;
		bytes_put16(p + 4, (uint16_t)left);
		p[6] = 58;
		p[7] = 255;
		p[40] = (uint8_t)(133 + p[40] % 5);
		bytes_put32(p + 40, (uint32_t)p[40] << 24);
		bytes_put16(p + 42,
			    ip_sum_fold(ip_sum(ip_sum(58 + left, p + 8, 32),
					       p + 40, left)));
	}
}

static uint16_t type_of(uint8_t how)
{
	static const uint16_t types[] = {0x0800, 0x0806, 0x86dd, 0x8100};

	return types[how & 3];
}

static void send_frame(struct script *s)
{
	uint8_t how = input_u8(&s->in);
	size_t bytes = input_u8(&s->in) % MOST;
	uint8_t *p = calloc(1, ETHERNET + bytes);

	FUZZ_REQUIRE(p);
	memset(p, how & 4 ? 0xff : 2, 6);
	if (how & 8)
		memcpy(p, s->mac, 6);
	memcpy(p + 6, s->link.mac, 6);
	bytes_put16(p + 12, type_of(how));
	fill_payload(s, p + ETHERNET, bytes, false);
	if (how & 16 && bytes >= 14)
		memcpy(p + ETHERNET + 8, s->link.mac, 6);
	ipoib_frame(s->m, p, how & 0x80 ? bytes % 20 : ETHERNET + bytes,
		    s->now_ms);
	free(p);
}

static void receive_packet(struct script *s)
{
	uint8_t how = input_u8(&s->in);
	struct ipoib_from from = {.qpn = input_u8(&s->in),
				  .lid = input_u8(&s->in) & 3,
				  .is_global = how & 4,
				  .sgid = {0xfe, 0x80},
				  .dgid = {how & 8 ? 0xff : 0xfe}};
	size_t head = IPOIB_HEADROOM + IPOIB_HEADER_BYTES;
	size_t bytes = input_u8(&s->in) % MOST;
	uint8_t *p = calloc(1, head + bytes);

	FUZZ_REQUIRE(p);
	bytes_put16(p + IPOIB_HEADROOM, type_of(how));
	fill_payload(s, p + head, bytes, true);
	ipoib_packet(s->m, &from, p + IPOIB_HEADROOM,
		     how & 0x80 ? bytes % 4 : IPOIB_HEADER_BYTES + bytes,
		     s->now_ms);
	free(p);
}

/* Answers the last question.  The input decides whether some bytes of the
 * answer are changed. */
static void answer_last(struct script *s)
{
	uint8_t mad[MAD_BYTES], how = input_u8(&s->in);

	memcpy(mad, s->mad, MAD_BYTES);
	if (sa_asks_path(mad))
		sa_answer_path(mad, 1 + (how >> 2 & 3), 1 + (how >> 1 & 3), 4);
	else
		sa_answer_group(mad, 0xc001, 0, 1 + (how & 3));
	sa_answer(mad, !(how & 16) ? 0
		       : how & 32  ? SA_COMPONENTS
				   : SA_REQUEST_INVALID);
	for (int i = 0; how & 64 && i < 3; i++)
		mad[input_u8(&s->in)] ^= input_u8(&s->in);
	ipoib_answer(s->m, mad, how & 128 ? how : MAD_BYTES, s->now_ms);
}

static void set_joined(struct script *s)
{
	struct joined j = {0};
	uint32_t count = input_u8(&s->in) % 80;

	for (uint32_t i = 0; i < count; i++) {
		struct joined_group *g = &j.all[j.count++];

		g->is_v6 = i & 1;
		g->ipv4 = 0xe0000000 + i;
		g->ipv6[0] = 0xff;
		g->ipv6[15] = (uint8_t)i;
	}
	ipoib_joined(s->m, &j, s->now_ms);
}

/* Acts as the CM.  Bits of the input say whether a neighbour asks for a
 * connection, whether a connection opens, and whether it ends. */
static void change_connection(struct script *s)
{
	uint8_t how = input_u8(&s->in), gid[16] = {0xfe, 0x80, [15] = how};
	uint8_t data[CONN_DATA_BYTES] = {0}, answer[CONN_DATA_BYTES];
	uint32_t id = how & 4 ? s->accepted : s->asked;
	struct ipoib_from from;

	for (int i = 2; i < CONN_DATA_BYTES; i++)
		data[i] = input_u8(&s->in);
	if (how & 1)
		id = stream_asked(s->m, gid, data, sizeof(data), answer,
				  s->now_ms);
	s->accepted = how & 1 ? id : s->accepted;
	if (how & 2)
		stream_opened(s->m, id, data, how & 8 ? 7 : 8, s->now_ms);
	if (how & 16)
		stream_closed(s->m, id, s->now_ms);
	FUZZ_REQUIRE(!stream_from(s->m, id, &from, s->now_ms) ||
		     from.is_global);
}

static void run_step(struct script *s)
{
	uint8_t step = input_u8(&s->in);

	switch (step % 16) {
	case 0:
		set_port(s, input_u8(&s->in));
		break;
	case 1:
		ipoib_reregister(s->m, s->now_ms);
		break;
	case 2:
		set_joined(s);
		break;
	case 3:
	case 4:
		s->now_ms += input_u16(&s->in);
		break;
	case 5:
		if (step > 240)
			ipoib_leave(s->m, s->now_ms);
		else
			change_connection(s);
		break;
	case 6:
	case 7:
	case 8:
	case 9:
		answer_last(s);
		break;
	case 10:
	case 11:
	case 12:
		send_frame(s);
		break;
	default:
		receive_packet(s);
	}
	ipoib_turn(s->m, s->now_ms);
	FUZZ_REQUIRE(ipoib_deadline(s->m) > s->now_ms);
	FUZZ_REQUIRE(s->m->neighs.count <= NEIGH_MAX);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct script s = {.in = {data, data + size}, .now_ms = 1};

	s.m = ipoib_new(&sink, &s, 0x99);
	FUZZ_REQUIRE(s.m);
	if (size & 1)
		stream_enable(s.m, IPOIB_CONNECTED_MTU);
	set_port(&s, 0);
	ipoib_turn(s.m, s.now_ms);
	while (s.in.at < s.in.end)
		run_step(&s);
	ipoib_free(s.m);
	FUZZ_REQUIRE(!s.handles);
	return 0;
}
