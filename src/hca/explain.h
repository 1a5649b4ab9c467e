/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * When a request, a receive or a QP fails, the user gets a message that states
 * the reason.  Protocol code collects the facts of the failure, and
 * explain_text makes the message from these facts.  explain_text is pure, so
 * tests check the messages without a real process.
 */
#ifndef HCA_EXPLAIN_H
#define HCA_EXPLAIN_H

#include <stddef.h>
#include <stdint.h>

enum explain_cause {
	EXPLAIN_NONE,		/* no failure */
	EXPLAIN_LOCAL_KEY,	/* a local key, range or right is wrong */
	EXPLAIN_LOCAL_FAULT,	/* registered memory is unmapped or read-only */
	EXPLAIN_LOCAL_LENGTH,	/* a message exceeds the receive buffers */
	EXPLAIN_LOCAL_ROOM,	/* an access exceeds the SGEs of its request */
	EXPLAIN_LOCAL_OP,	/* the request may not be executed on this QP */
	EXPLAIN_REMOTE_KEY,	/* a peer's key, range or right was refused */
	EXPLAIN_REMOTE_FAULT,	/* as LOCAL_FAULT, at a peer's request */
	EXPLAIN_REMOTE_INVALID, /* a peer's request was refused as invalid */
	EXPLAIN_INVALIDATE,	/* a peer asked to invalidate a wrong key */
	EXPLAIN_NAK_ACCESS,	/* the peer answered remote access error */
	EXPLAIN_NAK_INVALID,	/* the peer answered invalid request */
	EXPLAIN_NAK_OPERATION,	/* the peer answered remote operational error */
	EXPLAIN_RETRY,		/* the peer never answered */
	EXPLAIN_FELL_SILENT,	/* the peer was heard before, and is silent */
	EXPLAIN_MTU,		/* the peer answers only smaller packets */
	EXPLAIN_MTU_MAYBE,	/* as EXPLAIN_MTU, before a request fails */
	EXPLAIN_PATIENCE,	/* the peer is alive, but silent for too long */
	EXPLAIN_PEER_CLOSED,	/* the peer's QP was destroyed or is in ERR */
	EXPLAIN_PEER_LEFT,	/* the peer has ended the connection */
	EXPLAIN_PEER_GONE,	/* the peer's process has ended */
	EXPLAIN_DENIED,		/* the kernel now denies the peer's memory */
	EXPLAIN_RNR,		/* the peer had no receive posted */
	EXPLAIN_DROPPED,	/* a message of UC or UD was dropped */
	EXPLAIN_CQ_OVERRUN,	/* the completion queue overflowed */
	EXPLAIN_MIGRATION,	/* a peer's path migration was refused */
	/* iWARP: one side has found an error, which ends the connection.
	 * `detail` is the error, a noun phrase. */
	EXPLAIN_STREAM_REFUSED, /* this side has found the error */
	EXPLAIN_STREAM_ENDED,	/* the peer has sent a Terminate */
};

/* The value of explain.opcode for a receive that has failed. */
enum { EXPLAIN_RECEIVE = 128 };

/* The facts about a failure.  A cause uses only some of the members, and
 * explain_text ignores the others. */
struct explain {
	enum explain_cause cause;
	uint32_t qpn, dest_qpn; /* the QP, and its peer's; 0: not known */
	uint64_t wr_id;		/* of the request or receive that failed */
	/* enum hca_wr or EXPLAIN_RECEIVE; for a peer's request the opcode of
	 * the BTH or, for iWARP, of RDMAP. */
	uint32_t opcode;
	uint32_t key; /* the lkey or rkey of the access */
	/* The range of the access; for EXPLAIN_LOCAL_LENGTH and
	 * EXPLAIN_LOCAL_ROOM `bytes` is the least room that is needed. */
	uint64_t va, bytes;
	uint32_t verdict; /* enum mr_verdict */
	uint32_t need;	  /* the missing right, enum hca_access */
	/* The region of the key, if there is one; for EXPLAIN_LOCAL_LENGTH
	 * region_bytes is the room of the receive, and for EXPLAIN_LOCAL_ROOM
	 * that of the request's SGEs. */
	uint64_t region_va, region_bytes;
	/* tries: the sum of rc_req.retries and rc_req.rnr_retries.  seconds:
	 * ADVERB_PATIENCE. */
	uint32_t tries, seconds;
	/* The bytes of data in the oldest unacknowledged packet or, for a READ,
	 * in the next response, if that packet may exceed the MTU of the path;
	 * else 0. */
	uint32_t long_bytes;
	/* The addresses of this side and of the peer; IPv4 as ::ffff:a.b.c.d,
	 * a LID as inaddr_map_lid writes it. */
	uint8_t self_ip[16], peer_ip[16];
	/* Static text, or NULL.  For EXPLAIN_INVALIDATE: the consequence of the
	 * refusal; NULL: the request is not answered. */
	const char *detail;
	/* EXPLAIN_DROPPED: a number below 256 for the reason, by which
	 * explain_key tells the messages about one QP apart; else 0. */
	uint8_t drop;
};

/* Returns a number that names the cause, the QP and the reason of a drop.  Of
 * the messages with one number, log_say prints only the first. */
static inline uint64_t explain_key(const struct explain *x)
{
	return (uint64_t)x->cause << 32 | (uint64_t)x->drop << 24 |
	       (x->qpn & 0xffffff);
}

/* Writes the message into buf, without "adverb: " and newline, cut to size - 1
 * bytes and ended by a NUL.  Returns the message's length after the cut,
 * without the NUL; 0 for EXPLAIN_NONE, for which buf gets an empty text.  size
 * is at least 1. */
size_t explain_text(const struct explain *x, char *buf, size_t size);

#endif
