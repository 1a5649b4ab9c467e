/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * SENDs and WRITEs: the code that RC, UC and in part UD share.  It makes the
 * packets of a work request, and places packets in memory (IBTA Vol 1, 9.4.1.1
 * to 9.4.3).  Each service itself checks PSNs, and RC sends lost packets again.
 * Owner: the engine.  Lock: the progress lock, unless a function's comment
 * names another.
 */
#ifndef IBT_MESSAGE_H
#define IBT_MESSAGE_H

#include "ibt/ibt.h"
#include "ibt/verdict.h"

/* Sets in *p the opcode, the solicited event bit, RETH, ImmDt, IETH and
 * payload_len of packet q->req.packet of w, a SEND or WRITE of `packets`
 * packets.  The caller sets the rest of the BTH, and for UD the DETH. */
void message_fill(const struct ibt_qp *q, const struct wqe *w, uint32_t packets,
		  enum opcode_service service, struct pkt *p);

/*
 * Writes the headers, the payload and the padding of p, a packet of w, to buf
 * (IBT_PACKET_BYTES).  HCA_SUCCESS: *len is the length in bytes, and
 * t->sum_bytes and t->sum_crc are set if the payload has at least
 * IBT_SUM_BYTES.  Any other status: the payload cannot be read, and *x says
 * why.
 */
enum hca_status message_emit(struct ibt *t, const struct ibt_qp *q,
			     struct wqe *w, const struct pkt *p, uint8_t *buf,
			     size_t *len, struct explain *x);

/* Judges whether p may follow the packet before it, by the positions, the kinds
 * and p's length.  V_INVALID: p may not, or p's operation is not supported; *x
 * says why. */
enum verdict message_order(const struct ibt_qp *q, const struct pkt *p,
			   struct explain *x);
/* Judges whether qp's peer may access `bytes` bytes at va by rkey; @need: the
 * right, one of HCA_REMOTE_*.  V_INVALID: the QP itself lacks the right, and
 * x->verdict is MR_OK.  V_ACCESS: x->verdict is the reason. */
enum verdict message_key(struct hca *h, const struct qp *qp, uint32_t rkey,
			 uint64_t va, uint64_t bytes, uint32_t need,
			 struct explain *x);
/* Judges whether qp's peer may access `bytes` bytes at va by rkey, as
 * message_key does, and finds the address.  V_OK: *addr is the address of va in
 * the process of h; if bytes is 0, *addr is not set. */
enum verdict message_locate(struct hca *h, const struct qp *qp, uint32_t rkey,
			    uint64_t va, uint64_t bytes, uint32_t need,
			    uint64_t *addr, struct explain *x);
/* Looks the key of a part of a request up, of at least one byte: the key is
 * looked up for each part, since the program may have changed the region since
 * the last one.  Returns V_OK and sets *addr; or V_ACCESS, with the facts in
 * *x, which stays as it is otherwise. */
enum verdict message_locate_part(struct hca *h, const struct qp *qp,
				 uint32_t rkey, uint64_t va, uint64_t bytes,
				 uint32_t need, uint64_t *addr,
				 struct explain *x);
/* Judges whether p, a packet of a WRITE, fits the length that the RETH
 * announced, and if p begins the WRITE, whether the peer may write there.  Not
 * V_OK: *x says why. */
enum verdict message_write(struct ibt *t, const struct ibt_qp *q,
			   const struct pkt *p, struct explain *x);
/* Takes a receive if p needs one, and judges whether p fits into the receive.
 * V_RNR: no receive is posted.  V_TOO_LONG: *x says why.  UC: under the
 * responder lock. */
enum verdict message_receive(struct ibt *t, struct ibt_qp *q,
			     const struct pkt *p, struct explain *x);
/* Invalidates the window that a SEND with Invalidate names by rkey.  Not V_OK:
 * *x says why. */
enum verdict message_invalidate(struct hca *h, const struct qp *qp,
				uint32_t rkey, struct explain *x);
/* Places the payload of p, a packet of a SEND or WRITE that was judged.  If p
 * ends the message and the message takes a receive, completes the receive.  Not
 * V_OK: *x says why.  UC: under the responder lock. */
enum verdict message_apply(struct ibt *t, struct ibt_qp *q, const struct pkt *p,
			   struct explain *x);
/* Counts p, a request packet that was accepted. */
void message_count(const struct ibt_qp *q, const struct pkt *p);
/* Completes the receive that q holds for p's message with `status`.  UC: under
 * the responder lock. */
void message_complete(struct ibt *t, struct ibt_qp *q, const struct pkt *p,
		      enum hca_status status);

#endif
