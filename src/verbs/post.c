/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Posting lists of requests.  Each request is checked and copied into a slot of
 * the queue.  For a list of send requests the doorbell is then rung once.  Keys
 * are checked when a request is executed (IBTA 11.4.1.1).
 */
#include "verbs/post.h"

#include <errno.h>
#include <string.h>

#include "engine/engine.h"
#include "host/path.h"
#include "verbs/fail.h"
#include "verbs/object.h"
#include "verbs/ops.h"

_Thread_local struct prefetch_turn v_post_turn;

#define FLAGS                                                                  \
	(IBV_SEND_FENCE | IBV_SEND_SIGNALED | IBV_SEND_SOLICITED |             \
	 IBV_SEND_INLINE)

#define WINDOW_RIGHTS                                                          \
	(IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |                    \
	 IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_ZERO_BASED)

uint64_t v_post_total(const struct ibv_sge *sge, size_t n, uint32_t max)
{
	uint64_t bytes = 0;

	if (n > max)
		return UINT64_MAX;
	for (size_t i = 0; i < n; i++)
		bytes += sge[i].length;
	return bytes;
}

int v_post_check_total(uint64_t bytes)
{
	if (bytes == UINT64_MAX)
		return v_fail(EINVAL, V_INPUT,
			      "a posted request has more elements than the "
			      "queue was created with (max_send_sge, "
			      "max_recv_sge); post fewer, or create the queue "
			      "for more");
	if (bytes > HCA_MAX_MESSAGE)
		return v_fail(EINVAL, V_INPUT,
			      "a posted request has more than 2^31 bytes; "
			      "post several smaller ones");
	return 0;
}

/* Leaves out the elements of length 0, so that their keys are not checked. */
void v_post_sges(struct wqe *w, const struct ibv_sge *sge, size_t n)
{
	struct wq_sge *out = wqe_sges(w);
	uint8_t count = 0;

	for (size_t i = 0; i < n; i++)
		if (sge[i].length)
			out[count++] = (struct wq_sge){
				.va = sge[i].addr,
				.bytes = sge[i].length,
				.lkey = sge[i].lkey,
			};
	w->num_sge = count;
}

static void put_inline(struct wqe *w, const struct ibv_sge *sge, int n)
{
	char *out = (char *)wqe_sges(w);

	w->num_sge = 0;
	for (int i = 0; i < n; i++) {
		if (!sge[i].length)
			continue;
		memcpy(out, (const void *)(uintptr_t)sge[i].addr,
		       sge[i].length);
		out += sge[i].length;
	}
}

int v_post_bind(struct wqe *w, struct ibv_mw *mw, uint32_t rkey,
		const struct ibv_mw_bind_info *info)
{
	const struct mr *row = mw ? v_mw(mw)->mr : NULL;

	if (!row)
		return v_fail(EINVAL, V_INPUT,
			      "a posted IBV_WR_BIND_MW needs a memory window");
	w->imm_be = row->lkey;
	w->rkey = (row->lkey & ~0xffu) | (rkey & 0xff);
	w->va = info->addr;
	w->compare = info->length;
	w->swap_add = (uint64_t)(info->mr ? info->mr->lkey : 0) << 32 |
		      (info->mw_access_flags & WINDOW_RIGHTS);
	return 0;
}

int v_post_ud(struct v_qp *q, struct wqe *w, struct ibv_ah *ah, uint32_t qpn,
	      uint32_t qkey)
{
	struct wq_to *to;

	if (q->qp->type != HCA_QPT_UD)
		return 0;
	if (!ah)
		return v_fail(EINVAL, V_INPUT,
			      "a request posted to a UD queue pair needs an "
			      "address handle");
	to = wq_to(&q->qp->sq, w);
	*to = v_ah(ah)->to;
	to->qpn = qpn & 0xffffff;
	to->qkey = qkey;
	if (!q->qp->is_by_lid)
		path_aim(v_context(ah->context)->host, to);
	return 0;
}

/* Fills in the fields that depend on the opcode.  Returns 0, or a positive
 * errno with a message. */
static int put_operation(struct wqe *w, struct v_qp *q,
			 const struct ibv_send_wr *wr)
{
	int op = (int)wr->opcode;

	w->opcode = (uint8_t)op;
	w->imm_be = 0;
	w->rkey = 0;
	w->va = 0;
	w->swap_add = 0;
	w->compare = 0;
	if (q->qp->type == HCA_QPT_UD)
		*wq_to(&q->qp->sq, w) = (struct wq_to){0};
	if (op == IBV_WR_SEND || op == IBV_WR_SEND_WITH_IMM ||
	    op == IBV_WR_SEND_WITH_INV || op == IBV_WR_LOCAL_INV) {
		w->imm_be = op == IBV_WR_SEND ? 0 : wr->imm_data;
		return v_post_ud(q, w, wr->wr.ud.ah, wr->wr.ud.remote_qpn,
				 wr->wr.ud.remote_qkey);
	}
	if (op == IBV_WR_BIND_MW)
		return v_post_bind(w, wr->bind_mw.mw, wr->bind_mw.rkey,
				   &wr->bind_mw.bind_info);
	if (op == IBV_WR_RDMA_WRITE || op == IBV_WR_RDMA_WRITE_WITH_IMM ||
	    op == IBV_WR_RDMA_READ || op == IBV_WR_ATOMIC_WRITE) {
		w->va = wr->wr.rdma.remote_addr;
		w->rkey = wr->wr.rdma.rkey;
		if (op == IBV_WR_RDMA_WRITE_WITH_IMM)
			w->imm_be = wr->imm_data;
		return 0;
	}
	if (op != IBV_WR_ATOMIC_CMP_AND_SWP &&
	    op != IBV_WR_ATOMIC_FETCH_AND_ADD)
		return v_fail(EINVAL, V_NOT_SUPPORTED,
			      "a posted opcode other than send, write, read, "
			      "atomics, bind and invalidate");
	w->va = wr->wr.atomic.remote_addr;
	w->rkey = wr->wr.atomic.rkey;
	if (op == IBV_WR_ATOMIC_FETCH_AND_ADD) {
		w->swap_add = wr->wr.atomic.compare_add;
	} else {
		w->compare = wr->wr.atomic.compare_add;
		w->swap_add = wr->wr.atomic.swap;
	}
	return 0;
}

/*
 * Checks that the fields of a request to a UD queue pair describe a datagram.
 * Returns 0, or EINVAL with a message.  A WRITE, READ or atomic, which UD does
 * not have, is posted and completes with an error (IBTA 9.8.2, 9.8.3).
 */
static int check_service(const struct v_qp *q, struct wqe *w)
{
	if (q->qp->type != HCA_QPT_UD)
		return 0;
	if (w->opcode == HCA_WR_BIND_MW || w->opcode == HCA_WR_LOCAL_INV)
		return v_fail(EINVAL, V_INPUT,
			      "a UD queue pair has no memory windows to bind "
			      "or invalidate");
	if (hca_wr_is_send(w->opcode) && !wq_to(&q->qp->sq, w)->mtu)
		return v_fail(EINVAL, V_INPUT,
			      "a request posted to a UD queue pair needs an "
			      "address handle");
	return 0;
}

/* Every slot has room for the 8 bytes of an ATOMIC WRITE, even if max_inline is
 * less. */
static bool fits_inline(const struct wq *sq, const struct wqe *w)
{
	return w->bytes <= sq->max_inline ||
	       (w->opcode == HCA_WR_ATOMIC_WRITE && w->bytes == 8);
}

int v_post_check(const struct v_qp *q, struct wqe *w)
{
	int err = check_service(q, w);

	if (err || !(w->flags & HCA_SEND_INLINE))
		return err;
	if (!fits_inline(&q->qp->sq, w))
		return v_fail(EINVAL, V_INPUT,
			      "a posted request has more inline data than the "
			      "queue pair's max_inline_data; leave out "
			      "IBV_SEND_INLINE, or create the queue pair for "
			      "more");
	if (w->opcode == HCA_WR_ATOMIC_CAS || w->opcode == HCA_WR_ATOMIC_FADD ||
	    w->opcode == HCA_WR_RDMA_READ)
		return v_fail(EINVAL, V_INPUT,
			      "a posted read or atomic has IBV_SEND_INLINE; "
			      "leave the flag out");
	return 0;
}

static int post_one_send(struct v_qp *q, const struct hca *h,
			 const struct ibv_send_wr *wr, uint64_t *sum)
{
	struct wq *sq = &q->qp->sq;
	uint64_t bytes = v_post_total(
		wr->sg_list, (size_t)wr->num_sge,
		wr->send_flags & IBV_SEND_INLINE ? INT32_MAX : sq->max_sge);
	struct wqe *w = wq_reserve(h, sq);
	int err = v_post_check_total(bytes);

	if (err)
		return err;
	if (!w)
		return v_fail(ENOMEM, V_FULL, "the send queue");
	w->wr_id = wr->wr_id;
	w->bytes = (uint32_t)bytes;
	w->flags = (uint8_t)(wr->send_flags & FLAGS);
	if (q->qp->sq_sig_all)
		w->flags |= HCA_SEND_SIGNALED;
	err = put_operation(w, q, wr);
	if (!err)
		err = v_post_check(q, w);
	if (err)
		return err;
	if (w->flags & HCA_SEND_INLINE)
		put_inline(w, wr->sg_list, wr->num_sge);
	else
		v_post_sges(w, wr->sg_list, (size_t)wr->num_sge);
	if (w->opcode == HCA_WR_BIND_MW)
		wr->bind_mw.mw->rkey = w->rkey;
	*sum += V_POST_EACH + bytes;
	wq_commit(sq);
	return 0;
}

int v_post_state(const struct v_qp *q, uint32_t from)
{
	uint32_t state;

	if (q->process != v_process())
		return v_fail(EPERM, V_FORKED, "posting");
	state = __atomic_load_n(&q->qp->state, __ATOMIC_RELAXED);
	if (state < from)
		return v_fail(EINVAL, V_STATE, qp_state_name(state));
	return 0;
}

int v_post_send(struct ibv_qp *qp, struct ibv_send_wr *wr,
		struct ibv_send_wr **bad)
{
	struct v_qp *q = v_qp(qp);
	struct ibv_send_wr *first = wr;
	uint64_t bytes = 0;
	int err;

	v_post_expect(q);
	err = v_post_state(q, HCA_QP_RTS);
	if (err) {
		*bad = wr;
		return err;
	}
	instrument_happens_before(q->host);
	v_enter_queue(&q->send, q->is_single);
	for (; wr && !err; wr = err ? wr : wr->next)
		err = post_one_send(q, host_hca(q->host), wr, &bytes);
	v_leave_queue(&q->send, q->is_single);
	if (err)
		*bad = wr;
	if (wr != first)
		v_post_done(q, bytes);
	return err;
}

/* Posts one receive to rq, which is the queue of srq unless srq is NULL.
 * Returns 0, or a positive errno with a message. */
static int post_one_recv(struct wq *rq, struct srq *srq, const struct hca *h,
			 const struct ibv_recv_wr *wr)
{
	uint64_t bytes =
		v_post_total(wr->sg_list, (size_t)wr->num_sge, rq->max_sge);
	struct wqe *w;

	if (bytes == UINT64_MAX)
		return v_post_check_total(bytes);
	w = srq ? srq_reserve(h, srq) : wq_reserve(h, rq);
	if (!w)
		return v_fail(ENOMEM, V_FULL,
			      srq ? "the shared receive queue"
				  : "the receive queue");
	memset(w, 0, sizeof(*w));
	w->wr_id = wr->wr_id;
	w->bytes = bytes > UINT32_MAX ? UINT32_MAX : (uint32_t)bytes;
	v_post_sges(w, wr->sg_list, (size_t)wr->num_sge);
	wq_commit_recv(h, rq, wr->wr_id);
	return 0;
}

/*
 * Returns whether the QP is in ERR, after receives were posted.  lock_give, or
 * the fence here if there is no lock, orders the store of the queue's head
 * before this load of the state.  ibt_qp_enter orders the store of the state
 * before its load of the head.  So at least one of the two threads sees the
 * other thread's store.  If one of the two orders were missing, a receive that
 * is posted while the QP enters ERR might never be flushed.
 */
static bool has_failed(const struct v_qp *q)
{
	if (q->is_single)
		shared_fence();
	return __atomic_load_n(&q->qp->state, __ATOMIC_RELAXED) == HCA_QP_ERR;
}

int v_post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr,
		struct ibv_recv_wr **bad)
{
	struct v_qp *q = v_qp(qp);
	struct ibv_recv_wr *first = wr;
	int err = v_post_state(q, HCA_QP_INIT);

	if (!err && q->qp->srq)
		err = v_fail(EINVAL, V_INPUT,
			     "ibv_post_recv: the queue pair has a shared "
			     "receive queue; use ibv_post_srq_recv");
	if (err) {
		*bad = wr;
		return err;
	}
	instrument_happens_before(q->host);
	v_enter_queue(&q->recv, q->is_single);
	for (; wr && !err; wr = err ? wr : wr->next)
		err = post_one_recv(&q->qp->rq, NULL, host_hca(q->host), wr);
	v_leave_queue(&q->recv, q->is_single);
	if (err)
		*bad = wr;
	/* The engine need not know of a receive, unless the QP is in ERR and
	 * the engine must flush the receive. */
	if (wr != first && has_failed(q))
		host_doorbell(q->host, q->side, V_POST_EACH);
	return err;
}

/* Rings no doorbell: a peer that found the queue empty tries again after its
 * RNR timer. */
int v_post_srq_recv(struct ibv_srq *srq, struct ibv_recv_wr *wr,
		    struct ibv_recv_wr **bad)
{
	struct v_context *c = v_context(srq->context);
	struct v_srq *s = v_srq(srq);
	int err = 0;

	if (!v_is_ours(c)) {
		*bad = wr;
		return v_fail(EPERM, V_FORKED, "ibv_post_srq_recv");
	}
	instrument_happens_before(c->host);
	lock_take(&s->post);
	for (; wr && !err; wr = err ? wr : wr->next)
		err = post_one_recv(&s->srq->wq, s->srq, host_hca(c->host), wr);
	lock_give(&s->post);
	if (err)
		*bad = wr;
	return err;
}
