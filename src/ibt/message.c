/* SPDX-License-Identifier: BSD-2-Clause */
#include "ibt/message.h"

#include <string.h>

#include "hca/semantics.h"
#include "util/bits.h"

void message_fill(const struct ibt_qp *q, const struct wqe *w, uint32_t packets,
		  enum opcode_service service, struct pkt *p)
{
	bool first = q->req.packet == 0, last = q->req.packet + 1 == packets;
	bool write = w->opcode == HCA_WR_RDMA_WRITE ||
		     w->opcode == HCA_WR_RDMA_WRITE_IMM;
	bool imm = w->opcode == HCA_WR_RDMA_WRITE_IMM ||
		   w->opcode == HCA_WR_SEND_IMM;
	enum opcode_position where =
		first ? (last ? OPCODE_ONLY : OPCODE_FIRST)
		      : (last ? OPCODE_LAST : OPCODE_MIDDLE);
	enum opcode_ext tail = imm ? OPCODE_EXT_IMMDT
			       : w->opcode == HCA_WR_SEND_INV
				       ? OPCODE_EXT_IETH
				       : (enum opcode_ext)0;

	p->bth.opcode =
		opcode_of(service, write ? OPCODE_KIND_WRITE : OPCODE_KIND_SEND,
			  where, tail);
	p->bth.se = last && (w->flags & HCA_SEND_SOLICITED);
	p->reth = (struct reth){w->va, w->rkey, w->bytes};
	p->immdt.imm_be = w->imm_be;
	p->ieth.rkey = w->imm_be;
	p->payload_len =
		bits_min_u32(w->bytes - q->req.packet * q->mtu, q->mtu);
}

enum hca_status message_emit(struct ibt *t, const struct ibt_qp *q,
			     struct wqe *w, const struct pkt *p, uint8_t *buf,
			     size_t *len, struct explain *x)
{
	size_t n = pkt_write_headers(buf, p);

	if (p->payload_len) {
		bool summed = p->payload_len >= IBT_SUM_BYTES;
		enum hca_status status;

		/* a packet that could not be made in this turn has left its
		 * part */
		t->sum_crc = 0;
		status =
			sem_gather(t->hca, q->qp->pd, w, q->req.packet * q->mtu,
				   (uint32_t)p->payload_len, buf + n,
				   summed ? &t->sum_crc : NULL, x);
		if (status)
			return status;
		if (summed)
			t->sum_bytes = (uint32_t)p->payload_len;
		n += p->payload_len;
		memset(buf + n, 0, pkt_pad(p->payload_len));
		n += pkt_pad(p->payload_len);
	}
	*len = n;
	return HCA_SUCCESS;
}

/* A message is First, Middles and Last, or Only.  Each of these packets has the
 * length that its position demands (IBTA 9.7.4.1). */
enum verdict message_order(const struct ibt_qp *q, const struct pkt *p,
			   struct explain *x)
{
	const struct rc_resp *r = &q->resp;
	size_t len = p->payload_len;

	x->detail = "the packets of its messages are out of order";
	if (p->info->kind == OPCODE_KIND_FLUSH ||
	    p->info->kind == OPCODE_KIND_RESERVED)
		goto unsupported;
	if (opcode_starts(p->info) == r->in_message)
		return V_INVALID;
	if (r->in_message && p->info->kind != r->kind)
		return V_INVALID;
	x->detail =
		"a packet is longer or shorter than its opcode and the path "
		"MTU allow";
	switch (p->info->position) {
	case OPCODE_FIRST:
	case OPCODE_MIDDLE:
		return len == q->mtu ? V_OK : V_INVALID;
	case OPCODE_LAST:
		return len && len <= q->mtu ? V_OK : V_INVALID;
	case OPCODE_ONLY:
		return len <= q->mtu ? V_OK : V_INVALID;
	}
unsupported:
	x->detail = "this operation is not supported";
	return V_INVALID;
}

enum verdict message_locate_part(struct hca *h, const struct qp *qp,
				 uint32_t rkey, uint64_t va, uint64_t bytes,
				 uint32_t need, uint64_t *addr,
				 struct explain *x)
{
	enum mr_verdict v = mr_remote(h, qp, rkey, va, bytes, need, addr);
	const struct mr *mr;

	if (v == MR_OK)
		return V_OK;
	x->cause = EXPLAIN_REMOTE_KEY;
	x->verdict = v;
	x->key = rkey;
	x->va = va;
	x->bytes = bytes;
	x->need = need;
	mr = mr_find(h, rkey);
	if (mr) {
		x->region_va = mr->iova;
		x->region_bytes = mr->bytes;
	}
	return V_ACCESS;
}

enum verdict message_locate(struct hca *h, const struct qp *qp, uint32_t rkey,
			    uint64_t va, uint64_t bytes, uint32_t need,
			    uint64_t *addr, struct explain *x)
{
	x->key = rkey;
	x->va = va;
	x->bytes = bytes;
	x->need = need;
	x->cause = EXPLAIN_REMOTE_KEY;
	x->verdict = MR_OK; /* the key is not at fault */
	if (!(qp->attr.access_flags & need))
		return V_INVALID; /* the QP lacks the right: IBTA 9.7.4.1.4 */
	/* a request of length 0 names no memory, C9-88 */
	return bytes ? message_locate_part(h, qp, rkey, va, bytes, need, addr,
					   x)
		     : V_OK;
}

enum verdict message_key(struct hca *h, const struct qp *qp, uint32_t rkey,
			 uint64_t va, uint64_t bytes, uint32_t need,
			 struct explain *x)
{
	uint64_t addr;

	return message_locate(h, qp, rkey, va, bytes, need, &addr, x);
}

static bool wants_receive(const struct pkt *p)
{
	if (p->info->kind == OPCODE_KIND_SEND)
		return opcode_starts(p->info);
	return p->info->kind == OPCODE_KIND_WRITE &&
	       (p->info->ext & OPCODE_EXT_IMMDT);
}

enum verdict message_receive(struct ibt *t, struct ibt_qp *q,
			     const struct pkt *p, struct explain *x)
{
	struct wqe *w;
	uint64_t most;

	if (p->info->kind != OPCODE_KIND_SEND && !wants_receive(p))
		return V_OK;
	w = ibt_receive_take(t, q);
	if (!w)
		return V_RNR;
	if (p->info->kind != OPCODE_KIND_SEND)
		return V_OK;
	x->wr_id = w->wr_id;
	/* no message is longer than 2^31 bytes: IBTA 9.7.4.1 */
	most = bits_min_u64(sem_capacity(w), HCA_MAX_MESSAGE);
	if (q->resp.offset + p->payload_len > most) {
		x->cause = EXPLAIN_LOCAL_LENGTH;
		x->bytes = q->resp.offset + p->payload_len;
		x->region_bytes = most;
		return V_TOO_LONG;
	}
	return V_OK;
}

/* The payload of a WRITE must have the length that its RETH announced (C9-91).
 */
enum verdict message_write(struct ibt *t, const struct ibt_qp *q,
			   const struct pkt *p, struct explain *x)
{
	const struct rc_resp *r = &q->resp;
	bool starts = opcode_starts(p->info);
	uint64_t length = starts ? p->reth.length : r->length;
	uint64_t rest = length - (starts ? 0 : r->offset);

	x->detail = "a WRITE does not have the length that its RETH announced, "
		    "or is longer than 2^31 bytes";
	if (length > HCA_MAX_MESSAGE)
		return V_INVALID;
	if (opcode_ends(p->info) ? p->payload_len != rest
				 : p->payload_len >= rest)
		return V_INVALID;
	if (starts)
		return message_key(t->hca, q->qp, p->reth.rkey, p->reth.va,
				   length, HCA_REMOTE_WRITE, x);
	return V_OK;
}

void message_complete(struct ibt *t, struct ibt_qp *q, const struct pkt *p,
		      enum hca_status status)
{
	bool write = p->info->kind == OPCODE_KIND_WRITE;
	struct cqe c = {
		.status = status,
		.opcode = write ? HCA_WC_RECV_RDMA_WITH_IMM : HCA_WC_RECV,
		.vendor_err = status,
		.byte_len = write ? q->resp.length : q->resp.offset,
		.qpn = q->qp->qpn,
		.src_qpn = q->qp->attr.dest_qpn,
	};

	if (p->info->ext & OPCODE_EXT_IMMDT) {
		c.imm_be = p->immdt.imm_be;
		c.wc_flags = HCA_WC_WITH_IMM;
	}
	if ((p->info->ext & OPCODE_EXT_IETH) && !status) {
		c.imm_be = p->ieth.rkey;
		c.wc_flags = HCA_WC_WITH_INV;
	}
	ibt_receive_done(t, q, &c, p->bth.se);
}

/* A SEND with Invalidate (IBTA 9.4.1.1.3) must name a type 2 window: no region
 * of adverb permits remote invalidation. */
enum verdict message_invalidate(struct hca *h, const struct qp *qp,
				uint32_t rkey, struct explain *x)
{
	enum mr_verdict v = mw_invalidate(h, qp, rkey);

	if (v == MR_OK)
		return V_OK;
	x->cause = EXPLAIN_INVALIDATE;
	x->key = rkey;
	x->verdict = v;
	return V_INVALIDATE;
}

static enum verdict apply_send(struct ibt *t, struct ibt_qp *q,
			       const struct pkt *p, struct explain *x)
{
	struct rc_resp *r = &q->resp;

	if (p->payload_len &&
	    sem_scatter(t->hca, q->qp->recv_pd, rq_held(t->hca, q->qp),
			r->offset, p->payload, (uint32_t)p->payload_len, x)) {
		x->opcode = EXPLAIN_RECEIVE;
		return V_RECV_MEMORY;
	}
	r->offset += (uint32_t)p->payload_len;
	if (!opcode_ends(p->info))
		return V_OK;
	if (p->info->ext & OPCODE_EXT_IETH) {
		enum verdict v =
			message_invalidate(t->hca, q->qp, p->ieth.rkey, x);

		if (v)
			return v;
	}
	r->msn++;
	message_complete(t, q, p, HCA_SUCCESS);
	return V_OK;
}

static enum verdict apply_write(struct ibt *t, struct ibt_qp *q,
				const struct pkt *p, struct explain *x)
{
	struct rc_resp *r = &q->resp;
	struct space_vec to = {.bytes = p->payload_len};

	if (opcode_starts(p->info)) {
		r->va = p->reth.va;
		r->rkey = p->reth.rkey;
		r->length = p->reth.length;
	}
	x->va = r->va + r->offset;
	x->bytes = p->payload_len;
	x->key = r->rkey;
	/* the key is looked up for each packet: the region may have been
	 * deregistered since the previous packet */
	if (p->payload_len) {
		enum verdict v = message_locate_part(
			t->hca, q->qp, r->rkey, r->va + r->offset,
			p->payload_len, HCA_REMOTE_WRITE, &to.va, x);

		if (v)
			return v;
		if (t->hca->space->ops->write(t->hca->space, &to, 1,
					      p->payload)) {
			x->cause = EXPLAIN_REMOTE_FAULT;
			return V_REMOTE_FAULT;
		}
	}
	r->offset += (uint32_t)p->payload_len;
	if (!opcode_ends(p->info))
		return V_OK;
	r->msn++;
	if (p->info->ext & OPCODE_EXT_IMMDT)
		message_complete(t, q, p, HCA_SUCCESS);
	return V_OK;
}

enum verdict message_apply(struct ibt *t, struct ibt_qp *q, const struct pkt *p,
			   struct explain *x)
{
	enum verdict v;

	if (opcode_starts(p->info)) {
		q->resp.offset = 0;
		q->resp.kind = (uint8_t)p->info->kind;
		q->resp.length = 0;
	}
	v = p->info->kind == OPCODE_KIND_WRITE ? apply_write(t, q, p, x)
					       : apply_send(t, q, p, x);
	if (!v)
		q->resp.in_message = !opcode_ends(p->info);
	return v;
}

void message_count(const struct ibt_qp *q, const struct pkt *p)
{
	enum opcode_kind kind = p->info->kind;

	if (kind == OPCODE_KIND_WRITE && opcode_ends(p->info))
		comp_remote_write(q->qp, q->resp.length);
	if (!opcode_starts(p->info))
		return;
	if (kind == OPCODE_KIND_WRITE)
		q->counters->rx_writes++;
	else if (kind == OPCODE_KIND_READ_REQUEST)
		q->counters->rx_reads++;
	else if (kind == OPCODE_KIND_COMPARE_SWAP ||
		 kind == OPCODE_KIND_FETCH_ADD ||
		 kind == OPCODE_KIND_ATOMIC_WRITE)
		q->counters->rx_atomics++;
}
