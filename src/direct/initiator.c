/* SPDX-License-Identifier: BSD-2-Clause */
#include "direct/initiator.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "direct/initiator_ud.h"
#include "hca/semantics.h"
#include "ibt/message.h"
#include "ibt/rnr_wait.h"
#include "ibt/uc.h"
#include "ibt/unreliable_tx.h"
#include "ibt/verdict.h"
#include "util/bits.h"
#include "util/check.h"

/* The most bytes of a request in a batch.  To copy more bytes takes longer than
 * all other handling of the request, so a batch would save little. */
#define BATCH_BYTES 4096u
/* The least time between two looks at a closed target. */
#define CLOSED_LOOK_NS 1000000u

void initiator_release(struct ibt *t, struct target_ref *l)
{
	list_remove(&l->to_wake);
	if (l->owner)
		list_push_tail(&t->direct.unused, &l->to_wake);
	else
		free(l);
}

/* Gives up the link to the target of the previous connection, if there is
 * one. */
static void leave_target(struct ibt *t, struct ibt_qp *q)
{
	if (q->direct.link)
		initiator_release(t, q->direct.link);
	q->direct.link = NULL;
	q->direct.apart.has_found = false;
	shared_store(&q->direct.apart.is_worth_it, 0);
}

int initiator_attach(struct ibt *t, struct ibt_qp *q, struct hca *target,
		     struct access *access, void *owner)
{
	struct target_ref *l = target_new();

	leave_target(t, q);
	if (!l)
		return -ENOMEM;
	q->direct.link = l;
	l->hca = target;
	l->access = access;
	l->owner = owner;
	l->type = q->qp->type;
	l->has_no_eager = t->direct.has_no_eager;
	l->qpn = q->qp->attr.dest_qpn;
	l->src_qpn = q->qp->qpn;
	l->src_psn = q->qp->attr.sq_psn;
	memcpy(l->src_ip, q->self.ip, sizeof(l->src_ip));
	if (q->qp->is_by_lid) {
		l->way = &q->direct.way;
		l->changes = t->direct.changes;
		l->ah = &q->qp->attr.ah;
	}
	q->direct.path = IBT_PATH_DIRECT;

	return 0;
}

/* Has the request at the cursor begun at the target, or does it wait for a
 * receive there?  A message that has begun is executed to its end, as if its
 * packets had left before the subnet changed. */
static bool has_begun(const struct ibt_qp *q)
{
	const struct target_ref *l = q->direct.link;

	return q->req.packet || q->req.rnr_waiting || l->is_asked ||
	       l->is_copied;
}

enum initiator_next initiator_next(const struct ibt_qp *q)
{
	if (!q->direct.link || !q->direct.link->way || has_begun(q))
		return INITIATOR_EXECUTE;
	if (q->qp->attr.alt_ah.dlid)
		return INITIATOR_LEAVE;
	if (q->direct.is_asking)
		return INITIATOR_ASK;
	return q->direct.may_execute || !target_is_stale(q->direct.link)
		       ? INITIATOR_EXECUTE
		       : INITIATOR_ASK;
}

void initiator_leave(struct ibt *t, struct ibt_qp *q)
{
	target_announce_packets(q->direct.link, rc_req_begin_anew(t, q));
	/* The request at the cursor had begun, and waits again. */
	rc_comp_drained(t, q);
	q->direct.is_asking = false;
	list_remove(&q->direct.waiting);
	initiator_refuse(q);
	ibt_qp_activate(t, q);
}

void initiator_refuse(struct ibt_qp *q)
{
	q->direct.path = IBT_PATH_PACKETS;
	shared_store(&q->direct.apart.is_worth_it, 0);
}

void initiator_fini(struct ibt *t, struct ibt_qp *q)
{
	if (q->qp->type == HCA_QPT_UD)
		initiator_ud_fini(t, q);
	else
		leave_target(t, q);
}

void *initiator_released(struct ibt *t)
{
	struct list *n = list_pop_head(&t->direct.unused);
	struct target_ref *l;
	void *owner;

	if (!n)
		return NULL;
	l = CONTAINER_OF(n, struct target_ref, to_wake);
	owner = l->owner;
	free(l);
	return owner;
}

bool initiator_is_undecided(const struct ibt_qp *q)
{
	const struct wq *sq = &q->qp->sq;

	return q->direct.path == IBT_PATH_UNDECIDED &&
	       (q->qp->state == HCA_QP_RTS || q->qp->state == HCA_QP_SQD) &&
	       shared_own(&sq->completed) != shared_load(&sq->head);
}

static bool is_atomic(const struct wqe *w)
{
	return w->opcode == HCA_WR_ATOMIC_CAS ||
	       w->opcode == HCA_WR_ATOMIC_FADD;
}

/* Describes in *r the piece of w at the cursor.  Returns HCA_SUCCESS or, if the
 * SGEs are wrong, the status with which the request fails. */
static enum hca_status describe_piece(struct ibt *t, const struct ibt_qp *q,
				      struct wqe *w, struct direct_request *r,
				      struct explain *x)
{
	uint64_t offset = (uint64_t)q->req.packet * t->direct.piece;
	uint32_t need = w->opcode == HCA_WR_RDMA_READ ? HCA_LOCAL_WRITE : 0;

	r->opcode = w->opcode;
	r->solicited = w->flags & HCA_SEND_SOLICITED;
	r->total = w->bytes;
	r->offset = (uint32_t)offset;
	r->bytes = (uint32_t)bits_min_u64(w->bytes - offset, t->direct.piece);
	r->rkey = w->rkey;
	r->imm_be = w->imm_be;
	r->va = w->va;
	r->swap_add = w->swap_add;
	r->compare = w->compare;
	r->data = NULL;
	r->initiator.space = t->hca->space;
	r->initiator.n = 0;
	direct_request_clear(r);
	if (w->opcode == HCA_WR_ATOMIC_WRITE)
		return sem_gather(t->hca, q->qp->pd, w, 0, 8,
				  (uint8_t *)&r->swap_add, NULL, x);
	if (is_atomic(w) || !r->bytes)
		return HCA_SUCCESS;
	if (w->flags & HCA_SEND_INLINE) {
		r->data = (const uint8_t *)(w + 1) + offset;
		return HCA_SUCCESS;
	}
	return sem_locate(t->hca, q->qp->pd, w, r->offset, r->bytes, need,
			  r->initiator.vec, &r->initiator.n, x);
}

static enum hca_status fail_local(const struct direct_request *r,
				  struct explain *x)
{
	x->cause = EXPLAIN_LOCAL_FAULT;
	x->va = r->initiator.n ? r->initiator.vec[0].va : 0;
	return HCA_LOC_PROT_ERR;
}

void initiator_wake(struct ibt_qp *q, struct list *to_wake,
		    const struct direct_request *r)
{
	if (r->outcome.must_wake && !list_is_linked(&q->direct.link->to_wake))
		list_push_tail(to_wake, &q->direct.link->to_wake);
}

void initiator_wait(struct ibt *t, struct ibt_qp *q)
{
	if (q->qp->state != HCA_QP_ERR && !list_is_linked(&q->direct.waiting))
		list_push_tail(&t->direct.waiting, &q->direct.waiting);
}

void initiator_count_moved(struct ibt *t, struct ibt_qp *q, uint8_t opcode,
			   uint32_t bytes)
{
	if (opcode == HCA_WR_RDMA_READ)
		q->qp->stats.rx_bytes += bytes;
	else
		q->qp->stats.tx_bytes += bytes;
	q->qp->stats.tx_packets++;
	rc_req_advance(t, q);
	rc_comp_placed(t, q);
}

/* Places the value that an atomic found, if w is an atomic, and counts the
 * piece as moved.  The request fails if the value cannot be placed. */
static void finish_piece(struct ibt *t, struct ibt_qp *q, struct wqe *w,
			 const struct direct_request *r)
{
	struct explain x = {0};
	enum hca_status status = HCA_SUCCESS;

	if (is_atomic(w))
		status = sem_scatter(t->hca, q->qp->pd, w, 0,
				     (const uint8_t *)&r->outcome.found, 8, &x);
	if (status) {
		rc_req_stop(t, q, w, status, &x);
		return;
	}
	initiator_count_moved(t, q, r->opcode, r->bytes);
}

static enum hca_status status_of(enum verdict v)
{
	switch (v) {
	case V_ACCESS:
		return HCA_REM_ACCESS_ERR;
	case V_INVALID:
	case V_TOO_LONG:
		return HCA_REM_INV_REQ_ERR;
	case V_OK:
	case V_RNR:
	case V_REMOTE_FAULT:
	case V_RECV_MEMORY:
	case V_INVALIDATE:
		break;
	}
	return HCA_REM_OP_ERR;
}

/*
 * Handles a peer that does not answer because it is not ready, is closed
 * (DIRECT_CLOSED) or has ended.  As with packets, the peer's silence is an
 * error only when the retries are used up.  Programs rely on this: a program
 * may end while the last message to it is under way, and the sender's QP must
 * not fail at once.  Without an ACK timer there are no retries, so an ended
 * peer is an error at once.
 */
static void wait_silent(struct ibt *t, struct ibt_qp *q, uint64_t now_ns)
{
	q->direct.is_gone = q->direct.link->is_gone;
	if (q->direct.is_gone && !q->qp->attr.timeout) {
		rc_comp_gone(t, q);
		return;
	}
	rc_comp_lost(t, q, now_ns);
	initiator_wait(t, q);
}

static void judge_result(struct ibt *t, struct ibt_qp *q, struct wqe *w,
			 struct direct_request *r, enum direct_result answer,
			 uint64_t now_ns)
{
	struct explain x = {0};

	q->direct.is_closed = answer == DIRECT_CLOSED;
	switch (answer) {
	case DIRECT_DONE:
		finish_piece(t, q, w, r);
		break;
	case DIRECT_LOST:
	case DIRECT_CLOSED:
		wait_silent(t, q, now_ns);
		break;
	case DIRECT_RNR:
		if (!rnr_wait_goes_on(t, q, now_ns))
			rc_comp_rnr(t, q, r->outcome.rnr_timer, now_ns);
		initiator_wait(t, q);
		break;
	case DIRECT_ASKED_TARGET:
	case DIRECT_BUSY:
		initiator_wait(t, q);
		break;
	case DIRECT_REFUSED:
		rc_comp_refused(t, q,
				status_of((enum verdict)r->outcome.verdict));
		break;
	case DIRECT_GONE:
		q->direct.link->is_gone = true;
		wait_silent(t, q, now_ns);
		break;
	case DIRECT_DENIED:
		rc_comp_denied(t, q);
		break;
	case DIRECT_ASTRAY:
		initiator_leave(t, q);
		break;
	case DIRECT_OUR_FAULT:
		rc_req_stop(t, q, w, fail_local(r, &x), &x);
		break;
	}
}

/* ---- small requests, posted together ---- */

/* The requests from the cursor on, for direct_batch.next. */
struct request_batch {
	struct ibt *t;
	struct ibt_qp *q;
	uint8_t opcode;
	uint32_t head;
};

bool initiator_is_small(const struct ibt *t, const struct wqe *w)
{
	return w->bytes &&
	       w->bytes <= bits_min_u32(t->direct.piece, BATCH_BYTES);
}

static bool next_of_batch(void *arg, uint32_t i, struct direct_request *r)
{
	const struct request_batch *b = arg;
	const struct wq *sq = &b->q->qp->sq;
	struct wqe *w = wq_at(b->t->hca, sq, b->q->req.wqe + i);
	bool must_wake = r->outcome.must_wake;
	enum hca_status status;
	struct explain x;

	if (b->q->req.wqe + i == b->head || w->opcode != b->opcode ||
	    (w->flags & HCA_SEND_FENCE) || !initiator_is_small(b->t, w) ||
	    target_is_stale(b->q->direct.link))
		return false;
	status = describe_piece(b->t, b->q, w, r, &x);
	/* An earlier request of the batch may have set `must_wake`, which
	 * describe_piece clears even if it fails. */
	r->outcome.must_wake = must_wake;
	return status == HCA_SUCCESS;
}

static bool may_batch(const struct ibt *t, const struct ibt_qp *q,
		      const struct wqe *w)
{
	if (q->req.packet || q->req.draining || !initiator_is_small(t, w) ||
	    is_atomic(w))
		return false;
	/* a batch of SENDs has eager messages only (batch.c) */
	if (hca_wr_is_send(w->opcode))
		return direct_state_may_be_eager(&t->direct, &q->direct,
						 w->bytes);
	return shared_load(&q->qp->sq.head) - q->req.wqe > 1 &&
	       wq_at(t->hca, &q->qp->sq, q->req.wqe + 1)->opcode == w->opcode;
}

/* Places the value that an atomic found.  False: the value cannot be placed.
 * initiator_apart_tell then tries again, and reports a second failure. */
static bool place_found(struct ibt *t, struct ibt_qp *q, struct wqe *w)
{
	const uint8_t *found = (const uint8_t *)&q->direct.apart.found;
	struct explain x;

	q->direct.apart.has_found =
		sem_scatter(t->hca, q->qp->pd, w, 0, found, 8, &x);
	return !q->direct.apart.has_found;
}

uint32_t initiator_run_batch(struct ibt *t, struct ibt_qp *q, struct wqe *w,
			     struct list *to_wake, uint64_t now_ns)
{
	struct request_batch b = {t, q, w->opcode,
				  shared_load(&q->qp->sq.head)};
	uint32_t n, bytes = 0;
	const struct space *space = q->direct.link->hca->space;
	uint32_t calls = space->calls;
	struct direct_batch s;
	struct explain x;

	q->direct.rnr.is_dry = false;
	if (describe_piece(t, q, w, &s.r, &x))
		return 0;
	s.r.now_ns = now_ns;
	s.next = next_of_batch;
	s.arg = &b;
	n = target_run_batch(q->direct.link, &s);
	q->direct.apart.takes_calls = space->calls != calls;
	q->direct.has_bounces = q->direct.link->has_bounces;
	initiator_wake(q, to_wake, &s.r);
	q->direct.rnr.is_dry = !n && s.r.outcome.is_dry;
	q->direct.rnr.timer = s.r.outcome.rnr_timer;
	if (n && is_atomic(w)) {
		q->direct.apart.found = s.r.outcome.found;
		n = place_found(t, q, w);
	}
	for (uint32_t i = 0; i < n && w; i++) {
		bytes += w->bytes + 1;
		initiator_count_moved(t, q, w->opcode, w->bytes);
		w = i + 1 < n ? rc_req_begin_executed(t, q) : NULL;
	}
	return bytes;
}

uint32_t initiator_turn(struct ibt *t, struct ibt_qp *q, struct list *to_wake,
			uint64_t now_ns)
{
	struct wqe *w = rc_req_begin(t, q);
	struct target_ref *l = q->direct.link;
	struct explain x = {0};
	struct direct_request r;
	enum direct_result answer;
	enum hca_status status;
	uint32_t bytes;

	if (!w)
		return 0;
	bytes = !l->is_gone && may_batch(t, q, w)
			? initiator_run_batch(t, q, w, to_wake, now_ns)
			: 0;
	if (bytes)
		return bytes;
	/* After the first try at a target that has ended, the SGEs need not be
	 * checked again. */
	status = l->is_gone && q->direct.is_gone
			 ? HCA_SUCCESS
			 : describe_piece(t, q, w, &r, &x);
	if (status && w->opcode != HCA_WR_RDMA_READ) {
		rc_req_stop(t, q, w, status, &x);
		return 0;
	}
	if (l->is_gone) {
		wait_silent(t, q, now_ns);
		return 0;
	}
	/* A READ with wrong SGEs is tried without bytes: if the peer refuses
	 * the READ, the READ fails with the status of the refusal, and not with
	 * the status of the SGEs. */
	if (status)
		r.initiator.n = r.bytes = 0;
	r.now_ns = now_ns;
	answer = target_run(l, &r);
	q->direct.has_bounces = l->has_bounces;
	initiator_wake(q, to_wake, &r);
	if (status && answer == DIRECT_DONE)
		rc_req_stop(t, q, w, status, &x);
	else
		judge_result(t, q, w, &r, answer, now_ns);
	return answer == DIRECT_DONE ? r.bytes + 1 : 0;
}

/*
 * Judges the result for UC, where the responder does not report a fault to the
 * requester, and the responder's QP stays usable.  So a message that cannot be
 * executed directly goes by packets, and so do all later messages.  The target
 * drops the packets and explains why, or holds them until a receive is posted.
 * A message of which some pieces were executed already is lost.
 */
static void judge_once(struct ibt *t, struct ibt_qp *q, struct wqe *w,
		       const struct direct_request *r,
		       enum direct_result answer)
{
	struct req_note *n = rc_req_note(q, q->req.wqe);
	struct explain x = {0};

	switch (answer) {
	case DIRECT_DONE:
		q->qp->stats.tx_bytes += r->bytes;
		q->qp->stats.tx_packets++;
		unreliable_tx_advance(t, q);
		break;
	case DIRECT_BUSY:
	case DIRECT_ASKED_TARGET:
		initiator_wait(t, q);
		break;
	case DIRECT_OUR_FAULT:
		unreliable_tx_stop(t, q, w, fail_local(r, &x), &x);
		break;
	case DIRECT_LOST:
	case DIRECT_CLOSED:
	case DIRECT_RNR:
	case DIRECT_REFUSED:
	case DIRECT_GONE:
	case DIRECT_DENIED:
	case DIRECT_ASTRAY:
		if (answer != DIRECT_GONE)
			target_announce_packets(q->direct.link,
						(struct serial24){0});
		initiator_refuse(q);
		if (q->req.packet) {
			n->packets = q->req.packet + 1;
			unreliable_tx_advance(t, q);
		}
		break;
	}
}

uint32_t initiator_turn_unreliable(struct ibt *t, struct ibt_qp *q,
				   struct list *to_wake, uint64_t now_ns)
{
	struct wqe *w = unreliable_tx_next(t, q);
	struct target_ref *l = q->direct.link;
	struct explain x = {0};
	struct direct_request r;
	enum direct_result answer;
	enum hca_status status;

	if (!w || (!q->req.packet && !uc_req_start(t, q, w, t->direct.piece)))
		return 0;
	status = describe_piece(t, q, w, &r, &x);
	if (status) {
		unreliable_tx_stop(t, q, w, status, &x);
		return 0;
	}
	r.now_ns = now_ns;
	answer = l->is_gone ? DIRECT_GONE : target_run(l, &r);
	initiator_wake(q, to_wake, &r);
	judge_once(t, q, w, &r, answer);
	return answer == DIRECT_DONE ? r.bytes + 1 : 0;
}

static uint64_t next_look(const struct ibt *t, const struct target_ref *l)
{
	if (!l->is_asked && !l->is_busy)
		return UINT64_MAX;
	return ibt_look_ns(t, l->asked_ns);
}

/*
 * Returns whether a look at the target of q waits, because the target is closed
 * or has ended.  A look for a destroyed queue pair reads the whole table of the
 * peer's queue pairs, and many queue pairs may wait for targets in that table.
 * So the ACK timer repeats the request, as with packets.  Without this timer, q
 * looks at most once in CLOSED_LOOK_NS, while the engine has turns.
 */
static bool postpone_look(const struct ibt *t, struct ibt_qp *q)
{
	if (q->direct.is_gone)
		return true;
	if (!q->direct.is_closed)
		return false;
	if (wheel_is_set(&q->timers.ack) ||
	    t->now_ns < q->direct.closed_look_ns)
		return true;
	q->direct.closed_look_ns = t->now_ns + CLOSED_LOOK_NS;
	return false;
}

uint64_t initiator_look(struct ibt *t)
{
	struct list *n = t->direct.waiting.next, *next;
	uint64_t look = UINT64_MAX;

	for (; n != &t->direct.waiting; n = next) {
		struct ibt_qp *q =
			CONTAINER_OF(n, struct ibt_qp, direct.waiting);

		next = n->next;
		rnr_wait_count(q);
		if (postpone_look(t, q))
			continue;
		if (rnr_wait_is_minded(q, t->now_ns)) {
			look = bits_min_u64(look, rnr_wait_look_ns(q));
			continue;
		}
		if (!initiator_ud_is_late(t, q) &&
		    !target_is_ready(q->direct.link, q->req.rnr_waiting)) {
			look = bits_min_u64(look, next_look(t, q->direct.link));
			continue;
		}
		list_remove(n);
		rnr_wait_end(t, q);
		ibt_qp_activate(t, q);
	}
	return look;
}

/* ---- the target's own process ---- */

/* Judges what a peer has left, but not the key.  Only an RC QP has atomics. */
static enum verdict judge_ask(const struct qp *qp,
			      const struct target_request *a, struct explain *x)
{
	enum verdict v = request_atomic(qp, a->opcode, a->va, x);

	if (qp->type != HCA_QPT_RC || (a->opcode != HCA_WR_ATOMIC_CAS &&
				       a->opcode != HCA_WR_ATOMIC_FADD &&
				       a->opcode != HCA_WR_ATOMIC_WRITE))
		v = V_INVALID;
	if (v)
		x->cause = EXPLAIN_REMOTE_INVALID;
	return v;
}

/* Judges the request again, since the peer's judgement is not trusted, and
 * executes it. */
static enum verdict answer_ask(struct ibt *t, struct ibt_qp *q,
			       const struct target_request *a, uint64_t *found,
			       struct explain *x)
{
	struct space *s = t->hca->space;
	bool writes = a->opcode == HCA_WR_ATOMIC_WRITE;
	uint32_t need = writes ? HCA_REMOTE_WRITE : HCA_REMOTE_ATOMIC;
	struct space_vec to = {.bytes = 8};
	enum verdict v = judge_ask(q->qp, a, x);
	int err;

	if (v)
		return v;
	if (message_locate(t->hca, q->qp, a->rkey, a->va, 8, need, &to.va, x))
		return V_ACCESS;
	if (writes)
		err = s->ops->write(s, &to, 1, &a->swap_add);
	else
		err = s->ops->atomic(s,
				     a->opcode == HCA_WR_ATOMIC_CAS
					     ? SPACE_CAS
					     : SPACE_FETCH_ADD,
				     to.va, a->swap_add, a->compare, found);
	if (!err)
		return V_OK;
	x->cause = EXPLAIN_REMOTE_FAULT;
	return V_REMOTE_FAULT;
}

static void fail_request(struct ibt *t, struct ibt_qp *q, enum verdict v,
			 struct explain *x)
{
	if (q->qp->state == HCA_QP_ERR || q->qp->state == HCA_QP_RESET)
		return;
	q->counters->naks.fatal_tx += !verdict_row(v)->silent;
	ibt_explain(t, q, x);
	ibt_qp_fail(t, q, verdict_row(v)->event);
}

/*
 * Executes the request that a peer has left to this process.  Does not take the
 * responder lock, because a stopped peer could hold it.  The lock is not
 * needed: the peer does not write `asked` while it waits for the answer, and a
 * thread that changes the QP holds this process's progress lock.
 *
 * The peer stores `ask` after the request (ask_target), and this function loads
 * `ask` before the request.  This function stores `ask` after ask_found, and
 * the peer loads `ask` before ask_found (fetch_answer).  Without these orders
 * either side could use a request or an answer that is half written.
 */
static void serve_ask(struct ibt *t, struct ibt_qp *q)
{
	struct qp_target *f = qp_target(q->qp);
	struct explain x = {.cause = EXPLAIN_NONE};
	uint64_t found = 0;
	enum verdict v;
	struct target_request a; /* a copy, which the peer cannot change */

	if (atomic_load(&f->ask) != TARGET_ASK_POSTED ||
	    q->qp->state < HCA_QP_RTR || q->qp->state > HCA_QP_SQE)
		return;
	/* eager messages that came before the request take effect first */
	if (eager_is_any(t->hca, q->qp))
		cq_collect(t->hca, arena_at(&t->hca->arena, q->qp->recv_cq),
			   q->qp);
	a = f->asked;
	v = answer_ask(t, q, &a, &found, &x);
	f->ask_found = v ? v : found;
	atomic_store(&f->ask, v ? TARGET_ASK_REFUSED : TARGET_ASK_ANSWERED);
	if (v)
		fail_request(t, q, v, &x);
}

static void note_heard(struct ibt *t, struct ibt_qp *q)
{
	t->direct.is_used = true;
	if (q->heard || !qp_target(q->qp)->is_heard)
		return;
	q->heard = true;
	if (q->qp->state == HCA_QP_RTR && q->qp->type != HCA_QPT_UD)
		ibt_event(t, q, ENGINE_COMM_EST);
}

static void serve_cq_bits(struct ibt *t, struct ibt_qp *q, uint32_t bits)
{
	struct cq *cq = arena_at(&t->hca->arena, q->qp->recv_cq);

	if (bits & QP_NOTIFY_ROOM)
		cq_collect(t->hca, cq, q->qp);
	if (bits & QP_NOTIFY_CQ)
		ibt_cq_tell(t, cq);
	if ((bits & QP_NOTIFY_LATER) && cq_is_holding(cq))
		cq_moderation_set(t, cq);
	if (bits & QP_NOTIFY_FULL)
		ibt_overrun(t, q, cq);
}

/* Fails the QP, because an eager message could not be copied to the memory of
 * its receive after the peer's request had completed.  Does nothing if the QP
 * has no note about such a message.  note_uncopied (hca/rq.c) says what the
 * acquire load and the release store order. */
static void note_lost(struct ibt *t, struct ibt_qp *q)
{
	struct explain x = {.cause = EXPLAIN_LOCAL_FAULT,
			    .opcode = EXPLAIN_RECEIVE};

	x.va = __atomic_load_n(&q->qp->rq_lost, __ATOMIC_ACQUIRE);
	if (!x.va)
		return;
	x.wr_id = q->qp->rq_lost_id;
	x.key = q->qp->rq_lost_key;
	__atomic_store_n(&q->qp->rq_lost, 0, __ATOMIC_RELEASE);
	if (!mr_find(t->hca, x.key)) {
		x.cause = EXPLAIN_LOCAL_KEY;
		x.verdict = MR_BAD_KEY;
	}
	fail_request(t, q, V_RECV_MEMORY, &x);
}

void initiator_notified(struct ibt *t, struct ibt_qp *q, uint32_t bits)
{
	struct explain x;

	if (bits & QP_NOTIFY_HEARD)
		note_heard(t, q);
	serve_cq_bits(t, q, bits);
	if ((bits & QP_NOTIFY_LIMIT) && q->qp->srq)
		ibt_srq_tell(t, arena_at(&t->hca->arena, q->qp->srq));
	if (bits & QP_NOTIFY_ASK)
		serve_ask(t, q);
	if (bits & QP_NOTIFY_LOST)
		note_lost(t, q);
	/* Acquire, with the release in request_refuse: the load of has_failed
	 * comes before the loads of the note.  After the death of any peer,
	 * peer_death_repair sets all notify bits, perhaps before the store of
	 * has_failed.  So QP_NOTIFY_FAIL alone orders nothing, and without the
	 * acquire the note could be read half written. */
	if ((bits & QP_NOTIFY_FAIL) &&
	    __atomic_load_n(&qp_target(q->qp)->has_failed, __ATOMIC_ACQUIRE))
		fail_request(t, q, target_explain(&qp_target(q->qp)->note, &x),
			     &x);
}
