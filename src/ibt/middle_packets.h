/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The Middles of a long SEND, WRITE or READ response (IBTA 9.2.1).  They differ
 * only in PSN and payload.  So the checks that other packets need one by one
 * are made for all Middles at once, and their header is copied:
 *
 *	First     | Middle | Middle | Middle | ... | Last
 *	rc_req_tx | middle_packets_begin, middle_packets_tx, ...   | rc_req_tx
 *
 * rc_req_tx and rc_reply_tx make all other packets one by one, among them
 * retransmissions, packets at the window's edge and packets of payload in
 * several SGEs.  Owner: the engine.  Lock: the progress lock, held from
 * middle_packets_begin to the last middle_packets_tx, so that no region is
 * deregistered meanwhile.  Sans-IO.
 */
#ifndef IBT_MIDDLE_PACKETS_H
#define IBT_MIDDLE_PACKETS_H

#include "hdr/bth.h"
#include "ibt/ibt.h"

struct middle_packets {
	uint8_t bth[BTH_BYTES]; /* the header of all, without PSN */
	struct serial24 psn;	/* the PSN of the next packet */
	uint64_t va;		/* where the next payload lies */
	uint32_t left;		/* packets that may still be made */
	struct reply *answer; /* borrowed; NULL: the packets are a request's */
};

/*
 * Sets *m to the next Middles of the READ response that q has to send first, or
 * else of q's request at the cursor, at most so many.  False: no Middle may be
 * sent now.
 */
bool middle_packets_begin(struct ibt *t, struct ibt_qp *q, uint32_t most,
			  struct middle_packets *m);
/*
 * Writes the next Middle, BTH to payload, into buf (IBT_PACKET_BYTES).  Returns
 * its size, and sets t->sum_bytes and sum_crc.  0: there is none left, or its
 * memory faults, which the next rc_reply_tx or rc_req_tx reports.
 */
size_t middle_packets_tx(struct ibt *t, struct ibt_qp *q,
			 struct middle_packets *m, uint8_t *buf);

#endif
