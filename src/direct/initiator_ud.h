/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Datagrams to queue pairs of this host without packets.  A UD queue pair has
 * a link (struct target_ref) for each target of this host to which a datagram
 * was posted, for at most 1024 targets; further targets get packets.  The path
 * of a link is IBT_PATH_UNDECIDED until initiator_ud_attach sets it.  A link
 * whose target's process has ended is given up when a datagram for this target
 * cannot be executed, or when a datagram to a new target finds the link: each
 * new link lets the queue pair look at the next two links, in turn.
 *
 * If a datagram has to be run again (target_ref.is_busy), the queue pair waits,
 * but no longer than ibt_qp_patience_ns, because its other targets wait, too.
 * A direct path becomes IBT_PATH_PACKETS when a datagram has waited so long, or
 * cannot be executed for another reason (for example, no receive, no such QP,
 * another Q_Key).  The target then gets the datagram as a packet.  The target
 * drops the packet with an explanation, or holds the packet until a receive is
 * posted.
 *
 * The path of the queue pair (struct direct_state) is that of the datagram at
 * the cursor.
 *
 * Owner: the engine.  Lock: the progress lock.  Sans-IO.
 */
#ifndef DIRECT_INITIATOR_UD_H
#define DIRECT_INITIATOR_UD_H

#include "direct/target.h"
#include "ibt/ibt.h"

/* Sets the path of that link of q whose target has the QPN
 * q->direct.packets_to.  The path becomes direct, to the adapter `target`, or
 * by packets if target is NULL.  @access: this process's access slot in the
 * arena of that adapter; NULL: the target is in this process.  @owner: the
 * host's struct for the target's process.  True: the link has borrowed target,
 * access and owner until initiator_released returns owner.  False: nothing is
 * borrowed, because target is NULL or q has no such link. */
bool initiator_ud_attach(struct ibt_qp *q, struct hca *target,
			 struct access *access, void *owner);
/* Gives up all links of q. */
void initiator_ud_fini(struct ibt *t, struct ibt_qp *q);
/* Executes the datagram at the cursor, if its path is direct, and puts a target
 * that must be woken on the list `to_wake`.  Returns the bytes that moved, with
 * the GRH; 0: the datagram was not executed, or there is none.  If there is a
 * datagram, sets q->direct.path to its path.  If the function returns 0 and
 * that path is IBT_PATH_PACKETS, the caller sends the datagram as a packet. */
uint32_t initiator_ud_turn(struct ibt *t, struct ibt_qp *q,
			   struct list *to_wake, uint64_t now_ns);
/* Has the datagram at the cursor waited as long for its target as it may?  If
 * so, initiator_ud_turn tries it once more before it becomes a packet.  False
 * for a QP that is not of UD. */
bool initiator_ud_is_late(const struct ibt *t, const struct ibt_qp *q);
/* This process slept for slept_ns, in which the datagram at the cursor did not
 * wait: the target may have slept, too. */
void initiator_ud_asleep(struct ibt_qp *q, uint64_t slept_ns, uint64_t now_ns);

#endif
