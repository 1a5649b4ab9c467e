/* SPDX-License-Identifier: BSD-2-Clause */
/* Places segments of DDP over SCTP that come while a segment with a smaller
 * DDP-SSN is missing (RFC 5041 5.3, RFC 5043 10). */
#include "hca/semantics.h"
#include "ibt/message.h"
#include "iwarp/session.h"
#include "iwarp/stream.h"

/* A segment that is not due yet. */
struct early_segment {
	struct ddp_header ddp;	/* its header */
	const uint8_t *payload; /* in the caller's message */
	uint32_t bytes;		/* the payload's length */
};

/* Places a segment of a WRITE.  The segment's key and offset are enough: no
 * earlier segment is needed. */
static bool place_write(struct ibt *t, struct ibt_qp *q,
			const struct early_segment *g)
{
	struct space *space = t->hca->space;
	struct explain x = {.cause = EXPLAIN_NONE};
	struct space_vec to = {.bytes = g->bytes};

	if (g->ddp.offset + g->bytes < g->ddp.offset ||
	    message_locate(t->hca, q->qp, g->ddp.stag, g->ddp.offset, g->bytes,
			   HCA_REMOTE_WRITE, &to.va, &x))
		return false;
	return !space->ops->write(space, &to, 1, g->payload);
}

/* Places a segment of a READ response into the memory of the oldest READ whose
 * response is not complete.  A segment that does not lie within that memory may
 * answer a later READ, and waits. */
static bool place_response(struct ibt *t, struct ibt_qp *q,
			   const struct early_segment *g)
{
	struct iwarp_stream *s = q->stream;
	struct explain x = {.cause = EXPLAIN_NONE};
	struct rdmap_read r;
	struct wqe *w;
	uint64_t from;
	uint32_t at;

	w = s->out.awaits_rtr ? NULL : stream_read_out(t, q, &at);
	if (!w || w->opcode != HCA_WR_RDMA_READ)
		return false;
	r = stream_read_of(w);
	from = g->ddp.offset - r.sink_offset;
	if (g->ddp.stag != r.sink_stag || g->ddp.offset < r.sink_offset ||
	    from < s->out.placed || from > r.bytes ||
	    g->bytes >= r.bytes - from)
		return false;
	return !sem_scatter(t->hca, q->qp->pd, w, (uint32_t)from, g->payload,
			    g->bytes, &x);
}

/* Places a segment of the SEND that has begun: the SEND's receive is known. */
static bool place_send(struct ibt *t, struct ibt_qp *q,
		       const struct early_segment *g)
{
	const struct stream_target *in = &q->stream->in;
	struct explain x = {.cause = EXPLAIN_NONE};
	uint64_t end = (uint64_t)g->ddp.message_offset + g->bytes;
	struct wqe *w;

	if (!in->in_message || g->ddp.queue != DDP_QUEUE_SEND ||
	    g->ddp.opcode != in->opcode ||
	    g->ddp.sequence != in->send_sequence ||
	    g->ddp.message_offset < in->placed)
		return false;
	w = rq_held(t->hca, q->qp);
	if (!w || end > sem_capacity(w) || end > HCA_MAX_MESSAGE)
		return false;
	return !sem_scatter(t->hca, q->qp->recv_pd, w, g->ddp.message_offset,
			    g->payload, g->bytes, &x);
}

bool early_place(struct ibt *t, struct ibt_qp *q, const uint8_t *segment,
		 uint32_t n)
{
	struct early_segment g = {.payload = segment};
	uint32_t head = (uint32_t)ddp_parse(segment, n, &g.ddp);
	const struct rdmap_info *info;

	if (!head || head == n || g.ddp.is_last ||
	    g.ddp.ddp_version != DDP_VERSION ||
	    g.ddp.rdmap_version != RDMAP_VERSION)
		return false;
	g.payload += head;
	g.bytes = n - head;
	info = rdmap_info(g.ddp.opcode);
	if (!info || info->is_tagged != g.ddp.is_tagged || q->stream->in.rtr)
		return false;
	if (g.ddp.opcode == RDMAP_WRITE)
		return place_write(t, q, &g);
	if (g.ddp.opcode == RDMAP_READ_RESPONSE)
		return place_response(t, q, &g);
	return !info->is_tagged && !info->payload_bytes && place_send(t, q, &g);
}
