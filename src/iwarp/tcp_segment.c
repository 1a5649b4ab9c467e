/* SPDX-License-Identifier: BSD-2-Clause */
#include "iwarp/tcp_segment.h"

#include <stdlib.h>
#include <string.h>

#include "util/bits.h"

/* When more bytes of a direction than these are not acknowledged, the other
 * side sends a segment that has only an ACK. */
#define UNACKED_MAX (256u << 10)
/* The window in all headers.  After SYN it counts units of 2^SHIFT bytes, so it
 * is almost 2^30 bytes, which no direction fills. */
#define WINDOW 0xffff
#define SHIFT  14

struct tcp tcp_segment_header(const struct tcp_segment *s)
{
	return (struct tcp){.seq = s->seq,
			    .ack = s->ack,
			    .flags = s->flags,
			    .window = WINDOW,
			    .segment_max = TCP_SEGMENT_MAX,
			    .shift = SHIFT};
}

static enum tcp_segment_side other_side(enum tcp_segment_side side)
{
	return side == TCP_SEGMENT_OWN ? TCP_SEGMENT_PEER : TCP_SEGMENT_OWN;
}

static void write_segment(struct tcp_segments *s, enum tcp_segment_side side,
			  uint8_t flags, const uint8_t *p, uint32_t n)
{
	struct tcp_segment_half *h = &s->half[side];
	struct tcp_segment_half *other = &s->half[other_side(side)];
	struct tcp_segment made = {.from = side,
				   .flags = flags,
				   .seq = h->next,
				   .bytes = p,
				   .count = n};

	if (flags & TCP_ACK)
		made.ack = other->acked = other->next;
	h->next += n + ((flags & (TCP_SYN | TCP_FIN)) != 0);
	s->write(s->arg, &made);
}

static void write_ack(struct tcp_segments *s, enum tcp_segment_side side)
{
	write_segment(s, side, TCP_ACK, NULL, 0);
}

static void write_bytes(struct tcp_segments *s, enum tcp_segment_side side,
			const uint8_t *p, uint32_t n)
{
	struct tcp_segment_half *h = &s->half[side];
	uint32_t part;

	for (; n; p += part, n -= part) {
		part = bits_min_u32(n, TCP_SEGMENT_MAX);
		write_segment(s, side, part == n ? TCP_ACK | TCP_PSH : TCP_ACK,
			      p, part);
	}
	if (h->next - h->acked > UNACKED_MAX)
		write_ack(s, other_side(side));
}

void tcp_segment_open(struct tcp_segments *s, enum tcp_segment_side begins,
		      const struct tcp_segment_start start[2])
{
	for (int i = 0; i < 2; i++) {
		struct tcp_segment_half *h = &s->half[i];

		memset(h, 0, sizeof(*h));
		h->next = h->acked = start[i].seq;
		h->frame_left = start[i].frame_bytes;
		h->is_framed = true;
		fpdu_rx_init(&h->rx, false, start[i].has_markers);
	}
	write_segment(s, begins, TCP_SYN, NULL, 0);
	write_segment(s, other_side(begins), TCP_SYN | TCP_ACK, NULL, 0);
	write_ack(s, begins);
}

/* Returns how many of the n bytes at p belong to the FPDU that they begin or
 * continue.  *is_whole: the FPDU is complete with them.  After a wrong marker
 * nothing tells where an FPDU begins, so all n bytes belong together. */
static uint32_t take_fpdu(struct tcp_segment_half *h, const uint8_t *p,
			  uint32_t n, bool *is_whole)
{
	enum fpdu_result said = FPDU_MORE;
	uint32_t at = 0;

	while (at < n && said != FPDU_WHOLE) {
		struct fpdu_want want = fpdu_rx_want(&h->rx);
		uint32_t part = bits_min_u32(want.bytes, n - at);

		said = fpdu_rx_take(&h->rx, p + at, part);
		at += part;
		if (said == FPDU_BAD_MARKER) {
			h->is_framed = false;
			*is_whole = true;
			return n;
		}
	}
	*is_whole = said == FPDU_WHOLE;
	return at;
}

/* Returns how many of the n bytes at p belong together.  *is_whole: the frame
 * of MPA, or the FPDU, is complete with them. */
static uint32_t take_unit(struct tcp_segment_half *h, const uint8_t *p,
			  uint32_t n, bool *is_whole)
{
	uint32_t part;

	if (h->frame_left) {
		part = bits_min_u32(n, h->frame_left);
		h->frame_left -= part;
		*is_whole = !h->frame_left;
		return part;
	}
	if (h->is_framed)
		return take_fpdu(h, p, n, is_whole);
	*is_whole = true;
	return n;
}

/* Makes a segment of the bytes that are held. */
static void write_held(struct tcp_segments *s, enum tcp_segment_side side)
{
	struct tcp_segment_half *h = &s->half[side];
	uint32_t bytes = h->held_bytes;

	h->held_bytes = 0;
	write_bytes(s, side, h->held, bytes);
}

static void drop_held(struct tcp_segments *s, enum tcp_segment_side side)
{
	struct tcp_segment_half *h = &s->half[side];

	if (!h->held)
		return;
	write_held(s, side);
	free(h->held);
	h->held = NULL;
}

/* Holds bytes until the rest of their frame of MPA, or of their FPDU, comes.
 * When TCP_SEGMENT_MAX bytes are held and more come, the held bytes become a
 * segment.  Without memory to hold bytes, makes segments of them at once. */
static void hold_bytes(struct tcp_segments *s, enum tcp_segment_side side,
		       const uint8_t *p, uint32_t n)
{
	struct tcp_segment_half *h = &s->half[side];
	uint32_t part;

	if (!h->held)
		h->held = malloc(TCP_SEGMENT_MAX);
	if (!h->held) {
		write_bytes(s, side, p, n);
		return;
	}
	for (; n; p += part, n -= part) {
		if (h->held_bytes == TCP_SEGMENT_MAX)
			write_held(s, side);
		part = bits_min_u32(n, TCP_SEGMENT_MAX - h->held_bytes);
		memcpy(h->held + h->held_bytes, p, part);
		h->held_bytes += part;
	}
}

void tcp_segment_bytes(struct tcp_segments *s, enum tcp_segment_side side,
		       const uint8_t *p, uint32_t n)
{
	struct tcp_segment_half *h = &s->half[side];
	uint32_t part;

	for (; n && !h->has_ended; p += part, n -= part) {
		bool is_whole;

		part = take_unit(h, p, n, &is_whole);
		if (is_whole && !h->held) {
			write_bytes(s, side, p, part);
			continue;
		}
		hold_bytes(s, side, p, part);
		if (is_whole)
			drop_held(s, side);
	}
}

void tcp_segment_end(struct tcp_segments *s, enum tcp_segment_side side)
{
	struct tcp_segment_half *h = &s->half[side];

	if (h->has_ended)
		return;
	drop_held(s, side);
	h->has_ended = true;
	write_segment(s, side, TCP_FIN | TCP_ACK, NULL, 0);
	write_ack(s, other_side(side));
}

void tcp_segment_reset(struct tcp_segments *s, enum tcp_segment_side side)
{
	bool is_over = s->half[TCP_SEGMENT_OWN].has_ended &&
		       s->half[TCP_SEGMENT_PEER].has_ended;

	if (is_over)
		return;
	drop_held(s, TCP_SEGMENT_OWN);
	drop_held(s, TCP_SEGMENT_PEER);
	s->half[TCP_SEGMENT_OWN].has_ended = true;
	s->half[TCP_SEGMENT_PEER].has_ended = true;
	write_segment(s, side, TCP_RST | TCP_ACK, NULL, 0);
}

void tcp_segment_fini(struct tcp_segments *s)
{
	drop_held(s, TCP_SEGMENT_OWN);
	drop_held(s, TCP_SEGMENT_PEER);
}
