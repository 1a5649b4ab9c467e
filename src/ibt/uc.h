/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Unreliable connection (IBTA Vol 1, 9.8.2): one peer, messages of any length,
 * nothing acknowledged.  A lost packet loses its message; the responder
 * continues with the next First or Only.  Owner and lock: as struct ibt_qp.
 */
#ifndef IBT_UC_H
#define IBT_UC_H

#include "ibt/ibt.h"

/* Judges w, the request at the cursor, and begins it in packets or pieces of
 * `unit` bytes.  False: w fails by unreliable_tx_stop. */
bool uc_req_start(struct ibt *t, struct ibt_qp *q, struct wqe *w,
		  uint32_t unit);
/* Writes the next packet, BTH to padding, at buf (IBT_PACKET_BYTES).  Returns
 * its size; 0: there is nothing to send now. */
size_t uc_req_tx(struct ibt *t, struct ibt_qp *q, uint8_t *buf);
/* Handles p, a packet from q's peer.  Lock: the responder lock too. */
void uc_resp_rx(struct ibt *t, struct ibt_qp *q, const struct pkt *p);

#endif
