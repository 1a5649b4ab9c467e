/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Unreliable connection (IBTA Vol 1, 9.8.2): one peer, messages of any length,
 * nothing acknowledged.  A lost packet loses its message; the responder
 * continues with the next First or Only.  Owner and lock: the queue pair's.
 */
#ifndef IBT_UC_H
#define IBT_UC_H

#include "ibt/ibt.h"

/* The request at the cursor goes in pieces of `unit` bytes; false: it fails. */
bool uc_req_start(struct ibt *t, struct ibt_qp *q, struct wqe *w,
		  uint32_t unit);
/* The next packet at buf; its size, 0 when there is nothing to send. */
size_t uc_req_tx(struct ibt *t, struct ibt_qp *q, uint8_t *buf);
void uc_resp_rx(struct ibt *t, struct ibt_qp *q, const struct pkt *p);

#endif
