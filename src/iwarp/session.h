/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A stream over SCTP in full operation (RFC 5043): the lower layer delivers
 * whole messages (hdr/session.h), each once and in any order.
 *
 *	session_rx	receives a message, and gives the segments to
 *			stream_rx_segment in the order of their DDP-SSNs
 *	session_seal	makes a message of a segment that stream_tx.c made
 *
 * The message that is due is the one with the next DDP-SSN.  A segment with a
 * later DDP-SSN is kept until it is due.  If it is not the last segment of its
 * RDMAP message, and the memory of that message is known already, the segment's
 * payload is also placed at once (early.c).  A last segment is placed only when
 * it is due.  So a program that polls the last byte of a WRITE sees that byte
 * only when the whole WRITE is in memory, as over TCP.  When a segment is due,
 * it is placed, even if it was placed before.  So of two WRITEs to the same
 * memory the later one remains, in whichever order they arrived.
 *
 * The stream ends (RFC 5043 10) if the peer sends a DDP-SSN that is
 * SESSION_WINDOW or more ahead of the due one, sends a DDP-SSN twice, sends so
 * many early messages that they exceed SESSION_KEPT_MAX, sends a message that
 * is not of DDP over SCTP or not allowed in full operation, or sends a message
 * after its session Terminate.  The stream also ends if this process has no
 * memory for an early message.
 *
 * Owner: the engine.  Lock: the progress lock.  Memory for a kept message is
 * allocated when the message comes.
 */
#ifndef IWARP_SESSION_H
#define IWARP_SESSION_H

#include "hdr/session.h"
#include "ibt/ibt.h"

#define SESSION_WINDOW 4096 /* messages; a power of two */
/* The most bytes of kept messages; each message counts as 64 bytes more than
 * its length. */
#define SESSION_KEPT_MAX (4u << 20)

/* A message that is kept until it is due. */
struct session_early {
	uint32_t bytes; /* length of the message, PPID and DDP-SSN included */
	uint8_t data[]; /* the message */
};

/* The session of one stream, owned by its struct iwarp_stream. */
struct session {
	uint16_t tx_ssn; /* DDP-SSN of the next message to send */
	uint16_t rx_ssn; /* DDP-SSN of the message that is due */
	/* The peer's session Terminate has come, and all messages before it. */
	bool has_ended;
	bool is_finished; /* this side's session Terminate was made */
	uint32_t kept; /* bytes of kept messages, as SESSION_KEPT_MAX counts */
	/* SESSION_WINDOW rows, indexed by DDP-SSN modulo SESSION_WINDOW; a row
	 * without a message is NULL.  Owned. */
	struct session_early **ring;
};

/* session.c */
/* Returns a new session in full operation, which the caller frees by
 * session_free.  The next message of each side has DDP-SSN 1, since the message
 * with DDP-SSN 0 was part of the start-up.  NULL: no memory is left. */
struct session *session_new(void);
/* Frees a session with its kept messages; s may be NULL. */
void session_free(struct session *s);
/* Takes a message of n bytes, PPID included, from q's peer.  An error in the
 * message ends q's stream (stream_fail). */
void session_rx(struct ibt *t, struct ibt_qp *q, const uint8_t *p, uint32_t n);
/* Makes a message of the segment that is at buf + SESSION_HEAD: writes PPID and
 * DDP-SSN before the segment.  Returns the length of the message in bytes. */
uint32_t session_seal(struct session *s, uint8_t *buf, uint32_t segment_bytes);
/* Writes this side's session Terminate, SESSION_CONTROL_BYTES bytes, to buf and
 * returns its length.  0: an earlier call has written the Terminate. */
uint32_t session_finish(struct session *s, uint8_t *buf);

/* early.c */
/*
 * Tries to place the payload of a segment of n bytes that is not due yet.
 * Returns true if the payload was placed.  False: the segment has no payload,
 * is the last of its message, comes before the ready-to-receive, belongs to a
 * message whose memory is not known yet, or would be refused when it is due.
 */
bool early_place(struct ibt *t, struct ibt_qp *q, const uint8_t *segment,
		 uint32_t n);

#endif
