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

struct capture; /* NULL: not capturing */

/* Opens the file that ADVERB_PCAP names; NULL when unset or impossible. */
struct capture *capture_new(void);
void capture_free(struct capture *c);
/* One datagram (payload of UDP); c may be NULL. */
void capture_put(struct capture *c, const struct inaddr *from,
		 const struct inaddr *to, uint8_t tos, uint8_t ttl,
		 const uint8_t *bytes, size_t len);

#endif
