/* SPDX-License-Identifier: BSD-2-Clause */
/* Makes FPDUs, or over SCTP messages, of requests, responses and a Terminate.
 */
#include <string.h>

#include "hca/semantics.h"
#include "hdr/bytes.h"
#include "ibt/local_wr.h"
#include "ibt/message.h"
#include "iwarp/stream.h"
#include "util/bits.h"

/* An FPDU, or message of SCTP, that is being made in the caller's buffer. */
struct fpdu_out {
	uint8_t *buf;	       /* the caller's buffer */
	struct ddp_header ddp; /* the segment's header */
	uint32_t head_bytes;   /* the length of the DDP header in buf */
	uint8_t *payload;      /* where in buf the payload begins */
	bool is_summed;	       /* begin_sum has begun the CRC */
	/* If is_summed: the state of the FPDU's CRC (fpdu_sum_head). */
	uint32_t crc;
};

uint32_t stream_tx_room(const struct ibt_qp *q)
{
	if (q->stream->session)
		return SESSION_HEAD + q->stream->ulpdu_max;
	return fpdu_bytes_max(&q->stream->tx, q->stream->ulpdu_max);
}

/* Fills in the rest of o->ddp for the opcode, and writes the header to buf.
 * Sets o->payload, where the caller then writes the payload. */
static void begin_segment(const struct iwarp_stream *s, struct fpdu_out *o,
			  uint8_t *buf, uint8_t opcode)
{
	uint8_t *segment = buf + (s->session ? SESSION_HEAD : FPDU_ULPDU_AT);

	o->buf = buf;
	o->ddp.ddp_version = DDP_VERSION;
	o->ddp.rdmap_version = RDMAP_VERSION;
	o->ddp.opcode = opcode;
	o->ddp.is_tagged = rdmap_info(opcode)->is_tagged;
	o->ddp.queue = rdmap_info(opcode)->queue;
	o->head_bytes = (uint32_t)ddp_write(segment, &o->ddp);
	o->payload = segment + o->head_bytes;
}

/* Begins the CRC of an FPDU whose header is written.  Returns the state that
 * the caller updates while it copies the payload; NULL: end_segment computes
 * the CRC, or there is none. */
static uint32_t *begin_sum(const struct iwarp_stream *s, struct fpdu_out *o,
			   uint32_t payload_bytes)
{
	o->is_summed = !s->session && fpdu_may_sum(&s->tx);
	if (!o->is_summed)
		return NULL;
	o->crc = fpdu_sum_head(o->buf, o->head_bytes,
			       o->head_bytes + payload_bytes);
	return &o->crc;
}

static uint32_t end_segment(struct ibt_qp *q, const struct fpdu_out *o,
			    uint32_t payload_bytes)
{
	struct iwarp_stream *s = q->stream;
	uint32_t ulpdu_bytes = o->head_bytes + payload_bytes;

	q->counters->tx_packets++;
	q->counters->tx_bytes += ulpdu_bytes;
	q->qp->stats.tx_packets++;
	q->qp->stats.tx_bytes += ulpdu_bytes;
	if (o->is_summed)
		return fpdu_seal_summed(o->buf, ulpdu_bytes, o->crc);
	return s->session ? session_seal(s->session, o->buf, ulpdu_bytes)
			  : fpdu_seal(&s->tx, o->buf, ulpdu_bytes);
}

/* Returns how many of the `left` bytes of a message its next segment carries:
 * no segment exceeds MULPDU, and a message of length 0 is one segment (RFC 5041
 * 5.2). */
static uint32_t segment_bytes(const struct iwarp_stream *s, bool is_tagged,
			      uint32_t left)
{
	return bits_min_u32(left,
			    s->ulpdu_max - (is_tagged ? DDP_TAGGED_BYTES
						      : DDP_UNTAGGED_BYTES));
}

/* ---- requests ---- */

/* w, the request at the cursor, has a local error: w fails when the requests
 * before it are complete. */
static void stop_request(struct ibt *t, struct ibt_qp *q, const struct wqe *w,
			 enum hca_status status, struct explain *x)
{
	q->stream->out.is_begun = false;
	ibt_request_failed(t, q, w, status, x);
	stream_retire(t, q);
}

static void advance_cursor(struct ibt *t, struct ibt_qp *q)
{
	struct stream_initiator *out = &q->stream->out;

	q->req.wqe++;
	out->is_begun = out->owes_immediate = false;
	out->sent = 0;
	q->stream->is_response_next = true;
	stream_retire(t, q);
}

/* Returns the words that tell the user why w's operation is missing, with a
 * remedy. */
static const char *missing_opcode(const struct wqe *w)
{
	if (stream_has_opcode(true, w->opcode))
		return "iWARP has this operation only by RFC 7306, which this "
		       "connection does not use; use another operation, or a "
		       "RoCE device";
	return "iWARP never has this operation; use another operation, or a "
	       "RoCE device";
}

/* Judges the opcode and the length of w, but not its memory. */
static enum hca_status judge_opcode(const struct iwarp_stream *s,
				    const struct wqe *w, struct explain *x)
{
	x->cause = EXPLAIN_LOCAL_OP;
	x->detail = missing_opcode(w);
	if (!stream_has_opcode(s->has_extensions, w->opcode))
		return HCA_LOC_QP_OP_ERR;
	x->detail = "the connection allows no READ and no atomic, because its "
		    "initiator_depth is 0; connect with a greater one";
	if (rc_req_is_read(w) && !s->out.ord)
		return HCA_LOC_QP_OP_ERR;
	x->detail = "the SGEs of an atomic must have 8 bytes in all";
	if (rc_req_is_read(w) && w->opcode != HCA_WR_RDMA_READ && w->bytes != 8)
		return HCA_LOC_LEN_ERR;
	x->detail = NULL;
	return HCA_SUCCESS;
}

/* Judges a request before its first byte is sent. */
static enum hca_status judge_request(struct ibt *t, const struct ibt_qp *q,
				     struct wqe *w, struct explain *x)
{
	enum hca_status status = judge_opcode(q->stream, w, x);

	if (status || !rc_req_is_read(w))
		return status;
	return sem_check(t->hca, q->qp->pd, w, HCA_LOCAL_WRITE, x);
}

/* A WRITE or a SEND is complete when its last FPDU is made, and a READ or an
 * atomic when its response has come (RFC 5040 5.5, RFC 7306 5.4). */
bool stream_tx_is_drained(const struct ibt_qp *q)
{
	return !q->stream->out.is_begun &&
	       shared_own(&q->qp->sq.completed) == q->req.wqe;
}

/* In SQD: if each request that has begun is complete, calls rc_comp_drained,
 * which tells the program that the send queue is drained. */
static void tell_drained(struct ibt *t, struct ibt_qp *q)
{
	if (stream_tx_is_drained(q))
		rc_comp_drained(t, q);
}

/* Executes w, a request that sends nothing, and advances the cursor.  False: w
 * waits or has failed, and the cursor is still at w. */
static bool run_local(struct ibt *t, struct ibt_qp *q, struct wqe *w)
{
	struct explain x = {.cause = EXPLAIN_NONE};
	enum hca_status status;

	if (!local_wr_run(t, q, w, &status, &x))
		return false;
	if (status) {
		stop_request(t, q, w, status, &x);
		return false;
	}
	advance_cursor(t, q);
	if (q->qp->state != HCA_QP_ERR)
		tell_drained(t, q);
	return true;
}

/* May w, the request at the cursor, begin?  No request begins in SQD; but a
 * request that waits for peers' accesses (awaits_accesses) has begun before,
 * and goes on.  A request with a fence waits for the responses to all READs and
 * atomics before it.  At most ORD READs and atomics wait for a response at a
 * time (RFC 5040 6.1).  If ORD is 0, a READ or an atomic may begin, and
 * judge_request fails it. */
static bool may_begin(const struct ibt_qp *q, const struct wqe *w)
{
	const struct stream_initiator *out = &q->stream->out;

	if (q->req.draining && !q->direct.awaits_accesses)
		return false;
	if ((w->flags & HCA_SEND_FENCE) && out->reads_out)
		return false;
	return !rc_req_is_read(w) || out->reads_out < bits_max_u32(out->ord, 1);
}

/* Returns the request whose next segment is to be sent; requests are sent in
 * the order in which they were posted (RFC 5040 5.5).  First executes the
 * requests before it that send nothing.  NULL: no request can send now, or the
 * request at the cursor has a local error. */
static struct wqe *next_request(struct ibt *t, struct ibt_qp *q)
{
	struct explain x = {.cause = EXPLAIN_NONE};
	enum hca_status status;

	while ((q->qp->state == HCA_QP_RTS || q->qp->state == HCA_QP_SQD) &&
	       q->req.wqe != shared_load(&q->qp->sq.head)) {
		struct wqe *w = wq_at(t->hca, &q->qp->sq, q->req.wqe);
		struct req_note *n = rc_req_note(q, q->req.wqe);

		if (q->stream->out.is_begun)
			return w;
		if ((n->started && n->status) || !may_begin(q, w))
			return NULL;
		memset(n, 0, sizeof(*n));
		if (local_wr_is(w)) {
			if (!run_local(t, q, w))
				return NULL;
			continue;
		}
		status = judge_request(t, q, w, &x);
		if (status) {
			stop_request(t, q, w, status, &x);
			return NULL;
		}
		q->stream->out.is_begun = n->started = true;
		return w;
	}
	return NULL;
}

static uint8_t send_opcode(const struct wqe *w)
{
	bool solicits = w->flags & HCA_SEND_SOLICITED;

	if (w->opcode == HCA_WR_SEND_INV)
		return solicits ? RDMAP_SEND_SE_INV : RDMAP_SEND_INV;
	return solicits ? RDMAP_SEND_SE : RDMAP_SEND;
}

/* Sends the next segment of a SEND or a WRITE (RFC 5041 4.2, 4.3; RFC 5040 5.1,
 * 5.3). */
static uint32_t emit_data(struct ibt *t, struct ibt_qp *q, struct wqe *w,
			  uint8_t *buf)
{
	struct iwarp_stream *s = q->stream;
	struct stream_initiator *out = &s->out;
	bool is_send = w->opcode == HCA_WR_SEND || w->opcode == HCA_WR_SEND_INV;
	uint32_t bytes = segment_bytes(s, !is_send, w->bytes - out->sent);
	struct explain x = {.cause = EXPLAIN_NONE};
	struct fpdu_out o = {.buf = buf};
	enum hca_status status;

	o.ddp.is_last = out->sent + bytes == w->bytes;
	if (is_send) {
		o.ddp.stag = w->opcode == HCA_WR_SEND_INV ? w->imm_be : 0;
		o.ddp.sequence = out->send_sequence;
		o.ddp.message_offset = out->sent;
	} else {
		o.ddp.stag = w->rkey;
		o.ddp.offset = w->va + out->sent;
	}
	begin_segment(q->stream, &o, buf,
		      is_send ? send_opcode(w) : RDMAP_WRITE);
	status = bytes ? sem_gather_crc32c(t->hca, q->qp->pd, w, out->sent,
					   bytes, o.payload,
					   begin_sum(s, &o, bytes), &x)
		       : HCA_SUCCESS;
	if (status) {
		stop_request(t, q, w, status, &x);
		return 0;
	}
	out->sent += bytes;
	bytes = end_segment(q, &o, bytes);
	if (!o.ddp.is_last)
		return bytes;
	out->send_sequence += is_send;
	if (w->opcode == HCA_WR_RDMA_WRITE_IMM)
		out->owes_immediate = true;
	else
		advance_cursor(t, q);
	return bytes;
}

/* Sends the Immediate Data of a WRITE: 4 bytes of data, then 4 bytes of 0 (RFC
 * 7306 6.2). */
static uint32_t emit_immediate(struct ibt *t, struct ibt_qp *q,
			       const struct wqe *w, uint8_t *buf)
{
	struct fpdu_out o = {.ddp = {.is_last = true}};

	o.ddp.sequence = q->stream->out.send_sequence++;
	begin_segment(q->stream, &o, buf,
		      w->flags & HCA_SEND_SOLICITED ? RDMAP_IMMEDIATE_SE
						    : RDMAP_IMMEDIATE);
	memcpy(o.payload, &w->imm_be, 4);
	memset(o.payload + 4, 0, 4);
	advance_cursor(t, q);
	return end_segment(q, &o, 8);
}

/* Sends a message in DDP's queue 1; its payload is the `bytes` bytes at body.
 */
static uint32_t emit_on_queue_1(struct ibt_qp *q, uint8_t opcode,
				const uint8_t *body, uint32_t bytes,
				uint8_t *buf)
{
	struct fpdu_out o = {.ddp = {.is_last = true}};

	o.ddp.sequence = q->stream->out.request_sequence++;
	begin_segment(q->stream, &o, buf, opcode);
	memcpy(o.payload, body, bytes);
	return end_segment(q, &o, bytes);
}

/* The Read Request names only the first element of the READ's scatter list. The
 * response is placed by the posted request, not by the STag and the offset that
 * the response carries (place_response in stream_rx.c), so one element is
 * enough. */
static uint32_t emit_read(struct ibt *t, struct ibt_qp *q, struct wqe *w,
			  uint8_t *buf)
{
	struct rdmap_read r = stream_read_of(w);
	uint8_t body[RDMAP_READ_BYTES];
	uint32_t bytes;

	rdmap_read_write(body, &r);
	bytes = emit_on_queue_1(q, RDMAP_READ_REQUEST, body, sizeof(body), buf);
	q->stream->out.reads_out++;
	advance_cursor(t, q);
	return bytes;
}

static uint32_t emit_atomic(struct ibt *t, struct ibt_qp *q,
			    const struct wqe *w, uint8_t *buf)
{
	uint8_t body[RDMAP_ATOMIC_BYTES];
	struct rdmap_atomic a = {
		.opcode = w->opcode == HCA_WR_ATOMIC_CAS ? RDMAP_COMPARE_SWAP
							 : RDMAP_FETCH_ADD,
		.identifier = q->req.wqe,
		.stag = w->rkey,
		.offset = w->va,
		.data = w->swap_add,
		.compare_mask = UINT64_MAX,
	};
	uint32_t bytes;

	if (w->opcode == HCA_WR_ATOMIC_CAS) {
		a.compare = w->compare;
		a.mask = UINT64_MAX;
	}
	rdmap_atomic_write(body, &a);
	bytes = emit_on_queue_1(q, RDMAP_ATOMIC_REQUEST, body, sizeof(body),
				buf);
	q->stream->out.reads_out++;
	advance_cursor(t, q);
	return bytes;
}

static uint32_t emit_request(struct ibt *t, struct ibt_qp *q, uint8_t *buf)
{
	struct wqe *w = next_request(t, q);

	if (!w)
		return 0;
	if (q->stream->out.owes_immediate)
		return emit_immediate(t, q, w, buf);
	if (w->opcode == HCA_WR_RDMA_READ)
		return emit_read(t, q, w, buf);
	if (rc_req_is_read(w))
		return emit_atomic(t, q, w, buf);
	return emit_data(t, q, w, buf);
}

/* Sends the ready-to-receive, a WRITE, SEND or READ of length 0, as the first
 * FPDU of the MPA initiator (RFC 6581 9.2), or sends the WRITE of stream_nudge.
 */
static uint32_t emit_rtr(struct ibt_qp *q, uint8_t *buf)
{
	static const uint8_t nothing[RDMAP_READ_BYTES];
	struct stream_initiator *out = &q->stream->out;
	struct fpdu_out o = {.ddp = {.is_last = true}, .buf = buf};
	uint8_t rtr = out->rtr;

	out->rtr = 0;
	if (rtr & MPA_RTR_WRITE) {
		begin_segment(q->stream, &o, buf, RDMAP_WRITE);
		return end_segment(q, &o, 0);
	}
	if (rtr & MPA_RTR_SEND) {
		o.ddp.sequence = out->send_sequence++;
		begin_segment(q->stream, &o, buf, RDMAP_SEND);
		return end_segment(q, &o, 0);
	}
	out->awaits_rtr = true;
	return emit_on_queue_1(q, RDMAP_READ_REQUEST, nothing, sizeof(nothing),
			       buf);
}

/* ---- responses ---- */

static void end_response(struct iwarp_stream *s)
{
	s->in.tail++;
	s->in.is_rtr_due = false;
	s->in.sent = 0;
	s->in.in_response = false;
	s->is_response_next = false;
}

/* The source of r, the READ whose response is due, is refused: the Terminate
 * quotes the Read Request, reduced to the bytes that were not sent (RFC 5040
 * 4.8). */
static void refuse_source(struct ibt *t, struct ibt_qp *q, struct rdmap_read r,
			  enum terminate_cause cause, struct explain *x)
{
	struct stream_terminate *e = &q->stream->terminate;
	const struct stream_target *in = &q->stream->in;
	struct ddp_header ddp = {.is_last = true,
				 .ddp_version = DDP_VERSION,
				 .rdmap_version = RDMAP_VERSION,
				 .opcode = RDMAP_READ_REQUEST,
				 .queue = DDP_QUEUE_REQUEST,
				 .sequence = in->request_sequence -
					     (in->head - in->tail)};

	bytes_put16(e->headers, DDP_UNTAGGED_BYTES + RDMAP_READ_BYTES);
	ddp_write(e->headers + 2, &ddp);
	r.sink_offset += in->sent;
	r.source_offset += in->sent;
	r.bytes -= in->sent;
	rdmap_read_write(e->headers + 2 + DDP_UNTAGGED_BYTES, &r);
	e->header_bytes = 2 + DDP_UNTAGGED_BYTES + RDMAP_READ_BYTES;
	if (q->stream->phase == STREAM_OPEN)
		stream_fail(t, q, cause, x);
	else
		q->stream->terminate.cause = cause;
}

/* Copies the source of a response to o->payload.  Returns 0 or -EFAULT. */
static int read_source(struct ibt *t, const struct iwarp_stream *s,
		       const struct space_vec *from, struct fpdu_out *o)
{
	uint32_t *crc = begin_sum(s, o, (uint32_t)from->bytes);

	return crc ? space_read_crc(t->hca->space, from, 1, o->payload, CRC_32C,
				    crc)
		   : t->hca->space->ops->read(t->hca->space, from, 1,
					      o->payload);
}

/* Sends the next segment of the response to r.  Responses are sent in the order
 * of their READs (RFC 5040 5.2.2). */
static uint32_t emit_read_response(struct ibt *t, struct ibt_qp *q,
				   const struct rdmap_read *r, uint8_t *buf)
{
	struct iwarp_stream *s = q->stream;
	uint32_t bytes = segment_bytes(s, true, r->bytes - s->in.sent);
	struct explain x = {.opcode = RDMAP_READ_REQUEST};
	struct space_vec from = {.bytes = bytes};
	struct fpdu_out o = {.ddp = {.stag = r->sink_stag}};
	enum terminate_cause cause = TERMINATE_NONE;

	o.ddp.offset = r->sink_offset + s->in.sent;
	o.ddp.is_last = s->in.sent + bytes == r->bytes;
	begin_segment(q->stream, &o, buf, RDMAP_READ_RESPONSE);
	/* the key is looked up for each segment, because the region may have
	 * been deregistered since the last segment */
	if (bytes && message_locate(t->hca, q->qp, r->source_stag,
				    r->source_offset + s->in.sent, bytes,
				    HCA_REMOTE_READ, &from.va, &x))
		cause = terminate_of_source((enum mr_verdict)x.verdict);
	else if (bytes && read_source(t, s, &from, &o))
		cause = TERMINATE_STREAM, x.cause = EXPLAIN_REMOTE_FAULT;
	if (cause) {
		refuse_source(t, q, *r, cause, &x);
		/* drops all responses that are due: the Terminate comes next */
		s->in.tail = s->in.head;
		s->in.is_rtr_due = false;
		return 0;
	}
	s->in.sent += bytes;
	s->in.in_response = true;
	if (o.ddp.is_last)
		end_response(s);
	return end_segment(q, &o, bytes);
}

static uint32_t emit_atomic_response(struct ibt_qp *q,
				     const struct stream_response *r,
				     uint8_t *buf)
{
	struct iwarp_stream *s = q->stream;
	struct fpdu_out o = {.ddp = {.is_last = true}};

	o.ddp.sequence = s->in.response_sequence++;
	begin_segment(q->stream, &o, buf, RDMAP_ATOMIC_RESPONSE);
	rdmap_atomic_response_write(o.payload, &r->atomic);
	end_response(s);
	return end_segment(q, &o, RDMAP_ATOMIC_RESPONSE_BYTES);
}

static uint32_t emit_response(struct ibt *t, struct ibt_qp *q, uint8_t *buf)
{
	struct stream_target *in = &q->stream->in;
	const struct stream_response *r;

	if (in->tail == in->head)
		return 0;
	r = &in->responses[in->tail & (in->size - 1)];
	return r->is_atomic ? emit_atomic_response(q, r, buf)
			    : emit_read_response(t, q, &r->read, buf);
}

/* ---- the end ---- */

/* Returns how many bytes of e->headers the Terminate quotes. */
static uint32_t quoted_bytes(const struct stream_terminate *e)
{
	if (!terminate_quotes_ddp(e->cause))
		return 0;
	if (terminate_quotes_read(e->cause))
		return e->header_bytes;
	return bits_min_u32(e->header_bytes, 2 + DDP_UNTAGGED_BYTES);
}

/* Sends the last FPDU of a stream (RFC 5040 5.4, 7.1).  All responses that were
 * due before that of a refused READ have been sent.  So a READ that the
 * Terminate refuses is the oldest READ whose response the peer awaits. */
static uint32_t emit_terminate(struct ibt_qp *q, uint8_t *buf)
{
	struct iwarp_stream *s = q->stream;
	const struct stream_terminate *e = &s->terminate;
	const struct terminate_row *row = terminate_row(e->cause);
	uint32_t bytes = quoted_bytes(e);
	struct rdmap_terminate term = {
		.layer = row->layer,
		.type = row->type,
		.code = row->code,
		.has_length = bytes > 0,
		.has_ddp = bytes > 0,
		.has_rdmap = bytes > 2 + DDP_UNTAGGED_BYTES,
	};
	struct fpdu_out o = {.ddp = {.is_last = true, .sequence = 1}};

	begin_segment(q->stream, &o, buf, RDMAP_TERMINATE);
	rdmap_terminate_write(o.payload, &term);
	memcpy(o.payload + RDMAP_TERMINATE_BYTES, e->headers, bytes);
	s->phase = STREAM_OVER;
	q->counters->naks.fatal_tx++;
	q->counters->naks.access_tx += row->event == ENGINE_QP_ACCESS_ERR;
	return end_segment(q, &o, RDMAP_TERMINATE_BYTES + bytes);
}

/* Sends the next segment.  A message of which a part was sent comes first,
 * because the segments of two messages must not mix.  Otherwise requests and
 * responses take turns. */
static uint32_t emit_message(struct ibt *t, struct ibt_qp *q, uint8_t *buf)
{
	struct iwarp_stream *s = q->stream;
	uint32_t bytes;

	if (s->in.in_response)
		return emit_response(t, q, buf);
	if (s->is_response_next && !s->out.is_begun) {
		bytes = emit_response(t, q, buf);
		if (bytes)
			return bytes;
	}
	bytes = emit_request(t, q, buf);
	if (bytes || s->out.is_begun)
		return bytes;
	return emit_response(t, q, buf);
}

uint32_t stream_tx(struct ibt *t, struct ibt_qp *q, uint8_t *buf, uint32_t room)
{
	struct iwarp_stream *s = q->stream;
	uint32_t bytes;

	if (room < stream_tx_room(q) || s->phase == STREAM_OVER)
		return 0;
	if (q->req.draining && q->qp->state == HCA_QP_SQD)
		tell_drained(t, q);
	if (s->phase == STREAM_OPEN && q->qp->state == HCA_QP_ERR)
		s->phase = STREAM_OVER; /* the program moved q to ERR */
	if (s->phase == STREAM_OPEN && s->may_send) {
		bytes = s->out.rtr ? emit_rtr(q, buf) : emit_message(t, q, buf);
		if (bytes)
			return bytes;
	}
	/* a request or a response that failed may have changed the phase */
	if (s->phase != STREAM_TERMINATING)
		return 0;
	bytes = emit_response(t, q, buf);
	return bytes ? bytes : emit_terminate(q, buf);
}
