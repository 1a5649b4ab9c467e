/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Makes TCP segments (RFC 9293) of the bytes of a connection, for a capture.
 * The program that owns a connection sees the bytes of each direction in order,
 * but not the segments in which the kernel sends them.  So these segments are
 * made here:
 *
 *	tcp_segment_open	SYN, SYN and ACK, ACK
 *	tcp_segment_bytes	segments with bytes
 *	tcp_segment_end		FIN
 *	tcp_segment_reset	RST
 *
 * The first bytes of a direction are a frame of MPA, and FPDUs follow.  A
 * segment has the whole frame, or one whole FPDU, if that fits: the bytes of an
 * FPDU that is not complete are held until the rest comes or the direction
 * ends.  Each segment but the first SYN acknowledges all bytes of the other
 * direction in earlier segments.  When more than 256 KiB of a direction are not
 * acknowledged, a segment of the other side follows that has only an ACK.
 *
 * Sans-IO.  The functions take no lock: only the owner of a connection calls
 * them.  The peer's bytes are not trusted: they decide only where its stream is
 * cut.
 */
#ifndef IWARP_TCP_SEGMENT_H
#define IWARP_TCP_SEGMENT_H

#include <stdbool.h>
#include <stdint.h>

#include "hdr/tcp.h"
#include "iwarp/fpdu.h"

/* The most bytes of a segment, which fit in a packet of IPv4. */
#define TCP_SEGMENT_MAX 65495

/* The sides of a connection: this program's (OWN), and the peer's. */
enum tcp_segment_side { TCP_SEGMENT_OWN, TCP_SEGMENT_PEER };

/* A segment that was made. */
struct tcp_segment {
	enum tcp_segment_side from; /* the side that sends it */
	uint8_t flags;		    /* bits of enum tcp_flag */
	/* The sequence number, and the acknowledgment number; 0 without ACK. */
	uint32_t seq, ack;
	const uint8_t *bytes; /* borrowed during the call of `write` */
	uint32_t count; /* how many bytes there are, up to TCP_SEGMENT_MAX */
};

/* Returns the header of a segment, without ports and checksum. */
struct tcp tcp_segment_header(const struct tcp_segment *s);

/* One direction of a connection: the bytes that one side sends. */
struct tcp_segment_half {
	uint32_t next; /* the sequence number of the next segment */
	/* The acknowledgment number of the other side's last segment. */
	uint32_t acked;
	uint32_t frame_left; /* bytes of the frame of MPA that have not come */
	/* The bytes after the frame are FPDUs, and rx knows where the next one
	 * begins. */
	bool is_framed;
	bool has_ended; /* the side has sent FIN, or the connection was reset */
	struct fpdu_rx rx; /* without CRCs; valid if is_framed */
	/* The first bytes of an FPDU that is not complete, in a buffer of
	 * TCP_SEGMENT_MAX bytes.  Owned; NULL: none are held. */
	uint8_t *held;
	uint32_t held_bytes; /* how many bytes are in `held` */
};

/* A connection. */
struct tcp_segments {
	struct tcp_segment_half half[2]; /* by enum tcp_segment_side */
	/* Writes a segment to the capture. */
	void (*write)(void *arg, const struct tcp_segment *s);
	void *arg; /* the first argument of `write` */
};

/* Describes one direction of a new connection. */
struct tcp_segment_start {
	uint32_t seq;	      /* the sequence number of SYN */
	uint32_t frame_bytes; /* the length of the frame of MPA; 0: none */
	bool has_markers;     /* FPDUs have markers */
};

/* Begins a connection, and makes the segments of its beginning.  s->write and
 * s->arg are set.  begins: the side that has sent SYN first.  start: the two
 * directions, by the side that sends. */
void tcp_segment_open(struct tcp_segments *s, enum tcp_segment_side begins,
		      const struct tcp_segment_start start[2]);
/* Takes the next n bytes that the side has sent.  Ignores bytes after FIN and
 * RST. */
void tcp_segment_bytes(struct tcp_segments *s, enum tcp_segment_side side,
		       const uint8_t *p, uint32_t n);
/* The side has sent FIN after its last byte.  Does nothing if the side has
 * ended already, or the connection was reset. */
void tcp_segment_end(struct tcp_segments *s, enum tcp_segment_side side);
/* The side has reset the connection.  Does nothing if both sides have ended. */
void tcp_segment_reset(struct tcp_segments *s, enum tcp_segment_side side);
/* Makes segments of the bytes that are held, and frees the memory. */
void tcp_segment_fini(struct tcp_segments *s);

#endif
