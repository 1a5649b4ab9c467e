/* SPDX-License-Identifier: BSD-2-Clause */
#include <string.h>

#include "hca/semantics.h"
#include "ibt/ibt.h"
#include "ibt/local_wr.h"
#include "ibt/message.h"
#include "ibt/migration.h"
#include "util/bits.h"

/* One of this many packets asks for an ACK (rc_req_asks): ACK_EVERY to a peer
 * on another host, ACK_EVERY_LOCAL to a peer on this host. */
#define ACK_EVERY	16
#define ACK_EVERY_LOCAL 64

void rc_req_reset(struct ibt *t, struct ibt_qp *q)
{
	reorder_drop(t, &q->req.reorder);
	memset(&q->req, 0, sizeof(q->req));
	q->direct.is_closed = q->direct.is_gone = false;
	reorder_init(&q->req.reorder);
	memset(q->notes, 0, q->qp->sq.size * sizeof(*q->notes));
}

struct req_note *rc_req_note(const struct ibt_qp *q, uint32_t index)
{
	return &q->notes[index & (q->qp->sq.size - 1)];
}

bool rc_req_has_begun(const struct ibt_qp *q)
{
	/* in a full queue the slot behind the last request is in use */
	return q->req.wqe != shared_load(&q->qp->sq.head) &&
	       rc_req_note(q, q->req.wqe)->started;
}

static bool is_atomic(const struct wqe *w)
{
	return w->opcode == HCA_WR_ATOMIC_CAS ||
	       w->opcode == HCA_WR_ATOMIC_FADD;
}

static bool is_atomic_write(const struct wqe *w)
{
	return w->opcode == HCA_WR_ATOMIC_WRITE;
}

bool rc_req_is_read(const struct wqe *w)
{
	return w->opcode == HCA_WR_RDMA_READ || is_atomic(w) ||
	       is_atomic_write(w);
}

bool rc_req_unanswered(const struct ibt *t, const struct ibt_qp *q,
		       struct serial24 *psn)
{
	uint32_t head = shared_load(&q->qp->sq.head);

	for (uint32_t i = shared_own(&q->qp->sq.completed); i != head; i++) {
		const struct req_note *n = rc_req_note(q, i);

		if (!n->started || n->status)
			break;
		if (rc_req_is_read(wq_at(t->hca, &q->qp->sq, i)) &&
		    n->answered < n->packets) {
			*psn = serial24_add(n->first, n->answered);
			return true;
		}
	}
	return false;
}

struct serial24 rc_req_next_psn(const struct ibt_qp *q)
{
	const struct req_note *n = rc_req_note(q, q->req.wqe);
	uint32_t going = q->req.wqe - shared_own(&q->qp->sq.completed);

	/* In a full queue the slot at the cursor is that of the oldest request,
	 * so its note says nothing about the next request. */
	if (!q->req.packet && (!n->started || going == q->qp->sq.size))
		return q->req.max;
	return serial24_add(n->first, q->req.packet);
}

struct serial24 rc_req_begin_anew(struct ibt *t, struct ibt_qp *q)
{
	struct rc_req *r = &q->req;
	struct req_note *n = rc_req_note(q, r->wqe);

	if (r->wqe != shared_load(&q->qp->sq.head) && n->started &&
	    !n->status) {
		if (rc_req_is_read(wq_at(t->hca, &q->qp->sq, r->wqe)))
			r->rd_wqes--;
		memset(n, 0, sizeof(*n));
	}
	r->max = r->una;
	wheel_cancel(&t->wheel, &q->timers.ack);
	return r->max;
}

/* Must w wait, because the QP is draining or w has a fence (IBTA 10.8.3.3)? */
static bool is_held_back(const struct rc_req *r, const struct wqe *w)
{
	return r->draining || ((w->flags & HCA_SEND_FENCE) && r->rd_wqes);
}

/* Returns how many request packets of w lack at least one of their responses.
 * w is the request at `index`, which is before the cursor. */
static uint32_t unanswered_packets(const struct ibt_qp *q, uint32_t index,
				   const struct wqe *w)
{
	const struct req_note *n = rc_req_note(q, index);

	if (!rc_req_is_read(w) || n->answered == n->packets)
		return 0;
	return (uint32_t)bits_div_up(n->packets, n->chunk) -
	       n->answered / n->chunk;
}

void rc_req_seek(struct ibt *t, struct ibt_qp *q, struct serial24 psn)
{
	struct rc_req *r = &q->req;
	uint32_t head = shared_load(&q->qp->sq.head);
	uint32_t i = shared_own(&q->qp->sq.completed);

	r->reads_out = 0;
	r->packet = 0;
	for (; i != head; i++) {
		const struct req_note *n = rc_req_note(q, i);
		int32_t ahead = serial24_diff(psn, n->first);

		if (!n->started || n->status)
			break;
		if (ahead < (int32_t)n->packets) {
			r->packet = ahead > 0 ? (uint32_t)ahead : 0;
			break;
		}
	}
	r->wqe = i;
	/* the request packets before the cursor that lack a response */
	for (uint32_t k = shared_own(&q->qp->sq.completed); k != i; k++)
		r->reads_out +=
			unanswered_packets(q, k, wq_at(t->hca, &q->qp->sq, k));
}

/* The last packet before the cursor may have asked for no ACK, because a
 * request followed it in the send queue when it was first sent.  A packet that
 * is sent again always asks for an ACK. */
void rc_req_nudge(struct ibt *t, struct ibt_qp *q)
{
	struct rc_req *r = &q->req;
	const struct req_note *n = rc_req_note(q, r->wqe - 1);
	struct serial24 last;

	if (r->packet || r->wqe == shared_own(&q->qp->sq.completed) ||
	    !n->packets ||
	    rc_req_is_read(wq_at(t->hca, &q->qp->sq, r->wqe - 1)))
		return;
	last = serial24_add(n->first, n->packets - 1);
	if (serial24_is_before(last, r->una))
		return;
	rc_req_seek(t, q, last);
	ibt_qp_activate(t, q);
}

void rc_req_stop(struct ibt *t, struct ibt_qp *q, struct wqe *w,
		 enum hca_status status, struct explain *x)
{
	struct req_note *n = rc_req_note(q, q->req.wqe);

	n->first = q->req.max;
	n->packets = 0;
	ibt_request_failed(t, q, w, status, x);
	q->req.packet = 0;
	rc_req_nudge(t, q);
	rc_comp_retire(t, q);
}

/* Judges the opcode and the length of w, but not its memory. */
static enum hca_status judge_opcode(const struct ibt_qp *q, const struct wqe *w,
				    struct explain *x)
{
	x->cause = EXPLAIN_LOCAL_OP;
	x->detail = "the queue pair allows no READ and no atomic, because its "
		    "max_rd_atomic is 0; set a greater one by ibv_modify_qp";
	if (rc_req_is_read(w) && !q->qp->attr.max_rd_atomic)
		return HCA_LOC_QP_OP_ERR;
	x->detail = "the SGEs of an atomic must have 8 bytes in all";
	if ((is_atomic(w) || is_atomic_write(w)) && w->bytes != 8)
		return HCA_LOC_LEN_ERR;
	x->detail = NULL;
	return HCA_SUCCESS;
}

static bool may_send(const struct ibt_qp *q)
{
	const struct rc_req *r = &q->req;
	uint32_t state = q->qp->state;

	return (state == HCA_QP_RTS || state == HCA_QP_SQD) &&
	       !r->rnr_waiting && r->wqe != shared_load(&q->qp->sq.head);
}

/*
 * Executes the requests at the cursor that send nothing.  These requests take
 * no PSN, and complete after the requests before them (IBTA 10.8.3.3).
 */
static void run_local(struct ibt *t, struct ibt_qp *q)
{
	struct rc_req *r = &q->req;

	while (!r->packet && may_send(q)) {
		struct wqe *w = wq_at(t->hca, &q->qp->sq, r->wqe);
		struct req_note *n = rc_req_note(q, r->wqe);
		struct explain x = {.cause = EXPLAIN_NONE};
		enum hca_status status;

		if (!local_wr_is(w) || (n->started && n->status))
			return;
		/* w was executed before rc_req_seek moved the cursor back */
		if (n->started) {
			r->wqe++;
			continue;
		}
		if (!q->direct.awaits_accesses && is_held_back(r, w))
			return;
		memset(n, 0, sizeof(*n));
		if (!local_wr_run(t, q, w, &status, &x))
			return;
		if (status) {
			rc_req_stop(t, q, w, status, &x);
			return;
		}
		n->started = true;
		n->first = r->max;
		r->wqe++;
		rc_comp_retire(t, q);
		if (q->qp->state != HCA_QP_ERR)
			rc_comp_drained(t, q);
	}
}

/*
 * Returns how many packets one READ request asks for.  The First and the Last
 * of its response have a longer header than the Middles, so each of them ends a
 * burst of equal packets; therefore the request asks for IBT_READ_BYTES.  If a
 * quarter of the window is less than that, the request asks for the quarter,
 * but for at least IBT_READ_PACKETS packets.
 */
static uint32_t read_chunk(const struct ibt_qp *q)
{
	return bits_max_u32(
		bits_min_u32(IBT_READ_BYTES / q->mtu, q->req.window / 4),
		IBT_READ_PACKETS);
}

/*
 * Judges whether w may send from its local memory.  The local memory of a READ
 * or an atomic is checked only when the response is placed, as hardware
 * adapters do: a refusal by the peer comes first, and the peer executes an
 * atomic whose local memory is wrong.
 */
static enum hca_status judge_request(struct ibt *t, const struct ibt_qp *q,
				     struct wqe *w, struct explain *x)
{
	if (rc_req_is_read(w) && !is_atomic_write(w))
		return HCA_SUCCESS;
	/* src/direct checks a request of one SGE itself, by sem_locate */
	if (q->direct.path == IBT_PATH_DIRECT && w->num_sge == 1 &&
	    !is_atomic_write(w))
		return HCA_SUCCESS;
	return sem_check(t->hca, q->qp->pd, w, 0, x);
}

/* Notes that w, the request at the cursor, has begun. */
static void note_start(const struct ibt *t, struct ibt_qp *q,
		       const struct wqe *w)
{
	struct rc_req *r = &q->req;
	struct req_note *n = rc_req_note(q, r->wqe);
	uint32_t unit =
		q->direct.path == IBT_PATH_DIRECT ? t->direct.piece : q->mtu;

	memset(n, 0, sizeof(*n));
	n->started = true;
	n->first = r->max;
	n->packets = is_atomic(w) || w->bytes <= unit
			     ? 1
			     : (uint32_t)bits_div_up(w->bytes, unit);
	if (rc_req_is_read(w)) {
		n->chunk = read_chunk(q);
		r->rd_wqes++;
	}
}

/* Judges the request at the cursor before its first packet. */
static enum hca_status judge_start(struct ibt *t, const struct ibt_qp *q,
				   struct wqe *w, struct explain *x)
{
	enum hca_status status = judge_opcode(q, w, x);

	return status ? status : judge_request(t, q, w, x);
}

/* Begins w, the request at the cursor.  False: w may not begin now, or has
 * failed. */
static bool start_request(struct ibt *t, struct ibt_qp *q, struct wqe *w)
{
	struct explain x = {.cause = EXPLAIN_NONE};
	enum hca_status status;

	if (is_held_back(&q->req, w))
		return false;
	status = judge_start(t, q, w, &x);
	if (status) {
		memset(rc_req_note(q, q->req.wqe), 0, sizeof(struct req_note));
		rc_req_stop(t, q, w, status, &x);
		return false;
	}
	note_start(t, q, w);
	return true;
}

static void fill_read(const struct ibt_qp *q, const struct wqe *w,
		      struct pkt *p, uint32_t count)
{
	uint32_t offset = q->req.packet * q->mtu;

	p->bth.opcode = OPCODE_RC_READ_REQUEST;
	p->reth.va = w->va + offset;
	p->reth.rkey = w->rkey;
	p->reth.length = bits_min_u32(w->bytes - offset, count * q->mtu);
}

/* An ATOMIC WRITE has eight bytes of payload, and is answered by a READ
 * response without payload (IBTA A19.5.2). */
static void fill_atomic_write(const struct wqe *w, struct pkt *p)
{
	p->bth.opcode = OPCODE_RC_ATOMIC_WRITE;
	p->reth = (struct reth){w->va, w->rkey, w->bytes};
	p->payload_len = w->bytes;
}

static void fill_atomic(const struct wqe *w, struct pkt *p)
{
	p->bth.opcode = w->opcode == HCA_WR_ATOMIC_CAS ? OPCODE_RC_COMPARE_SWAP
						       : OPCODE_RC_FETCH_ADD;
	p->atomiceth.va = w->va;
	p->atomiceth.rkey = w->rkey;
	p->atomiceth.swap_add = w->swap_add;
	p->atomiceth.compare = w->compare;
}

static size_t emit_packet(struct ibt *t, struct ibt_qp *q, struct wqe *w,
			  struct pkt *p, uint8_t *buf)
{
	struct explain x = {0};
	size_t len;
	enum hca_status status = message_emit(t, q, w, p, buf, &len, &x);

	if (!status)
		return len;
	rc_req_stop(t, q, w, status, &x);
	return 0;
}

/* Returns how many packets the READ request at the cursor asks for: those to
 * the end of its chunk (read_chunk), or of the READ. */
static uint32_t read_count(const struct ibt_qp *q, const struct req_note *n)
{
	uint32_t to_edge = n->chunk - q->req.packet % n->chunk;

	return bits_min_u32(to_edge, n->packets - q->req.packet);
}

static void advance_cursor(struct ibt *t, struct ibt_qp *q,
			   const struct req_note *n, uint32_t count)
{
	struct rc_req *r = &q->req;
	struct serial24 next = serial24_add(n->first, r->packet + count);

	if (serial24_is_before(next, r->max) || serial24_is_equal(next, r->max))
		q->counters->retransmits++, q->qp->stats.retransmits++;
	else
		r->max = next;
	r->packet += count;
	if (r->packet == n->packets) {
		r->packet = 0;
		r->wqe++;
	}
}

void rc_req_advance(struct ibt *t, struct ibt_qp *q)
{
	advance_cursor(t, q, rc_req_note(q, q->req.wqe), 1);
}

/* Is there room in the window for `count` more PSNs? */
static bool has_room(const struct ibt_qp *q, uint32_t count)
{
	int32_t flying = serial24_diff(rc_req_next_psn(q), q->req.una);

	return flying <= 0 || (uint32_t)flying + count <= q->req.window;
}

/* Can a SEND without Invalidate or a WRITE be sent right after the request at
 * the cursor? */
static bool message_follows(const struct ibt *t, const struct ibt_qp *q)
{
	uint32_t next = q->req.wqe + 1;
	const struct wqe *w = wq_at(t->hca, &q->qp->sq, next);

	if (next == shared_load(&q->qp->sq.head) || is_held_back(&q->req, w))
		return false;
	return hca_wr_is_message(w->opcode);
}

/*
 * An ACK costs as much as any packet.  So a packet asks for an ACK only if its
 * PSN is a multiple of ACK_EVERY or ACK_EVERY_LOCAL (rc_req_asks), if it is
 * sent again, or if the requester would otherwise wait for an ACK that no
 * packet asks for (wants_ack).
 */
bool rc_req_asks(const struct ibt_qp *q, struct serial24 psn)
{
	uint32_t every = q->qp->attr.ah.local ? ACK_EVERY_LOCAL : ACK_EVERY;

	return psn.v % every == 0;
}

static bool wants_ack(const struct ibt *t, const struct ibt_qp *q,
		      struct serial24 psn, bool ends)
{
	return serial24_is_before(psn, q->req.max) || rc_req_asks(q, psn) ||
	       !has_room(q, 2) || (ends && !message_follows(t, q));
}

bool rc_req_has_next(struct ibt *t, struct ibt_qp *q)
{
	if (!may_send(q))
		return false;
	if (!local_wr_is(wq_at(t->hca, &q->qp->sq, q->req.wqe)))
		return true;
	run_local(t, q);
	return may_send(q);
}

/* Begins the request at the cursor, if it has not begun, and returns it.  NULL:
 * the request may not begin now, or has a local error. */
static struct wqe *begin_request(struct ibt *t, struct ibt_qp *q)
{
	struct rc_req *r = &q->req;
	struct wqe *w = wq_at(t->hca, &q->qp->sq, r->wqe);
	const struct req_note *n = rc_req_note(q, r->wqe);

	if (local_wr_is(w) ||
	    (!r->packet && !n->started && !start_request(t, q, w)))
		return NULL;
	return n->status ? NULL : w;
}

struct wqe *rc_req_begin(struct ibt *t, struct ibt_qp *q)
{
	return rc_req_has_next(t, q) ? begin_request(t, q) : NULL;
}

static bool is_plain(const struct ibt *t, const struct ibt_qp *q,
		     const struct wqe *w)
{
	if (w->opcode == HCA_WR_SEND || w->opcode == HCA_WR_SEND_IMM)
		return direct_state_may_be_eager(&t->direct, &q->direct,
						 w->bytes);
	return w->opcode == HCA_WR_RDMA_WRITE ||
	       w->opcode == HCA_WR_RDMA_READ || is_atomic(w);
}

bool rc_req_is_plain(const struct ibt *t, const struct ibt_qp *q)
{
	return is_plain(t, q, wq_at(t->hca, &q->qp->sq, q->req.wqe));
}

/* Did w, the request at the cursor, begin before a wait for a receive, and has
 * this wait ended? */
static bool has_waited(const struct ibt_qp *q, const struct wqe *w)
{
	const struct req_note *n = rc_req_note(q, q->req.wqe);

	return q->direct.rnr.is_old && n->started && !n->status &&
	       hca_wr_is_send(w->opcode);
}

struct wqe *rc_req_begin_plain(struct ibt *t, struct ibt_qp *q)
{
	struct rc_req *r = &q->req;
	struct wqe *w = wq_at(t->hca, &q->qp->sq, r->wqe);
	const struct req_note *n = rc_req_note(q, r->wqe);
	struct explain x;

	if (!may_send(q) || r->packet || r->draining)
		return NULL;
	if (has_waited(q, w))
		return is_plain(t, q, w) ? w : NULL;
	if (n->started || w->flags & HCA_SEND_FENCE ||
	    w->bytes > t->direct.piece || !is_plain(t, q, w) ||
	    judge_start(t, q, w, &x) ||
	    (is_atomic(w) &&
	     sem_check(t->hca, q->qp->pd, w, HCA_LOCAL_WRITE, &x)))
		return NULL;
	note_start(t, q, w);
	return w;
}

struct wqe *rc_req_begin_executed(struct ibt *t, struct ibt_qp *q)
{
	struct wqe *w = wq_at(t->hca, &q->qp->sq, q->req.wqe);

	if (!may_send(q))
		return NULL;
	if (!rc_req_note(q, q->req.wqe)->started)
		note_start(t, q, w);
	return w;
}

bool rc_req_is_ready(const struct ibt_qp *q)
{
	return may_send(q);
}

size_t rc_req_tx(struct ibt *t, struct ibt_qp *q, uint8_t *buf, uint64_t now_ns)
{
	struct rc_req *r = &q->req;
	struct req_note *n;
	struct wqe *w;
	struct pkt p;
	uint32_t count = 1;
	size_t len;

	if (!rc_req_has_next(t, q) || !has_room(q, 1))
		return 0;
	w = begin_request(t, q);
	if (!w)
		return 0;
	n = rc_req_note(q, r->wqe);
	if (rc_req_is_read(w)) {
		if (r->reads_out >= q->qp->attr.max_rd_atomic)
			return 0;
		if (!is_atomic(w))
			count = read_count(q, n);
		if (!has_room(q, count))
			return 0;
	}
	/* the other members of p are not used for these packets */
	p.bth = (struct bth){.pkey = BTH_DEFAULT_PKEY,
			     .migreq = migration_bit(q),
			     .psn = serial24_add(n->first, r->packet).v,
			     .dest_qpn = q->qp->attr.dest_qpn};
	p.payload_len = 0;
	if (is_atomic(w))
		fill_atomic(w, &p);
	else if (is_atomic_write(w))
		fill_atomic_write(w, &p);
	else if (w->opcode == HCA_WR_RDMA_READ)
		fill_read(q, w, &p, count);
	else
		message_fill(q, w, n->packets, OPCODE_SERVICE_RC, &p);
	p.bth.ackreq = wants_ack(t, q, serial24(p.bth.psn),
				 r->packet + count == n->packets);
	len = emit_packet(t, q, w, &p, buf);
	if (!len)
		return 0;
	r->reads_out += rc_req_is_read(w);
	advance_cursor(t, q, n, count);
	if (!wheel_is_set(&q->timers.ack))
		rc_comp_arm(t, q, now_ns);
	return len;
}
