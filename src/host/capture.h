/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ADVERB_PCAP=FILE: writes every frame that is sent or received to a pcapng
 * file, with the Ethernet, IP and UDP headers that it has on a wire.  Frames
 * are written under the progress lock, although no other file is written under
 * it: a user who asks for a capture wants each frame rather than speed.
 *
 * Owner: this file; one capture for each process.
 */
#ifndef HOST_CAPTURE_H
#define HOST_CAPTURE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/engine.h"
#include "util/inaddr.h"

/* Opens the file that ADVERB_PCAP names, if any and if it is not open.  If this
 * fails, prints why, and there is no capture. */
void capture_open(void);
/* Closes the file, if it is open. */
void capture_close(void);
/* Are frames captured? */
bool capture_is_open(void);
/* Writes the frame of a UDP payload bytes[0..len); does nothing if there is no
 * capture, or if the frame is longer than 10 KiB.  @id: the identification of
 * the IPv4 header; @ttl: the TTL or hop limit, 0 for 64.  Called under the
 * progress lock. */
void capture_frame(const struct inaddr *from, const struct inaddr *to,
		   const uint8_t *bytes, size_t len, uint16_t id, uint8_t tos,
		   uint8_t ttl);
/* Writes a frame of the engine that was sent, one packet for each segment, as
 * on the wire.  The frame goes by UDP. */
void capture_sent(const struct engine_frame *f);
/* Writes a datagram that was received. */
void capture_received(const struct engine_dgram *d);

#endif
