/* SPDX-License-Identifier: BSD-2-Clause */
#include "sim/bytestream.h"

#include <stdlib.h>
#include <string.h>

#include "iwarp/stream.h"
#include "sim/node.h"
#include "sim/pair.h"
#include "sim/pcap.h"
#include "util/bits.h"

#define LIMIT_MAX 100000u /* the greatest limit of a stream */
/* If `tail` is 0 and fewer bytes than the limit are under way, the rest of
 * bytes[] is at least engine_stream_room(). */
#define ROOM	    (2 * FPDU_ULPDU_MAX)
#define STREAM_SIZE (LIMIT_MAX + ROOM)
#define WIRE_NS	    5000   /* the least time that bytes are under way */
#define LATE_NS	    300000 /* bound of the further, random delay */
#define AGAIN_MS    200	   /* the longest further delay by a retransmission */

/* The stream from a flow's QP to the peer. */
struct bytestream {
	uint64_t at_ns;	     /* when the next bytes arrive */
	uint32_t head, tail; /* bytes[tail] to bytes[head - 1] are under way */
	uint32_t limit;	     /* with this many bytes under way it is full */
	bool is_open;	     /* from bytestream_open to its close or end */
	bool is_full;	     /* the sender waits for room */
	bool is_ended;	     /* the sender puts no more bytes in */
	uint8_t bytes[STREAM_SIZE];
};

static bool is_live(const struct flow *f)
{
	return f->bytestream && f->bytestream->is_open;
}

bool bytestream_is_empty(const struct flow *f)
{
	return !is_live(f) || f->bytestream->head == f->bytestream->tail;
}

/* Draws when the next bytes of the stream arrive. */
static void schedule_bytes(struct world *w, const struct flow *f)
{
	uint64_t at = w->now_ns + WIRE_NS + rng_below(&w->rng, LATE_NS);

	if (!world_is_quiet(w) && rng_chance(&w->rng, w->faults.drop))
		at += rng_below(&w->rng, AGAIN_MS) * WORLD_MS;
	at = bits_max_u64(at, f->from->unplugged_ns);
	f->bytestream->at_ns = bits_max_u64(at, f->to->unplugged_ns);
}

void bytestream_open(struct world *w, struct flow *f,
		     const struct stream_config *c)
{
	struct bytestream *b = f->bytestream;

	if (!b)
		b = f->bytestream = calloc(1, sizeof(*b));
	if (!b)
		abort();
	b->head = b->tail = 0;
	b->limit = 1 + rng_below(&w->rng, LIMIT_MAX);
	b->is_open = true;
	b->is_full = b->is_ended = false;
	if (engine_stream_open(f->from->engine, f->q, c))
		world_fail(w, "flow %u: the engine refuses a stream", f->id);
}

void bytestream_close(struct flow *f)
{
	if (f->bytestream)
		f->bytestream->is_open = false;
}

void bytestream_break(struct flow *f)
{
	struct bytestream *b = f->bytestream;
	struct world *w = f->from->world;

	if (!b->is_open)
		return;
	if (b->head == b->tail)
		schedule_bytes(w, f);
	else /* bytes that the sender's kernel has not sent are lost */
		b->head = b->tail + rng_below(&w->rng, b->head - b->tail + 1);
	b->is_ended = true;
}

/* ---- sending ---- */

/* Moves bytes of the engine into the stream of f, if the stream has room. */
static void send_stream(struct world *w, struct flow *f)
{
	struct bytestream *b = f->bytestream;
	bool was_empty = b->head == b->tail;

	if (b->is_ended)
		return;
	if (was_empty)
		b->head = b->tail = 0;
	if (b->head - b->tail >= b->limit ||
	    STREAM_SIZE - b->head < engine_stream_room(f->q)) {
		b->is_full = true;
		return;
	}
	/* half of the calls give the engine the least room that it accepts, the
	 * others all room */
	b->head += engine_stream_tx(f->from->engine, f->q, b->bytes + b->head,
				    rng_chance(&w->rng, 500000)
					    ? engine_stream_room(f->q)
					    : STREAM_SIZE - b->head,
				    node_now(f->from));
	b->is_ended = engine_stream_is_over(f->q);
	if (was_empty && (b->is_ended || b->head != b->tail))
		schedule_bytes(w, f);
}

void bytestream_send(struct host *h)
{
	struct world *w = h->world;
	struct ibt_qp *q;

	if (!w->kind.has_streams)
		return;
	while ((q = engine_stream_next(h->engine))) {
		struct flow *f = pair_flow_of(w, h, q->qp->qpn);

		if (is_live(f))
			send_stream(w, f);
	}
}

/* ---- receiving ---- */

/* Wakes a sender that waits for room, once half of the limit is free. */
static void wake_sender(struct flow *f)
{
	struct bytestream *b = f->bytestream;

	if (!b->is_full || b->head - b->tail > b->limit / 2)
		return;
	memmove(b->bytes, b->bytes + b->tail, b->head - b->tail);
	b->head -= b->tail;
	b->tail = 0;
	b->is_full = false;
	if (!f->q)
		return;
	engine_stream_ready(f->from->engine, f->q);
	f->from->woken.writable = true;
}

/* Tells the receiver that the stream has ended, after its last byte. */
static void end_stream(struct host *h, struct flow *f)
{
	f->bytestream->is_open = false;
	pcap_end(f);
	if (f->back->q && f->back->q->stream)
		engine_stream_lost(h->engine, f->back->q, node_now(h));
}

/* Gives the receiver of f's stream all bytes that are under way, or some. */
static void receive_stream(struct world *w, struct host *h, struct flow *f)
{
	struct bytestream *b = f->bytestream;
	uint32_t most = b->head - b->tail, n;

	n = most && rng_chance(&w->rng, 300000) ? 1 + rng_below(&w->rng, most)
						: most;
	pcap_bytes(f, b->bytes + b->tail, n);
	if (n && f->back->q && f->back->q->stream)
		engine_stream_rx(h->engine, f->back->q, b->bytes + b->tail, n,
				 node_now(h));
	b->tail += n;
	wake_sender(f);
	if (b->head != b->tail)
		schedule_bytes(w, f);
	else if (b->is_ended)
		end_stream(h, f);
}

/* Does the stream of f lead to h, and has it bytes or its end to give? */
static bool is_due(const struct flow *f, const struct host *h)
{
	return is_live(f) && f->to == h &&
	       (f->bytestream->head != f->bytestream->tail ||
		f->bytestream->is_ended);
}

void bytestream_receive(struct host *h)
{
	struct world *w = h->world;

	for (uint32_t i = 0; w->kind.has_streams && i < w->flow_count; i++)
		if (is_due(&w->flows[i], h) &&
		    w->flows[i].bytestream->at_ns <= w->now_ns)
			receive_stream(w, h, &w->flows[i]);
}

uint64_t bytestream_next(const struct host *h)
{
	const struct world *w = h->world;
	uint64_t next = UINT64_MAX;

	for (uint32_t i = 0; w->kind.has_streams && i < w->flow_count; i++)
		if (is_due(&w->flows[i], h))
			next = bits_min_u64(next,
					    w->flows[i].bytestream->at_ns);
	return next;
}
