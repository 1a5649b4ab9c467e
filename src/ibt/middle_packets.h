/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The Middles of a long SEND, WRITE or READ response (IBTA 9.2.1).  They differ
 * in their PSN and in what they carry alone, so what is asked about each other
 * packet is asked about all of them at once, and their header is a copy:
 *
 *	First     | Middle | Middle | Middle | ... | Last
 *	rc_req_tx | middle_packets_begin, middle_packets_tx, ...   | rc_req_tx
 *
 * Whatever is unusual ends them, and goes packet by packet: retransmission, the
 * window's edge, payload in several parts.  Owner: the engine; lock: the
 * progress lock, so that no region goes while they last.  Sans-IO.
 */
#ifndef IBT_MIDDLE_PACKETS_H
#define IBT_MIDDLE_PACKETS_H

#include "hdr/bth.h"
#include "ibt/ibt.h"

struct middle_packets {
	uint8_t bth[BTH_BYTES]; /* of the next one, but for its PSN */
	struct serial24 psn;
	uint64_t va;	      /* what it carries */
	uint32_t left;	      /* how many there are */
	struct reply *answer; /* that they belong to; NULL: to a request */
};

/*
 * Those of the answer that q owes, or of its request at the cursor, at most so
 * many; false when there are none that may go now.
 */
bool middle_packets_begin(struct ibt *t, struct ibt_qp *q, uint32_t most,
			  struct middle_packets *m);
/*
 * The next one, BTH to payload, into buf (IBT_PACKET_BYTES); its size, with
 * t's sum of the payload.  0: there is none, or its memory faults, and
 * rc_reply_tx or rc_req_tx will say so.
 */
size_t middle_packets_tx(struct ibt *t, struct ibt_qp *q,
			 struct middle_packets *m, uint8_t *buf);

#endif
