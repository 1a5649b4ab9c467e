/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Multicast groups: which UD queue pairs are attached to which GID (IBTA Vol 1,
 * 10.5).  A packet to the multicast QPN is delivered to each queue pair of its
 * group, except to the queue pair that has sent the packet.  A packet by LID is
 * delivered only to queue pairs by LID of its port and partition, and a packet
 * by UDP only to queue pairs that are not by LID and belong to the device that
 * has received it.  Owner: struct ibt.  Lock: the progress lock.
 */
#ifndef IBT_MCAST_H
#define IBT_MCAST_H

#include "ibt/ud.h"

#define MCAST_QPN 0xffffffu /* IBTA 9.6.1 */

/* Attaches q to the group gid.  Returns 0, also if q is attached already;
 * -ENOMEM; -ENOSPC: the group has HCA_MAX_ATTACH members, or there are
 * HCA_MAX_ATTACHED attachments of all QPs. */
int mcast_attach(struct ibt *t, struct ibt_qp *q, const uint8_t gid[16]);
/* Attaches q to the group gid, which is the alias of the group `named`, so that
 * q gets the datagrams of both groups.  To be called after mcast_attach for
 * `named`.  This attachment is independent of an attachment that mcast_attach
 * makes for gid, and of the attachment for another group with the same alias.
 * But q gets each datagram only once.  Returns the same values as mcast_attach.
 */
int mcast_attach_alias(struct ibt *t, struct ibt_qp *q, const uint8_t named[16],
		       const uint8_t gid[16]);
/* Detaches q from the group gid, and from the alias that mcast_attach_alias
 * attached for gid.  Returns 0; -EINVAL: mcast_attach has not attached q to the
 * group. */
int mcast_detach(struct ibt *t, struct ibt_qp *q, const uint8_t gid[16]);
/* Is any QP attached to the group gid? */
bool mcast_has(const struct ibt *t, const uint8_t gid[16]);
/* Detaches q from all groups; to be called before q is freed. */
void mcast_forget(struct ibt *t, struct ibt_qp *q);
/* Delivers p, a packet to the multicast QPN, to the members of the group f->to.
 * @bytes: the whole packet without ICRC. */
void mcast_rx(struct ibt *t, const struct pkt *p, const struct ud_from *f,
	      const uint8_t *bytes, size_t len);

#endif
