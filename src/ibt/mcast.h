/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Multicast groups: which UD queue pairs hear which GID (IBTA Vol 1, 10.5).
 * A packet to the multicast QPN is copied to each of them but the one that
 * sent it.  Owner: the struct ibt; lock: the progress lock.
 */
#ifndef IBT_MCAST_H
#define IBT_MCAST_H

#include "ibt/ud.h"

#define MCAST_QPN      0xffffffu /* IBTA 9.6.1 */
#define MCAST_PER_LANE 4096	 /* attachments */

/* 0, -ENOMEM, or -ENOSPC; attaching again changes nothing. */
int mcast_attach(struct ibt *t, struct ibt_qp *q, const uint8_t gid[16]);
/* 0 or -EINVAL: it was not attached. */
int mcast_detach(struct ibt *t, struct ibt_qp *q, const uint8_t gid[16]);
bool mcast_has(const struct ibt *t, const uint8_t gid[16]);
/* q is about to go. */
void mcast_forget(struct ibt *t, struct ibt_qp *q);
/* Arguments as of rx_pending_rx. */
void mcast_rx(struct ibt *t, const struct pkt *p, const struct ud_from *f,
	      const uint8_t *bytes, size_t len);

#endif
