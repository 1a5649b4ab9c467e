/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The declarations that target.c, request.c and batch.c share.  The code of
 * these files runs in the target's arena, under the target QP's responder lock.
 *
 * The queue pair that the functions get is a copy (target.c): each word that
 * the owner wrote was read once, and offsets were checked.  The copy has the
 * places of the receives and of struct qp_target, which other processes write
 * meanwhile.  So the functions take only values from there, and never an offset
 * or an address to access.
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
 */
static inline void inside_see_told(const struct target_ref *l, struct qp *qp)
{
	const struct qp *there = inside_original(l, qp);

	shared_store(&qp->rq.collected, shared_load(&there->rq.collected));
}

/* Reads the owner's index of posted receives into the copy.  The read costs a
 * cache miss, so only callers that need the index do it. */
static inline void inside_see_posted(const struct target_ref *l, struct qp *qp)
{
	const struct qp *there = inside_original(l, qp);

	shared_store(&qp->rq.head, shared_load(&there->rq.head));
}

/* Sets notify bits for the target's own process, and sets r->outcome.kick if
 * that process sleeps. */
static inline void inside_post(struct target_ref *l, struct qp *qp,
			       struct direct_request *r, uint32_t bits)
{
	r->outcome.kick |= notify_post(l->hca, qp, bits);
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
		r->outcome.kick |= shared_load(&l->hca->shared->is_asleep);
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

/* Ends the copy.  Returns v, or V_REMOTE_FAULT if the target has revoked the
 * access meanwhile. */
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

/* Returns the BTH opcode that r would have as a packet of RC.  Sentences for
 * the user name it. */
uint8_t request_opcode(const struct direct_request *r);
/* Judges r and executes it, and sets r->outcome.  Returns the verdict, with the
 * facts for a sentence about it in *x. */
enum verdict request_run(struct target_ref *l, struct qp *qp,
			 struct direct_request *r, struct explain *x);
/* Makes the target's QP fail, since v refuses r: writes the note of the
 * failure. The target's own process reads the note and changes the QP's state.
 */
void request_refuse(struct target_ref *l, struct qp *qp,
		    struct direct_request *r, enum verdict v,
		    const struct explain *x);
/* Returns the words for the detail of a note by their number, which another
 * process wrote; NULL: the note has no detail. */
const char *request_detail(uint32_t number);
/* Does the target take READs and atomics?  Returns V_OK; V_INVALID with the
 * detail in *x: its max_dest_rd_atomic is 0. */
enum verdict request_resources(const struct qp *qp, struct explain *x);
/* Fills *target with the target's memory that the piece names.  `need` is the
 * needed right (HCA_REMOTE_*).  Returns V_OK, or with the facts in *x the
 * verdict of message_locate: r's rkey does not permit the access. */
enum verdict request_locate(struct target_ref *l, const struct qp *qp,
			    const struct direct_request *r, uint32_t need,
			    struct direct_memory *target, struct explain *x);
/*
 * Executes an atomic in memory that both processes map, and sets
 * r->outcome.is_executed.  Returns false if only the target's process can
 * execute the atomic.  Returns true, too, if the access was revoked: if the
 * atomic was executed before, is_executed stays true, and the atomic must not
 * be executed again.
 */
bool request_execute_here(struct target_ref *l, struct qp *qp,
			  struct direct_request *r);
/* Leaves r, a whole SEND, as an eager message with the next receive.  False:
 * there is no such receive with one SGE, or the message is too long; then
 * request_run must execute r. */
bool request_eager(struct target_ref *l, struct qp *qp,
		   struct direct_request *r);
/* Announces the last @count completions that request_eager has left, and sets
 * the notify bits that they call for.  @solicited: one of the requests asked
 * for a solicited event.  The result goes to r->outcome. */
void request_announce(struct target_ref *l, struct qp *qp,
		      struct direct_request *r, bool solicited, uint32_t count);
/* Executes the requests of a batch, up to the first one that must be run alone.
 * Returns how many were executed. */
uint32_t batch_run(struct target_ref *l, struct qp *qp, struct direct_batch *s);

#endif
