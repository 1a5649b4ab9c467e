/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * iwarp/tcp_segment: whatever the bytes of a connection are, and however they
 * are cut, the segments have all of them, once and in order, and the numbers of
 * each segment are right.
 */
#include "fuzz.h"
#include "input.h"

#include <string.h>

#include "hdr/tcp.h"
#include "iwarp/tcp_segment.h"

#define ALL (1u << 21) /* bytes of one direction */

/* For each side: the bytes that it gave, and how many of them have been in
 * segments. */
static struct {
	uint8_t bytes[ALL]; /* the bytes that were given */
	uint32_t given;	    /* how many bytes were given */
	uint32_t written;   /* how many of them were in segments */
	uint32_t next;	    /* the sequence number of the next segment */
} side_of[2];

static void take_segment(void *arg, const struct tcp_segment *s)
{
	FUZZ_REQUIRE(arg == side_of && s->count <= TCP_SEGMENT_MAX);
	FUZZ_REQUIRE(s->seq == side_of[s->from].next);
	FUZZ_REQUIRE(!(s->flags & TCP_ACK) || s->ack == side_of[!s->from].next);
	FUZZ_REQUIRE(side_of[s->from].written + s->count <=
		     side_of[s->from].given);
	if (s->count)
		FUZZ_REQUIRE(!memcmp(side_of[s->from].bytes +
					     side_of[s->from].written,
				     s->bytes, s->count));
	side_of[s->from].written += s->count;
	side_of[s->from].next +=
		s->count + ((s->flags & (TCP_SYN | TCP_FIN)) != 0);
}

/* Lets a side send 1 to 65536 bytes, unless the side has ended or its bytes[]
 * has no room: the first bytes come from the input, and the rest repeats
 * them. */
static void give_bytes(struct tcp_segments *t, enum tcp_segment_side side,
		       struct input_bytes *in)
{
	uint32_t count = 1 + input_u16(in), at = side_of[side].given;
	uint32_t period = 1 + input_u8(in) % 64;
	uint8_t *p = side_of[side].bytes + at;

	if (t->half[side].has_ended || count > ALL - at)
		return;
	for (uint32_t i = 0; i < count; i++)
		p[i] = i < period ? input_u8(in) : p[i - period];
	side_of[side].given += count;
	tcp_segment_bytes(t, side, p, count);
}

static void run_command(struct tcp_segments *t, struct input_bytes *in)
{
	uint8_t how = input_u8(in);
	enum tcp_segment_side side =
		how & 1 ? TCP_SEGMENT_PEER : TCP_SEGMENT_OWN;

	if (how >= 250)
		tcp_segment_reset(t, side);
	else if (how >= 240)
		tcp_segment_end(t, side);
	else
		give_bytes(t, side, in);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input_bytes in = {data, data + size};
	struct tcp_segments t = {.write = take_segment, .arg = side_of};
	struct tcp_segment_start start[2];

	for (int i = 0; i < 2; i++) {
		start[i] = (struct tcp_segment_start){
			input_u32(&in), input_u8(&in), input_u8(&in) & 1};
		side_of[i].given = side_of[i].written = 0;
		side_of[i].next = start[i].seq;
	}
	tcp_segment_open(&t, TCP_SEGMENT_OWN, start);
	while (in.at < in.end)
		run_command(&t, &in);
	tcp_segment_fini(&t);
	for (int i = 0; i < 2; i++) {
		FUZZ_REQUIRE(side_of[i].written == side_of[i].given);
		FUZZ_REQUIRE(!t.half[i].held);
	}
	return 0;
}
