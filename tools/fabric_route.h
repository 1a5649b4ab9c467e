/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Queries for a path at the subnet administration (IBTA Vol 1, 15.2.5.16):
 * conversions between struct cmproto and the MADs of SubnAdmGet(PathRecord).
 * No state.
 */
#ifndef TOOLS_FABRIC_ROUTE_H
#define TOOLS_FABRIC_ROUTE_H

#include <stddef.h>
#include <stdint.h>

#include "broker/cmproto.h"
#include "hdr/mad.h"

enum {
	FABRIC_ROUTE_RETRIES = 3, /* how often a query is sent again */
};

/* Writes the query for a path from m->at.local to m->at.peer, with the traffic
 * class m->path.traffic_class, for the service m->at.service_id or, if that is
 * 0, for the service of m->at.space and m->at.peer_port.  The query also has
 * m->path.pkey if that is not 0, and m->path.sl if that is not 0.  The lower
 * half of its transaction ID is `id`. */
void fabric_route_write(const struct cmproto *m, uint32_t id,
			uint8_t mad[MAD_BYTES]);
/* Reads the path in an answer of `bytes` bytes and any contents.  Returns 0;
 * -ENETUNREACH: the administration knows no such path, or the answer's
 * values are impossible; -EREMOTEIO: no subnet administration is at the port
 * that has answered, or the subnet administration is busy. */
int fabric_route_read(const uint8_t *mad, size_t bytes,
		      struct cmproto_path *path);
/* Returns how many ms each try may take, so that all FABRIC_ROUTE_RETRIES + 1
 * tries together last about 4.096 us times 2 to the power `timeout`, which
 * counts as at least 10 and at most 24. */
uint32_t fabric_route_try_ms(uint8_t timeout);

#endif
