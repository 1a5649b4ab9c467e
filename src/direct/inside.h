/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The declarations that target.c, request.c and batch.c share.  Their code runs
 * inside the target's arena, under its responder lock.
 *
 * The queue pair that they get is a copy (target.c): each word that its owner
 * wrote is read once, and offsets are checked before they are used.  The copy
 * leads to the receives and to struct qp_target, which other processes write
 * meanwhile: from there only values are taken, never a place.
 */
#ifndef DIRECT_INSIDE_H
#define DIRECT_INSIDE_H

#include <stdalign.h>

#include "direct/target.h"
#include "ibt/verdict.h"

/* Returns the address of off in h's arena; NULL: the bytes are not inside the
 * arena, or off is not aligned as a queue pair is. */
static inline void *inside_at(const struct hca *h, aoff off, uint64_t bytes)
{
	_Static_assert(alignof(struct cq) == alignof(struct qp) &&
			       alignof(struct srq) == alignof(struct qp),
		       "a cq, a qp and an srq have one alignment");
	return off % alignof(struct qp) == 0 && arena_has(&h->arena, off, bytes)
		       ? arena_at(&h->arena, off)
		       : NULL;
}

/* Returns the queue pair that the copy was made from. */
static inline const struct qp *inside_original(const struct target_ref *l,
					       const struct qp *copy)
{
	return (const struct qp *)(const void *)(l->hca->arena.base +
						 copy->self);
}

/*
 * Reads the owner's index of collected receives into the copy.  The owner's
 * processor writes it all the time, so only callers that need it pay for the
 * read.
 */
static inline void inside_see_told(const struct target_ref *l, struct qp *qp)
{
	const struct qp *there = inside_original(l, qp);

	shared_store(&qp->rq.collected, shared_load(&there->rq.collected));
}

/* Reads the owner's index of posted receives into the copy, for callers that
 * need it. */
static inline void inside_see_posted(const struct target_ref *l, struct qp *qp)
{
	const struct qp *there = inside_original(l, qp);

	shared_store(&qp->rq.head, shared_load(&there->rq.head));
}

/* Sets notify bits for the target; r says whether the target has to be woken.
 */
static inline void inside_post(struct target_ref *l, struct qp *qp,
			       struct direct_request *r, uint32_t bits)
{
	r->outcome.kick |= notify_post(l->hca, qp, bits);
}

/*
 * Sets notify bits of an event that is owed, unless they are set.  The process
 * that owes the event may be stopped before it sets them, so each later
 * initiator calls this, too.  The bits of a UD queue pair may have been set by
 * an initiator that did not wake the owner.
 */
static inline void inside_remind(struct target_ref *l, struct qp *qp,
				 struct direct_request *r, uint32_t bits)
{
	if (!(atomic_load(&qp_target(qp)->notify) & bits))
		inside_post(l, qp, r, bits);
	else if (l->type == HCA_QPT_UD)
		r->outcome.kick |= shared_load(&l->hca->shared->is_asleep);
}

/* Counts the bytes that a request has moved at the target. */
static inline void inside_count(struct qp *qp, uint8_t opcode, uint64_t bytes)
{
	if (opcode == HCA_WR_RDMA_READ)
		qp_target(qp)->tx_bytes += bytes;
	else
		qp_target(qp)->rx_bytes += bytes;
}

/*
 * From here on the target waits for this copy before the memory of these keys
 * goes away.  The memory is looked up only afterwards: a target that withdrew a
 * key before does not wait.
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

/* The opcode that r would have as a packet, for sentences. */
uint8_t request_opcode(const struct direct_request *r);
/* Judges r and executes it.  Returns the verdict, with its facts in *x. */
enum verdict request_run(struct target_ref *l, struct qp *qp,
			 struct direct_request *r, struct explain *x);
/* Fails the target for r: writes the note, which the target's own process reads
 * before it fails the QP. */
void request_refuse(struct target_ref *l, struct qp *qp,
		    struct direct_request *r, enum verdict v,
		    const struct explain *x);
/* The words for a note's detail; NULL: it has none. */
const char *request_detail(uint32_t number);
/* Has the target resources for READs and atomics? */
enum verdict request_resources(const struct qp *qp, struct explain *x);
/* Fills *target with the target's memory that the piece names, if r's rkey
 * permits the access. */
enum verdict request_locate(struct target_ref *l, const struct qp *qp,
			    const struct direct_request *r, uint32_t need,
			    struct direct_memory *target, struct explain *x);
/*
 * Executes an atomic in memory that both processes map, and sets is_executed.
 * False: the target's process has to execute it.  An access that was revoked
 * after the atomic was executed changes nothing: it must not be executed again.
 */
bool request_execute_here(struct target_ref *l, struct qp *qp,
			  struct direct_request *r);
/* Leaves r, a SEND of few bytes, whole with the next receive, if the receive
 * has one element.  False: r has to be executed by request_run. */
bool request_eager(struct target_ref *l, struct qp *qp,
		   struct direct_request *r);
/* Announces @count completions that request_eager has left, r being the last
 * request; @solicited: one of them was solicited. */
void request_announce(struct target_ref *l, struct qp *qp,
		      struct direct_request *r, bool solicited, uint32_t count);
/* Executes as many requests of the series as are ordinary.  Returns their
 * number. */
uint32_t batch_run(struct target_ref *l, struct qp *qp, struct direct_batch *s);

#endif
