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

/* In h's arena; NULL: it is not, or does not begin where things do: those that
 * are asked for are aligned as a queue pair is, or more. */
static inline void *inside_at(const struct hca *h, aoff off, uint64_t bytes)
{
	_Static_assert(alignof(struct cq) == alignof(struct qp) &&
			       alignof(struct srq) == alignof(struct qp),
		       "one alignment is all of theirs");
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

/* Reads the owner's indices into the copy.  The owner's processor writes them
 * all the time, so only the callers that need them pay for the read. */
static inline void inside_see_told(const struct target_ref *l, struct qp *qp)
{
	const struct qp *there = inside_original(l, qp);

	shared_store(&qp->rq.collected, shared_load(&there->rq.collected));
}

static inline void inside_see_posted(const struct target_ref *l, struct qp *qp)
{
	const struct qp *there = inside_original(l, qp);

	shared_store(&qp->rq.head, shared_load(&there->rq.head));
}

static inline void inside_post(struct target_ref *l, struct qp *qp,
			       struct direct_request *r, uint32_t bits)
{
	r->outcome.kick |= notify_post(l->hca, qp, bits);
}

/*
 * Sets notify bits of an event that is owed.  The process that owes the event
 * may be stopped before it has told anybody: so each later initiator sets the
 * bits too, but once.  The bits of a UD queue pair may have been set by an
 * initiator that did not wake the owner.
 */
static inline void inside_remind(struct target_ref *l, struct qp *qp,
				 struct direct_request *r, uint32_t bits)
{
	if (!(atomic_load(&qp_target(qp)->notify) & bits))
		inside_post(l, qp, r, bits);
	else if (l->type == HCA_QPT_UD)
		r->outcome.kick |= shared_load(&l->hca->shared->is_asleep);
}

/* A request has moved so many bytes there. */
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

/* v, unless the target has revoked our access meanwhile. */
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

/* The opcode of r's packet, if it were one: for sentences. */
uint8_t request_opcode(const struct direct_request *r);
/* Judge r and execute it. */
enum verdict request_run(struct target_ref *l, struct qp *qp,
			 struct direct_request *r, struct explain *x);
/* The target fails for it: its own process reads why, and does the rest. */
void request_refuse(struct target_ref *l, struct qp *qp,
		    struct direct_request *r, enum verdict v,
		    const struct explain *x);
/* The words for a note's detail; NULL: it has none. */
const char *request_detail(uint32_t number);
/* Has the target resources for READs and atomics? */
enum verdict request_resources(const struct qp *qp, struct explain *x);
/* The target's memory behind the piece, as a peer may use it. */
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
/*
 * Leave r, a SEND of few bytes, whole with the next receive, of one element.
 * False: it is not as simple as that, and nothing was done.
 */
bool request_eager(struct target_ref *l, struct qp *qp,
		   struct direct_request *r);
/* So many were left by it, r the last, one of them perhaps solicited. */
void request_announce(struct target_ref *l, struct qp *qp,
		      struct direct_request *r, bool solicited, uint32_t count);
/* As many of the series as go; inside, like all of this. */
uint32_t batch_run(struct target_ref *l, struct qp *qp, struct direct_batch *s);

#endif
