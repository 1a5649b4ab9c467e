/* SPDX-License-Identifier: BSD-2-Clause */
#include "hca/qp.h"

#include "hca/hca.h"

/* How many receives a QP may have taken from its shared queue before the
 * completion of the first is collected. */
#define KEPT 16

static aoff *qp_rows(const struct hca *h)
{
	return arena_at(&h->arena, h->shared->qps);
}

static uint64_t row_bit(uint32_t row)
{
	return 1ull << (row & 63);
}

static bool is_row_taken(const struct hca *h, uint32_t row)
{
	return h->rows_taken[row / 64] & row_bit(row);
}

/* Stores the number of a free row of the table in qp, and leaves the row free.
 * False: the table has no free row.  The row of a QP that is withdrawn but not
 * yet freed is not free: a peer that still works at this QP uses the row's word
 * in peer_area.takes. */
static bool find_row(struct hca *h, struct qp *qp)
{
	struct hca_shared *s = h->shared;

	while (s->qp_lowest < s->qp_top && is_row_taken(h, s->qp_lowest))
		s->qp_lowest++;
	qp->stats.row = s->qp_lowest;
	return s->qp_lowest < HCA_MAX_QP;
}

/* Enters qp in the row of find_row.  The release store of the row orders all
 * earlier stores to qp before it, for the acquire loads of the row in
 * eager_settle and in find_qp (direct/target.c).  Otherwise a thread or a peer
 * could find the row and load the contents that the memory of qp had before,
 * and the peer would keep these contents in its copy of qp. */
static void publish_row(struct hca *h, struct qp *qp)
{
	struct hca_shared *s = h->shared;

	if (s->qp_lowest == s->qp_top)
		s->qp_top++;
	h->rows_taken[s->qp_lowest / 64] |= row_bit(s->qp_lowest);
	__atomic_store_n(&qp_rows(h)[s->qp_lowest++], hca_off(h, qp),
			 __ATOMIC_RELEASE);
}

void qp_withdraw(struct hca *h, struct qp *qp)
{
	aoff *row = &qp_rows(h)[qp->stats.row];

	/* The store and the fence in access_scan_begin are sequentially
	 * consistent: the store comes before the owner's loads of the access
	 * slots.  A peer stores its slot before it loads the row.  Otherwise
	 * the peer could find the QP while the owner finds the slot empty, and
	 * the QP would be freed under the peer.
	 */
	__atomic_store_n(row, 0, __ATOMIC_SEQ_CST);
}

static void free_row(struct hca *h, uint32_t row)
{
	h->rows_taken[row / 64] &= ~row_bit(row);
	if (row < h->shared->qp_lowest)
		h->shared->qp_lowest = row;
}

struct qp *qp_new(struct hca *h, uint32_t qpn, uint32_t type, uint32_t pd,
		  struct cq *send_cq, struct cq *recv_cq,
		  const struct hca_qp_cap *cap, bool sq_sig_all)
{
	struct qp *qp =
		arena_at(&h->arena, arena_alloc(&h->arena, sizeof(*qp)));
	aoff target_at;

	if (!qp)
		return NULL;
	target_at = arena_alloc_shared(&h->arena, sizeof(struct qp_target));
	if (!target_at)
		goto free_memory;
	qp->self = hca_off(h, qp);
	qp->peer_at = target_at - qp->self;
	if (!find_row(h, qp))
		goto free_target;
	srq_forget(h, qp->stats.row);
	qp->serial = ++h->shared->next_qp;
	qp->qpn = qpn;
	qp->type = type;
	qp->pd = pd;
	qp->recv_pd = cap->srq ? cap->srq->pd : pd;
	qp->srq = hca_off(h, cap->srq);
	qp->sq_sig_all = sq_sig_all;
	qp->send_cq = hca_off(h, send_cq);
	qp->recv_cq = hca_off(h, recv_cq);
	if ((type == HCA_QPT_UD ? wq_init_ud : wq_init)(
		    h, &qp->sq, cap->send_wr, cap->send_sge, cap->inline_bytes))
		goto free_target;
	/* With a shared queue the QP has slots for receives that were taken,
	 * and no receive can be posted to the QP itself. */
	if (wq_init_recv(h, &qp->rq, cap->srq ? KEPT : cap->recv_wr,
			 cap->srq ? cap->srq->wq.max_sge : cap->recv_sge))
		goto free_sq;
	if (cap->srq)
		qp->rq.depth = 0;
	publish_row(h, qp);
	return qp;
free_sq:
	wq_fini(h, &qp->sq);
free_target:
	arena_free(&h->arena, target_at, sizeof(struct qp_target));
	qp->self = 0;
free_memory:
	arena_free(&h->arena, hca_off(h, qp), sizeof(*qp));
	return NULL;
}

/* Drops the completions of a QP that is being freed.  Otherwise a poll would
 * free slots in the QP's work queues, which the completions name. */
static void purge_cq(struct hca *h, aoff cq, uint32_t qpn)
{
	if (cq)
		cq_purge(h, arena_at(&h->arena, cq), qpn);
}

void qp_free(struct hca *h, struct qp *qp)
{
	/* A peer that has died may have left qp on the list of qp's CQ, or may
	 * have taken a receive of qp's SRQ. */
	rq_settle(h, qp);
	if (qp->recv_cq)
		cq_forget(h, arena_at(&h->arena, qp->recv_cq), qp);
	purge_cq(h, qp->send_cq, qp->qpn);
	purge_cq(h, qp->recv_cq, qp->qpn);
	wq_fini(h, &qp->sq);
	wq_fini(h, &qp->rq);
	free_row(h, qp->stats.row);
	qp->self = 0;
	arena_free(&h->arena, hca_off(h, qp_target(qp)),
		   sizeof(struct qp_target));
	arena_free(&h->arena, hca_off(h, qp), sizeof(*qp));
}

const char *qp_state_name(uint32_t state)
{
	static const char *const names[] = {"RESET", "INIT", "RTR", "RTS",
					    "SQD",   "SQE",  "ERR"};

	return state < sizeof(names) / sizeof(names[0]) ? names[state] : "?";
}
