/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Places the bytes of a stream in memory, and completes receives and requests.
 * A segment is judged when its header has come (iwarp/judge.h).  Its payload is
 * placed as it comes, except for its last STREAM_HOLD bytes.  These bytes are
 * placed when the FPDU's CRC has proved right.  Then, if the segment ends a
 * message, the receive or request of the message is completed.  So messages are
 * delivered in order (RFC 5041 5.3, 5.4).
 */
#include <string.h>

#include "hca/semantics.h"
#include "hdr/bytes.h"
#include "ibt/message.h"
#include "iwarp/judge.h"
#include "iwarp/stream.h"
#include "util/bits.h"

/* ---- placing payload ---- */

/* Copies the to->bytes bytes at p to the memory *to, and updates *crc with the
 * bytes unless crc is NULL.  Returns 0 or -EFAULT. */
static int copy_in(struct space *space, const struct space_vec *to,
		   const uint8_t *p, uint32_t *crc)
{
	return crc ? space_write_crc(space, to, 1, p, CRC_32C, crc)
		   : space->ops->write(space, to, 1, p);
}

static bool place_write(struct ibt *t, struct ibt_qp *q, uint32_t at,
			const uint8_t *p, uint32_t n, uint32_t *crc)
{
	struct iwarp_stream *s = q->stream;
	struct stream_segment *g = &s->segment;
	struct space_vec to = {.bytes = n};

	if (message_locate_part(t->hca, q->qp, g->ddp.stag, g->ddp.offset + at,
				n, HCA_REMOTE_WRITE, &to.va, &g->explain))
		return judge_refuse(
			s, terminate_of_tagged(
				   (enum mr_verdict)g->explain.verdict));
	if (!copy_in(t->hca->space, &to, p, crc))
		return true;
	g->explain.cause = EXPLAIN_REMOTE_FAULT;
	return judge_refuse(s, TERMINATE_STREAM);
}

/* Refuses a response that cannot be stored where its request w says. */
static bool refuse_response(struct iwarp_stream *s, const struct wqe *w)
{
	s->segment.explain.wr_id = w->wr_id;
	s->segment.explain.opcode = w->opcode;
	return judge_refuse(s, TERMINATE_LOCAL);
}

static bool place_response(struct ibt *t, struct ibt_qp *q, uint32_t at,
			   const uint8_t *p, uint32_t n, uint32_t *crc)
{
	struct iwarp_stream *s = q->stream;
	uint32_t index;
	struct wqe *w = stream_read_out(t, q, &index);

	return !sem_scatter_crc32c(t->hca, q->qp->pd, w, s->out.placed + at, p,
				   n, crc, &s->segment.explain) ||
	       refuse_response(s, w);
}

static bool place_send(struct ibt *t, struct ibt_qp *q, uint32_t at,
		       const uint8_t *p, uint32_t n, uint32_t *crc)
{
	struct iwarp_stream *s = q->stream;
	struct stream_segment *g = &s->segment;

	if (!sem_scatter_crc32c(t->hca, q->qp->recv_pd, rq_held(t->hca, q->qp),
				s->in.placed + at, p, n, crc, &g->explain))
		return true;
	g->explain.opcode = EXPLAIN_RECEIVE;
	g->receive_status = HCA_LOC_PROT_ERR;
	return judge_refuse(s, TERMINATE_LOCAL);
}

static void add_to_sum(uint32_t *crc, const uint8_t *p, uint32_t n)
{
	if (crc && n)
		*crc = crc32c_update(*crc, p, n);
}

/* Places the n bytes at p, which are at offset `at` of the payload.  Updates
 * *crc with the bytes unless crc is NULL.  False: the segment is refused, and
 * *crc has no meaning. */
static bool place_bytes(struct ibt *t, struct ibt_qp *q, uint32_t at,
			const uint8_t *p, uint32_t n, uint32_t *crc)
{
	struct stream_segment *g = &q->stream->segment;

	if (!n)
		return true;
	if (g->ddp.opcode == RDMAP_WRITE)
		return place_write(t, q, at, p, n, crc);
	if (g->ddp.opcode == RDMAP_READ_RESPONSE)
		return place_response(t, q, at, p, n, crc);
	if (rdmap_is_send(g->ddp.opcode))
		return place_send(t, q, at, p, n, crc);
	memcpy(g->body + at, p, n);
	add_to_sum(crc, p, n);
	return true;
}

/* Returns the offset in the payload of the bytes that wait for the CRC. */
static uint32_t held_from(const struct stream_segment *g)
{
	return g->payload_bytes - bits_min_u32(g->payload_bytes, STREAM_HOLD);
}

/* Places the next n bytes of the payload, unless the segment is refused.
 * Updates *crc with the bytes unless crc is NULL. */
static void place_now(struct ibt *t, struct ibt_qp *q, const uint8_t *p,
		      uint32_t n, uint32_t *crc)
{
	struct stream_segment *g = &q->stream->segment;
	uint32_t before = crc ? *crc : 0;

	if (!g->refused && place_bytes(t, q, g->taken, p, n, crc))
		return;
	/* the CRC of a refused segment is still to be compared */
	if (crc)
		*crc = before;
	add_to_sum(crc, p, n);
}

static void take_payload(struct ibt *t, struct ibt_qp *q, const uint8_t *p,
			 uint32_t n, uint32_t *crc)
{
	struct stream_segment *g = &q->stream->segment;
	uint32_t from = held_from(g), now = 0;

	if (g->taken < from)
		now = bits_min_u32(n, from - g->taken);
	place_now(t, q, p, now, crc);
	g->taken += now;
	if (n > now)
		memcpy(g->last + (g->taken - from), p + now, n - now);
	add_to_sum(crc, p + now, n - now);
	g->taken += n - now;
}

/* Takes the next n bytes of the ULPDU: of its header, then of its payload.
 * Updates *crc with the bytes unless crc is NULL. */
static void take_ulpdu(struct ibt *t, struct ibt_qp *q, const uint8_t *p,
		       uint32_t n, uint32_t *crc)
{
	struct stream_segment *g = &q->stream->segment;
	const uint8_t *head = p;

	while (n && !g->is_parsed) {
		g->head[g->head_bytes++] = *p;
		p++;
		n--;
		if (g->head_bytes < ddp_header_bytes(g->head[0]))
			continue;
		ddp_parse(g->head, g->head_bytes, &g->ddp);
		g->is_parsed = true;
		g->payload_bytes = q->stream->rx.ulpdu_bytes - g->head_bytes;
		judge_segment(t, q);
	}
	add_to_sum(crc, head, (uint32_t)(p - head));
	if (n)
		take_payload(t, q, p, n, crc);
}

/* ---- a segment is complete ---- */

static void end_write(struct ibt_qp *q)
{
	struct iwarp_stream *s = q->stream;

	if (!s->in.written)
		q->counters->rx_writes++;
	s->in.written += s->segment.payload_bytes;
	if (!s->segment.ddp.is_last)
		return;
	comp_remote_write(q->qp, s->in.written);
	s->in.wrote = (uint32_t)s->in.written;
	s->in.written = 0;
}

static void answer_read(struct ibt *t, struct ibt_qp *q, uint32_t at)
{
	struct stream_initiator *out = &q->stream->out;

	rc_req_note(q, at)->answered = 1;
	out->reads_out--;
	out->placed = 0;
	stream_retire(t, q);
	ibt_qp_activate(t, q);
}

static void end_read_response(struct ibt *t, struct ibt_qp *q)
{
	struct iwarp_stream *s = q->stream;
	uint32_t at;

	if (s->out.awaits_rtr) {
		s->out.awaits_rtr = false;
		return;
	}
	s->out.placed += s->segment.payload_bytes;
	if (s->segment.ddp.is_last && stream_read_out(t, q, &at))
		answer_read(t, q, at);
}

/* Completes the SEND if the segment is the last one of the SEND.  False: the
 * segment is refused, because the key that the SEND names cannot be invalidated
 * (RFC 5040 5.3). */
static bool end_send(struct ibt *t, struct ibt_qp *q)
{
	struct iwarp_stream *s = q->stream;
	const struct stream_segment *g = &s->segment;
	struct cqe c = {.opcode = HCA_WC_RECV, .qpn = q->qp->qpn};

	s->in.placed += g->payload_bytes;
	if (!g->ddp.is_last)
		return true;
	c.byte_len = s->in.placed;
	c.src_qpn = q->qp->attr.dest_qpn;
	if (g->info->invalidates) {
		if (message_invalidate(t->hca, q->qp, g->ddp.stag,
				       &s->segment.explain)) {
			s->segment.explain.detail =
				"this ends the iWARP connection";
			return judge_refuse(s, TERMINATE_INVALIDATE);
		}
		c.imm_be = g->ddp.stag;
		c.wc_flags = HCA_WC_WITH_INV;
	}
	s->in.in_message = false;
	s->in.send_sequence++;
	if (!s->in.rtr)
		ibt_receive_done(t, q, &c, g->info->is_solicited);
	return true;
}

static void end_immediate(struct ibt *t, struct ibt_qp *q)
{
	struct iwarp_stream *s = q->stream;
	struct cqe c = {.opcode = HCA_WC_RECV_RDMA_WITH_IMM,
			.qpn = q->qp->qpn,
			.src_qpn = q->qp->attr.dest_qpn,
			.byte_len = s->in.wrote,
			.wc_flags = HCA_WC_WITH_IMM};

	memcpy(&c.imm_be, s->segment.body, 4);
	s->in.send_sequence++;
	ibt_receive_done(t, q, &c, s->segment.info->is_solicited);
}

static struct stream_response *add_response(struct ibt *t, struct ibt_qp *q)
{
	struct stream_target *in = &q->stream->in;

	in->request_sequence++;
	ibt_qp_activate(t, q);
	return &in->responses[in->head++ & (in->size - 1)];
}

/* A READ of length 0 names no memory (RFC 5040 5.2.1). */
static bool end_read_request(struct ibt *t, struct ibt_qp *q)
{
	struct iwarp_stream *s = q->stream;
	struct stream_segment *g = &s->segment;
	struct rdmap_read r;

	rdmap_read_parse(g->body, &r);
	if (s->in.rtr && r.bytes)
		return judge_refuse(s, TERMINATE_RTR);
	if (r.source_offset + r.bytes < r.source_offset)
		return judge_refuse(s, TERMINATE_SOURCE_WRAP);
	if (r.bytes &&
	    message_key(t->hca, q->qp, r.source_stag, r.source_offset, r.bytes,
			HCA_REMOTE_READ, &g->explain))
		return judge_refuse(
			s, terminate_of_source(
				   (enum mr_verdict)g->explain.verdict));
	q->counters->rx_reads++;
	s->in.is_rtr_due |= s->in.rtr != 0;
	*add_response(t, q) = (struct stream_response){.read = r};
	return true;
}

/* Returns the value that an atomic stores in place of `old`.  Compare and swap
 * has masks of the bits that are compared and swapped.  Each bit of the mask of
 * fetch and add is the highest bit of a field: the carry stops there (RFC 7306
 * 5.1.1, 5.1.2). */
static uint64_t atomic_result(const struct rdmap_atomic *a, uint64_t old)
{
	uint64_t sum = 0, carry = 0;

	if (a->opcode == RDMAP_COMPARE_SWAP)
		return (old ^ a->compare) & a->compare_mask
			       ? old
			       : (old & ~a->mask) | (a->data & a->mask);
	for (int bit = 0; bit < 64; bit++) {
		uint64_t one = 1ull << bit;
		uint64_t x = !!(old & one), y = !!(a->data & one);

		sum |= (x ^ y ^ carry) << bit;
		carry = a->mask & one ? 0 : (x & y) | (carry & (x ^ y));
	}
	return sum;
}

/* Executes an atomic with masks by a loop of compare-and-swap without masks. */
static int run_masked(struct space *s, const struct rdmap_atomic *a,
		      uint64_t va, uint64_t *found)
{
	uint64_t seen;
	int err = s->ops->atomic(s, SPACE_FETCH_ADD, va, 0, 0, &seen);

	while (!err) {
		err = s->ops->atomic(s, SPACE_CAS, va, atomic_result(a, seen),
				     seen, found);
		if (err || *found == seen)
			break;
		seen = *found;
	}
	return err;
}

static int run_atomic(struct space *s, const struct rdmap_atomic *a,
		      uint64_t va, uint64_t *found)
{
	if (a->opcode == RDMAP_FETCH_ADD && !(a->mask << 1))
		return s->ops->atomic(s, SPACE_FETCH_ADD, va, a->data, 0,
				      found);
	if (a->opcode == RDMAP_COMPARE_SWAP && !~a->mask && !~a->compare_mask)
		return s->ops->atomic(s, SPACE_CAS, va, a->data, a->compare,
				      found);
	return run_masked(s, a, va, found);
}

/* Executes an atomic and queues its response.  Refuses an unaligned address and
 * an unknown operation (RFC 7306 5.2.1, 8.2). */
static bool end_atomic_request(struct ibt *t, struct ibt_qp *q)
{
	struct iwarp_stream *s = q->stream;
	struct stream_segment *g = &s->segment;
	struct rdmap_atomic a;
	uint64_t va, found;

	rdmap_atomic_parse(g->body, &a);
	if (a.opcode != RDMAP_FETCH_ADD && a.opcode != RDMAP_COMPARE_SWAP)
		return judge_refuse(s, TERMINATE_OPCODE);
	g->explain.detail = "an atomic whose address is not a multiple of 8";
	if (a.offset % 8)
		return judge_refuse(s, TERMINATE_STREAM);
	g->explain.detail = NULL;
	if (message_locate(t->hca, q->qp, a.stag, a.offset, 8,
			   HCA_REMOTE_ATOMIC, &va, &g->explain))
		return judge_refuse(
			s, terminate_of_source(
				   (enum mr_verdict)g->explain.verdict));
	if (run_atomic(t->hca->space, &a, va, &found)) {
		g->explain.cause = EXPLAIN_REMOTE_FAULT;
		return judge_refuse(s, TERMINATE_STREAM);
	}
	q->counters->rx_atomics++;
	*add_response(t, q) = (struct stream_response){
		.is_atomic = true, .atomic = {a.identifier, found}};
	return true;
}

/* A response carries the identifier of its request (RFC 7306 5.2.2). */
static bool end_atomic_response(struct ibt *t, struct ibt_qp *q)
{
	struct iwarp_stream *s = q->stream;
	struct rdmap_atomic_response r;
	struct wqe *w;
	uint32_t at;

	rdmap_atomic_response_parse(s->segment.body, &r);
	w = stream_read_out(t, q, &at);
	if (!w || w->opcode == HCA_WR_RDMA_READ || r.identifier != at)
		return judge_refuse(s, TERMINATE_OPCODE);
	if (sem_scatter(t->hca, q->qp->pd, w, 0, (const uint8_t *)&r.found, 8,
			&s->segment.explain))
		return refuse_response(s, w);
	s->out.response_sequence++;
	answer_read(t, q, at);
	return true;
}

/* ---- the end of the stream ---- */

/* Returns the status of the request that the Terminate quotes. */
static enum hca_status status_of(const struct rdmap_terminate *e)
{
	if (e->layer == 0 && e->type == 1)
		return HCA_REM_ACCESS_ERR;
	return e->layer == 2 ? HCA_REM_OP_ERR : HCA_REM_INV_REQ_ERR;
}

/* Does `about`, the header that a Terminate quotes, belong to the oldest READ
 * or atomic without a response?  s->out.reads_out is the number of READs and
 * atomics without a response. */
static bool is_about_oldest_read(const struct iwarp_stream *s,
				 const struct ddp_header *about)
{
	return !about->is_tagged && about->queue == DDP_QUEUE_REQUEST &&
	       about->sequence == s->out.request_sequence - s->out.reads_out;
}

/* Completes the READ or atomic at index `at` with the status, and the requests
 * before it with success. */
static void fail_read(struct ibt *t, struct ibt_qp *q, uint32_t at,
		      enum hca_status status)
{
	while (q->qp->state != HCA_QP_ERR &&
	       shared_own(&q->qp->sq.completed) != at)
		ibt_request_done(t, q, HCA_SUCCESS);
	if (q->qp->state != HCA_QP_ERR)
		ibt_request_done(t, q, status);
}

/* The peer has ended the stream.  If its Terminate quotes the oldest READ or
 * atomic without a response, that request fails; the requests before it
 * complete with success, and the requests after it are flushed. */
static void end_terminate(struct ibt *t, struct ibt_qp *q)
{
	struct iwarp_stream *s = q->stream;
	const struct stream_segment *g = &s->segment;
	struct explain x = {.cause = EXPLAIN_STREAM_ENDED};
	struct ddp_header about = {.is_tagged = true};
	enum terminate_cause cause;
	struct rdmap_terminate e;
	uint32_t at;

	s->phase = STREAM_OVER;
	q->counters->naks.fatal_rx++;
	if (g->payload_bytes < RDMAP_TERMINATE_BYTES)
		memset(&e, 0, sizeof(e));
	else
		rdmap_terminate_parse(g->body, &e);
	cause = terminate_find(e.layer, e.type, e.code);
	x.detail = cause ? terminate_row(cause)->text : NULL;
	if (e.has_length && e.has_ddp &&
	    g->payload_bytes > RDMAP_TERMINATE_BYTES + 2)
		ddp_parse(g->body + RDMAP_TERMINATE_BYTES + 2,
			  g->payload_bytes - RDMAP_TERMINATE_BYTES - 2, &about);
	if (is_about_oldest_read(s, &about) && stream_read_out(t, q, &at)) {
		const struct wqe *w = wq_at(t->hca, &q->qp->sq, at);

		x.wr_id = w->wr_id;
		x.opcode = w->opcode;
		ibt_explain(t, q, &x);
		fail_read(t, q, at, status_of(&e));
		if (q->qp->state != HCA_QP_ERR)
			ibt_qp_fail(t, q, ENGINE_EXPLAIN);
		return;
	}
	ibt_explain(t, q, &x);
	if (q->qp->state != HCA_QP_ERR)
		ibt_qp_fail(t, q, ENGINE_QP_FATAL);
}

/* Copies the refused segment's headers for the Terminate (RFC 5040 4.8). */
static void quote_headers(struct iwarp_stream *s)
{
	const struct stream_segment *g = &s->segment;
	struct stream_terminate *e = &s->terminate;
	bool has_body = g->info && !g->info->is_tagged &&
			g->ddp.opcode == RDMAP_READ_REQUEST &&
			g->payload_bytes == RDMAP_READ_BYTES;

	bytes_put16(e->headers, (uint16_t)s->rx.ulpdu_bytes);
	memcpy(e->headers + 2, g->head, g->head_bytes);
	e->header_bytes = 2 + g->head_bytes;
	if (!has_body)
		return;
	memcpy(e->headers + e->header_bytes, g->body, RDMAP_READ_BYTES);
	e->header_bytes += RDMAP_READ_BYTES;
}

/* Ends the stream because of the present segment. */
static void act_on_refusal(struct ibt *t, struct ibt_qp *q)
{
	struct iwarp_stream *s = q->stream;
	struct stream_segment *g = &s->segment;
	uint32_t at;

	if (terminate_row(g->refused)->event == ENGINE_QP_ACCESS_ERR)
		t->sign = ENGINE_SIGN_KEY;
	quote_headers(s);
	if (g->receive_status) {
		struct cqe c = {.status = g->receive_status,
				.opcode = HCA_WC_RECV,
				.vendor_err = g->receive_status,
				.qpn = q->qp->qpn};

		ibt_receive_done(t, q, &c, true);
	} else if (g->refused == TERMINATE_LOCAL &&
		   stream_read_out(t, q, &at)) {
		fail_read(t, q, at, HCA_LOC_PROT_ERR);
	}
	stream_fail(t, q, g->refused, &g->explain);
}

static bool end_opcode(struct ibt *t, struct ibt_qp *q)
{
	switch ((enum rdmap_opcode)q->stream->segment.ddp.opcode) {
	case RDMAP_WRITE:
		end_write(q);
		return true;
	case RDMAP_READ_RESPONSE:
		end_read_response(t, q);
		return true;
	case RDMAP_SEND:
	case RDMAP_SEND_INV:
	case RDMAP_SEND_SE:
	case RDMAP_SEND_SE_INV:
		return end_send(t, q);
	case RDMAP_IMMEDIATE:
	case RDMAP_IMMEDIATE_SE:
		end_immediate(t, q);
		return true;
	case RDMAP_READ_REQUEST:
		return end_read_request(t, q);
	case RDMAP_ATOMIC_REQUEST:
		return end_atomic_request(t, q);
	case RDMAP_ATOMIC_RESPONSE:
		return end_atomic_response(t, q);
	case RDMAP_TERMINATE:
		end_terminate(t, q);
		return true;
	case RDMAP_OPCODES:
		break;
	}
	return true;
}

/* The ULPDU ended before its header was complete.  The initiator's first ULPDU
 * may have length 0: it is a ready-to-receive (RFC 6581 1.1). */
static void end_short(struct ibt *t, struct ibt_qp *q)
{
	const struct iwarp_stream *s = q->stream;
	struct explain x = {.cause = EXPLAIN_NONE};

	if (s->session) /* more exact than the text of TERMINATE_FRAMING */
		x.detail = "a segment that is shorter than its DDP header";
	if (s->may_send || s->rx.ulpdu_bytes)
		stream_fail(t, q, TERMINATE_FRAMING, &x);
	else if (s->in.rtr && !(s->in.rtr & MPA_RTR_SEND))
		stream_fail(t, q, TERMINATE_RTR, &x);
}

static void end_segment(struct ibt *t, struct ibt_qp *q)
{
	struct stream_segment *g = &q->stream->segment;

	if (!g->refused && place_bytes(t, q, held_from(g), g->last,
				       g->payload_bytes - held_from(g), NULL))
		end_opcode(t, q);
	if (g->refused)
		act_on_refusal(t, q);
}

/* An FPDU whose CRC is right, or a segment of a session, is complete. */
static void end_fpdu(struct ibt *t, struct ibt_qp *q)
{
	struct iwarp_stream *s = q->stream;

	q->counters->rx_packets++;
	q->counters->rx_bytes += s->rx.ulpdu_bytes;
	q->qp->stats.rx_packets++;
	q->qp->stats.rx_bytes += s->rx.ulpdu_bytes;
	if (s->segment.is_parsed)
		end_segment(t, q);
	else
		end_short(t, q);
	if (s->may_send || s->phase != STREAM_OPEN)
		return;
	s->may_send = true;
	s->in.rtr = 0;
	ibt_qp_activate(t, q);
}

static void fail_framing(struct ibt *t, struct ibt_qp *q,
			 enum terminate_cause cause)
{
	struct explain x = {.cause = EXPLAIN_NONE};

	q->counters->refused.bad_icrc += cause == TERMINATE_CRC;
	stream_fail(t, q, cause, &x);
	/* A responder sends no FPDU, not even one with a Terminate, before it
	 * has received a right FPDU (RFC 5044 7.1.2). */
	if (!q->stream->may_send)
		q->stream->phase = STREAM_OVER;
}

/* After an error nothing is received any more (RFC 5044 8, RFC 5041 7.1).  In
 * ERR all receives are flushed, so their memory is the program's again. */
static bool is_receiving(const struct ibt_qp *q)
{
	return q->stream->phase == STREAM_OPEN && q->qp->state >= HCA_QP_RTR &&
	       q->qp->state <= HCA_QP_SQD;
}

static void begin_segment(struct stream_segment *g)
{
	g->head_bytes = g->taken = 0;
	g->is_parsed = false;
	g->info = NULL;
	g->refused = TERMINATE_NONE;
	g->receive_status = 0;
	g->explain = (struct explain){.cause = EXPLAIN_NONE};
}

void stream_rx_segment(struct ibt *t, struct ibt_qp *q, const uint8_t *p,
		       uint32_t n)
{
	if (!is_receiving(q))
		return;
	q->stream->rx.ulpdu_bytes = n;
	begin_segment(&q->stream->segment);
	take_ulpdu(t, q, p, n, NULL);
	end_fpdu(t, q);
}

/* Takes the next n bytes of the ULPDU of an FPDU.  The copy of the payload
 * computes the CRC. */
static enum fpdu_result receive_ulpdu(struct ibt *t, struct ibt_qp *q,
				      const uint8_t *p, uint32_t n)
{
	struct fpdu_rx *rx = &q->stream->rx;
	uint32_t crc = rx->crc;

	take_ulpdu(t, q, p, n, rx->has_crc ? &crc : NULL);
	return fpdu_rx_take_summed(rx, n, crc);
}

void stream_rx(struct ibt *t, struct ibt_qp *q, const uint8_t *p, uint32_t n)
{
	struct iwarp_stream *s = q->stream;

	if (s->session) {
		session_rx(t, q, p, n);
		return;
	}
	while (n && is_receiving(q)) {
		struct fpdu_want want = fpdu_rx_want(&s->rx);
		uint32_t part = bits_min_u32(n, want.bytes);
		enum fpdu_result result =
			want.part == FPDU_ULPDU ? receive_ulpdu(t, q, p, part)
						: fpdu_rx_take(&s->rx, p, part);

		switch (result) {
		case FPDU_MORE:
			break;
		case FPDU_BEGUN:
			begin_segment(&s->segment);
			break;
		case FPDU_WHOLE:
			end_fpdu(t, q);
			break;
		case FPDU_BAD_CRC:
			fail_framing(t, q, TERMINATE_CRC);
			break;
		case FPDU_BAD_MARKER:
			fail_framing(t, q, TERMINATE_FRAMING);
			break;
		}
		p += part;
		n -= part;
	}
}
