/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Messages of UC and UD that come before the receive that they need.  The
 * services drop such messages (IBTA 9.8.2.2, 9.8.3.2).  A program that polls,
 * posts again and never falls behind on hardware would lose some messages here,
 * because packets are received in the program's own calls, many at a time.  So
 * the messages wait for RX_PENDING_PATIENCE_NS, in order, as if they were still
 * on the wire.  A queue pair that posts no receive in that time is late: its
 * messages do not wait until it has posted a receive.
 *
 * The caller leaves packets in the socket while many packets wait and each
 * queue pair has some of them (rx_pending_is_full).  Otherwise a packet for
 * which there is no room is dropped, so that a queue pair without receives does
 * not hold up the others.
 *
 * Owner: the struct ibt; lock: the progress lock.
 */
#ifndef IBT_RX_PENDING_H
#define IBT_RX_PENDING_H

#include "ibt/ud.h"

#define RX_PENDING_PATIENCE_NS 100000000u
/* Added to the patience if the program has not polled an empty CQ after the
 * patience's end. */
#define RX_PENDING_UNSEEN_NS 2000000000u
/* How much longer than the patience packets wait for a peer to leave the
 * responder lock. */
#define RX_PENDING_BUSY_NS 4000000000u
/* Between looks for receives; a post to an SRQ rings no doorbell of the QP. */
#define RX_PENDING_LOOK_NS 1000000u
#define RX_PENDING_PACKETS 512 /* packets that wait at most, of all QPs */
/* So many packets stop the caller's receiving; the rest is room for the packets
 * of one more run of datagrams. */
#define RX_PENDING_FULL 128
#define RX_PENDING_OWN	128 /* for one QP, if several wait */

/* Allocates the packets, if t has none.  0 or -ENOMEM. */
int rx_pending_open(struct ibt *t);
/* Frees the packets. */
void rx_pending_close(struct ibt *t);
/* Delivers p to q, or lets p wait or drops p.  @f: the IP header's part, which
 * UD needs.  @bytes: the whole packet without ICRC, copied if p waits. */
void rx_pending_rx(struct ibt *t, struct ibt_qp *q, const struct pkt *p,
		   const struct ud_from *f, const uint8_t *bytes, size_t len);
/* Delivers q's packets for which receives have been posted; drops those that
 * have waited for too long. */
void rx_pending_serve(struct ibt *t, struct ibt_qp *q);
/* This process, which posts the receives, slept for slept_ns: q's packets wait
 * for so much longer. */
void rx_pending_asleep(struct ibt_qp *q, uint64_t slept_ns);
/* Drops q's packets without a word: q is reset, failed or removed. */
void rx_pending_reset(struct ibt *t, struct ibt_qp *q);
/* Should the caller receive no more packets for now? */
bool rx_pending_is_full(const struct ibt *t);

#endif
