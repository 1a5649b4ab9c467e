/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Unreliable connection (IBTA Vol 1, 9.8.2): messages of any length to one
 * peer, without ACKs.  If a packet is lost, its message is lost, and the
 * responder continues with the next First or Only.  Owner: the engine.  Lock:
 * the progress lock; for uc_resp_rx the responder lock, too.
 */
#ifndef IBT_UC_H
#define IBT_UC_H

#include "ibt/ibt.h"

/* Checks w, the request at the send queue's cursor, and begins it.  `unit` is
 * the payload in bytes of each packet; for a direct request, of each copy
 * (direct_queues.piece).  False: w has a local error, and unreliable_tx_stop
 * was called. */
bool uc_req_start(struct ibt *t, struct ibt_qp *q, struct wqe *w,
		  uint32_t unit);
/* Writes the next packet, BTH to padding, to buf (IBT_PACKET_BYTES).  Returns
 * its length in bytes; 0: there is nothing to send now. */
size_t uc_req_tx(struct ibt *t, struct ibt_qp *q, uint8_t *buf);
/* Handles p, a packet from q's peer.  The caller holds both locks. */
void uc_resp_rx(struct ibt *t, struct ibt_qp *q, const struct pkt *p);

#endif
