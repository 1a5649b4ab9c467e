/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Automatic path migration (IBTA Vol 1, 17.2.8).  A connected QP whose packets
 * go by LID may have an alternate path.  The state is
 * hca_qp_attr.path_mig_state.  The bit MigReq of each packet tells the peer
 * about this state: MigReq is 1 in MIGRATED alone.
 *
 *	         the program asks          a packet with MigReq 0 comes
 *	MIGRATED ----------------> REARM -----------------------------> ARMED
 *	    ^                        |                                    |
 *	    `------------------------+------------------------------------'
 *	                      the two paths change places
 *
 * A packet changes the state only if its PSN fits the connection, because a
 * forger can guess all other fields.  For UC, which accepts any PSN, each PSN
 * fits.
 *
 * In ARMED the paths change places if the program asks, if the retries of a
 * request are used up, or if the peer asks by a packet with MigReq 1 on the
 * alternate path.  The peer may be in ARMED and migrate while this QP still is
 * in REARM, since the peer's packet with MigReq 0 may be lost.  So in REARM the
 * peer's request has the same effect.
 *
 * The old path becomes the alternate path, so a program may arm the QP again
 * without naming a path.
 *
 * Owner: the engine; lock: the progress lock.  Sans-IO.
 */
#ifndef IBT_MIGRATION_H
#define IBT_MIGRATION_H

#include "ibt/ibt.h"

/* Returns MigReq of the packets that q sends. */
static inline bool migration_bit(const struct ibt_qp *q)
{
	return q->qp->attr.path_mig_state == HCA_MIG_MIGRATED;
}

/* Lets the two paths change places, enters MIGRATED, raises ENGINE_PATH_MIG,
 * and sends the unacknowledged packets of an RC QP again, by the new path. */
void migration_go(struct ibt *t, struct ibt_qp *q);
/* The retries of q are used up.  In ARMED calls migration_go and returns true;
 * else changes nothing and returns false. */
bool migration_fail_over(struct ibt *t, struct ibt_qp *q);
/* The program has set path_mig_state, which was `old` before.  From ARMED to
 * MIGRATED: calls migration_go.  Lets migration_refuse raise its event again.
 */
void migration_modified(struct ibt *t, struct ibt_qp *q, uint32_t old);
/* A packet with MigReq 0, whose PSN fits the connection, has come from q's
 * peer.  In REARM enters ARMED. */
void migration_heard(struct ibt_qp *q);
/* q is in ARMED, and its peer asks for a migration to a path that is not q's
 * alternate path.  Raises ENGINE_PATH_MIG_ERR and explains this event, once
 * until the program sets path_mig_state again. */
void migration_refuse(struct ibt *t, struct ibt_qp *q);

#endif
