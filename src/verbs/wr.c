/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Posts a series of requests field by field: wr_start begins the series, then
 * calls set the fields of any number of requests, and wr_complete or wr_abort
 * ends the series.  Each request is written directly to its slot of the queue.
 * wr_complete posts all requests at once, or none after an error.  Lock:
 * v_qp.send, held for the whole series unless v_qp.is_single.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "verbs/fail.h"
#include "verbs/object.h"
#include "verbs/ops.h"
#include "verbs/post.h"

#define FLAGS (IBV_SEND_FENCE | IBV_SEND_SIGNALED | IBV_SEND_SOLICITED)

static struct v_qp *qp_of(struct ibv_qp_ex *qp)
{
	return v_qp(&qp->qp_base);
}

static void fail_series(struct v_qp *q, int err)
{
	if (!q->wr.err)
		q->wr.err = err;
	q->wr.now = NULL;
}

/* Checks the current request, if there is one, after all its fields are set. */
static void finish_request(struct v_qp *q)
{
	int err;

	if (!q->wr.now)
		return;
	q->wr.bytes += V_POST_EACH + q->wr.now->bytes;
	err = v_post_check(q, q->wr.now);
	if (err)
		fail_series(q, err);
}

static struct wqe *begin_request(struct ibv_qp_ex *ex, enum hca_wr opcode)
{
	struct v_qp *q = qp_of(ex);
	struct wqe *w;

	finish_request(q);
	if (q->wr.err)
		return NULL;
	w = wq_reserve_after(host_hca(q->host), &q->qp->sq, q->wr.count);
	if (!w) {
		fail_series(q, v_fail(ENOMEM, V_FULL, "the send queue"));
		return NULL;
	}
	memset(w, 0, sizeof(*w));
	if (q->qp->type == HCA_QPT_UD)
		/* ibv_wr_set_ud_addr sets the destination. */
		*wq_to(&q->qp->sq, w) = (struct wq_to){0};
	w->wr_id = ex->wr_id;
	w->opcode = (uint8_t)opcode;
	w->flags = (uint8_t)(ex->wr_flags & FLAGS);
	if (q->qp->sq_sig_all)
		w->flags |= HCA_SEND_SIGNALED;
	q->wr.now = w;
	q->wr.count++;
	return w;
}

static void begin_remote(struct ibv_qp_ex *ex, enum hca_wr opcode,
			 uint32_t rkey, uint64_t va, uint32_t imm)
{
	struct wqe *w = begin_request(ex, opcode);

	if (!w)
		return;
	w->rkey = rkey;
	w->va = va;
	w->imm_be = imm;
}

static void begin_plain(struct ibv_qp_ex *ex, enum hca_wr opcode, uint32_t imm)
{
	begin_remote(ex, opcode, 0, 0, imm);
}

static void wr_atomic(struct ibv_qp_ex *ex, enum hca_wr opcode, uint32_t rkey,
		      uint64_t va, uint64_t compare, uint64_t swap_add)
{
	struct wqe *w;

	begin_remote(ex, opcode, rkey, va, 0);
	w = qp_of(ex)->wr.now;
	if (!w)
		return;
	w->compare = compare;
	w->swap_add = swap_add;
}

static void wr_atomic_cmp_swp(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t va,
			      uint64_t compare, uint64_t swap)
{
	wr_atomic(ex, HCA_WR_ATOMIC_CAS, rkey, va, compare, swap);
}

static void wr_atomic_fetch_add(struct ibv_qp_ex *ex, uint32_t rkey,
				uint64_t va, uint64_t add)
{
	wr_atomic(ex, HCA_WR_ATOMIC_FADD, rkey, va, 0, add);
}

static void wr_bind_mw(struct ibv_qp_ex *ex, struct ibv_mw *mw, uint32_t rkey,
		       const struct ibv_mw_bind_info *info)
{
	struct wqe *w = begin_request(ex, HCA_WR_BIND_MW);
	int err = w ? v_post_bind(w, mw, rkey, info) : 0;

	if (err)
		fail_series(qp_of(ex), err);
	if (err || !w)
		return;
	w->at = (uintptr_t)mw; /* for store_keys */
	qp_of(ex)->wr.has_bind = true;
}

static void wr_local_inv(struct ibv_qp_ex *ex, uint32_t rkey)
{
	begin_plain(ex, HCA_WR_LOCAL_INV, rkey);
}

static void wr_rdma_read(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t va)
{
	begin_remote(ex, HCA_WR_RDMA_READ, rkey, va, 0);
}

static void wr_rdma_write(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t va)
{
	begin_remote(ex, HCA_WR_RDMA_WRITE, rkey, va, 0);
}

static void wr_rdma_write_imm(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t va,
			      __be32 imm)
{
	begin_remote(ex, HCA_WR_RDMA_WRITE_IMM, rkey, va, imm);
}

static void wr_send(struct ibv_qp_ex *ex)
{
	begin_plain(ex, HCA_WR_SEND, 0);
}

static void wr_send_imm(struct ibv_qp_ex *ex, __be32 imm)
{
	begin_plain(ex, HCA_WR_SEND_IMM, imm);
}

static void wr_send_inv(struct ibv_qp_ex *ex, uint32_t rkey)
{
	begin_plain(ex, HCA_WR_SEND_INV, rkey);
}

static void fail_unsupported(struct ibv_qp_ex *ex)
{
	fail_series(qp_of(ex), v_fail(EOPNOTSUPP, V_NOT_SUPPORTED,
				      "ibv_wr_* for segmentation or XRC"));
}

static void wr_flush(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t va,
		     size_t length, uint8_t type, uint8_t level)
{
	fail_series(qp_of(ex), v_fail(EOPNOTSUPP, V_NOT_SUPPORTED,
				      "FLUSH (ibv_wr_flush)"));
}

static void wr_send_tso(struct ibv_qp_ex *ex, void *hdr, uint16_t hdr_sz,
			uint16_t mss)
{
	fail_unsupported(ex);
}

static void wr_atomic_write(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t va,
			    const void *value)
{
	struct wqe *w;

	begin_remote(ex, HCA_WR_ATOMIC_WRITE, rkey, va, 0);
	w = qp_of(ex)->wr.now;
	if (!w)
		return;
	/* Every slot has room for 8 bytes. */
	memcpy(wqe_sges(w), value, 8);
	w->flags |= HCA_SEND_INLINE;
	w->bytes = 8;
}

static void wr_set_ud_addr(struct ibv_qp_ex *ex, struct ibv_ah *ah,
			   uint32_t qpn, uint32_t qkey)
{
	struct v_qp *q = qp_of(ex);
	int err = q->wr.now ? v_post_ud(q, q->wr.now, ah, qpn, qkey) : 0;

	if (err)
		fail_series(q, err);
}

static void wr_set_xrc_srqn(struct ibv_qp_ex *ex, uint32_t srqn)
{
	fail_unsupported(ex);
}

static void set_inline(struct ibv_qp_ex *ex, size_t n,
		       const struct ibv_data_buf *buf)
{
	struct v_qp *q = qp_of(ex);
	struct wqe *w = q->wr.now;
	size_t bytes = 0;
	char *out;

	if (!w)
		return;
	out = (char *)wqe_sges(w);
	for (size_t i = 0; i < n; i++) {
		if (buf[i].length > q->qp->sq.max_inline - bytes) {
			fail_series(q, v_fail(EINVAL, V_INPUT,
					      "a posted request has more "
					      "inline data than the queue "
					      "pair's max_inline_data; use "
					      "ibv_wr_set_sge, or create the "
					      "queue pair for more"));
			return;
		}
		memcpy(out + bytes, buf[i].addr, buf[i].length);
		bytes += buf[i].length;
	}
	w->flags |= HCA_SEND_INLINE;
	w->bytes = (uint32_t)bytes;
}

static void wr_set_inline_data_list(struct ibv_qp_ex *ex, size_t n,
				    const struct ibv_data_buf *buf)
{
	set_inline(ex, n, buf);
}

static void wr_set_inline_data(struct ibv_qp_ex *ex, void *addr, size_t length)
{
	set_inline(ex, 1, &(struct ibv_data_buf){addr, length});
}

static void wr_set_sge_list(struct ibv_qp_ex *ex, size_t n,
			    const struct ibv_sge *sge)
{
	struct v_qp *q = qp_of(ex);
	uint64_t bytes;
	int err;

	if (!q->wr.now)
		return;
	bytes = v_post_total(sge, n, q->qp->sq.max_sge);
	err = v_post_check_total(bytes);
	if (err) {
		fail_series(q, err);
		return;
	}
	v_post_sges(q->wr.now, sge, n);
	q->wr.now->bytes = (uint32_t)bytes;
}

static void wr_set_sge(struct ibv_qp_ex *ex, uint32_t lkey, uint64_t addr,
		       uint32_t length)
{
	wr_set_sge_list(ex, 1, &(struct ibv_sge){addr, length, lkey});
}

static void wr_start(struct ibv_qp_ex *ex)
{
	struct v_qp *q = qp_of(ex);

	v_post_expect(q);
	v_enter_queue(&q->send, q->is_single);
	q->wr.now = NULL;
	q->wr.count = 0;
	q->wr.bytes = 0;
	q->wr.has_bind = false;
	q->wr.err = v_post_state(q, HCA_QP_RTS);
	/* Until wr_complete or wr_abort, this thread runs the program's code
	 * too.  ThreadSanitizer must see the accesses of that code, although
	 * the thread holds a lock of adverb's. */
	instrument_ignore_end();
	instrument_happens_after(&q->send);
}

/* Tells ThreadSanitizer that from here on this thread runs adverb's code alone:
 * see wr_start. */
static void resume_series(struct v_qp *q)
{
	instrument_happens_before(&q->send);
	instrument_ignore();
}

/* Stores the new keys of the windows that the series binds.  Called only by
 * wr_complete, since before that an error may keep the requests from being
 * posted. */
static void store_keys(struct v_qp *q)
{
	uint32_t head = shared_own(&q->qp->sq.head);

	for (uint32_t i = 0; i < q->wr.count; i++) {
		const struct wqe *w =
			wq_at(host_hca(q->host), &q->qp->sq, head + i);

		if (w->opcode == HCA_WR_BIND_MW)
			((struct ibv_mw *)(uintptr_t)w->at)->rkey = w->rkey;
	}
}

static int wr_complete(struct ibv_qp_ex *ex)
{
	struct v_qp *q = qp_of(ex);
	uint64_t bytes;
	int err;

	finish_request(q);
	err = q->wr.err;
	/* q->wr is read before v_leave_queue, since another thread may begin
	 * the next series after that call. */
	bytes = q->wr.bytes;
	resume_series(q);
	instrument_happens_before(q->host);
	if (!err && q->wr.has_bind)
		store_keys(q);
	if (!err)
		wq_commit_all(&q->qp->sq, q->wr.count);
	v_leave_queue(&q->send, q->is_single);
	if (!err)
		v_post_done(q, bytes);
	return err;
}

static void wr_abort(struct ibv_qp_ex *ex)
{
	struct v_qp *q = qp_of(ex);

	resume_series(q);
	v_leave_queue(&q->send, q->is_single);
}

int v_wr_check(enum ibv_qp_type type, uint64_t ops)
{
	uint64_t sends = IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM;
	uint64_t writes =
		IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM;
	uint64_t windows = IBV_QP_EX_WITH_BIND_MW | IBV_QP_EX_WITH_LOCAL_INV |
			   IBV_QP_EX_WITH_SEND_WITH_INV;
	uint64_t answered = IBV_QP_EX_WITH_RDMA_READ |
			    IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP |
			    IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD |
			    IBV_QP_EX_WITH_ATOMIC_WRITE;
	uint64_t all = sends;
	char what[80];

	if (type == IBV_QPT_RC)
		all |= writes | windows | answered;
	else if (type == IBV_QPT_UC)
		all |= writes;
	if (!(ops & ~all))
		return 0;
	snprintf(what, sizeof(what),
		 "send_ops_flags 0x%llx on a queue pair of type %s",
		 (unsigned long long)(ops & ~all),
		 type == IBV_QPT_RC   ? "RC"
		 : type == IBV_QPT_UC ? "UC"
		 : type == IBV_QPT_UD ? "UD"
				      : "neither RC, UC nor UD");
	return v_fail(EOPNOTSUPP, V_NOT_SUPPORTED, what);
}

void v_wr_fill(struct ibv_qp_ex *qp)
{
	qp->wr_atomic_cmp_swp = wr_atomic_cmp_swp;
	qp->wr_atomic_fetch_add = wr_atomic_fetch_add;
	qp->wr_bind_mw = wr_bind_mw;
	qp->wr_local_inv = wr_local_inv;
	qp->wr_rdma_read = wr_rdma_read;
	qp->wr_rdma_write = wr_rdma_write;
	qp->wr_rdma_write_imm = wr_rdma_write_imm;
	qp->wr_send = wr_send;
	qp->wr_send_imm = wr_send_imm;
	qp->wr_send_inv = wr_send_inv;
	qp->wr_send_tso = wr_send_tso;
	qp->wr_set_ud_addr = wr_set_ud_addr;
	qp->wr_set_xrc_srqn = wr_set_xrc_srqn;
	qp->wr_set_inline_data = wr_set_inline_data;
	qp->wr_set_inline_data_list = wr_set_inline_data_list;
	qp->wr_set_sge = wr_set_sge;
	qp->wr_set_sge_list = wr_set_sge_list;
	qp->wr_start = wr_start;
	qp->wr_complete = wr_complete;
	qp->wr_abort = wr_abort;
	qp->wr_atomic_write = wr_atomic_write;
	qp_of(qp)->newest.wr_flush = wr_flush;
}
