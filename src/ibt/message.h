/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * SENDs and WRITEs as RC and UC (and in part UD) share them: from a work
 * request to the headers of its packets, and from packets to memory (IBTA Vol
 * 1, 9.4.1.1 to 9.4.3).  How packets are ordered and lost ones sent again is
 * the task of each service.  Owner and lock: as struct ibt_qp.
 */
#ifndef IBT_MESSAGE_H
#define IBT_MESSAGE_H

#include "ibt/ibt.h"
#include "ibt/verdict.h"

/* Sets the opcode, headers and payload_len of packet q->req.packet of w, a SEND
 * or WRITE of so many packets. */
void message_fill(const struct ibt_qp *q, const struct wqe *w, uint32_t packets,
		  enum opcode_service service, struct pkt *p);

/*
 * Writes headers and payload of p, a packet of w, at buf (IBT_PACKET_BYTES).
 * HCA_SUCCESS: *len is the length, and t->sum_bytes and sum_crc are set for a
 * long payload.  Else w has failed with the returned status, and *x says why.
 */
enum hca_status message_emit(struct ibt *t, const struct ibt_qp *q,
			     struct wqe *w, const struct pkt *p, uint8_t *buf,
			     size_t *len, struct explain *x);

/* Judges whether p may follow the packet before, by position, kind and length.
 * Not V_OK: *x says why. */
enum verdict message_order(const struct ibt_qp *q, const struct pkt *p,
			   struct explain *x);
/* Judges whether q's peer may access these bytes by rkey; @need: the right, one
 * of HCA_REMOTE_*.  Not V_OK: *x says why. */
enum verdict message_key(struct hca *h, const struct qp *qp, uint32_t rkey,
			 uint64_t va, uint64_t bytes, uint32_t need,
			 struct explain *x);
/* Judges an access as message_key does.  V_OK: *addr is the address of va
 * in the process of h, and is not set if bytes is 0. */
enum verdict message_locate(struct hca *h, const struct qp *qp, uint32_t rkey,
			    uint64_t va, uint64_t bytes, uint32_t need,
			    uint64_t *addr, struct explain *x);
/* Judges whether p, a packet of a WRITE, has the length that its RETH announced
 * and may write there.  Not V_OK: *x says why. */
enum verdict message_write(struct ibt *t, const struct ibt_qp *q,
			   const struct pkt *p, struct explain *x);
/* Takes a receive if p needs a receive, and judges whether the receive can hold
 * p.  Not V_OK: *x says why.  UC: under the responder lock. */
enum verdict message_receive(struct ibt *t, struct ibt_qp *q,
			     const struct pkt *p, struct explain *x);
/* Invalidates the window that a SEND with Invalidate names by rkey.  Not V_OK:
 * *x says why. */
enum verdict message_invalidate(struct hca *h, const struct qp *qp,
				uint32_t rkey, struct explain *x);
/* Places p, a packet of a SEND or WRITE that was judged; completes the receive
 * if p ends the message.  Not V_OK: *x says why.  UC: under the responder lock.
 */
enum verdict message_apply(struct ibt *t, struct ibt_qp *q, const struct pkt *p,
			   struct explain *x);
/* Counts p, a request packet that was accepted. */
void message_count(const struct ibt_qp *q, const struct pkt *p);
/* Completes the receive that q holds for p's message.  UC: under the responder
 * lock. */
void message_complete(struct ibt *t, struct ibt_qp *q, const struct pkt *p,
		      enum hca_status status);

#endif
