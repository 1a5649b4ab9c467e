/* SPDX-License-Identifier: BSD-2-Clause */
#include "ibt/middle_packets.h"

#include "hca/semantics.h"
#include "ibt/message.h"
#include "ibt/migration.h"
#include "ibt/rc_turn.h"
#include "util/bits.h"

/* Returns how many Middles of a request may be made at once, at most `most`.
 * rc_req_tx makes the last two packets for which the window has room: the last
 * one must ask for an ACK (wants_ack in rc_req.c). */
static uint32_t count_middles(const struct ibt_qp *q, const struct req_note *n,
			      uint32_t most)
{
	const struct rc_req *r = &q->req;
	int32_t flying = serial24_diff(r->max, r->una);
	uint32_t room = flying >= 0 && (uint32_t)flying < r->window
				? r->window - (uint32_t)flying
				: 0;

	if (n->packets < r->packet + 2 || room < 3)
		return 0;
	return bits_min_u32(bits_min_u32(n->packets - r->packet - 1, room - 2),
			    most);
}

static void number_packet(const struct ibt_qp *q, struct middle_packets *m,
			  struct pkt *p)
{
	p->bth = (struct bth){.opcode = p->bth.opcode,
			      .pkey = BTH_DEFAULT_PKEY,
			      .migreq = migration_bit(q),
			      .dest_qpn = q->qp->attr.dest_qpn};
	bth_write(m->bth, &p->bth);
}

static bool begin_answer(struct ibt *t, struct ibt_qp *q, struct reply *y,
			 uint32_t most, struct middle_packets *m)
{
	struct pkt p = {.bth.opcode = OPCODE_RC_READ_RESPONSE_MIDDLE};

	if (y->kind != REPLY_READ || !y->sent || y->packets < y->sent + 2)
		return false;
	m->answer = y;
	m->psn = serial24_add(y->psn, y->sent);
	m->left = bits_min_u32(y->packets - y->sent - 1, most);
	if (!m->left ||
	    mr_remote(t->hca, q->qp, y->rkey,
		      y->va + (uint64_t)y->sent * q->mtu,
		      (uint64_t)m->left * q->mtu, HCA_REMOTE_READ, &m->va))
		return false;
	number_packet(q, m, &p);
	return true;
}

static bool begin_request(struct ibt *t, struct ibt_qp *q, uint32_t most,
			  struct middle_packets *m)
{
	const struct rc_req *r = &q->req;
	const struct req_note *n = rc_req_note(q, r->wqe);
	struct wqe *w = wq_at(t->hca, &q->qp->sq, r->wqe);
	struct space_vec vec[SPACE_VEC_MAX];
	struct explain x;
	struct pkt p;
	size_t parts;

	/* rc_req_tx judged the request when it made the First; a response that
	 * was made since may have failed the QP */
	if (q->qp->state == HCA_QP_ERR || !r->packet || !n->started ||
	    n->status || r->rnr_waiting || rc_req_is_read(w) ||
	    w->flags & HCA_SEND_INLINE)
		return false;
	m->answer = NULL;
	m->psn = serial24_add(n->first, r->packet);
	m->left = count_middles(q, n, most);
	if (!m->left || !serial24_is_equal(m->psn, r->max) ||
	    sem_locate(t->hca, q->qp->pd, w, r->packet * q->mtu,
		       m->left * q->mtu, 0, vec, &parts, &x) ||
	    parts != 1)
		return false;
	m->va = vec[0].va;
	message_fill(q, w, n->packets, OPCODE_SERVICE_RC, &p);
	number_packet(q, m, &p);
	return true;
}

bool middle_packets_begin(struct ibt *t, struct ibt_qp *q, uint32_t most,
			  struct middle_packets *m)
{
	struct reply *y = rc_reply_first(q);

	if (q->mtu < IBT_SUM_BYTES)
		return false;
	if ((!y || rc_turn_is_requests(q)) &&
	    q->direct.path == IBT_PATH_PACKETS && begin_request(t, q, most, m))
		return true;
	return y && begin_answer(t, q, y, most, m);
}

static void advance_packet(struct ibt_qp *q, struct middle_packets *m)
{
	m->left--;
	m->va += q->mtu;
	m->psn = serial24_add(m->psn, 1);
	if (m->answer) {
		m->answer->sent++;
	} else {
		q->req.packet++;
		q->req.max = m->psn;
	}
}

size_t middle_packets_tx(struct ibt *t, struct ibt_qp *q,
			 struct middle_packets *m, uint8_t *buf)
{
	struct space_vec from = {m->va, q->mtu};

	if (!m->left)
		return 0;
	memcpy(buf, m->bth, BTH_BYTES);
	bth_number(buf, m->psn.v, !m->answer && rc_req_asks(q, m->psn));
	t->sum_crc = 0;
	t->sum_bytes = q->mtu;
	if (space_read_crc(t->hca->space, &from, 1, buf + BTH_BYTES, CRC_32,
			   &t->sum_crc))
		return 0;
	advance_packet(q, m);
	return BTH_BYTES + q->mtu;
}
