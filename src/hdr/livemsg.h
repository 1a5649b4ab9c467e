/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Does the process live that a QPN belongs to?  A question and its answer
 * between the brokers of two hosts, on QP1: a MAD of a vendor's class (IBTA
 * Vol 1, 16.5) with the methods Get and GetResp, behind the headers of
 * hdr/mad.h:
 *
 *	 0	TransactionID: a nonce, the answer has its question's
 *	24	RMPP header, 12 bytes of 0: one packet
 *	36	0, then the OUI 0a:de:b1, of the locally administered ones
 *	40	"adverb", 0, version 1
 *	48	0, QPN in 24 bits
 *	52	0 in a question; in an answer 1: it lives, 2: it has ended, 3:
 *		it lives, the queue pair answers nothing, 0: not known
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
	LIVEMSG_UNKNOWN,
	LIVEMSG_ALIVE,
	LIVEMSG_GONE,
	LIVEMSG_CLOSED,
};

struct livemsg {
	bool is_answer;
	/* an answer of whom knows no such class: all else is not read */
	bool is_refusal;
	uint64_t nonce;
	uint32_t qpn;
	enum livemsg_state state;
};

/* A whole MAD; false if it is no such message. */
bool livemsg_parse(const uint8_t *mad, size_t len, struct livemsg *m);
/* Writes MAD_BYTES. */
void livemsg_write(uint8_t *mad, const struct livemsg *m);

#endif
