/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Datagrams to queue pairs of this host without packets.  A UD queue pair has
 * a link for each target of this host, and each link has its own path:
 *
 *	OPEN --initiator_ud_attach--> DIRECT		until its process ends
 *				   | no receive, no such QP, another Q_Key
 *				   v
 *				PACKETS		which explain what they drop
 *
 * The path of the queue pair (struct direct_state) is that of the request at
 * the cursor.
 * Owner: the engine; lock: the progress lock.  Sans-IO.
 */
#ifndef DIRECT_INITIATOR_UD_H
#define DIRECT_INITIATOR_UD_H

#include "direct/target.h"
#include "ibt/ibt.h"

/* Decides the path to q->direct.packets_to: direct, or with target NULL by
 * packets.  True: a link has owner, until initiator_released returns it. */
bool initiator_ud_attach(struct ibt_qp *q, struct hca *target,
			 struct access *access, void *owner);
/* Gives up all links of q. */
void initiator_ud_fini(struct ibt *t, struct ibt_qp *q);
/* Executes the UD request at the cursor.  Returns the bytes that moved, or 0;
 * afterwards q->direct.path is the path of the next request. */
uint32_t initiator_ud_turn(struct ibt *t, struct ibt_qp *q, struct list *kicks,
			   uint64_t now_ns);

#endif
