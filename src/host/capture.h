/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ADVERB_PCAP=FILE: writes every frame that is sent or received, as pcapng,
 * with the Ethernet, IP and UDP headers that the frame has on a wire.  Frames
 * are written under the progress lock, against the rule to write no files
 * there: a user that asks for a capture wants each frame, not speed.
 */
#ifndef HOST_CAPTURE_H
#define HOST_CAPTURE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "util/inaddr.h"

/* Opens the file if the environment names one; prints why it cannot. */
void capture_open(void);
/* Closes the file, if it is open. */
void capture_close(void);
/* Are frames captured? */
bool capture_is_open(void);
/* Writes one frame; without a file does nothing.  @id: the identification of
 * the IPv4 header.  Under the progress lock. */
void capture_frame(const struct inaddr *from, const struct inaddr *to,
		   const uint8_t *bytes, size_t len, uint16_t id, uint8_t tos,
		   uint8_t ttl);

#endif
