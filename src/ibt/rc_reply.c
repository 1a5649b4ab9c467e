/* SPDX-License-Identifier: BSD-2-Clause */
#include <string.h>

#include "ibt/ibt.h"
#include "ibt/message.h"
#include "ibt/migration.h"
#include "ibt/verdict.h"
#include "util/bits.h"
#include "util/check.h"

static struct reply *reply_at(struct rc_resp *r, uint32_t i)
{
	return &r->replies[i & (r->reply_size - 1)];
}

struct reply *rc_reply_first(struct ibt_qp *q)
{
	struct rc_resp *r = &q->resp;

	return r->reply_tail == r->reply_head ? NULL
					      : reply_at(r, r->reply_tail);
}

struct reply *rc_reply_push(struct ibt_qp *q)
{
	struct rc_resp *r = &q->resp;
	struct reply *y;

	CHECK(r->reply_head - r->reply_tail < r->reply_size);
	y = reply_at(r, r->reply_head++);
	memset(y, 0, sizeof(*y));
	return y;
}

void rc_reply_ack(struct ibt *t, struct ibt_qp *q, struct serial24 psn,
		  uint8_t syndrome)
{
	struct reply *y = rc_reply_push(q);

	y->kind = REPLY_ACK;
	y->syndrome = syndrome;
	y->psn = psn;
	y->msn = q->resp.msn;
	ibt_qp_activate(t, q);
}

void rc_reply_settle(struct ibt *t, struct ibt_qp *q)
{
	struct rc_resp *r = &q->resp;
	struct serial24 psn = serial24_add(r->epsn, -1);
	uint8_t syndrome = verdict_row(V_OK)->syndrome;
	struct reply *last;

	if (!r->ack_owed)
		return;
	r->ack_owed = false;
	last = r->reply_head != r->reply_tail ? reply_at(r, r->reply_head - 1)
					      : NULL;
	if (last && last->kind == REPLY_ACK &&
	    aeth_kind(last->syndrome) == AETH_ACK) {
		last->psn = psn;
		last->msn = r->msn;
		return;
	}
	/* a response whose last PSN is psn acknowledges psn too */
	if (last && last->kind != REPLY_ACK && last->fresh &&
	    serial24_is_equal(serial24_add(last->psn, last->packets - 1), psn))
		return;
	rc_reply_ack(t, q, psn, syndrome);
}

static size_t ack_tx(struct ibt_qp *q, const struct reply *y, struct pkt *p,
		     uint8_t *buf)
{
	p->bth.opcode = y->kind == REPLY_ATOMIC ? OPCODE_RC_ATOMIC_ACKNOWLEDGE
						: OPCODE_RC_ACKNOWLEDGE;
	p->bth.psn = y->psn.v;
	p->aeth.syndrome = y->kind == REPLY_ATOMIC ? verdict_row(V_OK)->syndrome
						   : y->syndrome;
	p->atomicacketh.orig = y->orig;
	q->resp.reply_tail++;
	return pkt_write_headers(buf, p);
}

static enum opcode_position reply_position(const struct reply *y)
{
	if (y->packets == 1)
		return OPCODE_ONLY;
	if (!y->sent)
		return OPCODE_FIRST;
	return y->sent + 1 == y->packets ? OPCODE_LAST : OPCODE_MIDDLE;
}

/* The memory of a READ cannot be read: sends a NAK in place of the remaining
 * responses, and fails the QP. */
static void refuse_read(struct ibt *t, struct ibt_qp *q, struct reply *y,
			enum verdict v, struct explain *x)
{
	const struct verdict_row *row = verdict_row(v);
	struct serial24 psn = serial24_add(y->psn, y->sent);

	q->resp.reply_tail = q->resp.reply_head; /* drop later replies */
	ibt_explain(t, q, x);
	q->resp.tombstone = true;
	q->resp.tomb_psn = psn;
	q->resp.tomb_syndrome = row->syndrome;
	q->counters->naks.fatal_tx++;
	q->counters->naks.access_tx += v == V_ACCESS;
	rc_reply_ack(t, q, psn, row->syndrome);
	if (q->qp->state != HCA_QP_ERR)
		ibt_qp_fail(t, q, row->event);
}

/*
 * The memory of a repeated READ cannot be read any more.  The requester may
 * have completed the READ before, and the program of this side may have
 * deregistered the memory since: the QP does not fail, and later replies
 * follow.  A requester that still waits for the response gets a NAK.  To any
 * other requester the NAK's PSN is old.
 */
static void refuse_repeat(struct ibt_qp *q, struct reply *y, enum verdict v)
{
	y->kind = REPLY_ACK;
	y->psn = serial24_add(y->psn, y->sent);
	y->syndrome = verdict_row(v)->syndrome;
	q->counters->naks.fatal_tx++;
	q->counters->naks.access_tx += v == V_ACCESS;
}

static void refuse_reply(struct ibt *t, struct ibt_qp *q, struct reply *y,
			 enum verdict v, struct explain *x)
{
	if (y->fresh)
		refuse_read(t, q, y, v, x);
	else
		refuse_repeat(q, y, v);
}

static int read_memory(struct ibt *t, const struct space_vec *from,
		       uint8_t *out)
{
	struct space *s = t->hca->space;
	int err;

	if (from->bytes < IBT_SUM_BYTES)
		return s->ops->read(s, from, 1, out);
	/* a packet that could not be made in this turn has left its part */
	t->sum_crc = 0;
	err = space_read_crc(s, from, 1, out, CRC_32, &t->sum_crc);
	/* after a failure a NAK is sent, which has no payload */
	t->sum_bytes = err ? 0 : (uint32_t)from->bytes;
	return err;
}

/* Writes one packet of a READ response to buf.  False: the memory cannot be
 * read, and a NAK has replaced the response. */
static bool read_tx(struct ibt *t, struct ibt_qp *q, struct reply *y,
		    struct pkt *p, uint8_t *buf, size_t *len)
{
	uint32_t offset = y->sent * q->mtu;
	uint32_t bytes = bits_min_u32(y->bytes - offset, q->mtu);
	struct space_vec from = {.bytes = bytes};
	struct explain x = {.cause = EXPLAIN_REMOTE_KEY,
			    .key = y->rkey,
			    .va = y->va + offset,
			    .bytes = bytes,
			    .need = HCA_REMOTE_READ};

	p->bth.opcode = opcode_of(OPCODE_SERVICE_RC, OPCODE_KIND_READ_RESPONSE,
				  reply_position(y), (enum opcode_ext)0);
	p->bth.psn = serial24_add(y->psn, y->sent).v;
	p->aeth.syndrome = verdict_row(V_OK)->syndrome;
	p->payload_len = bytes;
	*len = pkt_write_headers(buf, p);
	if (bytes &&
	    message_locate_part(t->hca, q->qp, y->rkey, y->va + offset, bytes,
				HCA_REMOTE_READ, &from.va, &x)) {
		refuse_reply(t, q, y, V_ACCESS, &x);
		return false;
	}
	if (bytes && read_memory(t, &from, buf + *len)) {
		x.cause = EXPLAIN_REMOTE_FAULT;
		refuse_reply(t, q, y, V_REMOTE_FAULT, &x);
		return false;
	}
	*len += bytes;
	memset(buf + *len, 0, pkt_pad(bytes));
	*len += pkt_pad(bytes);
	if (++y->sent == y->packets)
		q->resp.reply_tail++;
	return true;
}

size_t rc_reply_tx(struct ibt *t, struct ibt_qp *q, uint8_t *buf)
{
	struct rc_resp *r = &q->resp;
	struct reply *y;
	struct pkt p;
	size_t len;

	for (;;) {
		if (r->reply_tail == r->reply_head)
			return 0;
		/* the other members of p are not used for these packets */
		p.bth = (struct bth){.pkey = BTH_DEFAULT_PKEY,
				     .migreq = migration_bit(q),
				     .dest_qpn = q->qp->attr.dest_qpn};
		p.payload_len = 0;
		y = reply_at(r, r->reply_tail);
		p.aeth.msn = y->msn & SERIAL24_MASK;
		if (y->kind != REPLY_READ)
			return ack_tx(q, y, &p, buf);
		if (read_tx(t, q, y, &p, buf, &len))
			return len;
	}
}

void rc_reply_stop(struct ibt_qp *q)
{
	struct rc_resp *r = &q->resp;
	uint32_t i = r->reply_tail;

	while (i != r->reply_head &&
	       (reply_at(r, i)->kind != REPLY_READ || !reply_at(r, i)->bytes))
		i++;
	if (i == r->reply_head)
		return;
	/* an ACK of a later request would tell the peer that the READ was
	 * answered */
	r->reply_head = i;
	r->ack_owed = false;
}

bool rc_reply_is_due(const struct ibt_qp *q)
{
	return q->resp.reply_tail != q->resp.reply_head || q->resp.ack_owed;
}

size_t rc_reply_ack_tx(struct ibt *t, struct ibt_qp *q, uint8_t *buf)
{
	rc_reply_settle(t, q);
	return rc_reply_tx(t, q, buf);
}
