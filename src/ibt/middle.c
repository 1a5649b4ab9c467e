/* SPDX-License-Identifier: BSD-2-Clause */
#include "ibt/middle.h"

#include "hca/semantics.h"
#include "ibt/message.h"
#include "util/bits.h"

/* How many Middles may follow at once, those that ask for no ACK out of need
 * alone: not the last that the window has room for. */
static uint32_t count(const struct ibt_qp *q, const struct req_note *n,
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

bool middle_begin(struct ibt *t, const struct ibt_qp *q, uint32_t most,
		  struct middle *m)
{
	const struct rc_req *r = &q->req;
	const struct req_note *n = rc_req_note(q, r->wqe);
	struct space_vec vec[SPACE_VEC_MAX];
	struct explain x;
	struct pkt p;
	struct wqe *w;
	size_t parts;

	/* the First has seen to it that the request may go at all */
	if (!r->packet || !n->started || n->status || r->rnr_waiting ||
	    q->mtu < IBT_SUM_BYTES)
		return false;
	w = wq_at(t->hca, &q->qp->sq, r->wqe);
	m->psn = serial24_add(n->first, r->packet);
	m->left = count(q, n, most);
	if (!m->left || rc_req_is_read(w) || w->flags & HCA_SEND_INLINE ||
	    !serial24_is_equal(m->psn, r->max))
		return false;
	if (sem_locate(t->hca, q->qp->pd, w, r->packet * q->mtu,
		       m->left * q->mtu, 0, vec, &parts, &x) ||
	    parts != 1)
		return false;
	m->va = vec[0].va;
	p.bth = (struct bth){.pkey = BTH_DEFAULT_PKEY,
			     .migreq = true,
			     .dest_qpn = q->qp->attr.dest_qpn};
	message_fill(q, w, n->packets, OPCODE_SERVICE_RC, &p);
	bth_write(m->bth, &p.bth);
	return true;
}

size_t middle_tx(struct ibt *t, struct ibt_qp *q, struct middle *m,
		 uint8_t *buf)
{
	struct space_vec from = {m->va, q->mtu};

	if (!m->left)
		return 0;
	memcpy(buf, m->bth, BTH_BYTES);
	bth_number(buf, m->psn.v, rc_req_asks(q, m->psn));
	t->sum_crc = 0;
	t->sum_bytes = q->mtu;
	if (space_read_crc(t->hca->space, &from, 1, buf + BTH_BYTES,
			   &t->sum_crc))
		return 0;
	m->left--;
	m->va += q->mtu;
	m->psn = serial24_add(m->psn, 1);
	q->req.packet++;
	q->req.max = m->psn;
	return BTH_BYTES + q->mtu;
}
