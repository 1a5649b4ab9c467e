/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The M_Key of a port (IBTA 14.2.4) decides which requests may read and set the
 * values that a subnet manager configures.  A refused request starts the lease
 * period (M_KeyLeasePeriod), unless the period already runs or is 0.  If no
 * request with the key comes before the period ends, any requester may read the
 * key, so that a lost key can be recovered.
 */
#ifndef FABRIC_MKEY_H
#define FABRIC_MKEY_H

#include "fabric/inside.h"

enum mkey_verdict {
	MKEY_FITS,    /* the request is allowed */
	MKEY_HIDDEN,  /* a Get without the key: PortInfo.M_Key reads as 0 */
	MKEY_REFUSED, /* the request gets no answer; a violation is counted */
};

/* Judges a Get (is_get) or another request with the M_Key `key` to `port`,
 * which is port 0 of a switch or a port of an adapter.  A refusal starts the
 * lease period, and a request with the right key stops the period. */
enum mkey_verdict mkey_check(struct port *port, uint64_t key, bool is_get);

#endif
