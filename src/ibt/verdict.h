/* SPDX-License-Identifier: BSD-2-Clause */
/* The verdicts of a responder on a request: a row of a table says the answer
 * and the consequences (IBTA Vol 1, 9.7.5.2 and 9.9.3). */
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

/* Is this number, which another process wrote, the verdict of a refusal? */
static inline bool verdict_is_refusal(uint32_t number)
{
	return number >= V_INVALID && number <= V_INVALIDATE;
}

struct verdict_row {
	uint8_t syndrome;	      /* AETH; the RNR timer is added */
	bool silent;		      /* there is no answer */
	uint8_t recv_status;	      /* status of the receive; 0: flushed */
	enum engine_event_type event; /* ENGINE_EXPLAIN: none */
};

/* Returns v's row, which is static. */
const struct verdict_row *verdict_row(enum verdict v);

#endif
