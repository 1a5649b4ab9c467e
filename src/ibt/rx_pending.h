/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Messages of UC and UD that come before the receive that they need.  The
 * services drop such messages (IBTA 9.8.2.2, 9.8.3.2); a program that polls,
 * posts again and never falls behind on hardware would lose some here, because
 * its own calls receive, many packets at a time.  So the messages wait for
 * RX_PENDING_PATIENCE_NS, in order, as if they were still on the wire; a queue
 * pair whose messages waited that long in vain gets no such patience before it
 * has posted a receive.
 *
 * A packet that does not fit stays in the socket if only queue pairs that are
 * late wait for packets of that socket.  Else the packet is lost: a queue pair
 * without receives does not hold up the others.
 *
 * Owner: the struct ibt; lock: the progress lock.
 */
#ifndef IBT_RX_PENDING_H
#define IBT_RX_PENDING_H

#include "ibt/ud.h"

#define RX_PENDING_PATIENCE_NS 100000000u
#define RX_PENDING_UNSEEN_NS   2000000000u /* more, at most */
#define RX_PENDING_BUSY_NS     4000000000u /* for a peer at the responder */
#define RX_PENDING_LOOK_NS     1000000u	   /* receives of an SRQ come unseen */
#define RX_PENDING_PACKETS     512	   /* of all QPs */
#define RX_PENDING_FULL	       128 /* and yet a whole datagram may come */
#define RX_PENDING_OWN	       128 /* of one QP among others */

/* 0 or -ENOMEM; again changes nothing. */
int rx_pending_open(struct ibt *t);
void rx_pending_close(struct ibt *t);
/* A packet for q; f matters to UD, bytes are p's own without ICRC. */
void rx_pending_rx(struct ibt *t, struct ibt_qp *q, const struct pkt *p,
		   const struct ud_from *f, const uint8_t *bytes, size_t len);
/* Receives may have been posted, or the time be over. */
void rx_pending_serve(struct ibt *t, struct ibt_qp *q);
/* We slept, and so did the program that is to post them. */
void rx_pending_asleep(struct ibt_qp *q, uint64_t slept_ns);
void rx_pending_reset(struct ibt *t, struct ibt_qp *q);
/* Should no more be received for now? */
bool rx_pending_is_full(const struct ibt *t);

#endif
