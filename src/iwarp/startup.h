/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The start of MPA on a TCP connection (RFC 5044 7.1, RFC 6581): the initiator
 * sends a request, the responder accepts or rejects it by a reply, and FPDUs
 * follow (iwarp/stream.h).  A DDP stream session on an SCTP association (RFC
 * 5043 6, RFC 6581 7) starts in the same way, with two differences: request and
 * reply have another form (hdr/session.h), and startup_take takes whole
 * messages.
 *
 *	initiator			responder
 *	startup_connect -- request -->	startup_listen, startup_take
 *	startup_take <---- reply -----	startup_accept or startup_reject
 *	first FPDU ------------------>	may now send FPDUs
 *
 * On an SCTP association messages arrive in any order.  So messages that the
 * responder sent after its reply may come before the reply; they are kept for
 * the stream (`early`).  So are bytes of an FPDU that one receive from TCP gets
 * together with the reply.
 *
 * In revision 2 the request and the reply may carry enhanced data: how many
 * RDMA Reads at a time each end takes (IRD) and sends (ORD), and in the
 * peer-to-peer model the kinds of ready-to-receive that each end knows.  A
 * ready-to-receive is the first FPDU of an initiator; it has no data.
 *
 * The peer is not trusted.  At most MPA_FRAME_MAX bytes of its frame are held.
 * The first wrong byte of the frame ends the start-up, and so does the
 * deadline.  The result does not depend on the lengths of the pieces in which
 * the frame arrives.
 *
 * Sans-IO.  The functions take no lock: only the owner of a connection calls
 * them.  A struct startup has pointers into itself, so the caller does not copy
 * it.
 */
#ifndef IWARP_STARTUP_H
#define IWARP_STARTUP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "hdr/mpa.h"
#include "hdr/session.h"
#include "iwarp/terminate.h"

#define STARTUP_REVISION_MAX 2 /* the highest revision of MPA here */
/* The most bytes that startup_terminate writes. */
#define STARTUP_TERMINATE_MAX 32
/* The most bytes of `early` in struct startup. */
#define STARTUP_EARLY_MAX 65536

struct stream_config;

/* The state of a start-up. */
enum startup_state {
	STARTUP_WAITS, /* the peer's frame is not complete */
	/* Responder: the request is complete, and the owner has to call
	 * startup_accept or startup_reject. */
	STARTUP_REQUESTED,
	STARTUP_ACCEPTED, /* the responder has accepted: FPDUs follow */
	/* The responder has rejected; the bytes that follow are not MPA's. */
	STARTUP_REJECTED,
	/* startup.error is the reason, and the owner closes the connection. */
	STARTUP_FAILED,
};

/* Why a start-up has failed. */
enum startup_error {
	STARTUP_NO_ERROR, /* the start-up has not failed */
	/* The peer's bytes are not the MPA frame that is expected. */
	STARTUP_BAD_KEY,
	/* PD_Length exceeds MPA_PRIVATE_MAX, or is too short for the enhanced
	 * data. */
	STARTUP_BAD_LENGTH,
	/* The peer's frame has revision 0, or a revision above that of this
	 * end's offer. */
	STARTUP_BAD_REVISION,
	/* The peer answered a request of revision 2 with a reply of revision 1.
	 */
	STARTUP_OLD_REVISION,
	/* The peer closed the connection without an answer to a request of
	 * revision 2.  A peer that has only revision 1 does that (RFC 5044
	 * 7.1.1). */
	STARTUP_NO_REPLY,
	/* The reply has enhanced data and the request has none, or the request
	 * has enhanced data and the reply has none. */
	STARTUP_BAD_REPLY,
	/* The initiator sent bytes between its request and the reply. */
	STARTUP_EARLY,
	/* The peer closed the connection before the start-up was complete. */
	STARTUP_CLOSED,
	STARTUP_TIMED_OUT, /* the peer's frame was not complete in time */
	/* The peer will send more RDMA Reads at a time than this end takes. */
	STARTUP_NO_IRD,
	/* The two ends want different models of connections, or know no common
	 * kind of ready-to-receive. */
	STARTUP_NO_RTR,
	/* The errors from here on happen on an SCTP association only. */
	/* The peer's message with DDP-SSN 0 is not the expected request or
	 * reply, the responder got another message before the request, or a
	 * message is not of DDP over SCTP. */
	STARTUP_NO_SESSION,
	/* The peer answered the request by a Terminate (RFC 5043 6.4). */
	STARTUP_SESSION_REFUSED,
	/* The association ended, or the initiator withdrew its request, before
	 * the start-up was complete. */
	STARTUP_SESSION_CLOSED,
	/* After its request and before the reply the initiator sent a message
	 * other than the Terminate that withdraws the request, or startup.early
	 * has no room for a message of the responder. */
	STARTUP_SESSION_EARLY,
	/* This process has no memory for startup.early. */
	STARTUP_NO_MEMORY,
	STARTUP_ERRORS, /* how many values there are */
};

/* The consequences of an error. */
struct startup_verdict {
	enum terminate_cause cause; /* the cause that a Terminate names */
	/* The peer has accepted, so it expects FPDUs: startup_terminate makes a
	 * Terminate that tells the peer the cause. */
	bool terminates;
	/* A new connection with a request of revision 1 may succeed. */
	bool is_old_peer;
	/* Tells the user what happened and what to do, without a full stop.
	 * Static; NULL only for STARTUP_NO_ERROR. */
	const char *text;
};

/* The parameters that this end wants for the connection, and the limits of
 * those that it accepts. */
struct startup_offer {
	uint8_t revision; /* initiator: 1 or 2; if is_session: 2 */
	bool is_session;  /* initiator: on an SCTP association */
	/* Initiator: the request has enhanced data, which needs revision 2. */
	bool is_enhanced;
	/* wants_crc: this end asks for CRCs in both directions.  wants_markers:
	 * this end asks for markers in the stream that it receives. */
	bool wants_crc, wants_markers;
	/* Initiator: asks for the peer-to-peer model, which needs is_enhanced.
	 */
	bool is_peer_to_peer;
	/* Bits of enum mpa_rtr.  Initiator, if is_peer_to_peer: the kinds that
	 * it can send.  Responder: the kinds that it takes, at least one. */
	uint8_t rtr;
	/* How many RDMA Reads at a time this end takes (ird) and sends (ord), 0
	 * to MPA_DEPTH_MAX.  MPA_DEPTH_MAX leaves the depth to the consumers
	 * (RFC 6581 9.1). */
	uint16_t ird, ord;
	/* IRD may be raised to this number if the peer asks for more than
	 * `ird`; a number below `ird` counts as `ird`.  If a responder takes
	 * MPA_RTR_READ, ird or ird_max is at least 1. */
	uint16_t ird_max;
	/* The private data of the request or reply; borrowed during the call.
	 */
	const void *private_data;
	/* How many bytes of private data there are: at most MPA_PRIVATE_MAX, or
	 * MPA_ENHANCED less if the frame has enhanced data.  The kernel's siw
	 * accepts at most 256 bytes of private data and enhanced data together.
	 */
	uint16_t private_bytes;
};

/* The parameters that the two ends use in full operation. */
struct startup_agreed {
	uint8_t revision; /* the revision of the request and the reply */
	bool is_enhanced; /* the two frames had enhanced data */
	bool has_crc;	  /* FPDUs have CRCs in both directions */
	/* This end receives (rx_markers) and sends (tx_markers) markers. */
	bool rx_markers, tx_markers;
	bool is_peer_to_peer; /* the ends use the peer-to-peer model */
	/* Bits of enum mpa_rtr, if is_peer_to_peer.  Initiator: the one kind
	 * that it sends as its first FPDU.  Responder: the kinds that it takes
	 * as the first FPDU. */
	uint8_t rtr;
	/* How many RDMA Reads at a time this end takes (ird) and sends (ord).
	 * MPA_DEPTH_MAX: only the consumers know the depth. */
	uint16_t ird, ord;
};

/* The start-up of one connection. */
struct startup {
	enum startup_state state;
	enum startup_error error; /* in STARTUP_FAILED */
	bool is_initiator;	  /* this end sends the request */
	bool is_session;	  /* the connection is an association of SCTP */
	uint16_t ssn; /* if is_session: DDP-SSN of this side's next message */
	/* When the peer's frame has to be complete, by the clock of
	 * startup_tick. */
	uint64_t deadline_ns;
	/* Initiator: its offer without the private data.  Responder: only
	 * `revision` is set. */
	struct startup_offer offer;
	/* The peer's frame, in all states but STARTUP_WAITS and STARTUP_FAILED.
	 * Its private data is in `held`. */
	struct mpa_frame peer;
	/* Valid in STARTUP_ACCEPTED, and in STARTUP_FAILED if the error's
	 * verdict says `terminates`. */
	struct startup_agreed agreed;
	uint16_t held_bytes;	     /* how many bytes are in `held` */
	uint8_t held[MPA_FRAME_MAX]; /* the bytes of the peer's frame */
	/* The messages of a session that came before the reply, or the bytes
	 * that came over TCP together with the end of the reply.  Each message,
	 * and these bytes, begin with their length in bytes, a uint32_t.
	 * Owned; NULL: nothing. */
	uint8_t *early;
	uint32_t early_bytes; /* how many bytes of `early` are used */
};

/* Begins the start-up of an initiator: writes the request, at most
 * MPA_FRAME_MAX bytes, at `out` and returns its length.  -EMSGSIZE: the private
 * data is too long.  The caller sends the request.  @deadline_ns: when the
 * reply has to be complete. */
int startup_connect(struct startup *s, const struct startup_offer *offer,
		    uint64_t deadline_ns, uint8_t *out);
/* Begins the start-up of a responder, which takes requests of revisions 1 to
 * `revision`.  @deadline_ns: when the request has to be complete. */
void startup_listen(struct startup *s, uint8_t revision, uint64_t deadline_ns);
/* Begins the start-up of a responder on an SCTP association.  @deadline_ns:
 * when the request has to be complete. */
void startup_listen_session(struct startup *s, uint64_t deadline_ns);
/* Frees s->early.  *s may be all zeroes. */
void startup_fini(struct startup *s);
/*
 * Takes the next n bytes of the peer's stream, and returns how many of them
 * belonged to the peer's frame.  The bytes after a rejecting reply are not
 * MPA's, and are left to the caller.  Bytes after a request are an error,
 * STARTUP_EARLY.  Bytes after an accepting reply are kept in `early`.  Not
 * called after startup_accept: from then on the bytes are FPDUs.
 *
 * On an SCTP association the function takes one whole message of n bytes, PPID
 * included, and returns n.  Messages that come before the reply are kept in
 * `early`.  The caller passes the messages that come after the reply to the
 * stream.
 */
size_t startup_take(struct startup *s, const uint8_t *p, size_t n);
/* The peer has closed the stream: a start-up in STARTUP_WAITS or
 * STARTUP_REQUESTED fails. */
void startup_end(struct startup *s);
/* In STARTUP_REQUESTED: accepts the connection.  Writes the reply, at most
 * MPA_FRAME_MAX bytes, at `out` and returns its length.  -EMSGSIZE: the private
 * data is too long, and the state does not change.  The caller sends the reply.
 */
int startup_accept(struct startup *s, const struct startup_offer *offer,
		   uint8_t *out);
/* In STARTUP_REQUESTED: rejects the connection.  Writes the reply, at most
 * MPA_FRAME_MAX bytes, at `out` and returns its length.  -EMSGSIZE: the private
 * data is too long, and the state does not change.  The offer's IRD and ORD
 * tell the peer the depths that this end would need (RFC 6581 9.1). */
int startup_reject(struct startup *s, const struct startup_offer *offer,
		   uint8_t *out);
/*
 * In STARTUP_ACCEPTED: fills *c with the parameters on which the two ends have
 * agreed.  A depth that MPA left to the consumers is that of this end's offer.
 * IRD and ORD above HCA_MAX_RD_ATOMIC are lowered to that number, so the caller
 * must not offer more.  has_extensions becomes false, because MPA does not
 * negotiate RFC 7306; a caller that knows that the peer has RFC 7306 sets it
 * afterwards.
 * @segment_bytes: the greatest payload of a segment of the TCP connection, in
 * bytes; on an SCTP association, the longest DDP segment that fits in one
 * packet (RFC 5043 9).  c->ulpdu_max lets an FPDU fit into one segment, but is
 * at least STREAM_ULPDU_MIN; on an SCTP association it is at least
 * SESSION_SEGMENT_MIN.
 */
void startup_stream(const struct startup *s, uint32_t segment_bytes,
		    struct stream_config *c);
/*
 * Writes an FPDU, or a message of a session, with the Terminate that tells the
 * peer why the start-up has failed, at most STARTUP_TERMINATE_MAX bytes, and
 * returns its length.  The caller sends it and closes the connection.  0: the
 * start-up has not failed, or the error's verdict does not say `terminates`.
 */
uint32_t startup_terminate(struct startup *s, uint8_t *out);
/*
 * Writes the Terminate by which this side ends its session,
 * SESSION_CONTROL_BYTES bytes, and returns its length; 0: the connection is not
 * an SCTP association.  The caller sends the Terminate in three cases: a
 * responder refuses a request without asking its program (RFC 5043 6.4), an
 * initiator withdraws its request, or the message of startup_terminate was
 * sent.
 */
uint32_t startup_end_session(struct startup *s, uint8_t *out);
/* Returns when startup_tick has to be called, in ns; UINT64_MAX: never. */
uint64_t startup_deadline(const struct startup *s);
/* The time is now_ns: a start-up whose deadline has passed fails with
 * STARTUP_TIMED_OUT. */
void startup_tick(struct startup *s, uint64_t now_ns);
/* Returns the error's row, which is static. */
const struct startup_verdict *startup_verdict(enum startup_error error);

#endif
