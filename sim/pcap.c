/* SPDX-License-Identifier: BSD-2-Clause */
#include "sim/pcap.h"

#include <stdlib.h>
#include <string.h>

#include "hdr/erf.h"
#include "hdr/outer.h"
#include "hdr/pcapng.h"
#include "iwarp/stream.h"
#include "iwarp/tcp_segment.h"
#include "sim/pair.h"
#include "util/bits.h"

#define TTL	  64 /* of captured frames */
#define SECOND_NS 1000000000u
/* The TCP ports of a connection's ends.  No two connections of a world have the
 * same port of the client, unless there are more than CLIENT_PORTS connections.
 */
#define CLIENT_PORT  49152
#define CLIENT_PORTS 16384
#define SERVER_PORT  7174

/* The captured connection of a pair. */
struct pcap_stream {
	struct tcp_segments segments; /* its `write` is write_segment */
	struct world *world;
	/* The addresses of both ends, by enum tcp_segment_side. */
	struct inaddr end[2];
};

/* ---- blocks ---- */

static void put_bytes(const struct world *w, const void *bytes, size_t n)
{
	if (n)
		w->pcap.write(w->pcap.arg, bytes, n);
}

/* Writes a frame that consists of head[0..m) and bytes[0..n). */
static void put_block(const struct world *w, const uint8_t *head, size_t m,
		      const uint8_t *bytes, size_t n, const char *comment)
{
	const struct pcapng_packet k = {
		.at_ns = w->now_ns, .bytes = m + n, .comment = comment};
	uint8_t before[PCAPNG_BEFORE_BYTES], after[PCAPNG_AFTER_MAX];

	pcapng_write_before(before, &k);
	put_bytes(w, before, sizeof(before));
	put_bytes(w, head, m);
	put_bytes(w, bytes, n);
	put_bytes(w, after, pcapng_write_after(after, &k));
}

void pcap_begin(struct world *w,
		void (*write)(void *arg, const void *bytes, size_t n),
		void *arg)
{
	uint8_t begin[PCAPNG_BEGIN_BYTES];

	w->pcap.write = write;
	w->pcap.arg = arg;
	pcapng_write_begin(begin,
			   w->subnet ? ERF_LINK_TYPE : PCAPNG_LINK_ETHERNET);
	put_bytes(w, begin, sizeof(begin));
}

/* Makes the MAC of a host: locally administered, and with the last byte of its
 * IP address, in which the addresses of hosts differ. */
static void put_mac(uint8_t mac[ETH_ADDRESS_BYTES], const struct inaddr *a)
{
	memset(mac, 0, ETH_ADDRESS_BYTES);
	mac[0] = 2;
	mac[5] = a->ip[15];
}

static struct outer outer_of(const struct inaddr *from, const struct inaddr *to)
{
	struct outer o = {.from = from, .to = to, .ttl = TTL};

	put_mac(o.from_mac, from);
	put_mac(o.to_mac, to);
	return o;
}

/* ---- frames ---- */

/* Writes the names of the bits of fate to text; false: there are none. */
static bool tell_fate(char text[PCAPNG_COMMENT_MAX + 1], unsigned fate)
{
	static const struct {
		unsigned bit;
		const char *name;
	} names[] = {
		{PCAP_FORGED, "forged"},
		{PCAP_COPY, "a second copy"},
		{PCAP_LOST, "lost"},
		{PCAP_CHANGED, "a bit is flipped"},
		{PCAP_CUT, "cut short"},
		{PCAP_LATE, "late"},
		{PCAP_UNPLUGGED, "the sender is unplugged"},
	};
	char *end = text;

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (!(fate & names[i].bit))
			continue;
		if (end != text)
			end = stpcpy(end, ", ");
		end = stpcpy(end, names[i].name);
	}
	return end != text;
}

void pcap_frame(struct world *w, const struct engine_frame *f, size_t off,
		unsigned fate)
{
	uint8_t frame[OUTER_UDP_MAX + WORLD_FRAME_MAX];
	char comment[PCAPNG_COMMENT_MAX + 1];
	size_t n = bits_min_u64(f->segment, f->len - off);
	struct outer o;

	if (!w->pcap.write)
		return;
	o = outer_of(&f->from, &f->to);
	/* segment n of a datagram has the id n (encap/rocev2.h) */
	o.id = (uint16_t)(off / f->segment);
	o.tos = f->tos;
	put_block(w, frame, outer_write_udp(frame, &o, f->bytes + off, n), NULL,
		  0, tell_fate(comment, fate) ? comment : NULL);
}

void pcap_packet(struct world *w, const uint8_t *p, size_t n, unsigned fate)
{
	char comment[PCAPNG_COMMENT_MAX + 1];
	uint8_t head[ERF_BYTES];

	if (!w->pcap.write)
		return;
	erf_write(head, w->now_ns / SECOND_NS,
		  (uint32_t)(w->now_ns % SECOND_NS), n);
	put_block(w, head, sizeof(head), p, n,
		  tell_fate(comment, fate) ? comment : NULL);
}

/* ---- byte streams ---- */

/* Writes a TCP segment; arg: the struct pcap_stream. */
static void write_segment(void *arg, const struct tcp_segment *made)
{
	const struct pcap_stream *s = arg;
	const struct outer o =
		outer_of(&s->end[made->from], &s->end[!made->from]);
	const struct tcp tcp = tcp_segment_header(made);
	uint8_t head[OUTER_TCP_MAX];
	size_t m = outer_write_tcp(head, &o, &tcp, made->bytes, made->count);

	put_block(s->world, head, m, made->bytes, made->count, NULL);
}

/* Makes the request or the reply from which configuration c results. */
static uint32_t put_mpa(uint8_t p[MPA_FRAME_MAX], const struct stream_config *c)
{
	const struct mpa_frame f = {.kind = c->is_responder ? MPA_REPLY
							    : MPA_REQUEST,
				    .revision = 2,
				    .wants_markers = c->rx_markers,
				    .wants_crc = c->has_crc,
				    .is_enhanced = true,
				    .enhanced = {.ird = (uint16_t)c->ird,
						 .ord = (uint16_t)c->ord,
						 .is_peer_to_peer = c->rtr != 0,
						 .rtr = c->rtr}};

	return (uint32_t)mpa_write(p, &f);
}

/* Begins the connection with TCP's handshake and MPA's exchange. */
static void begin_stream(struct pcap_stream *s, const struct stream_config *c)
{
	struct tcp_segment_start start[2];
	uint8_t mpa[2][MPA_FRAME_MAX];

	for (int i = 0; i < 2; i++)
		start[i] = (struct tcp_segment_start){
			.frame_bytes = put_mpa(mpa[i], &c[i]),
			.has_markers = c[i].tx_markers};
	tcp_segment_open(&s->segments, TCP_SEGMENT_OWN, start);
	for (int i = 0; i < 2; i++)
		tcp_segment_bytes(&s->segments, (enum tcp_segment_side)i,
				  mpa[i], start[i].frame_bytes);
}

void pcap_connect(struct world *w, const struct flow *f,
		  const struct stream_config *c)
{
	struct pcap_stream *s;

	if (!w->pcap.write)
		return;
	pcap_disconnect(&f->pair->pcap);
	s = f->pair->pcap = calloc(1, sizeof(*s));
	if (!s)
		abort();
	s->segments.write = write_segment;
	s->segments.arg = s;
	s->world = w;
	s->end[TCP_SEGMENT_OWN] = f[0].from->addr;
	s->end[TCP_SEGMENT_PEER] = f[1].from->addr;
	s->end[TCP_SEGMENT_OWN].port =
		(uint16_t)(CLIENT_PORT + w->pcap.connections++ % CLIENT_PORTS);
	s->end[TCP_SEGMENT_PEER].port = SERVER_PORT;
	begin_stream(s, c);
}

static enum tcp_segment_side side_of(const struct flow *f)
{
	return f == f->pair->flow ? TCP_SEGMENT_OWN : TCP_SEGMENT_PEER;
}

void pcap_bytes(const struct flow *f, const uint8_t *p, uint32_t n)
{
	if (f->pair->pcap)
		tcp_segment_bytes(&f->pair->pcap->segments, side_of(f), p, n);
}

void pcap_end(const struct flow *f)
{
	if (f->pair->pcap)
		tcp_segment_end(&f->pair->pcap->segments, side_of(f));
}

void pcap_disconnect(struct pcap_stream **p)
{
	struct pcap_stream *s = *p;

	if (!s)
		return;
	tcp_segment_reset(&s->segments, TCP_SEGMENT_OWN);
	tcp_segment_fini(&s->segments);
	free(s);
	*p = NULL;
}
