/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The question whether the process of a QPN lives, and the answer, between the
 * brokers of two hosts on QP1: a MAD of a vendor class (IBTA Vol 1, 16.5) with
 * the methods Get and GetResp.  Offsets are those in the MAD, in bytes;
 * hdr/mad.h has the header:
 *
 *	 8	TransactionID: a nonce; an answer has the nonce of its question
 *	24	RMPP header, 12 bytes of 0: one packet
 *	36	0, then the locally administered OUI 0a:de:b1
 *	40	"adverb", 0, version 1
 *	48	0, QPN in 24 bits
 *	52	0 in a question; in an answer the state, enum livemsg_state
 *	56	0 to the end
 *
 * Pure.
 */
#ifndef HDR_LIVEMSG_H
#define HDR_LIVEMSG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define LIVEMSG_CLASS 0x4f

enum livemsg_state {
	LIVEMSG_UNKNOWN, /* the broker does not know the QPN */
	LIVEMSG_ALIVE,	 /* the process lives */
	LIVEMSG_GONE,	 /* the process has ended */
	LIVEMSG_CLOSED,	 /* the process lives, the queue pair does not answer */
};

struct livemsg {
	bool is_answer;
	/* An answer with an error status, from a host that does not know the
	 * class; qpn and state are 0 then. */
	bool is_refusal;
	uint64_t nonce;
	uint32_t qpn;
	enum livemsg_state state;
};

/* Reads a MAD.  Returns false if len < MAD_BYTES or the MAD is no such message.
 */
bool livemsg_parse(const uint8_t *mad, size_t len, struct livemsg *m);
/* Writes MAD_BYTES, a question or an answer but not a refusal. */
void livemsg_write(uint8_t *mad, const struct livemsg *m);

#endif
