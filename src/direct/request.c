/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <string.h>

#include "direct/inside.h"
#include "hca/semantics.h"
#include "hdr/opcode.h"
#include "ibt/message.h"
#include "util/step.h"

/* The texts that a message to the user can add to a verdict (explain.detail).
 * The number in a note is an index of this array (target_failure.detail). */
static const char *const details[] = {
	NULL,
	"it sent more READs and atomics at a time than the queue pair's "
	"max_dest_rd_atomic allows",
	"an atomic's address is not a multiple of 8",
	"an ATOMIC WRITE must have 8 bytes, and an address that is a multiple "
	"of 8",
};

enum { DETAILS = sizeof(details) / sizeof(details[0]) };

uint8_t request_opcode(const struct direct_request *r)
{
	switch ((enum hca_wr)r->opcode) {
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

/* ---- receives ---- */

/* Returns the receive that r takes; NULL: none can be taken, and
 * r->outcome.is_full or is_dry says why. */
static struct wqe *take_receive(struct target_ref *l, struct qp *qp,
				struct direct_request *r)
{
	struct wqe *w;
	bool low;

	if (qp->srq)
		inside_see_collected(l, qp);
	else if (qp_target(qp)->posted == rq_cursor(qp))
		inside_see_posted(l, qp);
	w = rq_take(l->hca, qp, &low);
	/* r is tried again if no shared receive can be taken at present
	 * (rq_is_full), or if a receive was posted since rq_take. */
	r->outcome.is_full =
		!w && (rq_is_full(l->hca, qp) || rq_has(l->hca, qp));
	r->outcome.is_dry = !w && !r->outcome.is_full;
	if (r->outcome.is_full)
		inside_post(l, qp, r, QP_NOTIFY_ROOM);
	if (low)
		inside_remind(l, qp, r, QP_NOTIFY_LIMIT);
	return w;
}

static struct cqe completion_of(const struct target_ref *l, const struct qp *qp,
				const struct direct_request *r,
				enum hca_status status)
{
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
		.src_qpn = l->src_qpn,
		.at_ns = r->now_ns,
	};

	if (imm)
		c.wc_flags = HCA_WC_WITH_IMM;
	if (r->opcode == HCA_WR_SEND_INV && !status)
		c.wc_flags = HCA_WC_WITH_INV;
	if (c.wc_flags)
		c.imm_be = r->imm_be;
	if (l->type == HCA_QPT_UD) {
		c.wc_flags |= HCA_WC_GRH;
		c.sl = (uint8_t)r->sl;
	}
	return c;
}

/* Sets the notify bits that a completion calls for. */
static void notify_completion(struct target_ref *l, struct qp *qp,
			      struct direct_request *r, enum cq_push asks)
{
	switch (asks) {
	case CQ_QUIET:
	case CQ_OVERRUN: /* the owner finds the overrun when it collects */
		break;
	case CQ_NOTIFY:
		inside_remind(l, qp, r, QP_NOTIFY_CQ);
		break;
	case CQ_LATER:
		inside_post(l, qp, r, QP_NOTIFY_LATER);
		break;
	}
}

/* Completes the receive that the message has taken (qp_target.held). */
static void complete_receive(struct target_ref *l, struct qp *qp,
			     struct direct_request *r, enum hca_status status)
{
	struct cq *cq = inside_at(l->hca, qp->recv_cq, sizeof(struct cq));
	struct cqe c = completion_of(l, qp, r, status);

	if (!cq || !rq_held(l->hca, qp))
		return;
	notify_completion(l, qp, r,
			  rq_leave_done(l->hca, qp, cq, &c,
					r->solicited || status,
					status ? NULL : &r->eager));
}

/* ---- the operations, judged and executed as a responder does ---- */

/* Returns the verdict for a copy, and notes in r->outcome why the copy failed.
 * @err: the result of the copy, 0 or -errno. */
static enum verdict end_copy(struct direct_request *r, int err)
{
	r->outcome.is_ours = err == -ENXIO;
	r->outcome.is_gone = err == -ESRCH;
	r->outcome.is_denied = err == -EPERM;
	return err ? V_REMOTE_FAULT : V_OK;
}

static enum verdict judge_move(enum verdict v, struct explain *x)
{
	if (v)
		x->cause = EXPLAIN_REMOTE_FAULT;
	return v;
}

/* Copies the piece to the target's memory, from r->data or from the initiator's
 * memory. */
static enum verdict put_piece(struct direct_memory *target,
			      struct direct_request *r)
{
	struct space_move m = {target->vec, r->initiator.vec,
			       (uint32_t)target->n, (uint32_t)r->initiator.n};
	size_t count;

	if (!r->bytes)
		return V_OK;
	if (r->data)
		return end_copy(
			r, target->space->ops->write(target->space, target->vec,
						     target->n, r->data));
	return end_copy(
		r, space_put(target->space, r->initiator.space, &m, 1, &count));
}

static enum verdict get_piece(struct direct_memory *target,
			      struct direct_request *r)
{
	struct space_move m = {r->initiator.vec, target->vec,
			       (uint32_t)r->initiator.n, (uint32_t)target->n};
	size_t count;

	if (!r->bytes)
		return V_OK;
	return end_copy(
		r, space_get(target->space, r->initiator.space, &m, 1, &count));
}

/* Returns a bounce buffer for a message that is longer than a receive's slot.
 * NULL: the target has none, none is free, or *target is memory that both
 * processes map: then one copy to that memory takes less time than two copies
 * by a buffer. */
static uint8_t *bounce_for(struct target_ref *l, struct qp *qp,
			   const struct direct_memory *target)
{
	uint8_t *bounce = NULL;

	if (qp->rq.bounces && space_is_call(target->space, target->vec, 1)) {
		inside_see_collected(l, qp);
		bounce = eager_bounce(l->hca, qp);
	}
	l->has_bounces = bounce != NULL;
	return bounce;
}

/* Copies the message to `bytes`, which is r->eager.bytes or a bounce buffer,
 * and sets r->eager.at.  False: the initiator's memory cannot be read, and
 * r->outcome.is_ours is set. */
static bool copy_eager(struct direct_request *r,
		       const struct direct_memory *target, uint8_t *bytes)
{
	struct space *s = r->initiator.space;

	if (r->data) {
		memcpy(bytes, r->data, r->bytes);
	} else if (s->ops->read(s, r->initiator.vec, r->initiator.n, bytes)) {
		end_copy(r, -ENXIO);
		return false;
	}
	r->eager.at = target->vec[0].va;
	return true;
}

/*
 * Makes the message an eager message for the receive in w (r->eager), if the
 * message is whole, short, and for one range of memory, and the link has eager
 * messages.  rq_complete then leaves the message with the receive.  False: the
 * message is not eager.  fill_receive then has to copy the message; its verdict
 * says whether the receive is too short, or its memory may not be written.  The
 * initiator writes nothing to the memory of the receive here, so it announces
 * no copy, and an owner that withdraws a key need not wait for an initiator
 * that is stopped here.  The owner copies the message to that memory later, and
 * looks the key up again before (eager_place).
 */
static bool leave_with_receive(struct target_ref *l, struct qp *qp,
			       struct direct_request *r, struct wqe *w)
{
	struct direct_memory target;
	struct explain x;
	uint8_t *bytes;

	target.space = l->hca->space;
	if (r->bytes != r->total || r->bytes > EAGER_MAX || l->has_no_eager ||
	    r->total > sem_capacity(w) ||
	    sem_locate(l->hca, qp->recv_pd, w, 0, r->bytes, HCA_LOCAL_WRITE,
		       target.vec, &target.n, &x) ||
	    target.n != 1)
		return false;
	bytes = r->bytes <= WQE_EAGER_BYTES ? r->eager.bytes
					    : bounce_for(l, qp, &target);
	return bytes && copy_eager(r, &target, bytes);
}

/* Does an eager message that is still with its receive belong to memory that
 * this request reads or writes?  If so, asks the target to copy that message
 * there first. */
static bool is_in_way(struct target_ref *l, struct qp *qp,
		      struct direct_request *r,
		      const struct direct_memory *target)
{
	inside_see_collected(l, qp);
	if (!eager_is_in_way(l->hca, qp, target->vec, target->n))
		return false;
	l->waits_for_place = r->outcome.is_full = true;
	inside_post(l, qp, r, QP_NOTIFY_ROOM);
	return true;
}

/* Returns the keys of a receive's memory. */
static access_set keys_of(struct wqe *w)
{
	uint32_t count = wqe_sge_count(w);
	access_set keys = 0;

	for (uint32_t i = 0; i < count; i++)
		keys |= access_key(wqe_sge_read(w, i).lkey);
	return keys;
}

bool request_eager(struct target_ref *l, struct qp *qp,
		   struct direct_request *r)
{
	struct wqe *w = take_receive(l, qp, r);
	struct cqe c;

	if (!w || wqe_sge_count(w) != 1 || !leave_with_receive(l, qp, r, w))
		return false;
	c = completion_of(l, qp, r, HCA_SUCCESS);
	rq_complete(l->hca, qp, &c, &r->eager);
	return true;
}

void request_announce(struct target_ref *l, struct qp *qp,
		      struct direct_request *r, bool solicited, uint32_t count)
{
	struct cq *cq = inside_at(l->hca, qp->recv_cq, sizeof(struct cq));

	if (cq && count)
		notify_completion(
			l, qp, r,
			cq_announce(l->hca, cq, qp, solicited, false, count));
}

static enum verdict fill_receive(struct target_ref *l, struct qp *qp,
				 struct direct_request *r, struct wqe *w,
				 struct explain *x)
{
	struct direct_memory target;

	target.space = l->hca->space;
	if (r->total > sem_capacity(w)) {
		x->cause = EXPLAIN_LOCAL_LENGTH;
		x->bytes = r->total;
		x->region_bytes = sem_capacity(w);
		return V_TOO_LONG;
	}
	if (sem_locate(l->hca, qp->recv_pd, w, r->offset, r->bytes,
		       HCA_LOCAL_WRITE, target.vec, &target.n, x))
		return V_RECV_MEMORY;
	x->va = target.n ? target.vec[0].va : 0;
	if (!is_in_way(l, qp, r, &target) && !put_piece(&target, r))
		return V_OK;
	x->cause = EXPLAIN_LOCAL_FAULT;
	return V_RECV_MEMORY;
}

static enum verdict send_into(struct target_ref *l, struct qp *qp,
			      struct direct_request *r, struct wqe *w,
			      struct explain *x)
{
	access_set keys;
	enum verdict v;

	x->wr_id = w->wr_id;
	if (leave_with_receive(l, qp, r, w)) {
		STEP("a receive is filled");
		return V_OK;
	}
	keys = keys_of(w);
	inside_begin_copy(l, keys);
	v = inside_end_copy(l, r, keys, fill_receive(l, qp, r, w, x));
	if (v == V_RECV_MEMORY)
		x->opcode = EXPLAIN_RECEIVE;
	STEP("a receive is filled");
	return v;
}

static enum verdict run_send(struct target_ref *l, struct qp *qp,
			     struct direct_request *r, struct explain *x)
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
	complete_receive(l, qp, r, HCA_SUCCESS);
	return V_OK;
}

enum verdict request_locate(struct target_ref *l, const struct qp *qp,
			    const struct direct_request *r, uint32_t need,
			    struct direct_memory *target, struct explain *x)
{
	uint64_t addr = 0;
	enum verdict v = message_locate(l->hca, qp, r->rkey, r->va, r->total,
					need, &addr, x);

	target->n = 0;
	target->vec[0].va = 0;
	if (v || !r->bytes)
		return v;
	target->space = l->hca->space;
	target->n = 1;
	target->vec[0] = (struct space_vec){addr + r->offset, r->bytes};
	x->va = r->va + r->offset;
	x->bytes = r->bytes;
	return V_OK;
}

/*
 * Ends the copy of a piece of r.  keys: those of the copy; v: the verdict of
 * the copy.  Returns the verdict of inside_end_copy.  If the copy was complete
 * before the access was revoked, the copy must not be repeated, since the
 * target's program may have stored to that memory since.  So a complete copy
 * sets r->outcome.is_executed if is_all is true: the piece needs nothing but
 * the copy.  If is_all is false, a complete copy whose access was revoked sets
 * l->is_copied.
 */
static enum verdict end_move(struct target_ref *l, struct direct_request *r,
			     access_set keys, enum verdict v, bool is_all)
{
	bool is_complete = !v;

	v = inside_end_copy(l, r, keys, v);
	r->outcome.is_executed = is_complete && is_all;
	l->is_copied = is_complete && !is_all && r->outcome.is_revoked;
	return v;
}

static enum verdict copy_write(struct target_ref *l, struct qp *qp,
			       struct direct_request *r, bool imm,
			       struct explain *x)
{
	access_set keys = access_key(r->rkey);
	struct direct_memory target;
	enum verdict v;

	inside_begin_copy(l, keys);
	v = request_locate(l, qp, r, HCA_REMOTE_WRITE, &target, x);
	if (!v && is_in_way(l, qp, r, &target))
		v = V_REMOTE_FAULT;
	v = v ? v : judge_move(put_piece(&target, r), x);
	return end_move(l, r, keys, v, !imm);
}

static enum verdict run_write(struct target_ref *l, struct qp *qp,
			      struct direct_request *r, struct explain *x)
{
	bool ends = r->offset + r->bytes == r->total;
	bool imm = ends && r->opcode == HCA_WR_RDMA_WRITE_IMM;
	struct direct_memory target;
	enum verdict v = V_OK;

	/* The request is judged before take_receive, because a refused request
	 * takes no receive. */
	if (imm && !l->is_copied)
		v = request_locate(l, qp, r, HCA_REMOTE_WRITE, &target, x);
	if (v)
		return v;
	if (imm && !take_receive(l, qp, r))
		return V_RNR;
	if (!l->is_copied)
		v = copy_write(l, qp, r, imm, x);
	STEP("memory is written");
	if (v)
		return v;
	l->is_copied = false;
	if (ends)
		comp_remote_write(qp, r->total);
	if (imm)
		complete_receive(l, qp, r, HCA_SUCCESS);
	return V_OK;
}

enum verdict request_resources(const struct qp *qp, struct explain *x)
{
	if (qp->attr.max_dest_rd_atomic)
		return V_OK;
	x->detail = details[1];
	return V_INVALID;
}

static enum verdict run_read(struct target_ref *l, struct qp *qp,
			     struct direct_request *r, struct explain *x)
{
	enum verdict v = request_resources(qp, x);
	access_set keys = access_key(r->rkey);
	struct direct_memory target;

	if (v)
		return v;
	inside_begin_copy(l, keys);
	v = request_locate(l, qp, r, HCA_REMOTE_READ, &target, x);
	if (!v && is_in_way(l, qp, r, &target))
		v = V_REMOTE_FAULT;
	v = v ? v : judge_move(get_piece(&target, r), x);
	v = end_move(l, r, keys, v, true);
	STEP("memory is read");
	return v;
}

/*
 * Leaves the request to the target's process, which owns the memory.
 *
 * The store of `ask` (seq_cst) comes after the store of `asked`, and serve_ask
 * loads `ask` (seq_cst) before it reads `asked`.  Without this order the
 * target's process could execute a request that is half written.
 */
static void ask_target(struct target_ref *l, struct qp *qp,
		       struct direct_request *r)
{
	struct qp_target *f = qp_target(qp);

	f->asked = (struct target_request){r->opcode, r->rkey, r->va,
					   r->swap_add, r->compare};
	STEP("an atomic is described");
	atomic_store(&f->ask, TARGET_ASK_POSTED);
	STEP("an atomic is asked for");
	inside_post(l, qp, r, QP_NOTIFY_ASK);
	l->is_asked = true;
	l->asked_ns = r->now_ns;
}

static enum verdict do_atomic(struct target_ref *l,
			      const struct direct_memory *target,
			      struct direct_request *r)
{
	struct space *s = l->hca->space;
	int err;

	if (r->opcode == HCA_WR_ATOMIC_WRITE)
		err = s->ops->write(s, target->vec, 1, &r->swap_add);
	else
		err = s->ops->atomic(s,
				     r->opcode == HCA_WR_ATOMIC_CAS
					     ? SPACE_CAS
					     : SPACE_FETCH_ADD,
				     target->vec[0].va, r->swap_add, r->compare,
				     &r->outcome.found);
	return err ? V_REMOTE_FAULT : V_OK;
}

bool request_execute_here(struct target_ref *l, struct qp *qp,
			  struct direct_request *r)
{
	access_set keys = access_key(r->rkey);
	struct direct_memory target;
	struct explain x;

	if (r->opcode == HCA_WR_ATOMIC_WRITE)
		return false;
	inside_begin_copy(l, keys);
	inside_see_collected(l, qp);
	if (!request_locate(l, qp, r, HCA_REMOTE_ATOMIC, &target, &x) &&
	    !eager_is_in_way(l->hca, qp, target.vec, target.n))
		r->outcome.is_executed = !do_atomic(l, &target, r);
	inside_end_copy(l, r, keys, V_OK);
	STEP("an atomic is executed");
	return r->outcome.is_executed || r->outcome.is_revoked;
}

enum verdict request_atomic(const struct qp *qp, uint32_t opcode, uint64_t va,
			    struct explain *x)
{
	enum verdict v = request_resources(qp, x);

	if (v || va % 8 == 0)
		return v;
	x->detail = details[opcode == HCA_WR_ATOMIC_WRITE ? 3 : 2];
	return V_INVALID;
}

static enum verdict run_atomic(struct target_ref *l, struct qp *qp,
			       struct direct_request *r, struct explain *x)
{
	bool writes = r->opcode == HCA_WR_ATOMIC_WRITE;
	enum verdict v = request_atomic(qp, r->opcode, r->va, x);
	struct direct_memory target;

	if (!v)
		v = request_locate(
			l, qp, r, writes ? HCA_REMOTE_WRITE : HCA_REMOTE_ATOMIC,
			&target, x);
	if (v)
		return v;
	if (l->access) {
		if (!request_execute_here(l, qp, r))
			ask_target(l, qp, r);
		return V_OK;
	}
	v = is_in_way(l, qp, r, &target) ? V_REMOTE_FAULT
					 : do_atomic(l, &target, r);
	if (v)
		x->cause = EXPLAIN_REMOTE_FAULT;
	return v;
}

/* ---- failure of the target ---- */

static uint32_t detail_number(const char *text)
{
	for (uint32_t i = 1; text && i < DETAILS; i++)
		if (!strcmp(text, details[i]))
			return i;
	return 0;
}

const char *request_detail(uint32_t number)
{
	return number < DETAILS ? details[number] : NULL;
}

void request_refuse(struct target_ref *l, struct qp *qp,
		    struct direct_request *r, enum verdict v,
		    const struct explain *x)
{
	const struct verdict_row *row = verdict_row(v);

	qp_target(qp)->note = (struct target_failure){
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
	/* Release: orders the stores of the note before has_failed.  The owner
	 * may look at has_failed before QP_NOTIFY_FAIL is set here, because it
	 * sets all bits itself after the death of any peer (peer_death.h).
	 * Without this order the owner could explain the failure by a
	 * half-written note. */
	__atomic_store_n(&qp_target(qp)->has_failed, 1, __ATOMIC_RELEASE);
	STEP("the responder has failed");
	if (row->recv_status)
		complete_receive(l, qp, r, (enum hca_status)row->recv_status);
	inside_post(l, qp, r, QP_NOTIFY_FAIL);
}

enum verdict request_run(struct target_ref *l, struct qp *qp,
			 struct direct_request *r, struct explain *x)
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
