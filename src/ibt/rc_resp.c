/* SPDX-License-Identifier: BSD-2-Clause */
#include <string.h>

#include "ibt/ibt.h"
#include "ibt/message.h"
#include "ibt/verdict.h"
#include "util/bits.h"

static void forget_early(struct ibt *t, struct ibt_qp *q)
{
	reorder_drop(t, &q->resp.reorder);
	wheel_cancel(&t->wheel, &q->timers.reorder);
}

void rc_resp_reorder_over(struct ibt *t, struct ibt_qp *q)
{
	forget_early(t, q);
}

void rc_resp_reset(struct ibt *t, struct ibt_qp *q)
{
	struct rc_resp *r = &q->resp;
	struct rc_resp fresh = {.replies = r->replies,
				.reply_size = r->reply_size,
				.resources = r->resources,
				.resource_size = r->resource_size};

	forget_early(t, q);
	*r = fresh;
	reorder_init(&r->reorder);
	for (uint32_t i = 0; i < r->resource_size; i++)
		r->resources[i].valid = false;
}

static bool is_atomic(const struct pkt *p)
{
	return p->info->kind == OPCODE_KIND_COMPARE_SWAP ||
	       p->info->kind == OPCODE_KIND_FETCH_ADD;
}

static bool is_atomic_write(const struct pkt *p)
{
	return p->info->kind == OPCODE_KIND_ATOMIC_WRITE;
}

/* Is p answered by a response, so that p counts against max_dest_rd_atomic? */
static bool is_read_like(const struct pkt *p)
{
	return is_atomic(p) || is_atomic_write(p) ||
	       p->info->kind == OPCODE_KIND_READ_REQUEST;
}

/* ---- judging: nothing of the QP changes ---- */

static uint32_t fresh_reads(const struct rc_resp *r)
{
	uint32_t count = 0;

	for (uint32_t i = r->reply_tail; i != r->reply_head; i++)
		count += r->replies[i & (r->reply_size - 1)].fresh;
	return count;
}

static enum verdict check_read_like(struct ibt *t, const struct ibt_qp *q,
				    const struct pkt *p, struct explain *x)
{
	const struct rc_resp *r = &q->resp;
	uint32_t most = q->qp->attr.max_dest_rd_atomic;

	x->detail = "it sent more READs and atomics at a time than the queue "
		    "pair's max_dest_rd_atomic allows; raise this value, or "
		    "lower max_rd_atomic at the peer";
	/* The replies are counted only when there are many of them: a count for
	 * each packet of a burst would take quadratic time. */
	if (r->reply_head - r->reply_tail >= most && fresh_reads(r) >= most)
		return V_INVALID;
	if (is_atomic_write(p)) {
		x->detail = "an ATOMIC WRITE must have 8 bytes, and an address "
			    "that is a multiple of 8";
		if (p->reth.va % 8 || p->reth.length != 8 ||
		    p->payload_len != 8)
			return V_INVALID;
		return message_key(t->hca, q->qp, p->reth.rkey, p->reth.va, 8,
				   HCA_REMOTE_WRITE, x);
	}
	if (!is_atomic(p)) {
		x->detail = "a READ is longer than 2^31 bytes";
		if (p->reth.length > HCA_MAX_MESSAGE)
			return V_INVALID;
		return message_key(t->hca, q->qp, p->reth.rkey, p->reth.va,
				   p->reth.length, HCA_REMOTE_READ, x);
	}
	x->detail = "an atomic's address is not a multiple of 8";
	if (p->atomiceth.va % 8)
		return V_INVALID;
	return message_key(t->hca, q->qp, p->atomiceth.rkey, p->atomiceth.va, 8,
			   HCA_REMOTE_ATOMIC, x);
}

static enum verdict judge_request(struct ibt *t, const struct ibt_qp *q,
				  const struct pkt *p, struct explain *x)
{
	enum verdict v = message_order(q, p, x);

	if (v)
		return v;
	if (p->info->kind == OPCODE_KIND_WRITE)
		v = message_write(t, q, p, x);
	else if (is_read_like(p))
		v = check_read_like(t, q, p, x);
	if (!v)
		x->detail = NULL;
	return v;
}

/* ---- applying ---- */

static struct resource *resource_new(struct rc_resp *r, const struct pkt *p)
{
	struct resource *s =
		&r->resources[r->resource_next++ & (r->resource_size - 1)];

	memset(s, 0, sizeof(*s));
	s->valid = true;
	s->kind = (uint8_t)p->info->kind;
	return s;
}

static void queue_read(struct ibt_qp *q, const struct pkt *p, bool fresh)
{
	struct reply *y = rc_reply_push(q);

	y->kind = REPLY_READ;
	y->fresh = fresh;
	y->psn = serial24(p->bth.psn);
	y->msn = q->resp.msn;
	y->rkey = p->reth.rkey;
	y->va = p->reth.va;
	/* the response to an ATOMIC WRITE has no payload */
	y->bytes = is_atomic_write(p) ? 0 : p->reth.length;
	y->packets = y->bytes ? (uint32_t)bits_div_up(y->bytes, q->mtu) : 1;
}

static void queue_atomic(struct ibt_qp *q, struct serial24 psn, uint64_t orig,
			 bool fresh)
{
	struct reply *y = rc_reply_push(q);

	y->kind = REPLY_ATOMIC;
	y->fresh = fresh;
	y->psn = psn;
	y->msn = q->resp.msn;
	y->orig = orig;
	y->packets = 1;
}

static enum verdict apply_atomic(struct ibt *t, struct ibt_qp *q,
				 const struct pkt *p, struct explain *x)
{
	enum space_atomic op = p->info->kind == OPCODE_KIND_COMPARE_SWAP
				       ? SPACE_CAS
				       : SPACE_FETCH_ADD;
	struct resource *s;
	uint64_t addr, orig;

	x->cause = EXPLAIN_REMOTE_FAULT;
	if (mr_remote(t->hca, q->qp, p->atomiceth.rkey, p->atomiceth.va, 8,
		      HCA_REMOTE_ATOMIC, &addr) ||
	    t->hca->space->ops->atomic(t->hca->space, op, addr,
				       p->atomiceth.swap_add,
				       p->atomiceth.compare, &orig))
		return V_REMOTE_FAULT;
	q->resp.msn++;
	s = resource_new(&q->resp, p);
	s->psn = q->resp.epsn;
	s->packets = 1;
	s->orig = orig;
	queue_atomic(q, s->psn, orig, true);
	return V_OK;
}

static enum verdict apply_read(struct ibt_qp *q, const struct pkt *p)
{
	struct rc_resp *r = &q->resp;
	struct resource *s = resource_new(r, p);

	r->msn++;
	queue_read(q, p, true);
	s->psn = r->epsn;
	s->rkey = p->reth.rkey;
	s->packets =
		r->replies[(r->reply_head - 1) & (r->reply_size - 1)].packets;
	return V_OK;
}

/* space_ops.write (hca/space.h) stores eight aligned bytes by one store, so the
 * write is atomic. */
static enum verdict apply_atomic_write(struct ibt *t, struct ibt_qp *q,
				       const struct pkt *p, struct explain *x)
{
	struct space_vec to = {.bytes = 8};

	x->cause = EXPLAIN_REMOTE_FAULT;
	if (mr_remote(t->hca, q->qp, p->reth.rkey, p->reth.va, 8,
		      HCA_REMOTE_WRITE, &to.va) ||
	    t->hca->space->ops->write(t->hca->space, &to, 1, p->payload))
		return V_REMOTE_FAULT;
	return apply_read(q, p);
}

static enum verdict apply_request(struct ibt *t, struct ibt_qp *q,
				  const struct pkt *p, struct explain *x)
{
	if (is_atomic(p))
		return apply_atomic(t, q, p, x);
	if (is_atomic_write(p))
		return apply_atomic_write(t, q, p, x);
	if (is_read_like(p))
		return apply_read(q, p);
	return message_apply(t, q, p, x);
}

/* ---- answering ---- */

static void refuse_request(struct ibt *t, struct ibt_qp *q, const struct pkt *p,
			   enum verdict v, struct explain *x)
{
	const struct verdict_row *row = verdict_row(v);
	struct rc_resp *r = &q->resp;
	uint8_t syndrome = row->syndrome;

	if (v == V_ACCESS)
		t->sign = ENGINE_SIGN_KEY;
	if (v == V_RNR) {
		syndrome |= q->qp->attr.min_rnr_timer;
		q->counters->naks.rnr_tx++;
		r->nak_sent = true;
		r->nak_ns = t->now_ns;
		/* the peer sends all packets again, as after a NAK for a
		 * sequence error; see reorder_request */
		forget_early(t, q);
		rc_reply_ack(t, q, r->epsn, syndrome);
		return;
	}
	if (!x->cause)
		x->cause = EXPLAIN_REMOTE_INVALID;
	ibt_explain(t, q, x);
	if (!row->silent) {
		q->counters->naks.fatal_tx++;
		q->counters->naks.access_tx += v == V_ACCESS;
		r->tombstone = true;
		r->tomb_psn = r->epsn;
		r->tomb_syndrome = syndrome;
		rc_reply_ack(t, q, r->epsn, syndrome);
	}
	if (row->recv_status)
		message_complete(t, q, p, (enum hca_status)row->recv_status);
	if (q->qp->state != HCA_QP_ERR)
		ibt_qp_fail(t, q, row->event);
	ibt_qp_activate(t, q);
}

/* Executes p, a request packet with the expected PSN.  False: p was refused or
 * dropped, or the QP has failed. */
static bool accept_request(struct ibt *t, struct ibt_qp *q, const struct pkt *p)
{
	struct rc_resp *r = &q->resp;
	struct explain x = {.opcode = p->bth.opcode};
	uint32_t packets = 1;
	enum verdict v;

	if (r->reply_head - r->reply_tail > r->reply_size - 4)
		return false; /* no room for an answer: drops p */
	if (p->info->kind == OPCODE_KIND_SEND && opcode_starts(p->info))
		r->offset = 0;
	v = judge_request(t, q, p, &x);
	if (!v)
		v = message_receive(t, q, p, &x);
	if (!v)
		v = apply_request(t, q, p, &x);
	if (v) {
		refuse_request(t, q, p, v, &x);
		return false;
	}
	message_count(q, p);
	if (p->info->kind == OPCODE_KIND_READ_REQUEST && p->reth.length)
		packets = (uint32_t)bits_div_up(p->reth.length, q->mtu);
	r->epsn = serial24_add(r->epsn, packets);
	r->nak_sent = false;
	if (is_read_like(p)) {
		/* the response acknowledges all packets before it */
		r->ack_owed = false;
		ibt_qp_activate(t, q);
	} else if (p->bth.ackreq) {
		r->ack_owed = true;
		ibt_qp_owe(t, q);
	}
	return q->qp->state != HCA_QP_ERR;
}

/* Executes the held packets whose turn has come, and drops those that are past
 * their turn. */
static void drain_held(struct ibt *t, struct ibt_qp *q)
{
	struct rc_resp *r = &q->resp;
	struct ibt_held *k;
	bool go_on = true;

	while (go_on && (k = reorder_first(&r->reorder))) {
		int32_t ahead = serial24_diff(k->psn, r->epsn);
		struct pkt p;

		if (ahead > 0)
			return;
		reorder_take(&r->reorder);
		if (!reorder_first(&r->reorder))
			wheel_cancel(&t->wheel, &q->timers.reorder);
		if (ahead == 0 && pkt_parse(k->bytes, k->len, &p)) {
			/* queues the ACK of the packets before k */
			rc_reply_settle(t, q);
			go_on = accept_request(t, q, &p);
		}
		reorder_give(t, k);
	}
}

/* Returns how long in ns a packet is held at most.  When the peer's ACK timer
 * expires, the peer sends the missing packet again, so no packet is held longer
 * than the peer's timeout.  That timeout is not known; q's own stands for it.
 */
static uint64_t max_held_ns(const struct ibt_qp *q)
{
	uint8_t code = q->qp->attr.timeout;

	return code ? bits_min_u64(aeth_ack_timeout_ns(code), IBT_HELD_NS)
		    : IBT_HELD_NS;
}

static bool keep_early(struct ibt *t, struct ibt_qp *q, struct serial24 psn,
		       const uint8_t *bytes, size_t len)
{
	if (!reorder_keep(t, q, &q->resp.reorder, psn, bytes, len))
		return false;
	if (!wheel_is_set(&q->timers.reorder))
		wheel_set(&t->wheel, &q->timers.reorder,
			  t->now_ns + max_held_ns(q));
	return true;
}

/*
 * A packet that is more than IBT_HELD_AHEAD PSNs ahead follows many lost
 * packets of the peer, or comes from a forger who tries PSNs.  A NAK asks the
 * sender to go back, but at most one such NAK is sent in IBT_HELD_NS.  Returns
 * whether such a NAK was sent less than IBT_HELD_NS ago; if not, notes that one
 * is sent now.
 */
static bool is_far_too_often(struct ibt *t, struct ibt_qp *q)
{
	uint64_t last_ns = q->resp.far_nak_ns;

	if (last_ns && t->now_ns - last_ns < IBT_HELD_NS)
		return true;
	q->resp.far_nak_ns = t->now_ns;
	return false;
}

/* Was the peer asked to go back a short time ago?  If so, it may have sent
 * packets that are far ahead before it got the NAK, and they do not count as
 * forged. */
static bool is_on_its_way_back(const struct ibt *t, const struct rc_resp *r)
{
	return r->nak_sent && t->now_ns - r->nak_ns < IBT_NAK_HEARD_NS;
}

/*
 * A packet that comes before its turn is held, because the missing packet may
 * be late and not lost.  If such a packet asks for an answer or cannot be held,
 * a NAK asks the sender to go back (IBTA 9.7.5.2), and the held packets are
 * dropped.  If they were executed later, this QP could acknowledge them while
 * the peer still sends them again, or this QP's program could end meanwhile.
 * In both cases a peer that is the kernel's rxe never completes its request.
 * After a NAK, such packets are dropped without another NAK until the expected
 * packet comes; and so are packets that are far ahead, if is_far_too_often says
 * so.
 */
static void reorder_request(struct ibt *t, struct ibt_qp *q,
			    const struct pkt *p, const uint8_t *bytes,
			    size_t len)
{
	struct serial24 psn = serial24(p->bth.psn);
	struct rc_resp *r = &q->resp;
	bool is_far = serial24_diff(psn, r->epsn) > IBT_HELD_AHEAD;

	q->counters->rx_out_of_order++;
	q->counters->rx_wrong_psn += is_far;
	if (is_far && !is_on_its_way_back(t, r))
		t->sign = ENGINE_SIGN_PSN;
	q->qp->stats.out_of_order++;
	if (r->nak_sent || (is_far && is_far_too_often(t, q)))
		return;
	if (!p->bth.ackreq && !is_read_like(p) && !is_far &&
	    keep_early(t, q, psn, bytes, len))
		return;
	forget_early(t, q);
	r->nak_sent = true;
	r->nak_ns = t->now_ns;
	q->counters->naks.seq_tx++;
	rc_reply_ack(t, q, r->epsn,
		     aeth_syndrome(AETH_NAK, AETH_NAK_PSN_SEQUENCE));
}

/* Returns the record of the executed READ or atomic that p repeats; NULL: the
 * record was overwritten, or p repeats no such request.  Searches from the
 * newest record on, because PSNs wrap around. */
static const struct resource *resource_of(const struct rc_resp *r,
					  const struct pkt *p)
{
	struct serial24 psn = serial24(p->bth.psn);

	for (uint32_t i = 1; i <= r->resource_size; i++) {
		const struct resource *s =
			&r->resources[(r->resource_next - i) &
				      (r->resource_size - 1)];
		int32_t into = serial24_diff(psn, s->psn);

		if (s->valid && s->kind == p->info->kind && into >= 0 &&
		    into < (int32_t)s->packets)
			return s;
	}
	return NULL;
}

bool rc_resp_fits(const struct ibt_qp *q, const struct pkt *p)
{
	int32_t ahead = serial24_diff(serial24(p->bth.psn), q->resp.epsn);

	return (ahead <= IBT_HELD_AHEAD && ahead >= -IBT_BEHIND) ||
	       (ahead < 0 && is_read_like(p) && resource_of(&q->resp, p));
}

/* Answers p, a duplicate request (IBTA 9.7.5.1).  Drops p if the ring of
 * replies is more than half full, if p repeats a READ or atomic that has no
 * record any more, or if p is a READ or ATOMIC WRITE that does not agree with
 * the record.  Reads the memory of a READ again, and executes no other request
 * again. */
static void repeat_answer(struct ibt *t, struct ibt_qp *q, const struct pkt *p)
{
	struct rc_resp *r = &q->resp;
	struct serial24 psn = serial24(p->bth.psn);
	const struct resource *s;

	q->counters->rx_duplicates++;
	if (!rc_resp_fits(q, p))
		t->sign = ENGINE_SIGN_PSN;
	if (r->reply_head - r->reply_tail > r->reply_size / 2)
		return;
	if (!is_read_like(p)) {
		/* ACKs of duplicates may be coalesced too (IBTA 9.7.5.1.2) */
		r->ack_owed |= p->bth.ackreq;
		ibt_qp_activate(t, q);
		return;
	}
	s = resource_of(r, p);
	if (!s)
		return;
	if (is_atomic(p))
		queue_atomic(q, psn, s->orig, false);
	else if (s->rkey == p->reth.rkey &&
		 bits_div_up(p->reth.length, q->mtu) +
				 (uint32_t)serial24_diff(psn, s->psn) <=
			 bits_max_u32(s->packets, 1))
		queue_read(q, p, false);
	ibt_qp_activate(t, q);
}

/* Did this side, which has failed, refuse p?  It has also refused a READ if it
 * has refused one of the READ's responses, before which others may be lost. */
static bool was_refused(const struct ibt_qp *q, const struct pkt *p)
{
	const struct rc_resp *r = &q->resp;
	int32_t to = serial24_diff(r->tomb_psn, serial24(p->bth.psn));

	return r->tombstone &&
	       (!to || (p->info->kind == OPCODE_KIND_READ_REQUEST && to > 0 &&
			(uint32_t)to < bits_div_up(p->reth.length, q->mtu)));
}

void rc_resp_rx(struct ibt *t, struct ibt_qp *q, const struct pkt *p,
		const uint8_t *bytes, size_t len)
{
	struct rc_resp *r = &q->resp;
	struct serial24 psn = serial24(p->bth.psn);
	uint32_t state = q->qp->state;
	int32_t ahead;

	if (state == HCA_QP_ERR && was_refused(q, p)) {
		if (r->reply_head - r->reply_tail < r->reply_size / 2)
			rc_reply_ack(t, q, psn, r->tomb_syndrome);
		return;
	}
	if (state < HCA_QP_RTR || state > HCA_QP_SQE)
		return;
	if (!q->heard) {
		q->heard = true;
		if (state == HCA_QP_RTR)
			ibt_event(t, q, ENGINE_COMM_EST);
	}
	ahead = serial24_diff(psn, r->epsn);
	if (ahead > 0)
		reorder_request(t, q, p, bytes, len);
	else if (ahead < 0)
		repeat_answer(t, q, p);
	else if (accept_request(t, q, p))
		drain_held(t, q);
}
