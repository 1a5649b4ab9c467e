/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * An iWARP connection in full operation: RDMAP (RFC 5040) over DDP (RFC 5041)
 * over MPA (RFC 5044).  A stream carries the requests of one queue pair, of
 * type HCA_QPT_RC, whose struct ibt_qp refers to it:
 *
 *	stream_tx  requests, responses, a Terminate -> bytes of FPDUs
 *	stream_rx  bytes, cut anywhere -> memory, receives, completions
 *
 * The byte stream below delivers each byte once and in order.  So a WRITE or a
 * SEND completes when its last FPDU is made, as RFC 5040 5.5 permits:
 * its memory is copied then.  READs and atomics complete with their responses.
 *
 * No memory is allocated after stream_open.  Owner and lock: as struct ibt_qp.
 */
#ifndef IWARP_STREAM_H
#define IWARP_STREAM_H

#include "hdr/ddp.h"
#include "hdr/mpa.h"
#include "hdr/rdmap.h"
#include "ibt/ibt.h"
#include "iwarp/fpdu.h"
#include "iwarp/terminate.h"

#define STREAM_BODY_MAX 64 /* the longest untagged message that is no SEND */
#define STREAM_HOLD	8  /* bytes of a segment that are placed last */
/* The bounds of a sent ULPDU, in bytes (RFC 5044 3). */
#define STREAM_ULPDU_MIN 128
#define STREAM_ULPDU_MAX 64768

/* The result of the connection's start-up. */
struct stream_config {
	bool has_crc;
	bool tx_markers, rx_markers;
	/* This side accepted the connection: it sends no FPDU before it has
	 * received one (RFC 5044 7.1.2). */
	bool is_responder;
	bool has_extensions; /* both sides know RFC 7306 */
	/* Bits of enum mpa_rtr.  The initiator: the kind of its first FPDU; the
	 * responder: the kinds of which it takes one as the first.  0: the
	 * first FPDU is a message. */
	uint8_t rtr;
	uint32_t ulpdu_max; /* bytes, STREAM_ULPDU_MIN to STREAM_ULPDU_MAX */
	uint32_t ird;	    /* READs and atomics of the peer at once */
	uint32_t ord;	    /* READs and atomics to the peer at once */
};

enum stream_phase {
	STREAM_OPEN,
	STREAM_TERMINATING, /* a Terminate is to be sent */
	STREAM_OVER,	    /* nothing is sent or received any more */
};

/* A response that is due to a READ or an atomic of the peer. */
struct stream_response {
	bool is_atomic;
	struct rdmap_read read;
	struct rdmap_atomic_response atomic;
};

/* The requests of this side. */
struct stream_initiator {
	uint8_t rtr;	     /* that is to be sent; 0: none */
	bool awaits_rtr;     /* the response to the RTR's READ is to come */
	bool is_begun;	     /* the request at ibt_qp.req.wqe has begun */
	bool owes_immediate; /* its data is sent, its Immediate Data is not */
	uint32_t sent;	     /* bytes of its data that were sent */
	/* The numbers of the next messages of three queues (RFC 5041 4.3). */
	uint32_t send_sequence, request_sequence, response_sequence;
	uint32_t ord;	    /* stream_config.ord */
	uint32_t reads_out; /* READs and atomics that wait for a response */
	/* An index of the send queue: no READ and no atomic before it waits for
	 * a response. */
	uint32_t read;
	uint32_t placed; /* bytes of the response to the oldest READ */
};

/* The requests of the peer. */
struct stream_target {
	uint8_t rtr; /* kinds of the first FPDU, until it has come; 0: any */
	uint32_t send_sequence, request_sequence, response_sequence;
	bool in_message;  /* a SEND has begun and has not ended */
	uint8_t opcode;	  /* the opcode of that SEND */
	uint32_t placed;  /* bytes of that SEND that were placed */
	uint64_t written; /* bytes of the present WRITE */
	uint32_t wrote;	  /* bytes of the last WRITE that is complete */
	bool in_response; /* the response at `tail` is sent in part */
	uint32_t sent;	  /* bytes of that response that were sent */
	/* Free-running indices of the ring `responses`, and its size, a power
	 * of two. */
	uint32_t head, tail, size;
	uint32_t ird;			   /* stream_config.ird */
	struct stream_response *responses; /* owned */
};

/* The segment that is received. */
struct stream_segment {
	uint32_t head_bytes; /* bytes of `head` that have come */
	bool is_parsed;
	const struct rdmap_info *info; /* NULL: there is no such opcode */
	uint32_t payload_bytes, taken;
	/* The reason why the segment is refused; the stream ends for it after
	 * the CRC is known. */
	enum terminate_cause refused;
	uint8_t receive_status; /* enum hca_status of a refused SEND */
	struct explain explain;
	/* The members from here on are not cleared for a new segment. */
	uint8_t head[DDP_HEAD_MAX];
	struct ddp_header ddp; /* valid if is_parsed */
	uint8_t body[STREAM_BODY_MAX];
	/* The segment's last bytes, which are placed after its CRC is known: a
	 * program that polls the last byte of a WRITE finds a correct one. */
	uint8_t last[STREAM_HOLD];
};

/* The Terminate that is to be sent. */
struct stream_terminate {
	enum terminate_cause cause;
	/* the length and the header of the segment that is refused, and the
	 * body if it is a Read Request; not all of them may be sent */
	uint8_t headers[2 + DDP_HEAD_MAX + RDMAP_READ_BYTES];
	uint32_t header_bytes;
};

struct iwarp_stream {
	enum stream_phase phase;
	struct fpdu_rx rx;
	struct fpdu_tx tx;
	uint32_t ulpdu_max;
	bool has_extensions;
	/* the peer's first FPDU has come, or this side is the initiator */
	bool may_send;
	bool is_response_next; /* requests and responses take turns */
	struct stream_initiator out;
	struct stream_target in;
	struct stream_segment segment;
	struct stream_terminate terminate;
};

/* stream.c */
/* Begins full operation of q, which is about to enter RTS: from then on the
 * stream carries q's requests.  0; -ENOMEM; -EINVAL: a member of *c is out of
 * range. */
int stream_open(struct ibt *t, struct ibt_qp *q, const struct stream_config *c);
/* Frees q's stream, if there is one. */
void stream_close(struct ibt_qp *q);
/* The byte stream below has ended: q enters ERR.  The user gets a message if a
 * request was under way. */
void stream_lost(struct ibt *t, struct ibt_qp *q);
/* Ends the stream by a Terminate and fails q.  @x: the facts for the message to
 * the user; NULL: the user has got that message. */
void stream_fail(struct ibt *t, struct ibt_qp *q, enum terminate_cause cause,
		 struct explain *x);
/* Is q's connection at its end, with nothing left to send? */
bool stream_is_over(const struct ibt_qp *q);
/* May this side send: is it the initiator, or has the peer's first FPDU come?
 */
bool stream_has_begun(const struct ibt_qp *q);
/* Is all sent that is posted or due? */
bool stream_is_drained(const struct ibt_qp *q);
/* Completes the oldest requests, up to the first that waits for a response or
 * was not sent.  If that request failed before it was sent, completes it with
 * its status and ends the stream. */
void stream_retire(struct ibt *t, struct ibt_qp *q);
/* Returns the oldest READ or atomic that waits for its response, with its index
 * in *at; NULL: there is none. */
struct wqe *stream_read_out(struct ibt *t, struct ibt_qp *q, uint32_t *at);
/* Returns the body of the Read Request of w, a READ. */
struct rdmap_read stream_read_of(struct wqe *w);
/* May the request be sent on this stream? */
bool stream_has_opcode(const struct iwarp_stream *s, uint8_t opcode);

/* stream_tx.c */
/* Returns how many bytes of room stream_tx needs. */
uint32_t stream_tx_room(const struct ibt_qp *q);
/*
 * Writes the next FPDU to buf, which has `room` bytes, and returns its length;
 * 0: there is nothing to send now, or room is less than stream_tx_room.
 */
uint32_t stream_tx(struct ibt *t, struct ibt_qp *q, uint8_t *buf,
		   uint32_t room);

/* stream_rx.c */
/* Takes the next n bytes of the stream. */
void stream_rx(struct ibt *t, struct ibt_qp *q, const uint8_t *p, uint32_t n);

#endif
