/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The near end of the direct way, and what an owner does about the letters of
 * its peers.  A connection's requests go by packets or directly for all its
 * life: that is decided before the first, so none overtakes another.
 *
 *	OPEN --initiator_attach--> DIRECT		until RESET; of UC,
 *until
 *	     --initiator_refuse--> PACKETS <--	something cannot be done
 *
 * A piece of a message takes one PSN; waiting for receives, retries and the
 * end of a request are rc_comp's.  Who waits for its peer (no receive, not
 * ready, an atomic or somebody else at work there) is on ibt.nearby and looks
 * again at each tick.
 * Owner: the engine; lock: the progress lock.  Sans-IO.
 */
#ifndef DIRECT_INITIATOR_H
#define DIRECT_INITIATOR_H

#include "direct/target.h"
#include "ibt/ibt.h"

#define INITIATOR_PIECE (1u << 20) /* bytes that move under one lock */

/* 0 or -ENOMEM. */
int initiator_attach(struct ibt *t, struct ibt_qp *q, struct hca *target,
		     struct access *access, void *owner);
void initiator_refuse(struct ibt_qp *q);
/* The QP is going. */
void initiator_fini(struct ibt *t, struct ibt_qp *q);
/* Takes a link that its QP uses no more, for initiator_parted: whose it was,
 * once for each link; NULL: no more of them. */
void initiator_part(struct ibt *t, struct target_ref *l);
void *initiator_parted(struct ibt *t);
/* The target of q's request sleeps: to be woken with the rest of `kicks`. */
void initiator_kick(struct ibt_qp *q, struct list *kicks,
		    const struct direct_request *r);
/* q waits for its peer, to look again. */
void initiator_wait(struct ibt *t, struct ibt_qp *q);
/* Is anything waiting for the decision? */
bool initiator_is_undecided(const struct ibt_qp *q);
/*
 * Execute the piece at the cursor; the bytes it moved, at least 1, or 0 when
 * nothing can go now.
 */
uint32_t initiator_turn(struct ibt *t, struct ibt_qp *q, struct list *kicks,
			uint64_t now_ns);
/* The same of UC, which may change its way to packets. */
uint32_t initiator_turn_unreliable(struct ibt *t, struct ibt_qp *q,
				   struct list *kicks, uint64_t now_ns);
/* Those that wait for their peer look again; when to do it next, or
 * UINT64_MAX: with the timers. */
uint64_t initiator_look(struct ibt *t);
/* Letters have come for q. */
void initiator_notified(struct ibt *t, struct ibt_qp *q, uint32_t bits);

#endif
