/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The Middles of a long SEND, WRITE or READ response (IBTA 9.2.1).  They differ
 * only in PSN, AckReq and payload.  So the checks that other packets need one
 * by one are made once for several Middles, and their header is copied:
 *
 *	First     | Middle | Middle | Middle | ... | Last
 *	rc_req_tx | middle_packets_begin, middle_packets_tx, ...   | rc_req_tx
 *
 * rc_req_tx and rc_reply_tx make all other packets one by one.  Among these are
 * request packets that are sent again, the last packets for which the window
 * has room, packets whose payload is inline or in several SGEs, and all packets
 * of a QP whose path MTU is less than IBT_SUM_BYTES.  Owner: the engine.  Lock:
 * the progress lock, held from middle_packets_begin to the last
 * middle_packets_tx, so that no region is deregistered meanwhile.  Sans-IO.
 */
#ifndef IBT_MIDDLE_PACKETS_H
#define IBT_MIDDLE_PACKETS_H

#include "hdr/bth.h"
#include "ibt/ibt.h"

/* Middles that may be made one after another. */
struct middle_packets {
	uint8_t bth[BTH_BYTES]; /* of all packets, without PSN and AckReq */
	struct serial24 psn;	/* the PSN of the next packet */
	uint64_t va;   /* the address of the next payload, in this process */
	uint32_t left; /* how many packets may still be made */
	/* The READ response of the packets, borrowed; NULL: the packets belong
	 * to the request at q's cursor. */
	struct reply *answer;
};

/*
 * Sets *m to the Middles that come next, at most `most`.  If q has no reply to
 * send, or the turn is that of q's requests (rc_turn.h), these are the Middles
 * of the request at q's cursor.  Otherwise, or if that request has none, these
 * are the Middles of the first reply, and only a READ response has Middles.
 * False: no Middle may be made now.
 */
bool middle_packets_begin(struct ibt *t, struct ibt_qp *q, uint32_t most,
			  struct middle_packets *m);
/*
 * Writes the next Middle, BTH to payload, to buf (IBT_PACKET_BYTES).  Returns
 * its length in bytes, and sets t->sum_bytes and t->sum_crc.  0: no packet is
 * left, or the memory of the payload cannot be read; the next rc_reply_tx or
 * rc_req_tx then finds the error again and reports it.
 */
size_t middle_packets_tx(struct ibt *t, struct ibt_qp *q,
			 struct middle_packets *m, uint8_t *buf);

#endif
