/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * An iWARP connection in full operation: RDMAP (RFC 5040) over DDP (RFC 5041)
 * over MPA (RFC 5044) or over SCTP (RFC 5043, iwarp/session.h).  A stream
 * carries the requests of one queue pair, of type HCA_QPT_RC.  The queue pair's
 * struct ibt_qp points to the stream.
 *
 *	stream_tx  requests, responses, a Terminate -> bytes of FPDUs
 *	stream_rx  bytes of FPDUs -> memory, receives, completions
 *
 * A stream over SCTP has messages in place of FPDUs, and iwarp/session.h puts
 * the received messages in order.
 *
 * TCP, and SCTP with the session, delivers all data once and in order.  So a
 * WRITE or a SEND completes when its last FPDU is made, as RFC 5040 5.5
 * permits: the FPDUs hold a copy of its data.  READs and atomics complete when
 * their responses have come.
 *
 * After stream_open, memory is allocated only for the messages that a session
 * keeps.
 * Owner: the engine.  Lock: the progress lock.
 */
#ifndef IWARP_STREAM_H
#define IWARP_STREAM_H

#include "hdr/ddp.h"
#include "hdr/mpa.h"
#include "hdr/rdmap.h"
#include "ibt/ibt.h"
#include "iwarp/fpdu.h"
#include "iwarp/session.h"
#include "iwarp/terminate.h"

/* The longest payload of an untagged message other than a SEND, in bytes. */
#define STREAM_BODY_MAX 64
/* How many bytes at a segment's end are placed after its CRC is known. */
#define STREAM_HOLD 8
/* The bounds of stream_config.ulpdu_max, in bytes (RFC 5044 3). */
#define STREAM_ULPDU_MIN 128
#define STREAM_ULPDU_MAX 64768

/* The result of the connection's start-up. */
struct stream_config {
	bool is_session; /* the connection is an association of SCTP */
	bool has_crc;	 /* FPDUs have CRCs in both directions */
	/* This side sends (tx_markers) and receives (rx_markers) markers. */
	bool tx_markers, rx_markers;
	/* This side sends no FPDU before it has received one.  True if it
	 * accepted a TCP connection (RFC 5044 7.1.2), or a session in the
	 * peer-to-peer model. */
	bool is_responder;
	bool has_extensions; /* both sides know RFC 7306 */
	/* Bits of enum mpa_rtr.  Initiator: the one kind of ready-to-receive
	 * that it sends as its first FPDU.  Responder: the kinds that it takes
	 * as the first FPDU.  0: the first FPDU is a message of the initiator's
	 * program. */
	uint8_t rtr;
	/* The longest ULPDU that this side sends, in bytes: STREAM_ULPDU_MIN to
	 * STREAM_ULPDU_MAX. */
	uint32_t ulpdu_max;
	/* How many READs and atomics of the peer may wait for a response at
	 * this side, 0 to HCA_MAX_RD_ATOMIC. */
	uint32_t ird;
	/* How many READs and atomics of this side may wait for a response at
	 * the peer, 0 to HCA_MAX_RD_ATOMIC. */
	uint32_t ord;
};

/* The phase of a stream. */
enum stream_phase {
	STREAM_OPEN,	    /* messages are sent and received */
	STREAM_TERMINATING, /* a Terminate is to be sent */
	STREAM_OVER,	    /* nothing is sent or received any more */
};

/* A response that is due to a READ or an atomic of the peer. */
struct stream_response {
	bool is_atomic;		/* the peer's request is an atomic */
	struct rdmap_read read; /* the peer's request, if it is a READ */
	struct rdmap_atomic_response atomic; /* the response, if is_atomic */
};

/* The requests of this side. */
struct stream_initiator {
	/* The kind of ready-to-receive that is to be sent, or MPA_RTR_WRITE for
	 * the WRITE of stream_nudge; 0: none. */
	uint8_t rtr;
	/* The ready-to-receive was a READ, whose response has not come. */
	bool awaits_rtr;
	bool is_begun; /* the request at ibt_qp.req.wqe has begun */
	/* The data of the request at ibt_qp.req.wqe, a WRITE, was sent; its
	 * Immediate Data was not. */
	bool owes_immediate;
	/* How many bytes of data of the request at ibt_qp.req.wqe were sent. */
	uint32_t sent;
	/* Message sequence numbers (RFC 5041 4.3).  send_sequence: of the next
	 * SEND or Immediate Data that this side sends.  request_sequence: of
	 * the next READ or atomic that it sends.  response_sequence: of the
	 * next response to an atomic that it receives. */
	uint32_t send_sequence, request_sequence, response_sequence;
	uint32_t ord;	    /* stream_config.ord */
	uint32_t reads_out; /* READs and atomics that wait for a response */
	/* The index of the send queue from which stream_read_out searches: all
	 * READs and atomics before this index have their responses. */
	uint32_t read;
	/* Bytes of the response to the oldest READ, in complete segments. */
	uint32_t placed;
};

/* The requests of the peer. */
struct stream_target {
	/* Bits of enum mpa_rtr: the kinds that the first FPDU may have.  0: the
	 * first FPDU has come, or may be any message. */
	uint8_t rtr;
	/* Message sequence numbers (RFC 5041 4.3).  send_sequence: of the next
	 * SEND or Immediate Data that this side receives.  request_sequence: of
	 * the next READ or atomic that it receives.  response_sequence: of the
	 * next response to an atomic that it sends. */
	uint32_t send_sequence, request_sequence, response_sequence;
	/* The response at `tail` is that to a READ that was the
	 * ready-to-receive. */
	bool is_rtr_due;
	bool in_message; /* a SEND has begun and has not ended */
	uint8_t opcode;	 /* the enum rdmap_opcode of that SEND */
	uint32_t placed; /* bytes of that SEND in complete segments */
	/* Bytes of the present WRITE in complete segments. */
	uint64_t written;
	/* Length in bytes of the last complete WRITE, for the completion of the
	 * Immediate Data that follows the WRITE. */
	uint32_t wrote;
	bool in_response; /* the response at `tail` is sent in part */
	uint32_t sent;	  /* bytes of that response that were sent */
	/* The ring `responses`: free-running indices of the next free row
	 * (head) and of the oldest response (tail), and how many rows there
	 * are, a power of two. */
	uint32_t head, tail, size;
	uint32_t ird;			   /* stream_config.ird */
	struct stream_response *responses; /* owned */
};

/* The segment that is being received. */
struct stream_segment {
	uint32_t head_bytes; /* bytes of `head` that have come */
	bool is_parsed;	     /* the header is complete, and is in `ddp` */
	/* NULL: the opcode does not exist, or was not judged. */
	const struct rdmap_info *info;
	/* The length of the payload, and how many bytes of it have come. */
	uint32_t payload_bytes, taken;
	/* Why the segment is refused; TERMINATE_NONE: it is not refused.  A
	 * refusal ends the stream only when the FPDU's CRC has proved right. */
	enum terminate_cause refused;
	/* The enum hca_status with which a refused SEND completes its receive;
	 * 0: the receive is not completed. */
	uint8_t receive_status;
	struct explain explain; /* the facts for the user about a refusal */
	/* The members from here on are not cleared for a new segment. */
	uint8_t head[DDP_HEAD_MAX]; /* the bytes of the header */
	struct ddp_header ddp;	    /* valid if is_parsed */
	/* The payload of a message that is none of SEND, WRITE and READ
	 * response; the payload of these three goes to its final place. */
	uint8_t body[STREAM_BODY_MAX];
	/* The segment's last bytes, which are placed after its CRC is known.
	 * So a program that polls the last byte of a WRITE finds no wrong data.
	 */
	uint8_t last[STREAM_HOLD];
};

/* The Terminate that is to be sent. */
struct stream_terminate {
	enum terminate_cause cause; /* that the Terminate names */
	/* The length and the header of the refused segment, and its body if the
	 * segment is a Read Request, as on the wire.  The Terminate quotes as
	 * much of these bytes as its cause allows. */
	uint8_t headers[2 + DDP_HEAD_MAX + RDMAP_READ_BYTES];
	uint32_t header_bytes; /* how many bytes are in `headers` */
};

/* One stream, owned by its struct ibt_qp. */
struct iwarp_stream {
	enum stream_phase phase;
	struct session *session; /* owned; NULL: the stream is over TCP */
	struct fpdu_rx rx;	 /* over SCTP, only ulpdu_bytes is used */
	struct fpdu_tx tx;	 /* over SCTP, not used */
	uint32_t ulpdu_max;	 /* stream_config.ulpdu_max */
	bool has_extensions;	 /* stream_config.has_extensions */
	/* This side does not wait for the peer's first FPDU
	 * (stream_config.is_responder is false), or that FPDU has come, or
	 * stream_begin was called. */
	bool may_send;
	/* The connection took only a part of the bytes of the last stream_tx.
	 */
	bool is_blocked;
	/* The next message is a response if one is due: requests and responses
	 * take turns. */
	bool is_response_next;
	struct stream_initiator out;
	struct stream_target in;
	struct stream_segment segment;
	struct stream_terminate terminate;
};

/* stream.c */
/* Begins full operation of q, which is about to enter RTS: from then on a new
 * stream carries q's requests.  Frees the stream that q had.  Returns 0;
 * -ENOMEM; -EINVAL: a member of *c is out of range. */
int stream_open(struct ibt *t, struct ibt_qp *q, const struct stream_config *c);
/* Frees q's stream, if there is one. */
void stream_close(struct ibt_qp *q);
/* The program has ended the connection: q enters ERR, without a message to the
 * user. */
void stream_end(struct ibt *t, struct ibt_qp *q);
/* The TCP connection or the association has ended: q enters ERR.  The user gets
 * a message if a request was not completed. */
void stream_lost(struct ibt *t, struct ibt_qp *q);
/* Ends the stream by a Terminate, and fails q; does nothing unless the stream
 * is in STREAM_OPEN.  @x: the facts for the message to the user; without a
 * cause in *x, the message has x->detail or else the text of `cause`.  NULL:
 * the user has already got a message. */
void stream_fail(struct ibt *t, struct ibt_qp *q, enum terminate_cause cause,
		 struct explain *x);
/* Is no request executed any more: is q in ERR, is a Terminate to be sent, or
 * has the stream ended? */
bool stream_has_failed(const struct ibt_qp *q);
/* Has q's stream ended, with nothing left to send? */
bool stream_is_over(const struct ibt_qp *q);
/* Notes in the QP's statistics why q does not send (qp_stats.wait), and tells
 * the threads that post whether q sends by its stream (ibt_qp.is_unanswered).
 */
void stream_note(struct ibt_qp *q);
/* May this side send (iwarp_stream.may_send)? */
bool stream_has_begun(const struct ibt_qp *q);
/* Lets this side send although the peer's first FPDU has not come.  This
 * violates RFC 5044 7.1.2, but helps a peer that waits for this side to send.
 * Not called for a stream whose peer has to send a ready-to-receive. */
void stream_begin(struct ibt *t, struct ibt_qp *q);
/* In RTS, if no message is sent in part, sends a WRITE of length 0, which
 * changes nothing at the peer.  The arrival of the WRITE makes the peer process
 * FPDUs that it has received and has not noticed. */
void stream_nudge(struct ibt *t, struct ibt_qp *q);
/* Are all posted requests, all due responses and the ready-to-receive sent?
 * False while a Terminate is to be sent.  Otherwise also true if q is in ERR or
 * the stream is over, because nothing more will be sent. */
bool stream_is_drained(const struct ibt_qp *q);
/* Completes the oldest requests, up to the first that waits for a response or
 * is not sent completely.  If that first request has a local error, completes
 * it with the error's status and ends the stream. */
void stream_retire(struct ibt *t, struct ibt_qp *q);
/* May a request with this opcode, an enum hca_wr, be executed on a stream?
 * has_extensions: the stream's member of this name. */
bool stream_has_opcode(bool has_extensions, uint8_t opcode);

/* Has the peer ended its session by a Terminate (RFC 5043 6), and have all
 * messages before that Terminate come?  False for a stream over TCP. */
bool stream_has_peer_ended(const struct ibt_qp *q);

/* stream_read.c */
/* Returns the oldest READ or atomic that waits for its response, with its index
 * in the send queue in *at; NULL: there is none. */
struct wqe *stream_read_out(struct ibt *t, struct ibt_qp *q, uint32_t *at);
/* Returns the body of the Read Request by which w, a READ, is sent. */
struct rdmap_read stream_read_of(struct wqe *w);

/* stream_tx.c */
/* Returns the smallest `room`, in bytes, with which stream_tx can send. */
uint32_t stream_tx_room(const struct ibt_qp *q);
/*
 * Writes the next FPDU, or message of SCTP, to buf, which has `room` bytes, and
 * returns its length; 0: there is nothing to send now, or `room` is less than
 * stream_tx_room(q).
 */
uint32_t stream_tx(struct ibt *t, struct ibt_qp *q, uint8_t *buf,
		   uint32_t room);
/* Are all requests complete that have begun?  q has a stream. */
bool stream_tx_is_drained(const struct ibt_qp *q);

/* stream_rx.c */
/* Takes the n bytes at p: the next bytes that came from the peer over TCP, or
 * one message of SCTP, PPID included.  An error in these bytes ends the stream
 * (stream_fail); the bytes after the error are dropped. */
void stream_rx(struct ibt *t, struct ibt_qp *q, const uint8_t *p, uint32_t n);
/* Takes the next DDP segment of a session, the n bytes at p.  The caller passes
 * the segments in the order in which the peer sent them. */
void stream_rx_segment(struct ibt *t, struct ibt_qp *q, const uint8_t *p,
		       uint32_t n);

#endif
