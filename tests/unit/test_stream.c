/* SPDX-License-Identifier: BSD-2-Clause */
/* ipoib/stream: the connections of one interface in connected mode.  The test
 * plays the kernel, the neighbours and the CM. */
#include "test.h"

#include "hdr/bytes.h"
#include "hdr/ip.h"
#include "ipoib/arp.h"
#include "ipoib/inside.h"
#include "ipoib/stream.h"
#include "sa_answer.h"

enum {
	ETHERNET = 14,
	TYPE_IPV4 = 0x0800,
	TYPE_ARP = 0x0806,
	QPN = 0x123,
	PEER = 0x456,
	PEER_LID = 5,
	UD_MTU = 2044,
	MTU = IPOIB_CONNECTED_MTU,
	LARGE = 60000,
};

/* The latest output of each kind, and how many outputs there were. */
struct seen {
	struct ipoib *m;
	uint8_t frame[400];
	size_t frame_bytes, packet_bytes, stream_bytes;
	uint32_t frames, packets, streams, connects, closes;
	uint32_t asked_id, stream_id, closed_id;
	uint8_t data[CONN_DATA_BYTES], packet[100], mad[MAD_BYTES];
	struct ipoib_link link;
	uint8_t peer_mac[6];
	bool is_full; /* connections cannot be made */
};

static const struct hwaddr peer = {
	.qpn = PEER, .gid = {0xfe, 0x80, [15] = 2}, .is_connected = true};

static void take_frame(void *ctx, const uint8_t *p, size_t bytes)
{
	struct seen *s = ctx;

	memcpy(s->frame, p, bytes < sizeof(s->frame) ? bytes : 400);
	s->frame_bytes = bytes;
	s->frames++;
}

static void take_packet(void *ctx, struct route *r, const uint8_t *p,
			size_t bytes)
{
	struct seen *s = ctx;

	assert_true(r->lid && bytes <= UD_MTU + IPOIB_HEADER_BYTES);
	memcpy(s->packet, p, bytes < 100 ? bytes : 100);
	s->packet_bytes = bytes;
	s->packets++;
}

static void take_release(void *ctx, struct route *r)
{
	fail();
}

static void take_question(void *ctx, const uint8_t mad[MAD_BYTES])
{
	memcpy(((struct seen *)ctx)->mad, mad, MAD_BYTES);
}

static bool take_attach(void *ctx, const uint8_t mgid[16], bool attaches)
{
	return true;
}

static void take_link(void *ctx, const struct ipoib_link *link)
{
	((struct seen *)ctx)->link = *link;
}

static void take_look(void *ctx)
{
}

static uint32_t take_addresses(void *ctx, struct announce_address *all,
			       uint32_t room)
{
	return 0;
}

static void take_sentence(void *ctx, const char *text)
{
}

static bool take_connect(void *ctx, uint32_t id, const struct route *r,
			 const uint8_t data[CONN_DATA_BYTES])
{
	struct seen *s = ctx;

	assert_int_equal(r->lid, PEER_LID);
	assert_int_equal(r->qpn, PEER);
	memcpy(s->data, data, CONN_DATA_BYTES);
	s->asked_id = id;
	s->connects++;
	return !s->is_full;
}

static void take_stream(void *ctx, uint32_t id, const uint8_t *p, size_t bytes)
{
	struct seen *s = ctx;

	s->stream_id = id;
	s->stream_bytes = bytes;
	s->streams++;
}

static void take_close(void *ctx, uint32_t id)
{
	struct seen *s = ctx;

	s->closed_id = id;
	s->closes++;
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

/* Answers the last question with success. */
static void answer_last(struct seen *s, uint64_t now_ms)
{
	if (sa_asks_path(s->mad))
		sa_answer_path(s->mad, PEER_LID, 4, 4);
	else
		sa_answer_group(s->mad, 0xc001, 0xb1b, 4);
	sa_answer(s->mad, 0);
	ipoib_answer(s->m, s->mad, MAD_BYTES, now_ms);
}

/* Gives the interface an ARP request of the peer, over UD. */
static void learn_peer(struct seen *s, const struct hwaddr *a)
{
	static const struct ipoib_from from = {.qpn = PEER, .lid = PEER_LID};
	uint8_t p[IPOIB_HEADROOM + IPOIB_HEADER_BYTES + ARP_HWADDR_BYTES] = {0};
	struct arp arp = {.operation = 1,
			  .sender_ip = {10, 0, 0, 2},
			  .target_ip = {10, 0, 0, 1}};

	hwaddr_write(arp.sender, a);
	bytes_put16(p + IPOIB_HEADROOM, TYPE_ARP);
	arp_write_hwaddr(p + IPOIB_HEADROOM + IPOIB_HEADER_BYTES, &arp);
	ipoib_packet(s->m, &from, p + IPOIB_HEADROOM,
		     sizeof(p) - IPOIB_HEADROOM, 0);
	hwaddr_mac(a, s->peer_mac);
}

/* Gives the interface a datagram of the kernel to the peer, in a block of its
 * exact length, so that AddressSanitizer finds a read behind it. */
static void send_datagram(struct seen *s, uint16_t bytes, uint64_t now_ms)
{
	struct ip_v4 ip = {.total_length = bytes,
			   .flags_fragment = IP_V4_DF,
			   .ttl = 64,
			   .protocol = 17,
			   .src = 0x0a000001,
			   .dst = 0x0a000002};
	uint8_t *p = calloc(1, ETHERNET + bytes);

	assert_non_null(p);
	memcpy(p, s->peer_mac, 6);
	memcpy(p + 6, s->link.mac, 6);
	bytes_put16(p + 12, TYPE_IPV4);
	ip_v4_write(p + ETHERNET, &ip);
	ipoib_frame(s->m, p, ETHERNET + (size_t)bytes, now_ms);
	free(p);
}

/* Writes the peer's private data. */
static void write_data(uint8_t data[CONN_DATA_BYTES], uint32_t most)
{
	const struct conn_data d = {.qpn = PEER, .most = most};

	conn_write(&d, data);
}

static bool open_last(struct seen *s, uint32_t most, uint64_t now_ms)
{
	uint8_t data[CONN_DATA_BYTES];

	write_data(data, most);
	return stream_opened(s->m, s->asked_id, data, sizeof(data), now_ms);
}

/* A queue pair of a host asks for a connection.  Returns the ID of the
 * connection; 0: the request is refused. */
static uint32_t ask_us_by(struct seen *s, uint8_t host, uint32_t qpn,
			  uint64_t now_ms)
{
	uint8_t data[CONN_DATA_BYTES], answer[CONN_DATA_BYTES];
	uint8_t gid[16] = {0xfe, 0x80, [15] = host};
	struct conn_data d = {.qpn = qpn, .most = MTU + IPOIB_HEADER_BYTES};
	uint32_t id;

	conn_write(&d, data);
	id = stream_asked(s->m, gid, data, sizeof(data), answer, now_ms);
	if (!id)
		return 0;
	assert_true(conn_read(answer, sizeof(answer), &d));
	assert_int_equal(d.qpn, QPN);
	assert_int_equal(d.most, MTU + IPOIB_HEADER_BYTES);
	return id;
}

static uint32_t ask_us(struct seen *s, uint8_t host, uint64_t now_ms)
{
	return ask_us_by(s, host, PEER, now_ms);
}

/* Fails unless the last frame tells the kernel this MTU. */
static void expect_too_big(struct seen *s, uint32_t mtu)
{
	const uint8_t *ip = s->frame + ETHERNET;

	assert_memory_equal(s->frame, s->link.mac, 6);
	assert_memory_equal(s->frame + 6, s->peer_mac, 6);
	assert_int_equal(bytes_get16(s->frame + 12), TYPE_IPV4);
	assert_int_equal(bytes_get16(ip + IP_V4_BYTES), 0x0304);
	assert_int_equal(bytes_get32(ip + IP_V4_BYTES + 4), mtu);
}

static int set_up(void **state)
{
	struct seen *s = calloc(1, sizeof(*s));
	struct ipoib_port port = {.is_active = true,
				  .has_pkey = true,
				  .pkey = 0xffff,
				  .lid = 4,
				  .sm_lid = 1,
				  .mtu = 5,
				  .gid = {0xfe, 0x80, [15] = 1}};

	assert_non_null(s);
	s->m = ipoib_new(&sink, s, QPN);
	assert_non_null(s->m);
	stream_enable(s->m, MTU);
	ipoib_port(s->m, &port, 0);
	ipoib_turn(s->m, 0);
	answer_last(s, 0);
	assert_int_equal(s->link.mtu, MTU);
	learn_peer(s, &peer);
	send_datagram(s, 100, 0); /* waits for the path */
	ipoib_turn(s->m, 0);
	*state = s;
	return 0;
}

static int tear_down(void **state)
{
	struct seen *s = *state;

	ipoib_free(s->m);
	free(s);
	return 0;
}

static void packets_go_by_a_connection_when_it_is_open(void **state)
{
	struct seen *s = *state;
	struct conn_data d;

	answer_last(s, 1);
	assert_int_equal(s->packets, 1);
	assert_int_equal(s->connects, 1);
	assert_true(conn_read(s->data, sizeof(s->data), &d));
	assert_int_equal(d.qpn, QPN);
	assert_int_equal(d.most, MTU + IPOIB_HEADER_BYTES);
	/* a short packet goes by UD, and a long packet waits */
	send_datagram(s, 100, 2);
	send_datagram(s, LARGE, 2);
	assert_int_equal(s->packets, 2);
	assert_int_equal(s->streams, 0);
	assert_true(open_last(s, MTU + IPOIB_HEADER_BYTES, 3));
	assert_int_equal(s->streams, 1);
	assert_int_equal(s->stream_bytes, LARGE + IPOIB_HEADER_BYTES);
	send_datagram(s, 100, 4);
	assert_int_equal(s->streams, 2);
	assert_int_equal(s->stream_id, s->asked_id);
	assert_int_equal(s->packets, 2);
	assert_int_equal(s->connects, 1);
	assert_false(open_last(s, 100, 5)); /* the connection is open already */
}

static void the_second_refusal_tells_the_kernel_the_mtu_of_ud(void **state)
{
	struct seen *s = *state;

	answer_last(s, 1);
	send_datagram(s, LARGE, 1);
	/* the first refusal may come because the neighbour is still starting */
	stream_closed(s->m, s->asked_id, 2);
	send_datagram(s, UD_MTU, 3);
	assert_int_equal(s->packets, 2);
	send_datagram(s, LARGE, 3);
	assert_int_equal(ipoib_counters(s->m)->too_long, 0);
	/* another connection is asked for after a pause */
	announce_end(&s->m->announce);
	ipoib_turn(s->m, 1 + CONN_PAUSE_MS);
	assert_int_equal(s->connects, 1);
	assert_true(ipoib_deadline(s->m) <= 2 + CONN_PAUSE_MS);
	ipoib_turn(s->m, 2 + CONN_PAUSE_MS);
	assert_int_equal(s->connects, 2);
	assert_int_equal(ipoib_counters(s->m)->too_long, 0);
	stream_closed(s->m, s->asked_id, 3 + CONN_PAUSE_MS);
	expect_too_big(s, UD_MTU);
	assert_int_equal(ipoib_counters(s->m)->too_long, 2);
	send_datagram(s, UD_MTU + 1, 4 + CONN_PAUSE_MS);
	expect_too_big(s, UD_MTU);
	assert_int_equal(s->connects, 2);
}

/* A neighbour accepts each connection, and ends each within CONN_SHORT_MS.
 * After more than CONN_SHORTS such connections the interface asks this
 * neighbour again only after a pause. */
static void after_short_connections_is_a_pause(void **state)
{
	struct seen *s = *state;
	uint64_t now_ms = 1, pause_ms = CONN_PAUSE_MS;

	answer_last(s, now_ms);
	/* no pause follows the first short connections, since a cut link also
	 * ends a connection early */
	for (uint32_t i = 1; i <= CONN_SHORTS; i++) {
		assert_int_equal(s->connects, i);
		assert_true(open_last(s, MTU + IPOIB_HEADER_BYTES, now_ms));
		stream_closed(s->m, s->asked_id, now_ms);
		send_datagram(s, LARGE, now_ms);
	}
	assert_int_equal(ipoib_counters(s->m)->too_long, 0);
	for (uint32_t i = CONN_SHORTS + 1; i <= CONN_SHORTS + 3; i++) {
		assert_int_equal(s->connects, i);
		assert_true(open_last(s, 9000, now_ms));
		now_ms += CONN_SHORT_MS - 1;
		stream_closed(s->m, s->asked_id, now_ms);
		send_datagram(s, 100, now_ms + pause_ms - 1);
		assert_int_equal(s->connects, i);
		now_ms += pause_ms;
		pause_ms *= 2;
		send_datagram(s, 100, now_ms);
	}
	/* a longer connection ends the sequence of failures */
	assert_true(open_last(s, 9000, now_ms));
	now_ms += CONN_SHORT_MS;
	stream_closed(s->m, s->asked_id, now_ms);
	send_datagram(s, 100, now_ms);
	assert_int_equal(s->connects, CONN_SHORTS + 5);
	stream_closed(s->m, s->asked_id, now_ms);
	send_datagram(s, 100, now_ms + CONN_PAUSE_MS);
	assert_int_equal(s->connects, CONN_SHORTS + 6);
}

/* A neighbour whose listener did not exist yet is asked again. */
static void packets_wait_for_a_neighbour_that_starts(void **state)
{
	struct seen *s = *state;

	answer_last(s, 1);
	stream_closed(s->m, s->asked_id, 2);
	send_datagram(s, LARGE, 3);
	ipoib_turn(s->m, 2 + CONN_PAUSE_MS);
	assert_int_equal(s->connects, 2);
	assert_true(open_last(s, MTU + IPOIB_HEADER_BYTES, 3 + CONN_PAUSE_MS));
	assert_int_equal(s->stream_bytes, LARGE + IPOIB_HEADER_BYTES);
	assert_int_equal(ipoib_counters(s->m)->too_long, 0);
}

/* The SA does not answer when the path is asked for again after 30 s. */
static void
packets_wait_for_a_connection_while_the_path_is_renewed(void **state)
{
	struct seen *s = *state;
	uint64_t now_ms = 31001;

	answer_last(s, 1);
	send_datagram(s, LARGE, now_ms);
	for (int i = 0; i <= ASK_TRIES; i++, now_ms += ASK_TRY_MS)
		ipoib_turn(s->m, now_ms);
	assert_int_equal(ipoib_counters(s->m)->waited, 0);
	assert_true(open_last(s, MTU + IPOIB_HEADER_BYTES, now_ms));
	assert_int_equal(s->streams, 1);
	assert_int_equal(s->stream_bytes, LARGE + IPOIB_HEADER_BYTES);
}

static void a_connection_that_cannot_be_made_is_asked_for_later(void **state)
{
	struct seen *s = *state;

	s->is_full = true;
	answer_last(s, 1);
	assert_int_equal(s->packets, 1);
	send_datagram(s, LARGE, 2);
	assert_int_equal(s->connects, 1);
	send_datagram(s, LARGE, 1 + CONN_PAUSE_MS);
	assert_int_equal(s->connects, 2);
	expect_too_big(s, UD_MTU);
}

static void a_neighbour_may_receive_less(void **state)
{
	struct seen *s = *state;

	answer_last(s, 1);
	assert_true(open_last(s, 9004, 2));
	send_datagram(s, 9000, 3);
	assert_int_equal(s->streams, 1);
	send_datagram(s, 9001, 3);
	assert_int_equal(s->streams, 1);
	expect_too_big(s, 9000);
}

static void a_neighbour_without_the_flag_gets_datagrams(void **state)
{
	struct seen *s = *state;
	struct hwaddr a = peer;

	a.is_connected = false;
	learn_peer(s, &a);
	answer_last(s, 1);
	assert_int_equal(s->packets, 1);
	send_datagram(s, LARGE, 2);
	assert_int_equal(s->connects, 0);
	expect_too_big(s, UD_MTU);
}

static void an_answer_for_another_interface_is_refused(void **state)
{
	struct seen *s = *state;
	uint8_t data[CONN_DATA_BYTES];
	const struct conn_data other = {.qpn = PEER + 1, .most = 9000};

	answer_last(s, 1);
	conn_write(&other, data);
	assert_false(stream_opened(s->m, s->asked_id, data, 8, 2));
	write_data(data, 4);
	assert_false(stream_opened(s->m, s->asked_id, data, 8, 2));
	write_data(data, 9000);
	assert_false(stream_opened(s->m, s->asked_id, data, 7, 2));
	assert_false(stream_opened(s->m, s->asked_id + 1, data, 8, 2));
	assert_true(stream_opened(s->m, s->asked_id, data, 8, 2));
}

/* Both neighbours connect at the same time.  Each sends by its own connection.
 */
static void a_neighbour_connects_too(void **state)
{
	struct seen *s = *state;
	struct ipoib_from from;
	uint32_t id;

	answer_last(s, 1);
	id = ask_us(s, 2, 1);
	assert_int_not_equal(id, 0);
	assert_int_not_equal(id, s->asked_id);
	assert_true(open_last(s, MTU + IPOIB_HEADER_BYTES, 2));
	send_datagram(s, LARGE, 3);
	assert_int_equal(s->stream_id, s->asked_id);
	assert_true(stream_from(s->m, id, &from, 3));
	assert_int_equal(from.qpn, PEER);
	assert_memory_equal(from.sgid, peer.gid, 16);
	assert_false(stream_from(s->m, s->asked_id, &from, 3));
}

static void a_neighbour_that_asks_again_has_lost_both_connections(void **state)
{
	struct seen *s = *state;
	struct ipoib_from from;
	uint32_t id, other;

	answer_last(s, 1);
	id = ask_us(s, 2, 1);
	assert_true(open_last(s, MTU + IPOIB_HEADER_BYTES, 2));
	other = ask_us(s, 2, 4);
	assert_int_not_equal(other, id);
	assert_int_equal(s->closes, 2);
	assert_int_equal(s->closed_id, s->asked_id);
	assert_false(stream_from(s->m, id, &from, 4));
	assert_true(stream_from(s->m, other, &from, 4));
	send_datagram(s, 100, 5);
	assert_int_equal(s->connects, 2);
}

static void a_neighbour_that_asks_ends_the_pause(void **state)
{
	struct seen *s = *state;

	answer_last(s, 1);
	stream_closed(s->m, s->asked_id, 2);
	send_datagram(s, 100, 2 + CONN_PAUSE_MS);
	stream_closed(s->m, s->asked_id, 3 + CONN_PAUSE_MS);
	send_datagram(s, 100, 4 + CONN_PAUSE_MS);
	assert_int_equal(s->connects, 2);
	assert_int_not_equal(ask_us(s, 2, 5 + CONN_PAUSE_MS), 0);
	send_datagram(s, LARGE, 6 + CONN_PAUSE_MS);
	assert_int_equal(s->connects, 3);
	assert_int_equal(ipoib_counters(s->m)->too_long, 0);
}

/* Two ends whose connections break at once ask each other again and again.  The
 * requests must not end every pause. */
static void asking_neighbours_do_not_end_each_pause(void **state)
{
	struct seen *s = *state;
	uint64_t now_ms = 2;
	uint32_t before;

	answer_last(s, 1);
	for (uint32_t i = 0; i <= CONN_SHORTS; i++) {
		stream_closed(s->m, s->asked_id, now_ms);
		ask_us(s, 2, now_ms);
		before = s->connects;
		send_datagram(s, 100, ++now_ms);
		assert_int_equal(s->connects - before, i < CONN_SHORTS);
	}
}

static void requests_with_wrong_private_data_are_refused(void **state)
{
	struct seen *s = *state;
	const uint8_t gid[16] = {0xfe, 0x80, [15] = 2};
	uint8_t data[CONN_DATA_BYTES], answer[CONN_DATA_BYTES];

	write_data(data, 9000);
	assert_int_equal(stream_asked(s->m, gid, data, 7, answer, 1), 0);
	assert_int_equal(stream_asked(s->m, gid, data, 0, answer, 1), 0);
	write_data(data, 4); /* no room for a packet */
	assert_int_equal(stream_asked(s->m, gid, data, 8, answer, 1), 0);
	bytes_put32(data, 1); /* no interface has QP 1 */
	bytes_put32(data + 4, 9000);
	assert_int_equal(stream_asked(s->m, gid, data, 8, answer, 1), 0);
}

static void connections_of_neighbours_are_bounded(void **state)
{
	struct seen *s = *state;
	uint32_t last = 0;

	for (uint32_t i = 0; i < STREAM_ACCEPTED_MAX; i++) {
		last = ask_us(s, (uint8_t)(2 + i), 1);
		assert_int_not_equal(last, 0);
	}
	assert_int_equal(ask_us(s, 1, 1), 0);
	stream_closed(s->m, last, 2);
	assert_int_not_equal(ask_us(s, 1, 3), 0);
}

/* The sender of a request may write any QPN into the request. */
static void one_port_does_not_take_all_connections(void **state)
{
	uint32_t ids[STREAM_PER_PORT_MAX], id;
	struct seen *s = *state;
	struct ipoib_from from;

	for (uint32_t i = 0; i < STREAM_PER_PORT_MAX; i++) {
		ids[i] = ask_us_by(s, 2, PEER + i, 1);
		assert_int_not_equal(ids[i], 0);
	}
	for (uint32_t i = 1; i < STREAM_PER_PORT_MAX; i++)
		assert_true(stream_from(s->m, ids[i], &from, 2));
	assert_int_equal(s->closes, 0);
	/* Each connection was used in the last 10 s, so the request is refused:
	 * otherwise nine interfaces of one host would end each other's
	 * connections. */
	assert_int_equal(ask_us_by(s, 2, PEER + 100, 3), 0);
	assert_int_equal(ask_us_by(s, 2, PEER + 100, 10000), 0);
	assert_int_equal(s->closes, 0);
	/* the connection that has been unused for the longest time is closed */
	id = ask_us_by(s, 2, PEER + 100, 10001);
	assert_int_not_equal(id, 0);
	assert_int_equal(s->closes, 1);
	assert_int_equal(s->closed_id, ids[0]);
	assert_false(stream_from(s->m, ids[0], &from, 10001));
	assert_true(stream_from(s->m, id, &from, 10001));
	for (uint32_t i = 0; i < 1000; i++)
		ask_us_by(s, 2, PEER + 200 + i, 20000 + i);
	for (uint32_t i = 0; i < STREAM_ACCEPTED_MAX - STREAM_PER_PORT_MAX; i++)
		assert_int_not_equal(ask_us(s, (uint8_t)(3 + i), 21000), 0);
	assert_int_equal(ask_us(s, 1, 21000), 0);
}

static void a_packet_of_a_connection_has_its_sender(void **state)
{
	struct seen *s = *state;
	static uint8_t p[IPOIB_HEADROOM + IPOIB_HEADER_BYTES + LARGE];
	struct ipoib_from from;

	assert_true(stream_from(s->m, ask_us(s, 2, 1), &from, 1));
	bytes_put16(p + IPOIB_HEADROOM, TYPE_IPV4);
	ipoib_packet(s->m, &from, p + IPOIB_HEADROOM,
		     sizeof(p) - IPOIB_HEADROOM, 1);
	assert_int_equal(s->frame_bytes, ETHERNET + LARGE);
	assert_memory_equal(s->frame, s->link.mac, 6);
	assert_memory_equal(s->frame + 6, s->peer_mac, 6);
}

static void idle_connections_are_closed(void **state)
{
	struct seen *s = *state;
	uint32_t id;

	answer_last(s, 1);
	assert_true(open_last(s, 9000, 1));
	id = ask_us(s, 2, 1);
	announce_end(&s->m->announce);
	ipoib_turn(s->m, 2);
	send_datagram(s, 100, 1000);
	while (!s->closes)
		ipoib_turn(s->m, ipoib_deadline(s->m));
	assert_int_equal(s->closed_id, s->asked_id);
	while (s->closes < 2)
		ipoib_turn(s->m, ipoib_deadline(s->m));
	assert_int_equal(s->closed_id, id);
	/* the next packet makes the interface connect again */
	send_datagram(s, 100, 1000000);
	assert_int_equal(s->connects, 2);
}

static void an_interface_that_goes_down_closes_all(void **state)
{
	struct seen *s = *state;
	struct ipoib_port port = s->m->port;

	answer_last(s, 1);
	assert_true(open_last(s, 9000, 1));
	ask_us(s, 2, 1);
	port.is_active = false;
	ipoib_port(s->m, &port, 2);
	assert_int_equal(s->closes, 2);
	assert_int_equal(ask_us(s, 2, 3), 0);
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(packets_go_by_a_connection_when_it_is_open),
		CASE(the_second_refusal_tells_the_kernel_the_mtu_of_ud),
		CASE(after_short_connections_is_a_pause),
		CASE(packets_wait_for_a_neighbour_that_starts),
		CASE(packets_wait_for_a_connection_while_the_path_is_renewed),
		CASE(a_connection_that_cannot_be_made_is_asked_for_later),
		CASE(a_neighbour_may_receive_less),
		CASE(a_neighbour_without_the_flag_gets_datagrams),
		CASE(an_answer_for_another_interface_is_refused),
		CASE(a_neighbour_connects_too),
		CASE(a_neighbour_that_asks_again_has_lost_both_connections),
		CASE(a_neighbour_that_asks_ends_the_pause),
		CASE(asking_neighbours_do_not_end_each_pause),
		CASE(requests_with_wrong_private_data_are_refused),
		CASE(connections_of_neighbours_are_bounded),
		CASE(one_port_does_not_take_all_connections),
		CASE(a_packet_of_a_connection_has_its_sender),
		CASE(idle_connections_are_closed),
		CASE(an_interface_that_goes_down_closes_all),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
