/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Packets of UC and UD that come before the receive that they need is posted.
 * By the specification their messages are dropped (IBTA 9.8.2.2, 9.8.3.2).  But
 * here packets are received many at a time, in the program's own calls.  So a
 * program that posts receives fast enough for a hardware adapter would lose
 * messages.  Therefore the packets wait, in order, as if they were still on the
 * wire, each for RX_PENDING_PATIENCE_NS, or longer if the program has not
 * polled (RX_PENDING_UNSEEN_NS) or a peer holds the responder lock
 * (RX_PENDING_BUSY_NS).  A queue pair that then has no receive is late: until
 * a packet finds a receive, the packets that wait and further packets that need
 * a receive are dropped at once.  A packet to a multicast
 * group never waits for a receive: without one the packet is dropped.  With
 * engine_config.strict, no packet waits for a receive.
 *
 * While many packets wait, and each queue pair has some of them
 * (rx_pending_is_full), the caller leaves further packets in the socket.  This
 * never happens in a process that also has a queue pair of RC, whose packets
 * never wait.  A packet that would have to wait although there is no room for
 * it is dropped, so that a queue pair without receives does not delay the other
 * queue pairs.
 *
 * Owner: struct ibt.  Lock: the progress lock.
 */
#ifndef IBT_RX_PENDING_H
#define IBT_RX_PENDING_H

#include "ibt/ud.h"

/* How long a packet waits for a receive. */
#define RX_PENDING_PATIENCE_NS 100000000u
/* How much longer a packet waits if the program has not polled an empty CQ
 * since RX_PENDING_PATIENCE_NS ended. */
#define RX_PENDING_UNSEEN_NS 2000000000u
/* How much longer than RX_PENDING_PATIENCE_NS packets wait for a peer to
 * release the responder lock. */
#define RX_PENDING_BUSY_NS 4000000000u
/* The interval between two looks for receives.  A timer looks, because
 * ibv_post_recv rings a doorbell only if the QP is in ERR. */
#define RX_PENDING_LOOK_NS 1000000u
#define RX_PENDING_PACKETS 512 /* how many packets of all QPs may wait */
/* When this many packets wait, and each QP has some of them, the caller
 * receives no more.  The rest of RX_PENDING_PACKETS is room for the packets of
 * the datagrams that the caller has received already. */
#define RX_PENDING_FULL 128
/* How many packets of one QP may wait, if there are several QPs. */
#define RX_PENDING_OWN 128

/* Allocates the packets, if t has none.  Returns 0 or -ENOMEM. */
int rx_pending_open(struct ibt *t);
/* Frees the packets. */
void rx_pending_close(struct ibt *t);
/* Delivers p to q, lets p wait, or drops p.  @f: the facts for the header
 * that UD delivers; for UC not NULL, but with any contents.  @bytes: the whole
 * packet without ICRC, which is copied if p waits. */
void rx_pending_rx(struct ibt *t, struct ibt_qp *q, const struct pkt *p,
		   const struct ud_from *f, const uint8_t *bytes, size_t len);
/* Delivers q's waiting packets for which receives have been posted.  Drops the
 * packets that have waited for too long. */
void rx_pending_serve(struct ibt *t, struct ibt_qp *q);
/* Lets q's packets wait longer by slept_ns, a time in which this process slept
 * and could post no receives. */
void rx_pending_asleep(struct ibt_qp *q, uint64_t slept_ns);
/* Drops q's packets, since q is reset, failed or removed.  Counts no drop. */
void rx_pending_reset(struct ibt *t, struct ibt_qp *q);
/* Should the caller receive no more packets for now? */
bool rx_pending_is_full(const struct ibt *t);

#endif
