/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ADVERB_PCAP=FILE: every frame, both ways, as pcapng with the Ethernet, IP
 * and UDP headers that it has on a wire put before it.  Writing goes past
 * the rule not to write files under the progress lock: a user that asks for a
 * capture wants each frame, not speed.
 */
#ifndef HOST_CAPTURE_H
#define HOST_CAPTURE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "util/inaddr.h"

/* Open the file if one is asked for. */
void capture_open(void);
void capture_close(void);
bool capture_is_open(void);
/* Nothing without a file.  id: of the IPv4 header. */
void capture_frame(const struct inaddr *from, const struct inaddr *to,
		   const uint8_t *bytes, size_t len, uint16_t id, uint8_t tos,
		   uint8_t ttl);

#endif
