/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The order between an RC QP's replies and its requests.  A reply that is due
 * when the first request becomes ready goes before the request (fill_rc in
 * engine/tx.c).  With later replies the request takes turns: otherwise a peer
 * that has READs outstanding all the time would stop all requests of the QP.
 *
 *	rc_turn_mark:	replies R1 and R2 are due, requests W1 to W6 are posted
 *	later:		replies R3 to R9 become due, request W7 is posted
 *	sent:		R1 R2, W1 W2 W3 W4, R3 R4 R5 R6, W5 W6
 *	rc_turn_mark:	replies R7 to R9 are due, request W7 is posted
 *	sent:		R7 R8 R9, W7
 *
 * Each name stands for one packet; a turn has TURN_PACKETS (rc_turn.c).
 * Owner: the engine.  Lock: the progress lock.  Sans-IO.
 */
#ifndef IBT_RC_TURN_H
#define IBT_RC_TURN_H

#include "ibt/ibt.h"

/* Returns whether rc_turn_mark is to be called: q has replies, and no request
 * at q's cursor or after it may yet go between them. */
bool rc_turn_is_open(const struct ibt_qp *q);
/* Marks the replies that are due now, and the requests that are posted now.
 * The caller has made an owed ACK a reply, if q's requests must not go before
 * that ACK. */
void rc_turn_mark(struct ibt_qp *q);
/* Counts a packet of q that is about to be made, while q has replies.  Returns
 * whether it shall be a packet of a request. */
bool rc_turn_next(struct ibt_qp *q);
/* Returns whether the turn is that of q's requests, while q has replies. */
bool rc_turn_is_requests(const struct ibt_qp *q);

#endif
