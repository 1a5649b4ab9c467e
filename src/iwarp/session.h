/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A stream over SCTP in full operation (RFC 5043): the lower layer delivers
 * whole messages (hdr/session.h), each once and in any order.
 *
 *	session_rx	a message -> its payload to memory, if that may be
 *			before its turn; then, by the order of the DDP-SSNs,
 *			what stream_rx.c makes of a segment
 *	session_tx_*	a segment of stream_tx.c -> a message
 *
 * A segment that comes before its turn is kept until then, and is placed at
 *once too if a program cannot see by its bytes that a message is complete
 *(early.c): the last segment of a message waits, so that a program that polls
 *the last byte of a WRITE finds what a byte stream shows it.  In its turn each
 *segment is placed, perhaps again: of two WRITEs to the same memory the later
 *one stays, whatever the order of arrival.
 *
 * A peer may be SESSION_WINDOW messages and SESSION_KEPT_MAX bytes ahead of the
 * message that is due; beyond that, and for a number that has come before, the
 * session ends (RFC 5043 10).
 *
 * Owner and lock: as struct ibt_qp.  A kept message is allocated when it comes.
 */
#ifndef IWARP_SESSION_H
#define IWARP_SESSION_H

#include "hdr/session.h"
#include "ibt/ibt.h"

#define SESSION_WINDOW	 4096	    /* messages; a power of two */
#define SESSION_KEPT_MAX (4u << 20) /* bytes, with 64 for each message */

/* A message that waits for its turn. */
struct session_early {
	uint32_t bytes; /* with the message's head */
	uint8_t data[];
};

struct session {
	uint16_t tx_ssn;  /* of the next message that is sent */
	uint16_t rx_ssn;  /* of the message that is due */
	bool has_ended;	  /* the peer's Terminate has had its turn */
	bool is_finished; /* this side's Terminate was made */
	uint32_t kept;	  /* bytes of the ring's messages, as they count */
	struct session_early **ring; /* SESSION_WINDOW, by DDP-SSN; owned */
};

/* session.c */
/* Returns the session of a stream that begins: message 0 of each side was the
 * start's.  NULL: no memory is left. */
struct session *session_new(void);
/* Frees it; may be NULL. */
void session_free(struct session *s);
/* Takes a message of q's peer. */
void session_rx(struct ibt *t, struct ibt_qp *q, const uint8_t *p, uint32_t n);
/* Writes the head of the message whose segment lies behind the head, and
 * returns the length of the message. */
uint32_t session_seal(struct session *s, uint8_t *buf, uint32_t segment_bytes);
/* Writes the Terminate of this side, SESSION_CONTROL_BYTES bytes, once; returns
 * its length, or 0. */
uint32_t session_finish(struct session *s, uint8_t *buf);

/* early.c */
/*
 * Places the payload of a segment before its turn, if that may be.  False: it
 * was not placed: it ends a message, belongs to a message whose place is not
 * known yet, or would be refused.
 */
bool early_place(struct ibt *t, struct ibt_qp *q, const uint8_t *segment,
		 uint32_t n);

#endif
