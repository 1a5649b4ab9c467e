/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The M_Key of a port (IBTA 14.2.4): who may read and set what a subnet manager
 * configures, and the lease after which a lost key stops to protect.
 */
#ifndef FABRIC_MKEY_H
#define FABRIC_MKEY_H

#include "fabric/inside.h"

enum mkey_verdict {
	MKEY_FITS,    /* the requester knows the key, or there is none */
	MKEY_HIDDEN,  /* a Get without the key: PortInfo.M_Key reads as 0 */
	MKEY_REFUSED, /* no answer; the violation is counted */
};

/* Judges a request with M_Key `key` to the endport `port`.  A refusal starts
 * the lease of the key; a request with the right key ends the lease. */
enum mkey_verdict mkey_check(struct port *port, uint64_t key, bool is_get);

#endif
