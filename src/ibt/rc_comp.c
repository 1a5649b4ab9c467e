/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The requester's side of responses (IBTA Vol 1, 9.7.5, 9.7.6): ACKs, NAKs and
 * responses with data complete requests.  Three functions of this file decide
 * that requests are sent again: rc_comp_timeout, after silence; ask_again, when
 * a response is missing; handle_nak, after an RNR NAK or a NAK for a sequence
 * error.  A fourth function, rc_comp_resend, does so when the path has changed.
 * rc_req sends the requests.
 */
#include <string.h>

#include "hca/semantics.h"
#include "ibt/ibt.h"
#include "ibt/migration.h"
#include "ibt/rnr_wait.h"
#include "util/bits.h"

#define SMALL_BYTES 1024 /* a payload that every network carries */

static void retire_oldest(struct ibt *t, struct ibt_qp *q,
			  enum hca_status status)
{
	struct wq *sq = &q->qp->sq;
	uint32_t i = shared_own(&sq->completed);
	struct wqe *w = wq_at(t->hca, sq, i);
	struct req_note *n = rc_req_note(q, i);

	if (rc_req_is_read(w) && n->started && !n->status)
		q->req.rd_wqes--;
	n->started = false;
	if (q->req.wqe == i) {
		q->req.wqe = i + 1;
		q->req.packet = 0;
	}
	ibt_request_done(t, q, status);
}

/* Fails the oldest request and the QP (IBTA 9.9.2). */
static void fail_qp(struct ibt *t, struct ibt_qp *q, enum hca_status status)
{
	retire_oldest(t, q, status);
	if (q->qp->state != HCA_QP_ERR)
		ibt_qp_fail(t, q, ENGINE_EXPLAIN);
}

static struct wqe *oldest_request(const struct ibt *t, const struct ibt_qp *q,
				  struct req_note **n)
{
	uint32_t i = shared_own(&q->qp->sq.completed);

	if (i == shared_load(&q->qp->sq.head))
		return NULL;
	*n = rc_req_note(q, i);
	return (*n)->started ? wq_at(t->hca, &q->qp->sq, i) : NULL;
}

void rc_comp_retire(struct ibt *t, struct ibt_qp *q)
{
	struct req_note *n;

	while (oldest_request(t, q, &n) && !n->packets && !n->status)
		retire_oldest(t, q, HCA_SUCCESS);
	if (oldest_request(t, q, &n) && n->status)
		fail_qp(t, q, (enum hca_status)n->status);
}

void rc_comp_arm(struct ibt *t, struct ibt_qp *q, uint64_t now_ns)
{
	uint8_t code = q->qp->attr.timeout;

	q->req.is_granted = false;
	if (!code || serial24_is_equal(q->req.una, q->req.max))
		wheel_cancel(&t->wheel, &q->timers.ack);
	else
		wheel_set(&t->wheel, &q->timers.ack,
			  now_ns + aeth_ack_timeout_ns(code));
}

/* Notes the length of w's packets, of which at least the first is acknowledged.
 */
static void note_length(struct ibt_qp *q, const struct wqe *w)
{
	uint32_t bytes = bits_min_u32(w->bytes, q->mtu);

	if (bytes > q->req.longest_sent && !rc_req_is_read(w))
		q->req.longest_sent = bytes;
}

static void grow_window(struct ibt *t, struct rc_req *r, uint32_t acked)
{
	r->window_credit += acked;
	while (r->window < t->window_max && r->window_credit >= 2) {
		r->window_credit -= 2;
		r->window++;
	}
	if (r->window >= t->window_max)
		r->window_credit = 0;
}

/* Sends again from psn on, with half the window: packets were lost. */
static void go_back(struct ibt *t, struct ibt_qp *q, struct serial24 psn)
{
	struct rc_req *r = &q->req;

	r->window = bits_max_u32(r->window / 2, 4);
	r->window_credit = 0;
	rc_req_seek(t, q, psn);
	ibt_qp_activate(t, q);
}

static void note_progress(struct ibt *t, struct ibt_qp *q, struct serial24 una,
			  uint64_t now_ns)
{
	struct rc_req *r = &q->req;
	int32_t by = serial24_diff(una, r->una);

	if (by <= 0)
		return;
	r->una = una;
	r->retries = 0;
	r->rnr_retries = 0;
	r->silent_since_ns = 0;
	r->asking = false;
	r->was_alive = false;
	q->direct.is_closed = false;
	grow_window(t, r, (uint32_t)by);
	if (serial24_is_before(rc_req_next_psn(q), una))
		rc_req_seek(t, q, una);
	rc_comp_arm(t, q, now_ns);
	ibt_qp_activate(t, q);
}

void rc_comp_drained(struct ibt *t, struct ibt_qp *q)
{
	struct rc_req *r = &q->req;

	if (!r->draining || r->packet || q->direct.awaits_accesses ||
	    (!q->stream && rc_req_has_begun(q)) ||
	    !serial24_is_equal(r->una, r->max) ||
	    !serial24_is_equal(rc_req_next_psn(q), r->max))
		return;
	if (q->qp->attr.en_sqd_async_notify) {
		q->qp->attr.en_sqd_async_notify = 0;
		ibt_event(t, q, ENGINE_SQ_DRAINED);
	}
}

/*
 * The peer has received all packets before psn: completes their requests.
 * False: a READ or atomic before psn lacks a response, which is lost or late
 * (IBTA 9.7.6).
 */
static bool acknowledge_psn(struct ibt *t, struct ibt_qp *q,
			    struct serial24 psn, uint64_t now_ns)
{
	struct req_note *n;
	struct wqe *w;

	while ((w = oldest_request(t, q, &n)) && !n->status) {
		struct serial24 end = serial24_add(n->first, n->packets);

		if (rc_req_is_read(w) && n->answered < n->packets) {
			struct serial24 want =
				serial24_add(n->first, n->answered);

			if (serial24_is_before(want, psn)) {
				note_progress(t, q, want, now_ns);
				return false;
			}
			break;
		}
		if (serial24_is_before(psn, end)) {
			if (serial24_is_before(n->first, psn))
				note_length(q, w);
			break;
		}
		note_length(q, w);
		retire_oldest(t, q, HCA_SUCCESS);
		if (q->qp->state == HCA_QP_ERR)
			return true;
	}
	note_progress(t, q, psn, now_ns);
	rc_comp_retire(t, q);
	return true;
}

/* Requests the first missing response again, but the same response only once
 * until the next timeout or change of the path. */
static void ask_again(struct ibt *t, struct ibt_qp *q)
{
	struct rc_req *r = &q->req;

	if (r->gap_valid && serial24_is_equal(r->gap, r->una))
		return;
	r->gap = r->una;
	r->gap_valid = true;
	q->counters->naks.implied++;
	go_back(t, q, r->una);
}

/*
 * Returns the length of the payload of the oldest unacknowledged packet, or of
 * the READ response that is expected next.  Returns 0 if this length is at most
 * SMALL_BYTES, or if a payload of at least this length has got through before.
 */
static uint32_t long_bytes(const struct ibt *t, const struct ibt_qp *q)
{
	const struct rc_req *r = &q->req;
	struct req_note *n;
	const struct wqe *w = oldest_request(t, q, &n);
	uint32_t at, bytes, passed;

	if (!w)
		return 0;
	at = rc_req_is_read(w) ? n->answered
			       : (uint32_t)serial24_diff(r->una, n->first);
	bytes = (uint32_t)bits_min_u64(
		w->bytes - bits_min_u64(w->bytes, (uint64_t)at * q->mtu),
		q->mtu);
	passed = rc_req_is_read(w) ? r->longest_got : r->longest_sent;
	return bytes > SMALL_BYTES && bytes > passed ? bytes : 0;
}

/* Is the packet of long_bytes probably too long for the network?  It is if any
 * packet of the peer, an answer or a request, has arrived. */
static bool is_too_long(const struct ibt *t, const struct ibt_qp *q)
{
	return long_bytes(t, q) && (q->req.is_answered || q->heard);
}

/* Explains to the user why w failed, or may fail. */
static void explain_failure(struct ibt *t, struct ibt_qp *q,
			    const struct wqe *w, enum explain_cause cause)
{
	struct explain x = {
		.cause = cause,
		.wr_id = w->wr_id,
		.opcode = w->opcode,
		.tries = q->req.retries + q->req.rnr_retries,
		.seconds = (uint32_t)(t->patience_ns / 1000000000),
		.long_bytes = long_bytes(t, q),
	};
	bool one_sided = rc_req_is_read(w) || w->opcode == HCA_WR_RDMA_WRITE ||
			 w->opcode == HCA_WR_RDMA_WRITE_IMM;

	if (one_sided) {
		x.key = w->rkey;
		x.va = w->va;
		x.bytes = w->bytes;
	}
	ibt_explain(t, q, &x);
}

static void fail_oldest(struct ibt *t, struct ibt_qp *q, enum hca_status status,
			enum explain_cause cause)
{
	struct req_note *n;
	struct wqe *w = oldest_request(t, q, &n);

	if (!w)
		return;
	explain_failure(t, q, w, cause);
	fail_qp(t, q, status);
}

static enum explain_cause cause_of_nak(enum hca_status status)
{
	if (status == HCA_REM_ACCESS_ERR)
		return EXPLAIN_NAK_ACCESS;
	return status == HCA_REM_INV_REQ_ERR ? EXPLAIN_NAK_INVALID
					     : EXPLAIN_NAK_OPERATION;
}

void rc_comp_refused(struct ibt *t, struct ibt_qp *q, enum hca_status status)
{
	q->counters->naks.fatal_rx++;
	fail_oldest(t, q, status, cause_of_nak(status));
}

void rc_comp_gone(struct ibt *t, struct ibt_qp *q)
{
	fail_oldest(t, q, HCA_RETRY_EXC_ERR, EXPLAIN_PEER_GONE);
}

void rc_comp_denied(struct ibt *t, struct ibt_qp *q)
{
	fail_oldest(t, q, HCA_REM_OP_ERR, EXPLAIN_DENIED);
}

/* Applies a pending fatal NAK if its request is the oldest one now. */
static void apply_nak(struct ibt *t, struct ibt_qp *q)
{
	struct rc_req *r = &q->req;
	struct req_note *n;

	if (!r->nak.is_pending || !oldest_request(t, q, &n))
		return;
	if (serial24_diff(r->nak.psn, n->first) >= (int32_t)n->packets)
		return;
	r->nak.is_pending = false;
	rc_comp_refused(t, q, (enum hca_status)r->nak.status);
}

/* Returns the probable reason why the peer does not answer.  If a packet of the
 * peer has ever come, the peer's address is right. */
static enum explain_cause cause_of_silence(const struct ibt *t,
					   const struct ibt_qp *q)
{
	struct serial24 first = serial24(q->qp->attr.sq_psn);

	if (is_too_long(t, q))
		return EXPLAIN_MTU;

	return q->heard || q->req.is_answered ||
			       !serial24_is_equal(q->req.una, first)
		       ? EXPLAIN_FELL_SILENT
		       : EXPLAIN_RETRY;
}

/* Warns the user already now that packets may be too long: the request may fail
 * only much later. */
static void warn_silence(struct ibt *t, struct ibt_qp *q)
{
	struct req_note *n;
	struct wqe *w = oldest_request(t, q, &n);

	if (w && is_too_long(t, q))
		explain_failure(t, q, w, EXPLAIN_MTU_MAYBE);
}

/* Returns whether q waits for the answer to its last question before it fails,
 * although patience_ns is used up.  If the peer was found alive, only that
 * answer says whether the peer is still alive.  If the broker does not answer,
 * the wait ends after another half of patience_ns. */
static bool awaits_last_answer(const struct ibt *t, const struct ibt_qp *q,
			       uint64_t now_ns)
{
	const struct rc_req *r = &q->req;
	uint64_t silence_ns = now_ns - r->silent_since_ns;

	return r->was_alive && r->asking &&
	       silence_ns - t->patience_ns <= t->patience_ns / 2;
}

/* Counts a failed attempt to send.  False: there were too many attempts, and
 * the QP has failed. */
static bool try_again(struct ibt *t, struct ibt_qp *q, uint64_t now_ns)
{
	struct rc_req *r = &q->req;

	if (r->retries++ < q->qp->attr.retry_cnt || migration_fail_over(t, q))
		return true;
	if (t->strict || q->direct.is_closed || q->direct.is_gone) {
		fail_oldest(t, q, HCA_RETRY_EXC_ERR,
			    q->direct.is_gone	  ? EXPLAIN_PEER_GONE
			    : q->direct.is_closed ? EXPLAIN_PEER_CLOSED
						  : cause_of_silence(t, q));
		return false;
	}
	if (!r->silent_since_ns) {
		r->silent_since_ns = now_ns;
		warn_silence(t, q);
	}
	if (now_ns - r->silent_since_ns > t->patience_ns) {
		if (awaits_last_answer(t, q, now_ns))
			return true;
		/* EXPLAIN_PATIENCE tells the user that the peer is alive, which
		 * only an answer to ENGINE_ASK_PEER can show.  r->asking: the
		 * last question has no answer yet. */
		fail_oldest(t, q, HCA_RETRY_EXC_ERR,
			    r->was_alive && !r->asking && !is_too_long(t, q)
				    ? EXPLAIN_PATIENCE
				    : cause_of_silence(t, q));
		return false;
	}
	r->asking = true;
	ibt_event(t, q, ENGINE_ASK_PEER);
	return true;
}

void rc_comp_rnr(struct ibt *t, struct ibt_qp *q, uint8_t timer,
		 uint64_t now_ns)
{
	struct rc_req *r = &q->req;
	uint8_t limit = q->qp->attr.rnr_retry;

	q->counters->naks.rnr_rx++;
	q->qp->stats.rnr_waits++;
	/* explain.tries counts the last try, too */
	if (r->rnr_retries++ >= limit && limit != IBT_RETRY_FOREVER) {
		fail_oldest(t, q, HCA_RNR_RETRY_EXC_ERR, EXPLAIN_RNR);
		return;
	}
	/* The peer answers, so it is not silent.  Without this, lost packets
	 * of a wait for hours would add up to the retries. */
	if (!t->strict) {
		r->retries = 0;
		r->silent_since_ns = 0;
		r->asking = r->was_alive = false;
	}
	wheel_cancel(&t->wheel, &q->timers.ack);
	rnr_wait_begin(t, q, timer, now_ns);
}

void rc_comp_asleep(struct ibt *t, struct ibt_qp *q, uint64_t slept_ns,
		    uint64_t now_ns)
{
	struct rc_req *r = &q->req;

	if (r->silent_since_ns)
		r->silent_since_ns =
			bits_min_u64(now_ns, r->silent_since_ns + slept_ns);
	if (!wheel_is_set(&q->timers.ack) || r->is_granted)
		return;
	rc_comp_arm(t, q, now_ns);
	r->is_granted = true;
}

void rc_comp_rnr_over(struct ibt *t, struct ibt_qp *q, uint64_t now_ns)
{
	if (!rnr_wait_is_over(t, q, now_ns))
		return;
	rnr_wait_end(t, q);
	rc_comp_arm(t, q, now_ns);
	ibt_qp_activate(t, q);
}

static void note_fatal_nak(struct ibt *t, struct ibt_qp *q, const struct pkt *p)
{
	struct rc_req *r = &q->req;

	switch ((enum aeth_nak)aeth_value(p->aeth.syndrome)) {
	case AETH_NAK_INVALID_REQUEST:
	case AETH_NAK_INVALID_RD_REQUEST:
		r->nak.status = HCA_REM_INV_REQ_ERR;
		break;
	case AETH_NAK_REMOTE_ACCESS:
		r->nak.status = HCA_REM_ACCESS_ERR;
		break;
	case AETH_NAK_REMOTE_OPERATIONAL:
		r->nak.status = HCA_REM_OP_ERR;
		break;
	case AETH_NAK_PSN_SEQUENCE:
		return;
	}
	r->nak.is_pending = true;
	r->nak.psn = serial24(p->bth.psn);
}

static void handle_nak(struct ibt *t, struct ibt_qp *q, const struct pkt *p,
		       uint64_t now_ns)
{
	struct serial24 psn = serial24(p->bth.psn);
	bool rnr = aeth_kind(p->aeth.syndrome) == AETH_RNR_NAK;
	bool complete = acknowledge_psn(t, q, psn, now_ns);

	if (q->qp->state == HCA_QP_ERR)
		return;
	if (!rnr)
		note_fatal_nak(t, q, p);
	if (!complete) {
		ask_again(t, q);
		return;
	}
	if (q->req.nak.is_pending) {
		apply_nak(t, q);
		return;
	}
	if (rnr) {
		if (q->req.rnr_waiting)
			return;
		rc_comp_rnr(t, q, aeth_value(p->aeth.syndrome), now_ns);
		if (q->req.rnr_waiting)
			rc_req_seek(t, q, psn);
		return;
	}
	q->counters->naks.seq_rx++;
	if (try_again(t, q, now_ns))
		go_back(t, q, psn);
}

void rc_comp_placed(struct ibt *t, struct ibt_qp *q)
{
	struct rc_req *r = &q->req;
	uint32_t i = shared_own(&q->qp->sq.completed);

	r->una = r->max;
	r->retries = 0;
	r->rnr_retries = 0;
	r->silent_since_ns = 0;
	r->asking = false;
	r->was_alive = false;
	if (wheel_is_set(&q->timers.ack))
		wheel_cancel(&t->wheel, &q->timers.ack);
	if (r->wqe != i)
		retire_oldest(t, q, HCA_SUCCESS);
	if (q->qp->state != HCA_QP_ERR)
		rc_comp_drained(t, q);
}

void rc_comp_lost(struct ibt *t, struct ibt_qp *q, uint64_t now_ns)
{
	struct rc_req *r = &q->req;

	if (serial24_is_equal(r->una, r->max))
		r->max = serial24_add(r->una, 1);
	if (!wheel_is_set(&q->timers.ack))
		rc_comp_arm(t, q, now_ns);
}

static void place_response(struct ibt *t, struct ibt_qp *q, struct wqe *w,
			   struct req_note *n, const struct pkt *p)
{
	uint32_t offset = n->answered * q->mtu;
	const uint8_t *data = p->payload;
	size_t want = w->opcode == HCA_WR_ATOMIC_WRITE
			      ? 0
			      : bits_min_u32(w->bytes - offset, q->mtu);
	struct explain x = {.wr_id = w->wr_id, .opcode = w->opcode};
	enum hca_status status;
	uint64_t orig = p->atomicacketh.orig;

	if (p->info->kind == OPCODE_KIND_ATOMIC_ACK) {
		data = (const uint8_t *)&orig;
		want = sizeof(orig);
	} else if (p->payload_len != want) {
		q->counters->refused.malformed++;
		return;
	}
	status = want ? sem_scatter(t->hca, q->qp->pd, w, offset, data,
				    (uint32_t)want, &x)
		      : HCA_SUCCESS;
	if (status) {
		ibt_explain(t, q, &x);
		fail_qp(t, q, status);
		return;
	}
	q->req.longest_got = bits_max_u32(q->req.longest_got, (uint32_t)want);
	n->answered++;
	if (n->answered == n->packets || n->answered % n->chunk == 0)
		if (q->req.reads_out)
			q->req.reads_out--;
}

/* Places the response p if it has the PSN that the oldest request expects. */
static void take_response(struct ibt *t, struct ibt_qp *q, const struct pkt *p,
			  uint64_t now_ns)
{
	struct serial24 psn = serial24(p->bth.psn);
	bool atomic = p->info->kind == OPCODE_KIND_ATOMIC_ACK;
	struct req_note *n;
	struct wqe *w = oldest_request(t, q, &n);

	if (!w || n->status || !rc_req_is_read(w) ||
	    !serial24_is_equal(psn, serial24_add(n->first, n->answered)) ||
	    atomic != (w->opcode == HCA_WR_ATOMIC_CAS ||
		       w->opcode == HCA_WR_ATOMIC_FADD))
		return;
	place_response(t, q, w, n, p);
	if (q->qp->state == HCA_QP_ERR)
		return;
	acknowledge_psn(t, q, serial24_add(n->first, n->answered), now_ns);
}

/* Takes the held responses whose turn has come, and drops those that are past
 * their turn. */
static void drain_early(struct ibt *t, struct ibt_qp *q, uint64_t now_ns)
{
	struct reorder *e = &q->req.reorder;
	struct ibt_held *k;

	while ((k = reorder_first(e))) {
		bool is_past = serial24_is_before(k->psn, q->req.una);
		struct pkt p;

		if (!is_past && !acknowledge_psn(t, q, k->psn, now_ns))
			return;
		if (q->qp->state == HCA_QP_ERR)
			return; /* the failure has dropped all held responses */
		reorder_take(e);
		if (!is_past && pkt_parse(k->bytes, k->len, &p))
			take_response(t, q, &p, now_ns);
		reorder_give(t, k);
	}
}

/*
 * A response that comes before its turn is held, because the missing response
 * may be late and not lost.  The missing responses are requested again when the
 * last response of a request has come, or when a response cannot be held or is
 * more than IBT_HELD_AHEAD PSNs ahead.  The held responses are placed after the
 * missing responses have come.
 */
static void handle_response(struct ibt *t, struct ibt_qp *q,
			    const struct pkt *p, const uint8_t *bytes,
			    size_t len, uint64_t now_ns)
{
	struct serial24 psn = serial24(p->bth.psn);

	if (acknowledge_psn(t, q, psn, now_ns)) {
		take_response(t, q, p, now_ns);
		drain_early(t, q, now_ns);
		return;
	}
	q->counters->rx_out_of_order++;
	q->qp->stats.out_of_order++;
	if (serial24_diff(psn, q->req.una) > IBT_HELD_AHEAD ||
	    !reorder_keep(t, q, &q->req.reorder, psn, bytes, len) ||
	    opcode_ends(p->info))
		ask_again(t, q);
}

bool rc_comp_fits(const struct ibt_qp *q, const struct pkt *p)
{
	const struct rc_req *r = &q->req;
	struct serial24 psn = serial24(p->bth.psn);

	return serial24_is_before(psn, r->max) &&
	       serial24_diff(psn, r->una) >= -IBT_BEHIND;
}

void rc_comp_rx(struct ibt *t, struct ibt_qp *q, const struct pkt *p,
		const uint8_t *bytes, size_t len, uint64_t now_ns)
{
	struct rc_req *r = &q->req;
	struct serial24 psn = serial24(p->bth.psn);
	uint32_t state = q->qp->state;

	if (state != HCA_QP_RTS && state != HCA_QP_SQD)
		return;
	/* no unacknowledged packet has this PSN: p is old or forged (IBTA
	 * 9.7.6) */
	if (serial24_is_before(psn, r->una) ||
	    !serial24_is_before(psn, r->max)) {
		if (!rc_comp_fits(q, p))
			t->sign = ENGINE_SIGN_PSN;
		return;
	}
	r->is_answered = true;
	if (p->info->kind != OPCODE_KIND_ACK)
		handle_response(t, q, p, bytes, len, now_ns);
	else if (aeth_kind(p->aeth.syndrome) == AETH_ACK) {
		if (!acknowledge_psn(t, q, serial24_add(psn, 1), now_ns))
			ask_again(t, q);
	} else if (aeth_is_known(p->aeth.syndrome))
		handle_nak(t, q, p, now_ns);
	else
		q->counters->refused.malformed++;
	if (q->qp->state == HCA_QP_ERR)
		return;
	apply_nak(t, q);
	rc_comp_drained(t, q);
}

void rc_comp_accepted(struct ibt *t, struct ibt_qp *q, struct serial24 psn)
{
	uint32_t state = q->qp->state;

	if (state != HCA_QP_RTS && state != HCA_QP_SQD)
		return;
	acknowledge_psn(t, q, psn, t->now_ns);
	if (q->qp->state == HCA_QP_ERR)
		return;
	apply_nak(t, q);
	rc_comp_drained(t, q);
}

void rc_comp_resend(struct ibt *t, struct ibt_qp *q)
{
	struct rc_req *r = &q->req;

	r->retries = 0;
	/* the silence of the old path says nothing about the new path */
	r->silent_since_ns = 0;
	r->asking = false;
	r->was_alive = false;
	if (q->qp->state == HCA_QP_ERR || serial24_is_equal(r->una, r->max))
		return;
	r->gap_valid = false;
	reorder_drop(t, &r->reorder);
	rc_req_seek(t, q, r->una);
	if (!r->rnr_waiting)
		rc_comp_arm(t, q, t->now_ns);
	ibt_qp_activate(t, q);
}

void rc_comp_timeout(struct ibt *t, struct ibt_qp *q, uint64_t now_ns)
{
	struct rc_req *r = &q->req;

	if (r->rnr_waiting || serial24_is_equal(r->una, r->max))
		return;
	q->counters->timeouts++;
	q->qp->stats.timeouts++;
	r->gap_valid = false;
	reorder_drop(t, &r->reorder);
	if (!try_again(t, q, now_ns))
		return;
	go_back(t, q, r->una);
	rc_comp_arm(t, q, now_ns);
}

/*
 * Returns for how long in ns a peer may still be silent after the retries are
 * used up.  A timeout may last from T to 4 T (IBTA 9.7.6.1.3).  The peer may
 * only be late, for example on a loaded host.  So after the retries, each of
 * which has waited for T, the peer gets the other 3 T of each timeout.
 */
static uint64_t extra_silence_ns(const struct ibt_qp *q)
{
	return 3 * (q->qp->attr.retry_cnt + 1ull) *
	       aeth_ack_timeout_ns(q->qp->attr.timeout);
}

void rc_comp_peer(struct ibt *t, struct ibt_qp *q, enum engine_peer state,
		  uint64_t now_ns)
{
	struct rc_req *r = &q->req;
	enum explain_cause why = EXPLAIN_PEER_CLOSED;

	if (!r->asking)
		return;
	r->asking = false;
	switch (state) {
	case ENGINE_PEER_ALIVE:
		/* The peer is slow.  A later ENGINE_PEER_UNKNOWN then means
		 * that the broker's answer was lost: the peer does run adverb.
		 */
		r->was_alive = true;
		return;
	case ENGINE_PEER_GONE:
		rc_comp_gone(t, q);
		return;
	case ENGINE_PEER_LEFT:
		fail_oldest(t, q, HCA_RETRY_EXC_ERR, EXPLAIN_PEER_LEFT);
		return;
	case ENGINE_PEER_UNKNOWN:
		if (r->was_alive)
			return;
		why = cause_of_silence(t, q);
		break;
	case ENGINE_PEER_CLOSED:
		break;
	}
	if (r->silent_since_ns &&
	    now_ns - r->silent_since_ns >= extra_silence_ns(q))
		fail_oldest(t, q, HCA_RETRY_EXC_ERR, why);
}
