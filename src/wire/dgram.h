/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef WIRE_DGRAM_H
#define WIRE_DGRAM_H

#include <stddef.h>
#include <stdint.h>

#include "util/inaddr.h"

/*
 * One datagram, or several to the same place back to back, `segment` bytes
 * each but the last, which may be shorter: the kernel cuts them up (GSO) or
 * has put them together (GRO).  bytes are borrowed.
 */
struct udp_dgram {
	struct inaddr from, to;
	uint32_t ifindex; /* out: for link-local addresses and groups; 0: any */
	const uint8_t *bytes;
	size_t len, segment;
	uint8_t tos, ttl;
};

#endif
