/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * SENDs and WRITEs of a connected service, as RC and UC share them: from a
 * work request to the headers of its packets, and from packets to memory
 * (IBTA Vol 1, 9.4.1.1 to 9.4.3).  Order and loss are the services' own.
 * Owner and lock: the QP's.
 */
#ifndef IBT_MESSAGE_H
#define IBT_MESSAGE_H

#include "ibt/ibt.h"
#include "ibt/verdict.h"

/* Headers and payload_len of packet q->req.packet of `packets`. */
void message_fill(const struct ibt_qp *q, const struct wqe *w, uint32_t packets,
		  enum opcode_service service, struct pkt *p);

/*
 * Write headers and payload at buf.  0 and the length, or the status of the
 * request that has failed, and *x.
 */
enum hca_status message_emit(struct ibt *t, const struct ibt_qp *q,
			     struct wqe *w, const struct pkt *p, uint8_t *buf,
			     size_t *len, struct explain *x);

/* Each of these judges p in one respect, and fills *x when it refuses. */
enum verdict message_order(const struct ibt_qp *q, const struct pkt *p,
			   struct explain *x);
enum verdict message_key(struct hca *h, const struct qp *qp, uint32_t rkey,
			 uint64_t va, uint64_t bytes, uint32_t need,
			 struct explain *x);
/* The same, and says where that is in memory, unless it is nothing. */
enum verdict message_locate(struct hca *h, const struct qp *qp, uint32_t rkey,
			    uint64_t va, uint64_t bytes, uint32_t need,
			    uint64_t *addr, struct explain *x);
enum verdict message_write(struct ibt *t, const struct ibt_qp *q,
			   const struct pkt *p, struct explain *x);
/* Take a receive if p needs one, and see that it can hold p. */
enum verdict message_receive(struct ibt *t, struct ibt_qp *q,
			     const struct pkt *p, struct explain *x);
/* Undo the binding of the window that a SEND names. */
enum verdict message_invalidate(struct hca *h, const struct qp *qp,
				uint32_t rkey, struct explain *x);
/* Place p, a SEND or WRITE that was judged; complete what it ends. */
enum verdict message_apply(struct ibt *t, struct ibt_qp *q, const struct pkt *p,
			   struct explain *x);
/* The first packet of a request for memory was accepted. */
void message_count(const struct ibt_qp *q, const struct pkt *p);
/* Complete the receive that the message holds. */
void message_complete(struct ibt *t, struct ibt_qp *q, const struct pkt *p,
		      enum hca_status status);

#endif
