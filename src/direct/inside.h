/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The declarations that target.c, request.c and batch.c share.  A function here
 * that gets a struct qp works in the target's arena, under the target QP's
 * responder lock.
 *
 * That struct qp is a copy (target.c): each word of the owner's struct was read
 * once, and the offsets were checked.  By these offsets the functions reach the
 * receives and struct qp_target in the arena, which other processes may write
 * at the same time.  So the functions check each offset and address that they
 * read there before they access memory by it.
 */
#ifndef DIRECT_INSIDE_H
#define DIRECT_INSIDE_H

#include <stdalign.h>

#include "direct/target.h"
#include "ibt/verdict.h"

/* Returns the address of offset off in h's arena; NULL: `bytes` bytes from off
 * on are not inside the arena, or off is not aligned as a queue pair is. */
static inline void *inside_at(const struct hca *h, aoff off, uint64_t bytes)
{
	_Static_assert(alignof(struct cq) == alignof(struct qp) &&
			       alignof(struct srq) == alignof(struct qp),
		       "a cq, a qp and an srq have one alignment");
	return off % alignof(struct qp) == 0 && arena_has(&h->arena, off, bytes)
		       ? arena_at(&h->arena, off)
		       : NULL;
}

/* Returns the owner's queue pair, from which the copy was made. */
static inline const struct qp *inside_original(const struct target_ref *l,
					       const struct qp *copy)
{
	return (const struct qp *)(const void *)(l->hca->arena.base +
						 copy->self);
}

/*
 * Reads the owner's index of collected receives into the copy.  The owner
 * writes the index all the time, so a read costs a cache miss, and only callers
 * that need the index read it.
 *
 * Acquire, with the release store in rq_collect: the owner reads a completion
 * and its eager message before it stores the index.  The caller loads the index
 * before it writes another message to the bounce buffer (eager_bounce) or, with
 * an SRQ, another completion to the slot (rq_is_full).  Without this order the
 * caller could overwrite what the owner still reads.
 */
static inline void inside_see_collected(const struct target_ref *l,
					struct qp *qp)
{
	const struct qp *there = inside_original(l, qp);

	shared_store(&qp->rq.collected, shared_load(&there->rq.collected));
}

/* Reads the owner's index of posted receives into the copy.  The read costs a
 * cache miss, so only callers that need the index do it.  Acquire, with the
 * release store in wq_commit_all (hca/wq.h), which says what the two order. */
static inline void inside_see_posted(const struct target_ref *l, struct qp *qp)
{
	const struct qp *there = inside_original(l, qp);

	shared_store(&qp->rq.head, shared_load(&there->rq.head));
}

/* Sets notify bits for the target's own process, and sets r->outcome.must_wake
 * if that process sleeps. */
static inline void inside_post(struct target_ref *l, struct qp *qp,
			       struct direct_request *r, uint32_t bits)
{
	r->outcome.must_wake |= notify_post(l->hca, qp, bits);
}

/*
 * Sets notify bits of an event that the owner has asked for, unless they are
 * set.  The initiator whose request calls for the event may be stopped before
 * it sets the bits, so each later initiator calls this, too.  At a UD queue
 * pair, another initiator may have set the bits and not have woken the owner,
 * so a later initiator wakes the owner.
 */
static inline void inside_remind(struct target_ref *l, struct qp *qp,
				 struct direct_request *r, uint32_t bits)
{
	if (!(atomic_load(&qp_target(qp)->notify) & bits))
		inside_post(l, qp, r, bits);
	else if (l->type == HCA_QPT_UD)
		r->outcome.must_wake |= shared_load(&l->hca->shared->is_asleep);
}

/* Counts bytes that a request has moved, in the target's counters. */
static inline void inside_count(struct qp *qp, uint8_t opcode, uint64_t bytes)
{
	if (opcode == HCA_WR_RDMA_READ)
		qp_target(qp)->tx_bytes += bytes;
	else
		qp_target(qp)->rx_bytes += bytes;
}

/*
 * Announces a copy by these keys: a target that withdraws one of them waits for
 * inside_end_copy before the memory goes away.  The caller looks the keys up
 * only after this call.  A target that withdrew a key before the call does not
 * wait, but then the look-up fails.
 */
static inline void inside_begin_copy(struct target_ref *l, access_set keys)
{
	if (l->access)
		access_copy(l->access, keys | access_qp(l->qpn));
}

/* Ends the copy that inside_begin_copy has announced by the same keys.  Returns
 * v; if the target has revoked the access meanwhile, sets r->outcome.is_revoked
 * and returns V_REMOTE_FAULT instead. */
static inline enum verdict inside_end_copy(struct target_ref *l,
					   struct direct_request *r,
					   access_set keys, enum verdict v)
{
	access_set qp = access_qp(l->qpn);

	if (l->access)
		r->outcome.is_revoked =
			!access_copied(l->access, keys | qp, qp);
	return r->outcome.is_revoked ? V_REMOTE_FAULT : v;
}

/* Returns the BTH opcode that r would have as a packet of RC, for
 * explain.opcode. */
uint8_t request_opcode(const struct direct_request *r);
/* Judges r and executes it, and sets r->outcome.  Returns the verdict.  If the
 * verdict is not V_OK, *x has the facts for a message about the verdict. */
enum verdict request_run(struct target_ref *l, struct qp *qp,
			 struct direct_request *r, struct explain *x);
/* Makes the target's QP fail, because the verdict v refuses r.  Writes v and *x
 * into the QP's note (qp_target.note), completes the held receive if v's row
 * has a status for it, and sets QP_NOTIFY_FAIL.  The target's own process then
 * reads the note and changes the QP's state. */
void request_refuse(struct target_ref *l, struct qp *qp,
		    struct direct_request *r, enum verdict v,
		    const struct explain *x);
/* Returns the static text for a note's `detail` (struct target_failure), a
 * number that another process wrote; NULL: the note has no detail, or the
 * number is unknown. */
const char *request_detail(uint32_t number);
/* Does the target take READs and atomics?  Returns V_OK, or V_INVALID with the
 * detail in *x if the target's max_dest_rd_atomic is 0. */
enum verdict request_resources(const struct qp *qp, struct explain *x);
/* Fills *target with the target's memory that r, a piece of a request, reads or
 * writes: one range, or none if r has no bytes.  @need: the right that r needs,
 * one of HCA_REMOTE_*.  Returns V_OK.
 * If the QP or r's rkey does not permit the access, returns the verdict of
 * message_locate, with the facts in *x. */
enum verdict request_locate(struct target_ref *l, const struct qp *qp,
			    const struct direct_request *r, uint32_t need,
			    struct direct_memory *target, struct explain *x);
/*
 * Executes an atomic in memory that both processes map, and sets
 * r->outcome.is_executed.  Returns false if only the target's process can
 * execute the atomic.  Returns true, too, if the access was revoked: if
 * is_executed is set, the atomic was executed before that, and must not be
 * executed again.
 */
bool request_execute_here(struct target_ref *l, struct qp *qp,
			  struct direct_request *r);
/* Leaves r, a whole SEND, as an eager message in the slot of the next receive
 * or in a bounce buffer, together with the completion.  False: no eager message
 * was left, and request_run must execute r.  The reason is one of these: no
 * receive can be taken; the receive does not have exactly one SGE that can be
 * used; the link has no eager messages; the message is too long, gets no bounce
 * buffer or cannot be read. */
bool request_eager(struct target_ref *l, struct qp *qp,
		   struct direct_request *r);
/* Announces the last @count completions that request_eager has left, and sets
 * the notify bits that they call for.  @solicited: one of the requests asked
 * for a solicited event.  Sets r->outcome.must_wake if the target's process
 * sleeps and has to be woken. */
void request_announce(struct target_ref *l, struct qp *qp,
		      struct direct_request *r, bool solicited, uint32_t count);
/* Executes the requests of a batch, up to the first request that must be run
 * alone.  Returns how many were executed. */
uint32_t batch_run(struct target_ref *l, struct qp *qp, struct direct_batch *s);

#endif
