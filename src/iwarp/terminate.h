/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The errors by which an iWARP stream ends (RFC 5040 4.8, RFC 5041 7.2, RFC
 * 5044 8, RFC 6581 8): one table with the layer, the type and the code that a
 * Terminate carries, the event of the QP, and the text for the user.  Pure: the
 * functions depend on their arguments alone.
 */
#ifndef IWARP_TERMINATE_H
#define IWARP_TERMINATE_H

#include <stdbool.h>
#include <stdint.h>

#include "hca/event.h"
#include "hca/mr.h"

/* The causes, whose texts for the user are in terminate.c. */
enum terminate_cause {
	TERMINATE_NONE, /* no error */
	/* an error of the sender of the Terminate, not of its peer */
	TERMINATE_LOCAL,
	/* RDMAP: the source of a READ, the target of an atomic */
	TERMINATE_SOURCE_STAG,
	TERMINATE_SOURCE_BOUNDS,
	TERMINATE_SOURCE_STREAM,
	TERMINATE_SOURCE_WRAP,
	/* RDMAP: any message */
	TERMINATE_RIGHT,
	TERMINATE_INVALIDATE,
	TERMINATE_RDMAP_VERSION,
	TERMINATE_OPCODE,
	TERMINATE_STREAM,
	TERMINATE_GLOBAL,
	TERMINATE_UNSPECIFIC,
	/* DDP: tagged segments */
	TERMINATE_STAG,
	TERMINATE_BOUNDS,
	TERMINATE_STAG_STREAM,
	TERMINATE_WRAP,
	TERMINATE_TAGGED_VERSION,
	/* DDP: untagged segments */
	TERMINATE_QUEUE,
	TERMINATE_NO_BUFFER,
	TERMINATE_SEQUENCE,
	TERMINATE_OFFSET,
	TERMINATE_TOO_LONG,
	TERMINATE_UNTAGGED_VERSION,
	/* MPA */
	TERMINATE_CLOSED,
	TERMINATE_CRC,
	TERMINATE_FRAMING,
	TERMINATE_MPA_FRAME,
	TERMINATE_MPA_LOCAL,
	TERMINATE_IRD,
	TERMINATE_RTR,
	TERMINATE_CAUSES /* how many values there are */
};

/* The properties of a cause. */
struct terminate_row {
	uint8_t layer, type, code; /* as in the Terminate (hdr/rdmap.h) */
	/* The event of the QP whose process finds the error. */
	enum engine_event_type event;
	/* A noun phrase that completes "ended the iWARP connection because
	 * of"; static.  NULL only for TERMINATE_NONE. */
	const char *text;
};

/* Returns the row of a cause; the row is static. */
const struct terminate_row *terminate_row(enum terminate_cause cause);
/* Does a Terminate of this cause quote the refused segment's DDP header (RFC
 * 5040 4.8, figure 10)? */
bool terminate_quotes_ddp(enum terminate_cause cause);
/* Does a Terminate of this cause quote the body of the refused Read Request
 * (RFC 5040 4.8, figure 10)? */
bool terminate_quotes_read(enum terminate_cause cause);
/* Returns the cause that a received Terminate names by these three fields of
 * its body (hdr/rdmap.h).  TERMINATE_NONE: the RFCs define no such error. */
enum terminate_cause terminate_find(uint8_t layer, uint8_t type, uint8_t code);
/* Returns the cause of a refused access to the buffer of a tagged segment.
 * @v: at most MR_BAD_QP, since the later verdicts are about binds; MR_OK means
 * that the queue pair itself lacks the access right. */
enum terminate_cause terminate_of_tagged(enum mr_verdict v);
/* Returns the cause of a refused access to the source of a READ or the target
 * of an atomic.  @v: at most MR_BAD_QP, since the later verdicts are about
 * binds; MR_OK means that the queue pair itself lacks the access right. */
enum terminate_cause terminate_of_source(enum mr_verdict v);

#endif
