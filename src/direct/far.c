/* SPDX-License-Identifier: BSD-2-Clause */
#include "direct/far.h"

#include <errno.h>
#include <string.h>

#include "hca/semantics.h"
#include "hdr/opcode.h"
#include "ibt/message.h"
#include "ibt/verdict.h"
#include "util/inaddr.h"
#include "util/prefetch.h"
#include "util/step.h"

static const char *const details[] = {
	NULL,
	"more READs and atomics at once than max_dest_rd_atomic",
	"an atomic's address is not a multiple of 8",
	"an ATOMIC WRITE is of 8 bytes, aligned to 8",
	"only a memory window of type 2 can be invalidated",
};

enum { DETAILS = sizeof details / sizeof details[0] };

static void *at(const struct hca *h, aoff off, uint64_t bytes)
{
	return arena_has(&h->arena, off, bytes) ? arena_at(&h->arena, off)
						: NULL;
}

/* The QP in a row, if it is the one we mean. */
static struct qp *in_row(const struct far_link *l, const aoff *rows,
			 uint32_t row)
{
	struct qp *qp =
		at(l->hca, __atomic_load_n(&rows[row], __ATOMIC_ACQUIRE),
		   sizeof(struct qp));

	return qp && qp->qpn == l->qpn ? qp : NULL;
}

static struct qp *find(struct far_link *l)
{
	const struct hca_shared *s = l->hca->shared;
	const aoff *rows = at(l->hca, s->qps, HCA_MAX_QP * sizeof(aoff));
	struct qp *qp = NULL;

	if (!rows)
		return NULL;
	qp = in_row(l, rows, l->row);
	for (uint32_t i = 0; !qp && i < HCA_MAX_QP && i < s->qp_top; i++) {
		qp = in_row(l, rows, i);
		if (qp)
			l->row = i;
	}
	return qp;
}

/* It may enter ERR at any time. */
static uint32_t state_of(const struct qp *qp)
{
	return __atomic_load_n(&qp->state, __ATOMIC_RELAXED);
}

/* The same connection as ever (9.6.1.1); UC takes it up at any PSN. */
static bool is_ours(const struct far_link *l, const struct qp *qp)
{
	return qp->attr.dest_qpn == l->our_qpn &&
	       (l->type != HCA_QPT_RC || qp->attr.rq_psn == l->our_psn) &&
	       (!l->connection || l->connection == qp->connection) &&
	       inaddr_has_same_ip(qp->attr.ah.dgid, l->our_ip);
}

/* Would it take our packets? */
static bool is_open(const struct far_link *l, const struct qp *qp)
{
	uint32_t state = state_of(qp);

	return state >= HCA_QP_RTR && state <= HCA_QP_SQE &&
	       !qp->far.has_failed && qp->type == l->type &&
	       (l->type == HCA_QPT_UD || is_ours(l, qp)) &&
	       wq_is_sound(l->hca, &qp->rq, WQE_ROOM);
}

static uint8_t bth_opcode(uint8_t opcode)
{
	switch ((enum hca_wr)opcode) {
	case HCA_WR_RDMA_WRITE:
		return OPCODE_RC_WRITE_ONLY;
	case HCA_WR_RDMA_WRITE_IMM:
		return OPCODE_RC_WRITE_ONLY_IMM;
	case HCA_WR_SEND_IMM:
		return OPCODE_RC_SEND_ONLY_IMM;
	case HCA_WR_SEND_INV:
		return OPCODE_RC_SEND_ONLY_INV;
	case HCA_WR_RDMA_READ:
		return OPCODE_RC_READ_REQUEST;
	case HCA_WR_ATOMIC_CAS:
		return OPCODE_RC_COMPARE_SWAP;
	case HCA_WR_ATOMIC_FADD:
		return OPCODE_RC_FETCH_ADD;
	case HCA_WR_ATOMIC_WRITE:
		return OPCODE_RC_ATOMIC_WRITE;
	case HCA_WR_SEND:
	case HCA_WR_LOCAL_INV:
	case HCA_WR_BIND_MW:
		break;
	}
	return OPCODE_RC_SEND_ONLY;
}

static void post(struct far_link *l, struct qp *qp, struct far_request *r,
		 uint32_t letters)
{
	r->kick |= mail_post(l->hca, qp, letters);
}

/* ---- receives ---- */

static struct wqe *take_receive(struct far_link *l, struct qp *qp,
				struct far_request *r)
{
	struct wqe *w;
	bool low;

	if (qp->srq && !at(l->hca, qp->srq, sizeof(struct srq)))
		return NULL;
	w = rq_take(l->hca, qp, &low);
	/* there may be room since, and was none */
	r->is_full = !w && (rq_is_full(l->hca, qp) || rq_has(l->hca, qp));
	if (r->is_full)
		post(l, qp, r, QP_MAIL_ROOM);
	if (low)
		post(l, qp, r, QP_MAIL_LIMIT);
	return w && w->num_sge <= qp->rq.max_sge ? w : NULL;
}

/* Complete the receive that is held. */
static void complete(struct far_link *l, struct qp *qp, struct far_request *r,
		     enum hca_status status)
{
	struct cq *cq = at(l->hca, qp->recv_cq, sizeof(struct cq));
	bool imm = r->opcode == HCA_WR_SEND_IMM ||
		   r->opcode == HCA_WR_RDMA_WRITE_IMM;
	struct cqe c = {
		.status = status,
		.opcode = r->opcode == HCA_WR_RDMA_WRITE_IMM
				  ? HCA_WC_RECV_RDMA_WITH_IMM
				  : HCA_WC_RECV,
		.vendor_err = status,
		.byte_len = r->total,
		.qpn = qp->qpn,
		.src_qpn = l->our_qpn,
		.at_ns = r->now_ns,
	};

	if (imm)
		c.wc_flags = HCA_WC_WITH_IMM;
	if (r->opcode == HCA_WR_SEND_INV)
		c.wc_flags = HCA_WC_WITH_INV;
	if (c.wc_flags)
		c.imm_be = r->imm_be;
	if (l->type == HCA_QPT_UD) {
		c.wc_flags |= HCA_WC_GRH;
		c.sl = r->sl;
	}
	if (!cq || !rq_held(l->hca, qp))
		return;
	switch (rq_leave_done(l->hca, qp, cq, &c, r->solicited || status,
			      status ? NULL : &r->carry)) {
	case CQ_QUIET:
	case CQ_OVERRUN: /* who collects finds that */
		break;
	case CQ_NOTIFY:
		post(l, qp, r, QP_MAIL_CQ);
		break;
	case CQ_LATER:
		post(l, qp, r, QP_MAIL_LATER);
		break;
	}
}

/* ---- the operations, each as a responder judges and applies it ---- */

/* What became of moving the piece. */
static enum verdict done(struct far_request *r, int err)
{
	r->is_ours = err == -ENXIO;
	r->is_gone = err == -ESRCH;
	return err ? V_REMOTE_FAULT : V_OK;
}

static enum verdict moved(enum verdict v, struct explain *x)
{
	if (v)
		x->cause = EXPLAIN_REMOTE_FAULT;
	return v;
}

/* Put the piece where far names. */
static enum verdict put(struct far_memory *far, struct far_request *r)
{
	struct space_move m = {far->vec, r->near.vec, (uint32_t)far->n,
			       (uint32_t)r->near.n};
	size_t count;

	if (!r->bytes)
		return V_OK;
	if (r->data)
		return done(r, far->space->ops->write(far->space, far->vec,
						      far->n, r->data));
	return done(r, space_put(far->space, r->near.space, &m, 1, &count));
}

static enum verdict get(struct far_memory *far, struct far_request *r)
{
	struct space_move m = {r->near.vec, far->vec, (uint32_t)r->near.n,
			       (uint32_t)far->n};
	size_t count;

	if (!r->bytes)
		return V_OK;
	return done(r, space_get(far->space, r->near.space, &m, 1, &count));
}

/* Few bytes, of one stretch there: left with the receive, no copy of ours. */
static bool may_carry(const struct far_request *r, const struct far_memory *far)
{
	return far->n == 1 && r->bytes == r->total && r->bytes <= WQE_ROOM;
}

static enum verdict carry(struct far_request *r, const struct far_memory *far)
{
	struct space *s = r->near.space;

	if (r->data)
		memcpy(r->carry.bytes, r->data, r->bytes);
	else if (s->ops->read(s, r->near.vec, r->near.n, r->carry.bytes))
		return done(r, -ENXIO);
	r->carry.at = far->vec[0].va;
	return V_OK;
}

/*
 * From here on the target waits for us before what these keys name goes away.
 * What they name is looked up only now: who withdrew one before does not wait.
 */
static void begin_copy(struct far_link *l, guest_set keys)
{
	if (l->guest)
		guest_copy(l->guest, keys | guest_qp(l->qpn));
}

/* v, unless the target has seized us meanwhile. */
static enum verdict end_copy(struct far_link *l, struct far_request *r,
			     guest_set keys, enum verdict v)
{
	guest_set qp = guest_qp(l->qpn);

	if (l->guest)
		r->is_seized = !guest_copied(l->guest, keys | qp, qp);
	return r->is_seized ? V_REMOTE_FAULT : v;
}

/*
 * A message that still lies with its receive belongs to memory that is to be
 * read or written now: the target is to put it there first.
 */
static bool is_in_way(struct far_link *l, struct qp *qp, struct far_request *r,
		      const struct far_memory *far)
{
	if (!carry_is_in_way(l->hca, qp, far->vec, far->n))
		return false;
	l->waits_for_place = r->is_full = true;
	post(l, qp, r, QP_MAIL_ROOM);
	return true;
}

/* Of a receive: the keys of its memory. */
static guest_set keys_of(struct wqe *w)
{
	const struct wq_sge *s = wqe_sges(w);
	guest_set keys = 0;

	for (uint32_t i = 0; i < w->num_sge; i++)
		keys |= guest_key(s[i].lkey);
	return keys;
}

static enum verdict fill(struct far_link *l, struct qp *qp,
			 struct far_request *r, struct wqe *w,
			 struct explain *x)
{
	struct far_memory far;

	far.space = l->hca->space;
	if (sem_check(l->hca, qp->recv_pd, w, HCA_LOCAL_WRITE, x))
		return V_RECV_MEMORY;
	if (r->total > sem_capacity(w)) {
		x->cause = EXPLAIN_LOCAL_LENGTH;
		x->bytes = r->total;
		x->region_bytes = sem_capacity(w);
		return V_TOO_LONG;
	}
	if (sem_locate(l->hca, qp->recv_pd, w, r->offset, r->bytes,
		       HCA_LOCAL_WRITE, far.vec, &far.n, x))
		return V_RECV_MEMORY;
	x->va = far.n ? far.vec[0].va : 0;
	if (may_carry(r, &far) ? !carry(r, &far)
			       : !is_in_way(l, qp, r, &far) && !put(&far, r))
		return V_OK;
	x->cause = EXPLAIN_LOCAL_FAULT;
	return V_RECV_MEMORY;
}

static enum verdict send_into(struct far_link *l, struct qp *qp,
			      struct far_request *r, struct wqe *w,
			      struct explain *x)
{
	guest_set keys = keys_of(w);
	enum verdict v;

	x->wr_id = w->wr_id;
	x->opcode = HCA_WR_SEND;
	begin_copy(l, keys);
	v = end_copy(l, r, keys, fill(l, qp, r, w, x));
	STEP("a receive is filled");
	return v;
}

static enum verdict run_send(struct far_link *l, struct qp *qp,
			     struct far_request *r, struct explain *x)
{
	struct wqe *w;
	enum verdict v;

	if (l->type == HCA_QPT_UD && r->qkey != qp->attr.qkey)
		return V_INVALID;
	w = take_receive(l, qp, r);
	if (!w)
		return V_RNR;
	v = send_into(l, qp, r, w, x);
	if (v || r->offset + r->bytes < r->total)
		return v;
	if (r->opcode == HCA_WR_SEND_INV) {
		x->opcode = OPCODE_RC_SEND_ONLY_INV;
		v = message_invalidate(l->hca, qp, r->imm_be, x);
		if (v)
			return v;
	}
	complete(l, qp, r, HCA_SUCCESS);
	return V_OK;
}

/* The target's memory behind the piece, as a peer may use it. */
static enum verdict locate(struct far_link *l, const struct qp *qp,
			   const struct far_request *r, uint32_t need,
			   struct far_memory *far, struct explain *x)
{
	enum verdict v =
		message_key(l->hca, qp, r->rkey, r->va, r->total, need, x);

	far->n = 0;
	if (v || !r->bytes)
		return v;
	far->space = l->hca->space;
	far->n = 1;
	far->vec[0].bytes = r->bytes;
	x->va = r->va + r->offset;
	x->bytes = r->bytes;
	return mr_remote(l->hca, qp, r->rkey, r->va + r->offset, r->bytes, need,
			 &far->vec[0].va)
		       ? V_ACCESS
		       : V_OK;
}

static enum verdict run_write(struct far_link *l, struct qp *qp,
			      struct far_request *r, struct explain *x)
{
	bool ends = r->offset + r->bytes == r->total;
	bool imm = ends && r->opcode == HCA_WR_RDMA_WRITE_IMM;
	guest_set keys = guest_key(r->rkey);
	struct far_memory far;
	enum verdict v;

	/* refused, it takes no receive */
	v = imm ? locate(l, qp, r, HCA_REMOTE_WRITE, &far, x) : V_OK;
	if (v)
		return v;
	if (imm && !take_receive(l, qp, r))
		return V_RNR;
	begin_copy(l, keys);
	v = locate(l, qp, r, HCA_REMOTE_WRITE, &far, x);
	if (!v && is_in_way(l, qp, r, &far))
		v = V_REMOTE_FAULT;
	v = end_copy(l, r, keys, v ? v : moved(put(&far, r), x));
	STEP("memory is written");
	if (!v && imm)
		complete(l, qp, r, HCA_SUCCESS);
	return v;
}

static enum verdict check_resources(const struct qp *qp, struct explain *x)
{
	if (qp->attr.max_dest_rd_atomic)
		return V_OK;
	x->detail = details[1];
	return V_INVALID;
}

static enum verdict run_read(struct far_link *l, struct qp *qp,
			     struct far_request *r, struct explain *x)
{
	enum verdict v = check_resources(qp, x);
	guest_set keys = guest_key(r->rkey);
	struct far_memory far;

	if (v)
		return v;
	begin_copy(l, keys);
	v = locate(l, qp, r, HCA_REMOTE_READ, &far, x);
	if (!v && is_in_way(l, qp, r, &far))
		v = V_REMOTE_FAULT;
	v = end_copy(l, r, keys, v ? v : moved(get(&far, r), x));
	STEP("memory is read");
	return v;
}

/* Leave it to who owns the memory. */
static void ask(struct far_link *l, struct qp *qp, struct far_request *r)
{
	struct qp_far *f = &qp->far;

	f->ask_opcode = r->opcode;
	f->ask_rkey = r->rkey;
	f->ask_va = r->va;
	f->ask_swap_add = r->swap_add;
	f->ask_compare = r->compare;
	STEP("an atomic is described");
	atomic_store(&f->ask, FAR_ASKED);
	STEP("an atomic is asked for");
	post(l, qp, r, QP_MAIL_ASK);
	l->is_asked = true;
	l->asked_ns = r->now_ns;
}

static enum verdict do_atomic(struct far_link *l, const struct far_memory *far,
			      struct far_request *r)
{
	struct space *s = l->hca->space;
	int err;

	if (r->opcode == HCA_WR_ATOMIC_WRITE)
		err = s->ops->write(s, far->vec, 1, &r->swap_add);
	else
		err = s->ops->atomic(
			s,
			r->opcode == HCA_WR_ATOMIC_CAS ? SPACE_CAS
						       : SPACE_FETCH_ADD,
			far->vec[0].va, r->swap_add, r->compare, &r->found);
	return err ? V_REMOTE_FAULT : V_OK;
}

static enum verdict run_atomic(struct far_link *l, struct qp *qp,
			       struct far_request *r, struct explain *x)
{
	bool writes = r->opcode == HCA_WR_ATOMIC_WRITE;
	enum verdict v = check_resources(qp, x);
	struct far_memory far;

	if (!v && r->va % 8) {
		x->detail = details[writes ? 3 : 2];
		v = V_INVALID;
	}
	if (!v)
		v = locate(l, qp, r,
			   writes ? HCA_REMOTE_WRITE : HCA_REMOTE_ATOMIC, &far,
			   x);
	if (v)
		return v;
	if (l->guest) {
		ask(l, qp, r);
		return V_OK;
	}
	v = is_in_way(l, qp, r, &far) ? V_REMOTE_FAULT : do_atomic(l, &far, r);
	if (v)
		x->cause = EXPLAIN_REMOTE_FAULT;
	return v;
}

/* ---- what becomes of it ---- */

static uint32_t detail_number(const char *text)
{
	for (uint32_t i = 1; text && i < DETAILS; i++)
		if (!strcmp(text, details[i]))
			return i;
	return 0;
}

void far_explain(const struct far_note *n, struct explain *x)
{
	*x = (struct explain){
		.cause = (enum explain_cause)n->cause,
		.wr_id = n->wr_id,
		.opcode = n->opcode,
		.key = n->key,
		.va = n->va,
		.bytes = n->bytes,
		.verdict = n->mr_verdict,
		.need = n->need,
		.region_va = n->region_va,
		.region_bytes = n->region_bytes,
		.detail = n->detail < DETAILS ? details[n->detail] : NULL,
	};
}

/* The target fails: its own process reads why, and does the rest. */
static void refuse(struct far_link *l, struct qp *qp, struct far_request *r,
		   enum verdict v, const struct explain *x)
{
	const struct verdict_row *row = verdict_row(v);

	qp->far.note = (struct far_note){
		.verdict = v,
		.cause = x->cause ? x->cause : EXPLAIN_REMOTE_INVALID,
		.opcode = x->opcode,
		.detail = detail_number(x->detail),
		.key = x->key,
		.mr_verdict = x->verdict,
		.need = x->need,
		.wr_id = x->wr_id,
		.va = x->va,
		.bytes = x->bytes,
		.region_va = x->region_va,
		.region_bytes = x->region_bytes,
	};
	STEP("a note says why");
	__atomic_store_n(&qp->far.has_failed, 1, __ATOMIC_RELEASE);
	STEP("the responder has failed");
	if (row->recv_status)
		complete(l, qp, r, (enum hca_status)row->recv_status);
	post(l, qp, r, QP_MAIL_FAIL);
}

static enum verdict operate(struct far_link *l, struct qp *qp,
			    struct far_request *r, struct explain *x)
{
	switch ((enum hca_wr)r->opcode) {
	case HCA_WR_SEND:
	case HCA_WR_SEND_IMM:
	case HCA_WR_SEND_INV:
		return run_send(l, qp, r, x);
	case HCA_WR_RDMA_WRITE:
	case HCA_WR_RDMA_WRITE_IMM:
		return run_write(l, qp, r, x);
	case HCA_WR_RDMA_READ:
		return run_read(l, qp, r, x);
	case HCA_WR_ATOMIC_CAS:
	case HCA_WR_ATOMIC_FADD:
	case HCA_WR_ATOMIC_WRITE:
		return run_atomic(l, qp, r, x);
	case HCA_WR_LOCAL_INV:
	case HCA_WR_BIND_MW:
		break;
	}
	return V_INVALID;
}

/* What the target was asked to do: is it done? */
static enum far_answer fetch(struct far_link *l, struct qp *qp,
			     struct far_request *r)
{
	uint32_t state = atomic_load(&qp->far.ask);

	if (state == FAR_ASKED)
		return FAR_ASKED_IT;
	l->is_asked = false;
	r->found = qp->far.ask_found;
	r->verdict = (uint32_t)r->found;
	return state == FAR_ANSWERED ? FAR_DONE : FAR_REFUSED;
}

static enum far_answer busy(struct far_link *l, uint64_t now_ns)
{
	if (!l->is_busy && !l->is_asked)
		l->asked_ns = now_ns;
	l->is_busy = true;
	return FAR_BUSY;
}

static enum far_answer execute(struct far_link *l, struct qp *qp,
			       struct far_request *r)
{
	struct explain x = {.opcode = bth_opcode(r->opcode)};
	enum verdict v;

	if (!qp->far.is_heard) {
		qp->far.is_heard = 1;
		STEP("the first request is heard");
		post(l, qp, r, QP_MAIL_HEARD);
	}
	v = operate(l, qp, r, &x);
	if (r->is_seized || r->is_full)
		return busy(l, r->now_ns);
	if (v && r->is_ours)
		return FAR_OUR_FAULT;
	if (v && r->is_gone)
		return FAR_GONE;
	if (v == V_RNR) {
		r->rnr_timer = qp->attr.min_rnr_timer;
		return FAR_RNR;
	}
	r->verdict = v;
	if (v && l->type != HCA_QPT_RC)
		return FAR_REFUSED;
	if (!v && r->opcode == HCA_WR_RDMA_READ)
		qp->far.tx_bytes += r->bytes;
	else if (!v)
		qp->far.rx_bytes += r->bytes;
	qp->far.rx_packets++;
	if (v) {
		refuse(l, qp, r, v, &x);
		return FAR_REFUSED;
	}
	return l->is_asked ? FAR_ASKED_IT : FAR_DONE;
}

/* To its responder; false: it is not to be had now. */
static bool approach(struct far_link *l, struct qp *qp)
	TRY_ACQUIRE(true, &qp->far.lock) NO_LOCK_ANALYSIS
{
	return !ring_load(&qp->far.is_wanted) && rq_enter(l->hca, qp);
}

/* If we were seized, its owner may have its lock, or have freed it. */
static void leave_responder(struct qp *qp, const struct far_request *r)
	RELEASE(&qp->far.lock) NO_LOCK_ANALYSIS
{
	if (r->is_seized)
		alock_leave(&qp->far.lock);
	else
		rq_leave(qp);
}

/* The next receive comes from the target's core, which watches it. */
static void expect(struct far_link *l, const struct qp *qp)
{
	if (wq_is_sound(l->hca, &qp->rq, WQE_ROOM))
		prefetch_read(rq_slot(l->hca, qp), qp->rq.stride);
}

/* Inside its arena, at its responder. */
static enum far_answer run(struct far_link *l, struct far_request *r)
{
	struct qp *qp = find(l);
	enum far_answer answer = FAR_LOST;

	if (!qp) {
		l->is_asked = false;
		return FAR_CLOSED;
	}
	expect(l, qp);
	if (!approach(l, qp))
		return busy(l, r->now_ns);
	l->is_busy = l->waits_for_place = false;
	/* the answer of one that has failed since is good, if it has one */
	if (l->is_asked && l->connection == qp->connection &&
	    atomic_load(&qp->far.ask) != FAR_ASKED) {
		answer = fetch(l, qp, r);
	} else if (is_open(l, qp)) {
		l->connection = qp->connection;
		answer = l->is_asked ? FAR_ASKED_IT : execute(l, qp, r);
	} else {
		l->is_asked = false;
		if (state_of(qp) == HCA_QP_ERR)
			answer = FAR_CLOSED;
	}
	leave_responder(qp, r);
	expect(l, qp);
	return answer;
}

static void enter(struct far_link *l)
{
	if (l->guest)
		guest_enter(l->guest, guest_qp(l->qpn));
	STEP("the guest is inside");
}

static void leave(struct far_link *l)
{
	if (l->guest)
		guest_leave(l->guest);
	STEP("the guest has left");
}

enum far_answer far_run(struct far_link *l, struct far_request *r)
{
	enum far_answer answer;

	if (l->guest && !hca_is_alive(l->hca))
		return FAR_GONE;
	enter(l);
	answer = run(l, r);
	leave(l);
	/* what a program executed since then had there was not meant */
	if (l->guest && !hca_is_alive(l->hca))
		return FAR_GONE;
	return answer;
}

static bool has_receive(const struct far_link *l, const struct qp *qp)
{
	return (!qp->srq || at(l->hca, qp->srq, sizeof(struct srq))) &&
	       rq_has(l->hca, qp);
}

static bool is_ready(struct far_link *l, bool wants_receive)
{
	struct qp *qp = find(l);
	bool ready;

	if (!qp) /* to hear that it is lost */
		return l->is_asked || l->is_busy;
	if (!approach(l, qp))
		return false;
	if (l->is_busy)
		ready = !rq_is_full(l->hca, qp) &&
			!(l->waits_for_place && carry_is_any(l->hca, qp));
	else if (l->is_asked)
		ready = !is_open(l, qp) ||
			atomic_load(&qp->far.ask) != FAR_ASKED;
	else
		ready = is_open(l, qp) &&
			(!wants_receive || has_receive(l, qp));
	rq_leave(qp);
	return ready;
}

bool far_is_ready(struct far_link *l, bool wants_receive)
{
	bool ready;

	if (l->guest && !hca_is_alive(l->hca))
		return true;
	enter(l);
	ready = is_ready(l, wants_receive);
	leave(l);
	return ready;
}
