/* SPDX-License-Identifier: BSD-2-Clause */
/* The answers of a responder to a request, and their consequences, one row each
 * (IBTA Vol 1, 9.7.5.2 and 9.9.3). */
#ifndef IBT_VERDICT_H
#define IBT_VERDICT_H

#include <stdbool.h>
#include <stdint.h>

#include "hca/event.h"

enum verdict {
	V_OK,
	V_RNR,		/* no receive posted: try later */
	V_INVALID,	/* invalid request */
	V_ACCESS,	/* key, range or right refused */
	V_REMOTE_FAULT, /* the target memory is not mapped */
	V_TOO_LONG,	/* longer than the receive buffers */
	V_RECV_MEMORY,	/* the receive's own SGEs are unusable */
	/* A key that cannot be invalidated: class J of IBTA 9.9.6.3, of which
	 * the requester is told nothing. */
	V_INVALIDATE,
};

/* Does a number that another process wrote say why a request is refused? */
static inline bool verdict_is_refusal(uint32_t number)
{
	return number >= V_INVALID && number <= V_INVALIDATE;
}

struct verdict_row {
	uint8_t syndrome;	      /* AETH; the RNR timer is added */
	bool silent;		      /* there is no answer */
	uint8_t recv_status;	      /* of the receive under way; 0: flushed */
	enum engine_event_type event; /* ENGINE_EXPLAIN: none */
};

const struct verdict_row *verdict_row(enum verdict v);

#endif
