/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The initiator of requests without packets; and the handling of the notify
 * bits that an owner's peers have set.  The requests of a connection go by
 * packets or directly for as long as the connection lasts: that is decided
 * before the first request, so that none overtakes another.
 *
 *	OPEN --initiator_attach--> DIRECT   until RESET; a connection of UC
 *	     --initiator_refuse--> PACKETS  <-- until a request cannot be done
 *
 * A piece of a message takes one PSN; rc_comp waits for receives, retries and
 * completes.  A queue pair that waits for its peer (no receive, not ready, an
 * atomic, another process at work there) is on a list of struct ibt's member
 * direct, and tries again at each tick.
 *
 * Owner: the engine.  Lock: the progress lock and all post locks, or for
 * initiator_post_apart the QP's post lock alone.  Sans-IO.
 */
#ifndef DIRECT_INITIATOR_H
#define DIRECT_INITIATOR_H

#include "direct/target.h"
#include "ibt/ibt.h"

#define INITIATOR_PIECE (1u << 20) /* bytes that move under one lock */

/* Makes q, a connected QP, go direct to its peer in `target`; access and owner
 * are borrowed until initiator_released returns owner.  0 or -ENOMEM. */
int initiator_attach(struct ibt *t, struct ibt_qp *q, struct hca *target,
		     struct access *access, void *owner);
/* Makes q go by packets. */
void initiator_refuse(struct ibt_qp *q);
/* Gives up the links of a QP that is destroyed. */
void initiator_fini(struct ibt *t, struct ibt_qp *q);
/* Takes a link that its QP no longer uses. */
void initiator_release(struct ibt *t, struct target_ref *l);
/* Frees a link that initiator_release took, and returns its owner; NULL: there
 * are no more. */
void *initiator_released(struct ibt *t);
/* Lists the target of q in `kicks` if r says that the target sleeps and has to
 * be woken. */
void initiator_kick(struct ibt_qp *q, struct list *kicks,
		    const struct direct_request *r);
/* q waits for its peer: initiator_look tries again. */
void initiator_wait(struct ibt *t, struct ibt_qp *q);
/* Does a request of q wait until its path is decided? */
bool initiator_is_undecided(const struct ibt_qp *q);
/*
 * Executes the piece at the cursor, or a batch of small requests.  Returns the
 * bytes that moved, plus 1 for each request; 0: no request can be executed now.
 */
uint32_t initiator_turn(struct ibt *t, struct ibt_qp *q, struct list *kicks,
			uint64_t now_ns);
/*
 * Executes the requests at the cursor that change nothing but q, its completion
 * queue and the target's arena: small and plain ones of RC that succeed at
 * once.  So the caller needs no progress lock, but must exclude all other calls
 * that use q or its target_ref.  *kick: the link's owner, whose process sleeps
 * and has to be woken, or NULL.  False: requests or events are left, for
 * initiator_tell_apart and initiator_turn.  True also while q waits for a
 * receive: the end of the wait executes the requests.
 */
bool initiator_post_apart(struct ibt *t, struct ibt_qp *q, uint64_t now_ns,
			  void **kick);
/*
 * Would the requests that initiator_post_apart has yet to execute, and those
 * posted after them, take one system call together?  Lock: as
 * initiator_post_apart.
 */
bool initiator_gathers(struct ibt *t, const struct ibt_qp *q);
/* Raises the events, and finishes the atomic, that initiator_post_apart has
 * left; before any other call that executes or flushes requests of q. */
void initiator_tell_apart(struct ibt *t, struct ibt_qp *q);
/* Executes the piece at the cursor of a UC QP, as initiator_turn does; a piece
 * that cannot be executed changes the path of the QP to packets. */
uint32_t initiator_turn_unreliable(struct ibt *t, struct ibt_qp *q,
				   struct list *kicks, uint64_t now_ns);
/* QPs that wait for their peer try again.  Returns when to call this next;
 * UINT64_MAX: with the timers. */
uint64_t initiator_look(struct ibt *t);
/* Handles notify bits (enum qp_notify) that peers have set for q. */
void initiator_notified(struct ibt *t, struct ibt_qp *q, uint32_t bits);

#endif
