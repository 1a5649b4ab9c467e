/* SPDX-License-Identifier: BSD-2-Clause */
/* Begins and ends a stream, and completes its requests. */
#include "iwarp/stream.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "util/bits.h"

static bool is_config(const struct stream_config *c)
{
	return c->ulpdu_max >= STREAM_ULPDU_MIN &&
	       c->ulpdu_max <= STREAM_ULPDU_MAX &&
	       c->ird <= HCA_MAX_RD_ATOMIC && c->ord <= HCA_MAX_RD_ATOMIC;
}

static void free_stream(struct iwarp_stream *s)
{
	session_free(s->session);
	free(s->in.responses);
	free(s);
}

int stream_open(struct ibt *t, struct ibt_qp *q, const struct stream_config *c)
{
	struct iwarp_stream *s;

	if (!is_config(c))
		return -EINVAL;
	s = calloc(1, sizeof(*s));
	if (!s)
		return -ENOMEM;
	/* room for the responses to ird READs and atomics, and to a
	 * ready-to-receive that is a READ */
	s->in.size = bits_pow2_up(c->ird + 1);
	s->in.responses = calloc(s->in.size, sizeof(*s->in.responses));
	if (c->is_session)
		s->session = session_new();
	if (!s->in.responses || (c->is_session && !s->session)) {
		free_stream(s);
		return -ENOMEM;
	}
	fpdu_rx_init(&s->rx, c->has_crc, c->rx_markers);
	fpdu_tx_init(&s->tx, c->has_crc, c->tx_markers);
	s->ulpdu_max = c->ulpdu_max;
	s->has_extensions = c->has_extensions;
	s->may_send = !c->is_responder;
	s->in.ird = c->ird;
	s->out.ord = c->ord;
	if (c->is_responder)
		s->in.rtr = c->rtr;
	else
		s->out.rtr = c->rtr;
	s->out.read = shared_own(&q->qp->sq.completed);
	s->in.send_sequence = s->in.request_sequence = 1;
	s->in.response_sequence = 1;
	s->out.send_sequence = s->out.request_sequence = 1;
	s->out.response_sequence = 1;
	stream_close(q);
	q->stream = s;
	/* No request of a stream goes direct.  The path is set here so that no
	 * request waits for the choice of a path. */
	q->direct.path = IBT_PATH_PACKETS;
	ibt_qp_activate(t, q);
	return 0;
}

void stream_close(struct ibt_qp *q)
{
	if (!q->stream)
		return;
	free_stream(q->stream);
	q->stream = NULL;
}

bool stream_has_failed(const struct ibt_qp *q)
{
	return q->stream->phase != STREAM_OPEN || q->qp->state == HCA_QP_ERR;
}

bool stream_is_over(const struct ibt_qp *q)
{
	return q->stream->phase == STREAM_OVER;
}

bool stream_has_peer_ended(const struct ibt_qp *q)
{
	return q->stream->session && q->stream->session->has_ended;
}

bool stream_has_begun(const struct ibt_qp *q)
{
	return q->stream->may_send;
}

void stream_begin(struct ibt *t, struct ibt_qp *q)
{
	q->stream->may_send = true;
	ibt_qp_activate(t, q);
}

void stream_nudge(struct ibt *t, struct ibt_qp *q)
{
	struct iwarp_stream *s = q->stream;

	if (s->phase != STREAM_OPEN || q->qp->state != HCA_QP_RTS ||
	    s->out.is_begun || s->in.in_response || s->out.rtr)
		return;
	s->out.rtr = MPA_RTR_WRITE;
	ibt_qp_activate(t, q);
}

void stream_note(struct ibt_qp *q)
{
	const struct iwarp_stream *s = q->stream;
	bool has_more = q->req.wqe != shared_load(&q->qp->sq.head);
	enum qp_wait wait = QP_WAIT_NONE;

	if (s->is_blocked)
		wait = QP_WAIT_SOCKET;
	else if (s->out.reads_out)
		wait = has_more ? QP_WAIT_READS : QP_WAIT_ANSWER;
	q->qp->stats.wait = wait;
	shared_store(&q->is_unanswered,
		     s->phase == STREAM_OPEN &&
			     q->direct.path == IBT_PATH_PACKETS);
}

bool stream_is_drained(const struct ibt_qp *q)
{
	const struct iwarp_stream *s = q->stream;

	if (s->phase != STREAM_OPEN)
		return s->phase == STREAM_OVER;
	if (q->qp->state == HCA_QP_ERR)
		return true; /* nothing more is sent */
	return !s->out.rtr && q->req.wqe == shared_load(&q->qp->sq.head) &&
	       s->in.head == s->in.tail;
}

void stream_end(struct ibt *t, struct ibt_qp *q)
{
	q->stream->phase = STREAM_OVER;
	if (q->qp->state != HCA_QP_ERR)
		ibt_qp_fail(t, q, ENGINE_EXPLAIN);
}

/* It is an error if the connection ends before all requests are complete (RFC
 * 5041 6.2.2). */
void stream_lost(struct ibt *t, struct ibt_qp *q)
{
	struct explain x = {.cause = EXPLAIN_PEER_LEFT};
	uint32_t oldest = shared_own(&q->qp->sq.completed);
	bool is_busy = oldest != shared_load(&q->qp->sq.head);

	if (is_busy && q->qp->state != HCA_QP_ERR) {
		const struct wqe *w = wq_at(t->hca, &q->qp->sq, oldest);

		x.wr_id = w->wr_id;
		x.opcode = w->opcode;
		ibt_explain(t, q, &x);
	}
	stream_end(t, q);
}

void stream_fail(struct ibt *t, struct ibt_qp *q, enum terminate_cause cause,
		 struct explain *x)
{
	const struct terminate_row *row = terminate_row(cause);
	struct iwarp_stream *s = q->stream;

	if (s->phase != STREAM_OPEN)
		return;
	s->phase = STREAM_TERMINATING;
	s->terminate.cause = cause;
	if (x && !x->cause) {
		x->cause = EXPLAIN_STREAM_REFUSED;
		if (!x->detail)
			x->detail = row->text;
	}
	if (x)
		ibt_explain(t, q, x);
	if (q->qp->state != HCA_QP_ERR)
		ibt_qp_fail(t, q, row->event);
	ibt_qp_activate(t, q);
}

bool stream_has_opcode(bool has_extensions, uint8_t opcode)
{
	switch ((enum hca_wr)opcode) {
	case HCA_WR_RDMA_WRITE:
	case HCA_WR_SEND:
	case HCA_WR_SEND_INV:
	case HCA_WR_RDMA_READ:
	case HCA_WR_LOCAL_INV:
	case HCA_WR_BIND_MW:
		return true;
	case HCA_WR_RDMA_WRITE_IMM:
	case HCA_WR_ATOMIC_CAS:
	case HCA_WR_ATOMIC_FADD:
		return has_extensions;
	case HCA_WR_SEND_IMM:
	case HCA_WR_ATOMIC_WRITE:
		break;
	}
	return false;
}

/* Requests complete in the order in which they were posted; a READ or an atomic
 * completes after its response has come (RFC 5040 5.5, RFC 7306 5.4). */
void stream_retire(struct ibt *t, struct ibt_qp *q)
{
	struct wq *sq = &q->qp->sq;
	struct req_note *n;
	uint32_t i;

	while (q->qp->state != HCA_QP_ERR &&
	       (i = shared_own(&sq->completed)) != q->req.wqe) {
		n = rc_req_note(q, i);
		if (rc_req_is_read(wq_at(t->hca, sq, i)) && !n->answered)
			return;
		ibt_request_done(t, q, HCA_SUCCESS);
	}
	if (q->qp->state == HCA_QP_ERR ||
	    shared_own(&sq->completed) == shared_load(&sq->head))
		return;
	n = rc_req_note(q, q->req.wqe);
	if (n->started && n->status) {
		n->started = false;
		q->req.wqe++;
		ibt_request_done(t, q, (enum hca_status)n->status);
		stream_fail(t, q, TERMINATE_LOCAL, NULL);
	}
}
