/* SPDX-License-Identifier: BSD-2-Clause */
/* The verdicts of a responder on a request.  For each verdict a row of a table
 * has the answer and the consequences (IBTA Vol 1, 9.7.5.2 and 9.9.3). */
#ifndef IBT_VERDICT_H
#define IBT_VERDICT_H

#include <stdbool.h>
#include <stdint.h>

#include "hca/event.h"

enum verdict {
	V_OK,		/* the request is executed */
	V_RNR,		/* no receive is posted: the requester tries later */
	V_INVALID,	/* the request is invalid */
	V_ACCESS,	/* the key, the range or the right is refused */
	V_REMOTE_FAULT, /* the target memory is not mapped */
	V_TOO_LONG,	/* the message is longer than the receive buffers */
	V_RECV_MEMORY,	/* the receive's own SGEs cannot be used */
	/* The key cannot be invalidated: class J of IBTA 9.9.6.3, for which the
	 * requester gets no answer. */
	V_INVALIDATE,
};

/* Is this number, which another process wrote, a verdict that ends a
 * connection? */
static inline bool verdict_is_refusal(uint32_t number)
{
	return number >= V_INVALID && number <= V_INVALIDATE;
}

/* The answer to a request, and its consequences for the responder's QP. */
struct verdict_row {
	/* The AETH's syndrome; for V_RNR without the timer's value. */
	uint8_t syndrome;
	bool silent; /* the requester gets no answer */
	/* The enum hca_status with which the receive completes; 0: the receive
	 * is flushed, or there is none. */
	uint8_t recv_status;
	enum engine_event_type event; /* of the QP; ENGINE_EXPLAIN: no event */
};

/* Returns v's row, which is static. */
const struct verdict_row *verdict_row(enum verdict v);

#endif
