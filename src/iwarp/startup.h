/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The start of MPA on a TCP connection (RFC 5044 7.1, RFC 6581): the initiator
 * sends a request, the responder accepts or rejects it by a reply, and FPDUs
 * follow (iwarp/stream.h).
 *
 *	initiator			responder
 *	startup_connect -- request -->	startup_listen, startup_take
 *	startup_take <---- reply -----	startup_accept or startup_reject
 *	first FPDU ------------------>	sends no FPDU before this one came
 *
 * In revision 2 both frames may carry enhanced data: how many RDMA Reads each
 * end takes (IRD) and sends (ORD), and in the peer-to-peer model the kinds of
 * first FPDU, called ready-to-receive, that the initiator sends if its consumer
 * has nothing to send.
 *
 * The peer is not trusted: its frame is held up to MPA_FRAME_MAX bytes, its
 * first wrong byte ends the start, and so does the deadline.  The result does
 * not depend on how the stream is cut.
 *
 * Sans-IO, no lock: the owner of a connection calls.  A struct startup has
 * pointers into itself, so the caller does not copy it.
 */
#ifndef IWARP_STARTUP_H
#define IWARP_STARTUP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "hdr/mpa.h"
#include "iwarp/terminate.h"

#define STARTUP_REVISION_MAX  2
#define STARTUP_TERMINATE_MAX 32 /* bytes */

struct stream_config;

enum startup_state {
	STARTUP_WAITS,	   /* bytes of the peer's frame are to come */
	STARTUP_REQUESTED, /* responder: startup_accept or startup_reject */
	STARTUP_ACCEPTED,  /* `agreed` is valid: FPDUs follow */
	STARTUP_REJECTED,  /* the bytes that follow belong to no MPA */
	STARTUP_FAILED,	   /* `error` says why: the connection is closed */
};

enum startup_error {
	STARTUP_NO_ERROR,
	STARTUP_BAD_KEY,      /* the bytes are no such frame of MPA */
	STARTUP_BAD_LENGTH,   /* PD_Length is too long, or too short */
	STARTUP_BAD_REVISION, /* this end does not have that revision */
	/* The peer answered a request of revision 2 by revision 1. */
	STARTUP_OLD_REVISION,
	/* The peer closed the connection upon a request of revision 2, as a
	 * peer does that has only revision 1 (RFC 5044 7.1.1). */
	STARTUP_NO_REPLY,
	STARTUP_BAD_REPLY, /* enhanced data if not asked for, or lacking */
	/* The peer sent bytes before it was allowed to send FPDUs. */
	STARTUP_EARLY,
	STARTUP_CLOSED,	   /* the peer closed before its frame was complete */
	STARTUP_TIMED_OUT, /* the peer's frame was not complete in time */
	/* The peer will send more RDMA Reads at a time than this end takes. */
	STARTUP_NO_IRD,
	/* The two ends want different models of connections, or no kind of
	 * ready-to-receive is common to both. */
	STARTUP_NO_RTR,
	STARTUP_ERRORS,
};

/* The consequences of an error. */
struct startup_verdict {
	enum terminate_cause cause;
	/* An FPDU with a Terminate tells the peer the cause before the
	 * connection is closed: the peer has accepted and so expects FPDUs,
	 * with the CRC and the markers of `agreed`. */
	bool terminates;
	/* A new connection with a request of revision 1 may succeed. */
	bool is_old_peer;
	/* For the user: a clause in which "it" is the peer; static.  NULL for
	 * STARTUP_NO_ERROR alone. */
	const char *text;
};

/* The wishes of this end, and the limits of what it accepts. */
struct startup_offer {
	uint8_t revision; /* initiator: 1 or 2 */
	bool is_enhanced; /* initiator: revision 2 with enhanced data */
	bool wants_crc, wants_markers;
	bool is_peer_to_peer; /* initiator: with enhanced data */
	/* Bits of enum mpa_rtr.  initiator, if is_peer_to_peer: the kinds that
	 * it can send; responder: the kinds that it takes, one at least */
	uint8_t rtr;
	/* RDMA Reads at a time, 0 to MPA_DEPTH_MAX.  MPA_DEPTH_MAX leaves the
	 * depth to the consumers (RFC 6581 9.1). */
	uint16_t ird, ord;
	/* IRD may be raised to this number if the peer asks for more than
	 * `ird`; a smaller number counts as `ird`.  It is 1 at least if a
	 * responder takes MPA_RTR_READ. */
	uint16_t ird_max;
	/* Up to MPA_PRIVATE_MAX bytes, less MPA_ENHANCED with enhanced data.
	 * siw of the kernel takes 256 bytes, the enhanced data among them. */
	const void *private_data;
	uint16_t private_bytes;
};

/* The parameters that both ends use in full operation. */
struct startup_agreed {
	uint8_t revision;
	bool is_enhanced;
	bool has_crc;
	bool rx_markers, tx_markers;
	bool is_peer_to_peer;
	/* This end sends no FPDU before it received one and found it right. */
	bool awaits_fpdu;
	/* if is_peer_to_peer; the initiator: the kind that it sends first; the
	 * responder: the kinds that it takes first */
	uint8_t rtr;
	/* MPA_DEPTH_MAX: the consumers know the depth, MPA does not */
	uint16_t ird, ord;
};

struct startup {
	enum startup_state state;
	enum startup_error error;
	bool is_initiator;
	uint64_t deadline_ns;
	/* The initiator's; of the responder's only the revision.  Without
	 * private data. */
	struct startup_offer offer;
	/* In all states but STARTUP_WAITS and STARTUP_FAILED: the peer's frame,
	 * with its private data, IRD and ORD. */
	struct mpa_frame peer;
	/* In STARTUP_ACCEPTED, and if the error's verdict says `terminates`. */
	struct startup_agreed agreed;
	uint16_t held_bytes;
	uint8_t held[MPA_FRAME_MAX]; /* bytes of the peer's frame */
};

/* Begins an initiator: writes at most MPA_FRAME_MAX bytes for the peer at
 * `out` and returns their number.  -EMSGSIZE: the private data is too long. */
int startup_connect(struct startup *s, const struct startup_offer *offer,
		    uint64_t deadline_ns, uint8_t *out);
/* Begins a responder, which takes requests of revisions 1 to `revision`. */
void startup_listen(struct startup *s, uint8_t revision, uint64_t deadline_ns);
/*
 * Takes bytes of the peer's stream and returns how many belonged to the peer's
 * frame.  Behind a rejecting reply the rest is not MPA's; in the other states
 * bytes behind the frame are an error.  After startup_accept the stream belongs
 * to the next layer.
 */
size_t startup_take(struct startup *s, const uint8_t *p, size_t n);
/* The peer has closed the stream. */
void startup_end(struct startup *s);
/* Answers in STARTUP_REQUESTED: both write at most MPA_FRAME_MAX bytes for the
 * peer at `out` and return their number.  -EMSGSIZE: the private data is too
 * long, and nothing changes. */
int startup_accept(struct startup *s, const struct startup_offer *offer,
		   uint8_t *out);
/* The offer's IRD and ORD tell the peer what this end would need (RFC 6581
 * 9.1). */
int startup_reject(struct startup *s, const struct startup_offer *offer,
		   uint8_t *out);
/*
 * Fills *c in STARTUP_ACCEPTED.  segment_bytes: the payload of a segment of the
 * TCP connection, at most; an FPDU fits into it, unless it is very small.
 * A depth that the consumers set is the offer's; none is above
 * HCA_MAX_RD_ATOMIC, so the caller offers no more.  MPA says nothing of RFC
 * 7306: a caller that knows that the peer has it sets has_extensions.
 */
void startup_stream(const struct startup *s, uint32_t segment_bytes,
		    struct stream_config *c);
/*
 * Writes the FPDU with the Terminate of a start-up that has failed, at most
 * STARTUP_TERMINATE_MAX bytes, and returns its length; 0: the error's verdict
 * has none.  The caller sends it and closes the connection.
 */
uint32_t startup_terminate(const struct startup *s, uint8_t *out);
/* When startup_tick has to be called; UINT64_MAX: never. */
uint64_t startup_deadline(const struct startup *s);
void startup_tick(struct startup *s, uint64_t now_ns);
/* Returns the error's row, which is static. */
const struct startup_verdict *startup_verdict(enum startup_error error);

#endif
