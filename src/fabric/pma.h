/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The performance management agent of each node (IBTA 16.1): ClassPortInfo,
 * PortCounters and PortCountersExtended.  Counters of bytes and packets count
 * the datagrams that pass a port.
 */
#ifndef FABRIC_PMA_H
#define FABRIC_PMA_H

#include "fabric/sma.h"

/* Carries out a request to the agent; results as those of sma_request. */
enum sma_verdict pma_request(struct packet *p, uint16_t *status);

#endif
