/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A broker asks the broker of another host whether the process that has a QPN
 * exists, and gets an answer.  Both messages go from QP1 to QP1 as MADs of a
 * vendor class (IBTA Vol 1, 16.5): the question has the method Get, the answer
 * GetResp.  Offsets are in bytes from the start of the MAD, whose header is in
 * hdr/mad.h:
 *
 *	 8	TransactionID: a nonce; an answer has the nonce of its question
 *	24	RMPP header, 12 bytes of 0: RMPP is not active
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

#define LIVEMSG_CLASS 0x4f /* management class */

enum livemsg_state {
	LIVEMSG_UNKNOWN, /* the broker does not know the QPN */
	LIVEMSG_ALIVE,	 /* the process exists */
	LIVEMSG_GONE,	 /* the process has ended */
	LIVEMSG_CLOSED,	 /* the process exists, and drops packets to the QPN */
};

struct livemsg {
	bool is_answer; /* false: the message is a question */
	/* The message is an answer with an error status, from a host that does
	 * not know the class; qpn and state are 0. */
	bool is_refusal;
	/* A random number of the question, which the answer repeats. */
	uint64_t nonce;
	uint32_t qpn; /* the QPN about which the broker asks, 24 bits */
	enum livemsg_state state; /* the answer; 0 in a question */
};

/* Parses a MAD of len bytes into *m.  Returns false if len < MAD_BYTES, or if
 * the MAD is neither a question nor an answer. */
bool livemsg_parse(const uint8_t *mad, size_t len, struct livemsg *m);
/* Writes a question or an answer, MAD_BYTES, at mad.  m->is_refusal is ignored.
 */
void livemsg_write(uint8_t *mad, const struct livemsg *m);

#endif
