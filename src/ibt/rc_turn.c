/* SPDX-License-Identifier: BSD-2-Clause */
#include "ibt/rc_turn.h"

/* How many packets a turn has, not counting those of middle_packets.h. */
#define TURN_PACKETS 4

bool rc_turn_is_open(const struct ibt_qp *q)
{
	const struct rc_turn *turn = &q->req.turn;

	/* no more than sq.size requests are posted: otherwise the mark is of
	 * earlier requests */
	return !turn->is_marked ||
	       turn->requests - q->req.wqe - 1 >= q->qp->sq.size;
}

void rc_turn_mark(struct ibt_qp *q)
{
	q->req.turn = (struct rc_turn){
		.is_marked = true,
		.replies = q->resp.reply_head,
		.requests = shared_load(&q->qp->sq.head),
	};
}

bool rc_turn_is_requests(const struct ibt_qp *q)
{
	const struct rc_turn *turn = &q->req.turn;

	return !rc_turn_is_open(q) && turn->is_requests &&
	       (int32_t)(q->resp.reply_tail - turn->replies) >= 0;
}

bool rc_turn_next(struct ibt_qp *q)
{
	struct rc_turn *turn = &q->req.turn;

	if (rc_turn_is_open(q) ||
	    (int32_t)(q->resp.reply_tail - turn->replies) < 0)
		return false;
	if (!turn->left) {
		turn->is_requests = !turn->is_requests;
		turn->left = TURN_PACKETS;
	}
	turn->left--;
	return turn->is_requests;
}
