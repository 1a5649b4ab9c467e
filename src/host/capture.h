/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ADVERB_PCAP=FILE: every datagram, both ways, as pcapng with the Ethernet,
 * IP and UDP headers that were or would have been on the wire.  No privilege
 * is needed: the headers are rebuilt.  Owner and lock: the lane.
 */
#ifndef HOST_CAPTURE_H
#define HOST_CAPTURE_H

#include <stddef.h>
#include <stdint.h>

#include "util/inaddr.h"

/*
 * One datagram (payload of UDP).  Opens the file at the first; does nothing
 * without ADVERB_PCAP.  Under the lane's lock.
 */
void capture_frame(const struct inaddr *from, const struct inaddr *to,
		   const uint8_t *bytes, size_t len, uint8_t tos, uint8_t ttl);

#endif
