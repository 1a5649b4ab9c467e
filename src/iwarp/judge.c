/* SPDX-License-Identifier: BSD-2-Clause */
#include "iwarp/judge.h"

#include "hca/semantics.h"
#include "ibt/message.h"
#include "iwarp/stream.h"
#include "util/bits.h"

bool judge_refuse(struct iwarp_stream *s, enum terminate_cause cause)
{
	s->segment.refused = cause;
	return false;
}

/* Does the segment, which is untagged and no part of a SEND, have a length that
 * its opcode allows? */
static bool has_fitting_body(const struct stream_segment *g)
{
	if (!g->info->payload_bytes)
		return g->payload_bytes <= STREAM_BODY_MAX;
	return g->payload_bytes == g->info->payload_bytes && g->ddp.is_last &&
	       !g->ddp.message_offset;
}

/* Is the segment a ready-to-receive that this side takes (RFC 6581 9.2)?
 * Whether a READ has length 0 is judged when its body has come. */
static bool is_ready_to_receive(const struct iwarp_stream *s)
{
	const struct stream_segment *g = &s->segment;

	if (g->ddp.opcode == RDMAP_READ_REQUEST)
		return s->in.rtr & MPA_RTR_READ;
	if (g->payload_bytes || !g->ddp.is_last)
		return false;
	if (g->ddp.opcode == RDMAP_WRITE)
		return s->in.rtr & MPA_RTR_WRITE;
	return g->ddp.opcode == RDMAP_SEND && s->in.rtr & MPA_RTR_SEND;
}

/* A SEND takes one receive, and its segments come in order (RFC 5040 5.3, RFC
 * 5041 4.3). */
static bool judge_send(struct ibt *t, struct ibt_qp *q)
{
	struct iwarp_stream *s = q->stream;
	struct stream_segment *g = &s->segment;
	struct stream_target *in = &s->in;
	struct wqe *w;
	uint64_t most;

	if (g->ddp.sequence != in->send_sequence)
		return judge_refuse(s, TERMINATE_SEQUENCE);
	if (in->in_message && g->ddp.opcode != in->opcode)
		return judge_refuse(s, TERMINATE_OPCODE);
	if (!in->in_message)
		in->placed = 0;
	if (g->ddp.message_offset != in->placed)
		return judge_refuse(s, TERMINATE_OFFSET);
	if (in->rtr)
		return true; /* a ready-to-receive takes no receive */
	w = ibt_receive_take(t, q);
	if (!w)
		return judge_refuse(s, TERMINATE_NO_BUFFER);
	in->in_message = true;
	in->opcode = g->ddp.opcode;
	g->explain.wr_id = w->wr_id;
	most = bits_min_u64(sem_capacity(w), HCA_MAX_MESSAGE);
	if (in->placed + (uint64_t)g->payload_bytes <= most)
		return true;
	g->explain.cause = EXPLAIN_LOCAL_LENGTH;
	g->explain.opcode = EXPLAIN_RECEIVE;
	g->explain.bytes = in->placed + (uint64_t)g->payload_bytes;
	g->explain.region_bytes = most;
	g->receive_status = HCA_LOC_LEN_ERR;
	return judge_refuse(s, TERMINATE_TOO_LONG);
}

/* Immediate Data comes in the DDP queue of the SENDs (RFC 7306 6.3). */
static bool judge_immediate(struct ibt *t, struct ibt_qp *q)
{
	struct iwarp_stream *s = q->stream;

	if (s->in.in_message)
		return judge_refuse(s, TERMINATE_OPCODE);
	if (s->segment.ddp.sequence != s->in.send_sequence)
		return judge_refuse(s, TERMINATE_SEQUENCE);
	if (!ibt_receive_take(t, q))
		return judge_refuse(s, TERMINATE_NO_BUFFER);
	return true;
}

/* May the peer write by the present segment's key, offset and length? */
static bool judge_write(struct ibt *t, struct ibt_qp *q)
{
	struct iwarp_stream *s = q->stream;
	struct stream_segment *g = &s->segment;

	/* a segment without payload names no memory (RFC 5041 5.2) */
	if (!g->payload_bytes)
		return true;
	if (g->ddp.offset + g->payload_bytes < g->ddp.offset)
		return judge_refuse(s, TERMINATE_WRAP);
	if (!message_key(t->hca, q->qp, g->ddp.stag, g->ddp.offset,
			 g->payload_bytes, HCA_REMOTE_WRITE, &g->explain))
		return true;
	return judge_refuse(
		s, terminate_of_tagged((enum mr_verdict)g->explain.verdict));
}

/* A segment of a response answers the oldest READ, and continues where the
 * segment before it ended (RFC 5040 5.2.2). */
static bool judge_read_response(struct ibt *t, struct ibt_qp *q)
{
	struct iwarp_stream *s = q->stream;
	const struct stream_segment *g = &s->segment;
	struct rdmap_read r = {.bytes = 0};
	struct wqe *w;
	uint64_t end;
	uint32_t at;

	if (s->out.awaits_rtr)
		return g->payload_bytes || !g->ddp.is_last
			       ? judge_refuse(s, TERMINATE_BOUNDS)
			       : true;
	w = stream_read_out(t, q, &at);
	if (!w || w->opcode != HCA_WR_RDMA_READ)
		return judge_refuse(s, TERMINATE_OPCODE);
	r = stream_read_of(w);
	/* the response to a READ of length 0 names no memory (RFC 5041 5.2) */
	if (!r.bytes && !g->payload_bytes && g->ddp.is_last)
		return true;
	end = s->out.placed + (uint64_t)g->payload_bytes;
	if (g->ddp.stag != r.sink_stag)
		return judge_refuse(s, TERMINATE_STAG);
	if (g->ddp.offset != r.sink_offset + s->out.placed || end > r.bytes ||
	    g->ddp.is_last != (end == r.bytes))
		return judge_refuse(s, TERMINATE_BOUNDS);
	return true;
}

/* Up to IRD READs and atomics of the peer wait for their responses, in one
 * queue (RFC 5040 6.1, RFC 7306 5.2).  A READ that is a ready-to-receive does
 * not count. */
static bool judge_read_like(struct ibt_qp *q)
{
	struct iwarp_stream *s = q->stream;
	struct stream_target *in = &s->in;
	uint32_t due = in->head - in->tail - in->is_rtr_due;

	if (s->segment.ddp.sequence != in->request_sequence)
		return judge_refuse(s, TERMINATE_SEQUENCE);
	if (!in->rtr && due >= in->ird)
		return judge_refuse(s, TERMINATE_NO_BUFFER);
	return true;
}

static bool judge_opcode(struct ibt *t, struct ibt_qp *q)
{
	struct iwarp_stream *s = q->stream;

	switch ((enum rdmap_opcode)s->segment.ddp.opcode) {
	case RDMAP_WRITE:
		return judge_write(t, q);
	case RDMAP_READ_RESPONSE:
		return judge_read_response(t, q);
	case RDMAP_SEND:
	case RDMAP_SEND_INV:
	case RDMAP_SEND_SE:
	case RDMAP_SEND_SE_INV:
		return judge_send(t, q);
	case RDMAP_IMMEDIATE:
	case RDMAP_IMMEDIATE_SE:
		return judge_immediate(t, q);
	case RDMAP_READ_REQUEST:
	case RDMAP_ATOMIC_REQUEST:
		return judge_read_like(q);
	case RDMAP_ATOMIC_RESPONSE:
		return s->segment.ddp.sequence == s->out.response_sequence
			       ? true
			       : judge_refuse(s, TERMINATE_SEQUENCE);
	case RDMAP_TERMINATE:
		return true;
	case RDMAP_OPCODES:
		break;
	}
	return judge_refuse(s, TERMINATE_OPCODE);
}

bool judge_segment(struct ibt *t, struct ibt_qp *q)
{
	struct iwarp_stream *s = q->stream;
	struct stream_segment *g = &s->segment;

	if (g->ddp.ddp_version != DDP_VERSION)
		return judge_refuse(s, g->ddp.is_tagged
					       ? TERMINATE_TAGGED_VERSION
					       : TERMINATE_UNTAGGED_VERSION);
	if (g->ddp.rdmap_version != RDMAP_VERSION)
		return judge_refuse(s, TERMINATE_RDMAP_VERSION);
	if (!g->ddp.is_tagged && g->ddp.queue >= DDP_QUEUES)
		return judge_refuse(s, TERMINATE_QUEUE);
	g->info = rdmap_info(g->ddp.opcode);
	if (!g->info || g->info->is_tagged != g->ddp.is_tagged ||
	    (g->info->is_extension && !s->has_extensions))
		return judge_refuse(s, TERMINATE_OPCODE);
	if (!g->info->is_tagged && g->info->queue != g->ddp.queue)
		return judge_refuse(s, TERMINATE_QUEUE);
	if (!g->info->is_tagged && !rdmap_is_send(g->ddp.opcode) &&
	    !has_fitting_body(g))
		return judge_refuse(s, TERMINATE_STREAM);
	g->explain.opcode = g->ddp.opcode;
	/* A Terminate may come in place of a ready-to-receive: an initiator
	 * that knows none of the responder's kinds of ready-to-receive sends a
	 * Terminate (RFC 6581 9.2). */
	if (s->in.rtr && g->ddp.opcode != RDMAP_TERMINATE &&
	    !is_ready_to_receive(s))
		return judge_refuse(s, TERMINATE_RTR);
	return judge_opcode(t, q);
}
